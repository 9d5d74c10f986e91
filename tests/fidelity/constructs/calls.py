"""Loops and functions of ``tl``, called in every form that their signatures allow."""

from __future__ import annotations

import inspect
import linecache
from collections.abc import Iterator, Mapping
from typing import Any

import torch
import triton
import triton.language as tl

from .construct import EVERY, Theme, equal
from .values import integers, launch, out

theme = Theme("forms of calls")


def kernel_of(name: str, text: str) -> Any:
    """A kernel from its text, which Triton and the engine read again by its file's name."""
    file = f"<construct {name}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    namespace: dict[str, Any] = {
        "__name__": __name__, "triton": triton, "tl": tl, "_larger": _larger, "_put": _put}
    exec(compile(text, file, "exec"), namespace)
    return namespace["kernel"]


def _given(positional: Mapping[str, str], by_name: Mapping[str, str]) -> str:
    return ", ".join([*positional.values(), *(f"{k}={v}" for k, v in by_name.items())])


def _forms(arguments: Mapping[str, str], positional: int) -> Iterator[str]:
    """The arguments of a call, the first ones by position: none of them, one, up to ``positional``;
    those by name in both orders."""
    items = list(arguments.items())
    for cut in range(min(positional, len(items)) + 1):
        by_name = items[cut:]
        yield _given(dict(items[:cut]), dict(by_name))
        if len(by_name) > 1:
            yield _given(dict(items[:cut]), dict(reversed(by_name)))


# ---------------------------------------------------------------------------------------------
# Loops

_TURNS = 16  # that the kernels below have room for
_A, _N, _K = 2, 13, 3
VALUES = {"a": _A, "n": _N, "k": _K}
CONSTANTS = {"A": _A, "N": _N, "K": _K}

_LOOP = """@triton.jit
def kernel(out_ptr, a, n, k, A: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    turns = 0
    for i in {call}:
        tl.store(out_ptr + 1 + turns, i)
        turns += 1
    tl.store(out_ptr, turns)
"""


def _loops(function: str, a: str, n: str, k: str) -> dict[str, list[int]]:
    """Calls of a function with parameters ``arg1``, ``arg2`` and ``step``, and what their variable
    is in turn."""
    meanings: dict[tuple[str | None, str, str | None], list[int]] = {
        (None, n, None): list(range(_N)),
        (a, n, None): list(range(_A, _N)),
        (None, n, k): list(range(0, _N, _K)),
        (a, n, k): list(range(_A, _N, _K)),
        (n, a, "-1"): list(range(_N, _A, -1)),
        (n, a, "-K"): list(range(_N, _A, -_K)),
        (n, a, k): [],
        (None, n, "-1"): [],
        (None, "0", "1"): [],
    }
    calls = {}
    for (start, end, step), expected in meanings.items():
        bounds = {"arg1": end} if start is None else {"arg1": start, "arg2": end}
        if step is not None:
            bounds["step"] = step
        for form in _forms(bounds, 1 if start is None else 3):
            calls[f"{function}({form})"] = expected
    return calls


def _optional() -> dict[str, list[int]]:
    """Options of ``tl.range`` by name and by position: how often a loop runs does not depend on
    them."""
    values = {"num_stages": "2", "loop_unroll_factor": "2", "disallow_acc_multi_buffer": "True",
              "flatten": "True", "warp_specialize": "True", "disable_licm": "True"}
    names = [p for p in inspect.signature(tl.range.__init__).parameters if p in values]
    calls = {f"tl.range(n, step=k, {name}={values[name]})": list(range(0, _N, _K))
             for name in names}
    calls[f"tl.range(a, n, k, {', '.join(values[name] for name in names)})"] = list(
        range(_A, _N, _K))
    return calls


_PYTHON = {
    "range(n)": list(range(_N)),
    "range(a, n)": list(range(_A, _N)),
    "range(a, n, k)": list(range(_A, _N, _K)),
    "range(n, a, -K)": list(range(_N, _A, -_K)),
    "range(n, a, k)": [],
    "range(a, n, step=k)": list(range(_A, _N)),  # the compiler ignores names there
}
LOOPS = {**_loops("tl.range", "a", "n", "k"), **_loops("tl.static_range", "A", "N", "K"),
         **_optional(), **_PYTHON}


def loop_kernel(call: str) -> Any:
    """A kernel that stores the number of turns and then the variable of each."""
    return kernel_of(call, _LOOP.format(call=call))


