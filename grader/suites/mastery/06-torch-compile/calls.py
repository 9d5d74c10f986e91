"""Asks torch's compiler about the learner's operator, blocks and functions; counts what it makes.

No code is generated here: the backend below only counts graphs, operations and runs, and then runs
the graph as it is. Launches in it go to the engine.
"""

from __future__ import annotations

import contextlib
import inspect
import logging
import math
import os
import time
import timeit
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from typing import Any
from unittest import mock

import torch

OPERATOR = "tritonlab::rmsnorm_gelu_linear"
WIDTH = 16
LARGE_EPS = 0.5
NUMBERS = {"item", "as_tensor"}  # of a graph in which the compiler turns a float into a tensor
LONGEST_BY_HAND = 256  # beyond, only graphs are counted


# ---------------------------------------------------------------------------------------------
# The operator


def operator(module: Any, m: int, k: int, n: int, dtype: str) -> dict[str, Any]:
    """What the operator says of its result without computing it, what it gives, and `opcheck`."""
    with _compiler():
        op = _registered()
        if op is None:
            return {"registered": False}
        arguments = _arguments(m, k, n, getattr(torch, dtype))
        before = [x.clone() for x in arguments[:4]]
        with torch.no_grad():
            real = op(*arguments)
            changed = [name for name, x, kept in zip(
                ("x", "norm_w", "w", "b"), arguments, before, strict=False)
                if not torch.equal(x, kept)]
            said = torch.library.opcheck(op, arguments, raise_exception=False)
            return {
                "registered": True, "real": _form(real), "fake": _fake(op, arguments),
                "changed": changed, "entry": _is_the_operator(module, op),
                "writes": [argument.name for argument in op._schema.arguments
                           if argument.alias_info is not None and argument.alias_info.is_write],
                "opcheck": {test: str(result) for test, result in said.items()},
            }


def _registered() -> Any:
    namespace, _, name = OPERATOR.partition("::")
    return getattr(getattr(getattr(torch.ops, namespace), name, None), "default", None)


def _is_the_operator(module: Any, op: Any) -> bool:
    """Whether a call of the file's function arrives at the operator."""
    seen: list[Any] = []

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    with contextlib.suppress(Exception), Watch():  # what it gives is judged elsewhere
        module.rmsnorm_gelu_linear(*_arguments(4, 8, 8, torch.float32))
    return op in seen


def _arguments(m: int, k: int, n: int, dtype: torch.dtype) -> tuple[Any, ...]:
    return (torch.randn(m, k).to(dtype), torch.rand(k).add(0.5).to(dtype),
            torch.randn(n, k).to(dtype), torch.randn(n).to(dtype), 1e-6)


def _form(result: Any) -> list[Any]:
    """Shape, dtype and strides of a tensor, with the type of anything else in place of these."""
    if not isinstance(result, torch.Tensor):
        return [type(result).__name__, "", ""]
    return [list(map(int, result.shape)), str(result.dtype), list(map(int, result.stride()))]


def _fake(op: Any, arguments: Sequence[Any]) -> list[Any] | str:
    from torch._subclasses.fake_tensor import FakeTensorMode

    try:
        with FakeTensorMode() as mode:
            return _form(op(*(mode.from_tensor(x) if isinstance(x, torch.Tensor) else x
                              for x in arguments)))
    except Exception as error:
        return f"{type(error).__name__}: {_first_line(error).rstrip('.')}."


# ---------------------------------------------------------------------------------------------
# Graphs


class Counting:
    """A backend: notes the operations of each graph that it gets, and how often it runs."""

    def __init__(self) -> None:
        self.graphs: list[list[str]] = []
        self.runs: list[int] = []

    def __call__(self, graph: torch.fx.GraphModule, example_inputs: Any) -> Callable[..., Any]:
        names = [_called(node) for node in graph.graph.nodes if node.op.startswith("call_")]
        if set(names) <= NUMBERS:
            return graph.forward
        number = len(self.graphs)
        self.graphs.append(names)
        self.runs.append(0)

        def run(*arguments: Any) -> Any:
            self.runs[number] += 1
            return graph.forward(*arguments)

        return run


def _called(node: Any) -> str:
    target = node.target
    if isinstance(target, torch._ops.OpOverload):
        return str(target._schema.name)
    if isinstance(target, torch._ops.OpOverloadPacket):
        return str(target._qualified_op_name)
    return target if isinstance(target, str) else getattr(target, "__name__", str(target))


