"""Drivers: what the learner's file does with wrong arguments, and with launches that fail."""

from __future__ import annotations

import ast
import contextlib
import functools
import pickle
import sys
import types
import warnings
from pathlib import Path
from unittest import mock

import numpy
import torch
import triton
from triton.compiler.errors import CompileTimeAssertionFailure
from triton.runtime.jit import JITFunction

CONFIGS = ((128, 64, 32, 8, 3), (64, 32, 32, 4, 2), (32, 32, 16, 4, 1))


# ---------------------------------------------------------------------------------------------
# Arguments


def validate_matmul(module, a, b, out=None, allowed=None):
    """The problem that valid arguments make, as plain values; what is raised goes on."""
    return _plainly(module.validate_matmul(_made(a), _made(b), _made(out), **_allowed(allowed)))


def refusal(module, a, b, out=None, allowed=None):
    """The same, and what is raised as data."""
    return _told(lambda: _plainly(module.validate_matmul(
        _made(a), _made(b), _made(out), **_allowed(allowed))))


def in_one_buffer(module, where, dtype="float32"):
    """What is said of a result that lies in the same buffer as a, b of its own or both."""
    buffer = torch.zeros(256, dtype=getattr(torch, dtype))

    def at(start, rows, columns):
        return buffer[start:start + rows * columns].view(rows, columns)

    apart = torch.zeros(4, 4, dtype=buffer.dtype)
    a, b, out = {
        "the same tensor": lambda: (at(0, 4, 4), apart, at(0, 4, 4)),
        "the last 16 elements of a": lambda: (at(0, 8, 4), apart, at(16, 8, 4)),
        "the last element of b": lambda: (apart, at(0, 4, 4), at(15, 4, 4)),
        "a transposed view": lambda: (at(0, 4, 4), apart, at(0, 4, 4).mT),
        "a view of the same bytes": lambda: (
            at(0, 4, 4), apart, at(0, 4, 4).view(torch.uint8).view(buffer.dtype)),
        "storage made anew": lambda: (
            at(0, 4, 4), apart, torch.from_numpy(buffer.numpy()[:16]).view(4, 4)),
        "in the last row of an a with gaps": lambda: (
            at(0, 8, 8)[::2], torch.zeros(8, 4, dtype=buffer.dtype), at(40, 4, 4)),
        "behind a row that a repeats": lambda: (
            at(0, 1, 4).expand(4, 4), apart, at(4, 4, 4)),
        "right behind a": lambda: (at(0, 4, 4), apart, at(16, 4, 4)),
        "right before b": lambda: (apart, at(16, 4, 4), at(0, 4, 4)),
        "between a and b": lambda: (at(0, 4, 4), at(32, 4, 4), at(16, 4, 4)),
        "no elements": lambda: (at(0, 0, 4), at(0, 4, 4), at(0, 0, 4)),
    }[where]()
    return _told(lambda: _plainly(module.validate_matmul(a, b, out)))


def optimized(module, which):
    """What a wrong call raises as it is, and where Python takes assertions away (`python -O`)."""
    def called(one):
        launched = []

        def launch(a, b, out, config):
            launched.append(1)
            out.zero_()

        wrong = {
            "sizes": lambda: one.matmul_robust(torch.ones(2, 3), torch.ones(4, 5), launch=launch),
            "dtypes": lambda: one.matmul_robust(torch.ones(2, 3), torch.ones(3, 5).half(),
                                                launch=launch),
            "type": lambda: one.validate_matmul(torch.ones(2, 3), None),
            "out": lambda: one.validate_matmul(torch.ones(2, 3), torch.ones(3, 5),
                                               torch.ones(2, 4)),
            "pick_block": lambda: one.pick_block(-1),
        }
        return _told(lambda: wrong[which]() is None) | {"launches": len(launched)}

    return [called(module), called(_once_more(module, optimize=1))]