def _loop(call: str, expected: list[int], **options: Any) -> None:
    @theme(f"for i in {call}", **options)
    def _(device: str) -> Any:
        got = launch(loop_kernel(call), device, out(1 + _TURNS, dtype=torch.int32, fill=-1),
                     **VALUES, **CONSTANTS)
        return equal(got, [len(expected), *expected, *[-1] * (_TURNS - len(expected))])


for _call, _expected in LOOPS.items():
    _loop(_call, _expected)
for _function, _end in (("tl.range", "n"), ("tl.static_range", "N")):
    _loop(f"{_function}({_end}, None, K)", [], rejects=EVERY)  # None is a constant like any other


# ---------------------------------------------------------------------------------------------
# Functions


@triton.jit
def _larger(a, b):
    return tl.maximum(a, b)


@triton.jit
def _put(out_ptr, value):
    if len(value.shape) == 0:
        tl.store(out_ptr, value)
    else:
        tl.store(out_ptr + tl.arange(0, value.numel), tl.reshape(value, (value.numel,)))


_ROOM = 512  # numbers that a result may have
_HEAD = """@triton.jit
def kernel(f_ptr, x_ptr, out_ptr, own_ptr):
    at = tl.arange(0, 16)
    f = tl.load(f_ptr + at)  # float32, 0.5 to 8
    x = tl.load(x_ptr + at)  # int32, 1 to 16
    m = f[:, None] * f[None, :]
"""
_UNSIGNED = "x.to(tl.uint32)"
_OWN = "own_ptr + 16 * {form} + at"  # int32 zeros, which no other form of the call uses
# The argument for a parameter of this name.
_ARGUMENTS = {
    "x": "f", "y": "f + 3", "z": "f + 5", "input": "f", "other": "f + 3", "axis": "0", "dim": "0",
    "keep_dims": "True", "reverse": "True", "mask": "x > 3", "a": "f", "b": "f + 3",
    "pointer": _OWN, "val": "x", "value": "x", "sem": "'relaxed'", "scope": "'gpu'",
    "ieee_rounding": "True", "sanitize_overflow": "False", "seed": "7", "offset": "x",
    "offsets": "x", "n_rounds": "6", "combine_fn": "_larger", "tie_break_left": "False",
    "propagate_nan": "tl.PropagateNan.ALL", "cond": "x == x", "descending": "True", "c0": "x",
    "c1": "x", "c2": "x", "c3": "x", "k0": "x", "k1": "x", "cache_modifier": "'.cg'",
    "return_indices": "False",
    "return_indices_tie_break_left": "False",
}
# Other arguments for single functions; "" is the item of a tuple that is stored.
_OTHER: dict[str, dict[str, str]] = {
    "arange": {"start": "0", "end": "16"},
    "atomic_cas": {"cmp": "x - x"},
    "broadcast": {"other": "m", "": "[0]"},
    "assume": {"cond": "tl.program_id(0) >= 0"},
    "broadcast_to": {"input": "f[None, :]", "shape": "(16, 16)"},
    "cast": {"dtype": "tl.float16", "fp_downcast_rounding": "'rtz'"},
    "cat": {"can_reorder": "True"},
    "cdiv": {"x": "x", "div": "3"},
    "clamp": {"min": "1.0", "max": "2.0"},
    "cumprod": {"dtype": "tl.float64"}, "cumsum": {"dtype": "tl.float64"},
    "device_assert": {"msg": "'holds'"},
    "dot": {"input": "m", "other": "m + 1", "acc": "m", "input_precision": "'ieee'"},
    "full": {"shape": "[16]", "value": "3", "dtype": "tl.int32"},
    "gather": {"src": "f", "index": "15 - at"},
    "histogram": {"input": "x", "num_bins": "8"},
    "load": {"pointer": "x_ptr + at", "other": "5"},
    "max_constancy": {"input": "x", "values": "1"},
    "max_contiguous": {"input": "at", "values": "8"},
    "multiple_of": {"input": "at", "values": "8"},
    "permute": {"input": "m", "dims": "(1, 0)"}, "trans": {"input": "m", "dims": "(1, 0)"},
    "pair_uniform_to_normal": {"u1": "f / 8", "u2": "f / 9", "": "[0]"},
    "philox": {"": "[0]"}, "philox_impl": {"c0": _UNSIGNED, "c1": _UNSIGNED, "c2": _UNSIGNED,
                                           "c3": _UNSIGNED, "k0": _UNSIGNED, "k1": _UNSIGNED,
                                           "": "[0]"},
    "rand4x": {"": "[3]"}, "randint4x": {"": "[3]"}, "randn4x": {"": "[3]"},
    "ravel": {"x": "m"},
    "reduce_or": {"input": "x"}, "xor_sum": {"input": "x"},
    "reshape": {"input": "m", "shape": "(2, 128)"}, "view": {"input": "m", "shape": "(2, 128)"},
    "softmax": {"x": "m", "dim": "1"},
    "split": {"a": "tl.join(f, f + 3)", "": "[1]"},
    "squeeze": {"x": "f[None, :]"},
    "swizzle2d": {"i": "x", "j": "at", "size_i": "16", "size_j": "16", "size_g": "2", "": "[0]"},
    "topk": {"k": "4"},
    "to_tensor": {"x": "3"},
    "uint_to_uniform_float": {"x": _UNSIGNED},
    "umulhi": {"x": "x * 123456789", "y": "x * 987654321"},
    "where": {"condition": "x > 3"},
    "zeros": {"shape": "[16]", "dtype": "tl.int32"},
}
_STATEMENTS = ("store", "atomic_store", "device_assert", "assume")
# Called in other themes only: their arguments have no names, or they take none, descriptors,
# functions or other programs.
_LEFT_OUT = frozenset((
    "static_assert",
    "debug_barrier", "device_print", "static_print", "inline_asm_elementwise", "dot_scaled",
    "map_elementwise", "load_tensor_descriptor", "store_tensor_descriptor", "make_block_ptr",
    "make_tensor_descriptor", "atomic_poll", "expect_zero",
    "advance",
))