def Block(module: Any, length: int) -> dict[str, Any]:  # noqa: N802 - what the learner calls it
    """What a block makes of an input, also with another eps; its parameters; where it breaks."""
    with _compiler():
        one = _model(module, 1)[0]
        x = torch.randn(2, length, WIDTH)
        names = sorted(name.rpartition(".")[2] for name, _ in one.named_parameters())
        found: dict[str, Any] = {"parameters": names}
        if not set(names) >= {"norm_w", "w", "b"}:
            return found
        answer = one(x)
        other = _model(module, 1, LARGE_EPS)
        found |= {"form": _form(answer), "wanted": _form(x),
                  "off": _off(answer, _by_hand(torch.nn.Sequential(one), x)),
                  "off_by_eps": _off(other(x), _by_hand(other, x, LARGE_EPS))}
        try:
            told = torch._dynamo.explain(one)(x)
        except Exception as error:
            return {**found, "raised": f"{type(error).__name__}: {_first_line(error)}"}
        return {**found, "graphs": told.graph_count,
                "breaks": [_broken(reason) for reason in told.break_reasons]}


def _broken(reason: Any) -> str:
    frames = [frame for frame in reason.user_stack if frame.filename.endswith("kernel.py")]
    where = f"line {frames[-1].lineno}: " if frames else ""
    return where + _first_line(reason.reason)


def compile_whole(module: Any, blocks: int, lengths: Sequence[int]) -> dict[str, Any]:
    return _compiled(module, module.compile_whole, blocks, lengths)


def compile_regionally(module: Any, blocks: int, lengths: Sequence[int]) -> dict[str, Any]:
    return _compiled(module, module.compile_regionally, blocks, lengths)


def _compiled(module: Any, how: Callable[..., Any], blocks: int,
              lengths: Sequence[int]) -> dict[str, Any]:
    """What one of the two makes of a model, over lengths.

    ``runs`` counts the runs of graphs for each length, ``off`` how far the results are from those
    of the blocks by hand, and ``error`` says what was raised for which length.
    """
    with _compiler():
        model, counting = _model(module, blocks), Counting()
        found: dict[str, Any] = {"runs": [], "off": 0.0, "error": ""}
        call = how(model, backend=counting)
        for length in lengths:
            x = torch.randn(min(blocks, 2), length, WIDTH) / 8  # attention magnifies larger ones
            before = sum(counting.runs)
            try:
                answer = call(x)
            except Exception as error:
                found["error"] = (f"{type(error).__name__} for length {length}: "
                                  f"{_first_line(error)}")
                break
            found["runs"].append(sum(counting.runs) - before)
            if length <= LONGEST_BY_HAND:
                found["off"] = max(found["off"], _off(answer, _by_hand(model, x)))
        return {**found, "graphs": counting.graphs}


def default_backends(module: Any) -> list[Any]:
    """What `backend` is where nothing is said."""
    return [repr(inspect.signature(getattr(module, how)).parameters["backend"].default)
            for how in ("compile_whole", "compile_regionally")]


def _model(module: Any, blocks: int, *eps: float) -> torch.nn.Sequential:
    """Blocks with weights of their own, so that none can stand for another."""
    model = torch.nn.Sequential(*(module.Block(WIDTH, *eps) for _ in range(blocks)))
    for name, parameter in model.named_parameters():
        parameter.copy_(torch.randn_like(parameter) / 16)  # or attention would magnify rounding
        if name.rpartition(".")[2] == "norm_w":
            parameter.add_(1.0)
    return model.eval()