def _once_more(module, optimize=0):
    """The learner's file, imported anew; with ``optimize`` of 1 as `python -O` does."""
    path = module.__file__
    code = compile(Path(path).read_bytes(), path, "exec", dont_inherit=True, optimize=optimize)
    again = types.ModuleType("kernel_once_more")
    again.__file__ = path
    with mock.patch.dict(sys.modules, {again.__name__: again}):  # dataclasses look it up
        exec(code, again.__dict__)
    return again


def _made(value):
    """What cannot cross between processes is made here, by its name."""
    kinds = {
        "numpy": lambda: numpy.ones((2, 3), dtype=numpy.float32),
        "object": object,
        "function": lambda: _made,
        "generator": lambda: (number for number in ()),
        "tensor type": lambda: torch.Tensor,
    }
    return kinds[value[5:]]() if isinstance(value, str) and value.startswith("some ") else value


def _allowed(names):
    return {} if names is None else {"allowed": tuple(getattr(torch, name) for name in names)}


def _plainly(problem):
    """Sizes, dtype and device of a MatmulProblem."""
    return {"type": type(problem).__name__} | {
        name: value if isinstance(value := getattr(problem, name, None), int) else str(value)
        for name in ("M", "N", "K", "dtype", "device")}


# ---------------------------------------------------------------------------------------------
# Errors, and launches that fail


def errors(module, name):
    """Parents of a class, and whether one of it comes through pickling and copying as it is."""
    kind = getattr(module, name, None)
    if not isinstance(kind, type):
        return {"parents": None}
    made = _raised_by(module, name)
    return {"parents": [parent.__name__ for parent in kind.__mro__],
            "came": type(made).__name__, "copied": _copied(made)}


def _raised_by(module, name):
    """An error of that name, as the learner's functions raise it."""
    one = torch.ones(2, 2)
    raising = {
        "InputValidationError": lambda: module.validate_matmul(torch.ones(2), one),
        "InputTypeError": lambda: module.validate_matmul(None, 1.5),
        "KernelCompilationError": lambda: _failing_launch(module, "compilation"),
        "KernelResourceError": lambda: _failing_launch(module, "shared memory"),
        "KernelExecutionError": lambda: _failing_launch(module, "device"),
    }.get(name)
    if raising is None:
        return None
    try:
        raising()
    except NotImplementedError:
        raise
    except BaseException as error:
        return error
    return None


def _failing_launch(module, kind):
    error = _failure(module, kind)

    def launch():
        raise error

    return module.safe_launch(launch, op="test")


def safe_launch(module, kind, late=False):
    """What `safe_launch` makes of a failure: of the launch, or of ``synchronize`` after it."""
    error, calls = _failure(module, kind), []

    def fail():
        calls.append("failed")
        raise error

    def work():
        calls.append("launched")

    how = {"synchronize": fail} if late else {}
    return _told(lambda: module.safe_launch(work if late else fail, op="rotate", **how),
                 error) | {"calls": calls}


def returned(module, waits):
    """What `safe_launch` returns of a launch that works, and in which order it calls what."""
    calls = []
    waited = {"synchronize": lambda: calls.append("synchronize")} if waits else {}

    def launch():
        calls.append("launch")
        return ["the value", 7]

    with mock.patch.object(torch.cuda, "synchronize",
                           lambda *_: calls.append("torch.cuda.synchronize")), \
            mock.patch.object(torch.cuda, "is_available", lambda: True):  # as on a GPU
        told_ = _told(lambda: module.safe_launch(launch, op="rotate", **waited))
    return told_ | {"calls": calls}