def _calls(name: str, function: Any) -> list[str]:
    """Calls that mean the same: of the function and, where there is one, of the method of its first
    argument. ``{form}`` stands for the number of the call."""
    other = _OTHER.get(name, {})
    given: dict[str, str] = {}
    by_position = 0
    skipped = False
    for parameter in inspect.signature(getattr(function, "fn", function)).parameters.values():
        argument = other.get(parameter.name, _ARGUMENTS.get(parameter.name))
        if argument is None and parameter.default is inspect.Parameter.empty:
            raise KeyError(f"tl.{name} has a parameter `{parameter.name}` without an argument")
        if argument is None:
            skipped = True
            continue
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:  # sizes or axes: one or several
            first, = given.values()
            ways = argument, argument.strip("()")
            return [*(f"tl.{name}({first}, {way})" for way in ways),
                    *(f"({first}).{name}({way})" for way in ways if hasattr(tl.tensor, name))]
        by_position += not skipped and parameter.kind is not inspect.Parameter.KEYWORD_ONLY
        given[parameter.name] = argument
    calls = [f"tl.{name}({form})" for form in _forms(given, by_position)]
    if hasattr(tl.tensor, name) and name != "sort":  # Triton's stub of `x.sort()` returns None
        first, *rest = given
        calls += [f"({given[first]}).{name}({form})" for form in _forms(
            {key: given[key] for key in rest}, by_position - 1)]
    return calls


def _function(name: str, function: Any, **options: Any) -> None:
    item = _OTHER.get(name, {}).get("", "")
    calls = [call.replace("{form}", str(form))
             for form, call in enumerate(_calls(name, function))]
    lines = [call if name in _STATEMENTS else f"_put(out_ptr + {form * _ROOM}, {call}{item})"
             for form, call in enumerate(calls)]

    @theme(f"every form of tl.{name}", **options)
    def _(device: str) -> Any:
        kernel = kernel_of(name, _HEAD + "".join(f"    {line}\n" for line in lines))
        results = launch(kernel, device, torch.arange(1, 17) / 2, integers(16, low=1, high=16),
                         out(len(calls), _ROOM, dtype=torch.float64, fill=-77),
                         out(len(calls), 16, dtype=torch.int32, fill=0))
        return [equal(result, result[:1].expand_as(result)) for result in results]


for _name in tl.__all__:
    _member = getattr(tl, _name)
    if _name not in _LEFT_OUT and (
            inspect.isfunction(_member) or isinstance(_member, triton.JITFunction)):
        _function(_name, _member)