def _by_hand(model: torch.nn.Sequential, x: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    """The blocks in torch's own operations and float64, from the parameters by their names."""
    functional = torch.nn.functional
    x = x.double()
    for one in model:
        has = {name.rpartition(".")[2]: value.double() for name, value in one.named_parameters()}
        x = x + functional.scaled_dot_product_attention(x, x, x, is_causal=True)
        h = functional.gelu(functional.rms_norm(x, (WIDTH,), has["norm_w"], eps))
        x = x + functional.linear(h, has["w"], has["b"])
    return x


def _off(answer: Any, right: torch.Tensor) -> float:
    """The largest difference, as a share of the largest number."""
    if not isinstance(answer, torch.Tensor) or answer.shape != right.shape:
        return math.inf
    return float((answer.double() - right).abs().max() / right.abs().max())


# ---------------------------------------------------------------------------------------------
# Schedules, caches, modes


def run_schedule(module: Any, lengths: Sequence[int], warmup: int,
                 iterations: int) -> dict[str, Any]:
    """What `run_schedule` says by a clock that only the called function moves.

    The first call with a length takes 3,100 ms, every later one 2.1 ms, but one of them 80 ms.
    """
    clock, calls = [1_000.0], []

    def fn(length: int) -> None:
        calls.append(length)
        seen = calls.count(length)
        clock[0] += 3.1 if seen == 1 else 0.08 if seen == warmup + 3 else 0.0021

    with _clock(module, clock):
        report = module.run_schedule(fn, lengths, warmup=warmup, iterations=iterations)
    return {**_fields(report), "calls": calls}


def schedule_by_default(module: Any, lengths: Sequence[int]) -> dict[str, Any]:
    """The calls of a schedule that is told nothing but its lengths."""
    calls: list[int] = []
    module.run_schedule(calls.append, lengths)
    return {"calls": calls}


def refused(module: Any, warmup: int, iterations: int) -> Any:
    return _fields(module.run_schedule(lambda length: None, (8,), warmup=warmup,
                                       iterations=iterations))


def compilations(module: Any, dynamic: bool | None, lengths: Sequence[int]) -> dict[str, Any]:
    """What `run_schedule` says of a compiled function, and how many graphs its backend got.

    ``again`` is the same of a second schedule with these lengths, for which all is compiled.
    """
    with _compiler():
        counting = Counting()
        call = torch.compile(lambda x: (2 * x).relu(), backend=counting, dynamic=dynamic)
        torch.compile(lambda x: x - 1, backend=Counting())(torch.ones(4))  # before the schedule

        def fn(length: int) -> torch.Tensor:
            return call(torch.ones(length))

        report = module.run_schedule(fn, lengths, iterations=2)
        graphs = len(counting.graphs)
        second = _fields(module.run_schedule(fn, lengths, iterations=2)).get("compiles")
        return {**_fields(report), "graphs": graphs,
                "again": [second, len(counting.graphs) - graphs]}


def _fields(report: Any) -> dict[str, Any]:
    """The fields of a dataclass, or what came in its place."""
    if not is_dataclass(report) or isinstance(report, type):
        return {"type": type(report).__name__}
    return {"type": type(report).__name__, **asdict(report)}


def keep_compiled_in(module: Any, folder: str) -> dict[str, Any]:
    """The variables that the learner's function set, and its answer.

    Both caches are elsewhere before: what is only set where nothing stands keeps nothing.
    """
    with mock.patch.dict(os.environ):
        for name in [name for name in os.environ if "CACHE" in name]:
            del os.environ[name]
        os.environ |= dict.fromkeys(("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"), "/elsewhere")
        before = dict(os.environ)
        answer = module.keep_compiled_in(folder)
        return {"answer": answer, "set": {name: value for name, value in os.environ.items()
                                          if before.get(name) != value}}


def choose_mode(module: Any, workloads: Sequence[Mapping[str, Any]]) -> list[Any]:
    """The mode of each workload; the repr of what is not a string."""
    answers = [module.choose_mode(module.Workload(**workload)) for workload in workloads]
    return [answer if isinstance(answer, str) else repr(answer) for answer in answers]


# ---------------------------------------------------------------------------------------------
# Surroundings


@contextlib.contextmanager
def _compiler() -> Iterator[None]:
    """Nothing compiled before, nothing left behind, no gradients, and no log beside a verdict."""
    import torch._dynamo

    torch._dynamo.reset()
    level = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)
        torch._dynamo.reset()


@contextlib.contextmanager
def _clock(module: Any, now: list[float]) -> Iterator[None]:
    """Have all clocks of Python tell this time, also where a file took them by their names."""
    told = {name: (lambda: round(now[0] * 1e9)) if name.endswith("_ns") else (lambda: now[0])
            for name in ("perf_counter", "monotonic", "time", "perf_counter_ns", "monotonic_ns",
                         "time_ns")}
    real = {getattr(time, name): clock for name, clock in told.items()}
    with contextlib.ExitStack() as patches:
        for name, clock in told.items():
            patches.enter_context(mock.patch.object(time, name, clock))
        patches.enter_context(mock.patch.object(timeit, "default_timer", told["perf_counter"]))
        for name, value in list(vars(module).items()):
            with contextlib.suppress(TypeError):  # not resolvable: not a clock
                if value in real:
                    patches.enter_context(mock.patch.object(module, name, real[value]))
        yield


def _first_line(error: Any) -> str:
    """What an error says before it comes to where; the compiler's own go on after a colon."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    said = " ".join(lines[:2] if lines and lines[0].endswith(":") else lines[:1])
    return said[:200]