def _failure(module, kind):
    return {
        "compilation": lambda: triton.CompilationError(
            "x = tl.no(y)", ast.Pass(lineno=1, col_offset=0), "no such operation"),
        "static_assert": lambda: CompileTimeAssertionFailure(
            "tl.static_assert(False)", ast.Pass(lineno=1, col_offset=0), "a static assertion"),
        "shared memory": lambda: triton.OutOfResources(300_000, 232_448, "shared memory"),
        "threads": lambda: triton.OutOfResources(2_048, 1_024, "threads"),
        "memory": lambda: torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."),
        # The texts of the next two begin otherwise, so that it is the class that counts.
        "device": lambda: torch.AcceleratorError("an illegal memory access was encountered"),
        "cuda": lambda: torch.cuda.CudaError.__new__(  # without CUDA its own __init__ fails
            torch.cuda.CudaError, "unspecified launch failure (719)"),
        "text": lambda: RuntimeError("CUDA error: device-side assert triggered"),
        "driver": lambda: RuntimeError("Triton Error [CUDA]: misaligned address"),
        "bug": lambda: TypeError("'NoneType' object is not subscriptable"),
        "value": lambda: ValueError("a block has to be a power of two"),
        "attribute": lambda: AttributeError("'NoneType' object has no attribute 'shape'"),
        "assertion": lambda: AssertionError("num_warps must be a power of 2"),
        "other": lambda: RuntimeError("the size of tensor a must match the size of tensor b"),
        "mentioned": lambda: RuntimeError("no handler for the text CUDA error"),
        "text elsewhere": lambda: ValueError("CUDA error is not a mode of this function"),
        "host memory": lambda: MemoryError("the host has no memory left"),
        "interrupt": lambda: KeyboardInterrupt(),
        "exit": lambda: SystemExit(3),
        "own validation": lambda: _raised_by(module, "InputValidationError"),
        "own resource": lambda: _raised_by(module, "KernelResourceError"),
    }[kind]()


# ---------------------------------------------------------------------------------------------
# matmul_robust with launches that fail


def recovery(module, faults, policy, a, b, configs=CONFIGS):
    """A call whose launches fail one after the other as ``faults`` say; "" is one that works.

    After the last of them, all launches end like it. A launch that fails has written half of the
    result before.
    """
    tried = []

    def launch(a, b, out, config):
        kind = faults[min(len(tried), len(faults) - 1)]
        tried.append(_fields(config))
        out.copy_(a.float() @ b.float())
        if kind:
            out[: (out.shape[0] + 1) // 2] = 12_345.0
            out[(out.shape[0] + 1) // 2:] = 0.0
            raise failures[kind]

    failures = {kind: _failure(module, kind) for kind in faults if kind}
    made = [module.Config(*config) for config in configs]
    return _observed(module, lambda: module.matmul_robust(
        _made(a), _made(b), configs=made, policy=policy, launch=launch),
        failures.get(faults[-1])) | {"tried": tried}


def refused(module, policy, a, b, configs=CONFIGS):
    """A call that has to be refused before it launches anything; what is raised goes on."""
    def launch(a, b, out, config):
        raise AssertionError("a kernel was launched on arguments that the contract excludes")

    made = [module.Config(*config) for config in configs]
    return module.matmul_robust(a, b, configs=made, policy=policy, launch=launch) is None


def by_default(module, kind, policy, a, b):
    """A call without ``launch`` and ``configs``, where each launch of a kernel fails."""
    tried, error = [], _failure(module, kind)

    def run(self, *args, **kwargs):
        tried.append([kwargs.get(name) for name in ("num_warps", "num_stages")])
        raise error

    with mock.patch.object(JITFunction, "run", run):
        return _observed(module, lambda: module.matmul_robust(a, b, policy=policy), error) | {
            "tried": tried, "configs": len(module.DEFAULT)}


def at_first(module):
    """What the counter of fallbacks holds before anything was called."""
    return getattr(_once_more(module).matmul_robust, "fallbacks", None)


def twice(module, a, b):
    """Three calls: one that falls back, one that works, one that falls back again."""
    def fails(a, b, out, config):
        raise _failure(module, "shared memory")

    def works(a, b, out, config):
        out.copy_(a.float() @ b.float())

    return [_observed(module, functools.partial(
        module.matmul_robust, a, b, policy="fallback", launch=launch))
        for launch in (fails, works, fails)]


def _fields(config):
    names = ("block_m", "block_n", "block_k", "num_warps", "num_stages")
    return [getattr(config, name, None) for name in names]


def _observed(module, call, error=None):
    """What a call raises, warns of, counts and returns."""
    before = getattr(module.matmul_robust, "fallbacks", None)
    result = []

    def called():
        result.append(call())

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        seen = _told(called, error)
    after = getattr(module.matmul_robust, "fallbacks", None)
    counted = after - before if isinstance(before, int) and isinstance(after, int) else None
    return seen | {"counted": counted, "warnings": [
        [[kind.__name__ for kind in one.category.__mro__], str(one.message)[:2_000],
         Path(one.filename).name] for one in caught],
        "result": _numbers(result[0]) if result else None}


def _numbers(result):
    """A tensor as plain values; of anything else its type."""
    if not isinstance(result, torch.Tensor):
        return {"type": type(result).__name__, "values": None}
    return {"type": "Tensor", "dtype": str(result.dtype).removeprefix("torch."),
            "shape": list(result.shape), "values": result.double().flatten().tolist()}


# ---------------------------------------------------------------------------------------------
# checked_outputs


def checked_outputs(module, where, value=float("nan"), dtype="float32"):
    """What a call tells of a result with one element of that value, in and around the blocks."""
    a, b = torch.ones(3, 4, dtype=getattr(torch, dtype)), torch.ones(4, 5).to(getattr(torch, dtype))

    def launch(a, b, out, config):
        out.copy_(a @ b)
        out[1, 2] = value

    def call():
        return module.matmul_robust(a, b, launch=launch) is None

    def before_any():
        return call()

    def inside():
        with module.checked_outputs():
            return call()

    def after():
        with module.checked_outputs():
            pass
        return call()

    def after_inner():
        with module.checked_outputs():
            with module.checked_outputs():
                pass
            return call()

    def inner():
        with module.checked_outputs(), module.checked_outputs():
            return call()

    def after_both():
        with module.checked_outputs(), module.checked_outputs():
            pass
        return call()

    def after_an_exception():
        with contextlib.suppress(KeyError), module.checked_outputs():
            raise KeyError("any")
        return call()

    def after_an_exception_inside():
        with module.checked_outputs():
            with contextlib.suppress(KeyError), module.checked_outputs():
                raise KeyError("any")
            return call()

    def after_what_it_raised():
        with contextlib.suppress(module.KernelExecutionError), module.checked_outputs():
            call()
        return call()

    def passes_exceptions():
        with module.checked_outputs():
            raise LookupError("any")

    def once_more():
        for _ in range(2):
            with contextlib.suppress(module.KernelExecutionError), module.checked_outputs():
                call()
        return inside()

    def of_the_fallback():
        def fail(a, b, out, config):
            raise _failure(module, "shared memory")

        with warnings.catch_warnings(), module.checked_outputs():
            warnings.simplefilter("ignore")
            return module.matmul_robust(a * value, b, policy="fallback", launch=fail) is None

    return _told(locals()[where])


# ---------------------------------------------------------------------------------------------


def _told(call, error=None):
    """What a call raises, as data; ``error`` is what was made to fail."""
    try:
        answer = call()
    except NotImplementedError:
        raise  # it is not written yet, whatever was asked for
    except BaseException as raised:
        return {
            "types": [kind.__name__ for kind in type(raised).__mro__],
            "message": str(raised)[:2_000],
            "itself": raised is error,
            "caused": raised.__cause__ is error,
            "problems": _texts(getattr(raised, "problems", None)),
            "required": _plain(getattr(raised, "required", None)),
            "limit": _plain(getattr(raised, "limit", None)),
            "resource": _plain(getattr(raised, "resource", None)),
            "copied": _copied(raised),
        }
    return {"types": [], "answer": answer}


def _texts(values):
    return [str(value)[:500] for value in values][:50] if isinstance(values, list) else None


def _plain(value):
    return value if isinstance(value, int | str) else None


def _copied(error):
    """Whether an exception comes through pickling as it is: processes send them that way."""
    with contextlib.suppress(Exception):
        copy = pickle.loads(pickle.dumps(error))
        fields = ("problems", "required", "limit", "resource")
        return type(copy) is type(error) and str(copy) == str(error) and all(
            getattr(copy, name, None) == getattr(error, name, None) for name in fields)
    return False
