"""Runs one launch under watch, one program after another, and says what happened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import triton.language as tl
from triton.runtime import interpreter

from grader.engine.interpreter.errors import NotInAKernel, explain
from grader.engine.interpreter.install import installed
from grader.engine.interpreter.memory import Memory, Running, Storage
from grader.engine.interpreter.numerics import TRITON, numpy_dtype
from grader.engine.interpreter.rewrite import rewritten
from grader.report import Finding

Order = Literal["forward", "reverse"]


@dataclass(frozen=True)
class Pointer:
    """A tensor argument: the view's dtype (torch's name), first byte and extent in bytes."""

    storage: Storage
    dtype: str
    start: int
    nbytes: int


@dataclass(frozen=True)
class Outcome:
    """What one launch did. ``failure`` is the finding that stopped it."""

    programs: int
    idle_programs: int = 0
    bytes_loaded: int = 0
    bytes_stored: int = 0
    failure: Finding | None = None


def run(kernel: Any, grid: tuple[int, int, int], arguments: Mapping[str, Any], memory: Memory, *,
        order: Order = "forward", sample: int | None = None) -> Outcome:
    """Run a launch of a ``JITFunction``.

    ``arguments`` binds every parameter: ``Pointer`` for tensors, plain values, tuples of these;
    constexpr parameters get plain values. Findings about memory are left in ``memory.observed``.
    With ``sample=k`` only the first and last k programs run.
    """
    file = kernel.fn.__code__.co_filename
    running = memory.begin(grid, file)
    with installed(memory) as builder:
        try:
            body = rewritten(kernel.fn)
            bound = {p.name: _bind(p, arguments[p.name], memory) for p in kernel.params}
            idle = _programs(body, bound, running, builder, _turns(running.programs, order, sample))
        except Exception as error:
            return Outcome(running.programs, failure=explain(error, file, kernel.fn.__name__))
    return Outcome(running.programs, idle, running.bytes_loaded, running.bytes_stored)


def _programs(body: Any, bound: Mapping[str, Any], running: Running, builder: Any,
              turns: Sequence[int]) -> int:
    builder.set_grid_dim(*running.grid)
    width, height, _ = running.grid
    plane = width * height
    idle = 0
    for program in turns:
        running.program, running.stored = program, False
        builder.set_grid_idx(program % width, program // width % height, program // plane)
        body(**bound)
        idle += not running.stored
    return idle


def _turns(programs: int, order: Order, sample: int | None) -> Sequence[int]:
    if sample is not None and 2 * sample < programs:
        turns: Sequence[int] = [*range(sample), *range(programs - sample, programs)]
    else:
        turns = range(programs)
    return turns[::-1] if order == "reverse" else turns


# ---------------------------------------------------------------------------------------------
# Arguments


def _bind(parameter: Any, value: Any, memory: Memory) -> Any:
    if parameter.is_constexpr:
        return value
    return _convert(parameter.name, value, parameter.annotation_type, memory)


def _convert(name: str, value: Any, annotation: str, memory: Memory) -> Any:
    """What a GPU would be handed: addresses, 32- or 64-bit integers, float32, one bit."""
    match value:
        case Pointer():
            return _pointer(name, value, memory)
        case tuple():
            return tuple(
                _convert(f"{name}[{i}]", item, "", memory) for i, item in enumerate(value))
        case bool() | int() | float():
            return _scalar(value, _SCALARS.get(annotation) or _natural(value))
        case None:
            return None
    if isinstance(value, (str, tl.dtype)):
        raise NotInAKernel(f"parameter `{name}` gets {value!r:.40} and is not a tl.constexpr")
    return value  # a jit function


def _pointer(name: str, pointer: Pointer, memory: Memory) -> Any:
    element = TRITON[pointer.dtype]
    itemsize = numpy_dtype(element).itemsize
    address = memory.region(name, pointer.storage, itemsize, pointer.start, pointer.nbytes)
    kind = tl.pointer_type(element)
    return tl.tensor(interpreter.TensorHandle(np.array([address], np.uint64), kind), kind)


_SCALARS: dict[str, Any] = {
    "i1": tl.int1, "u1": tl.int1, "i8": tl.int8, "i16": tl.int16, "i32": tl.int32, "i64": tl.int64,
    "u8": tl.uint8, "u16": tl.uint16, "u32": tl.uint32, "u64": tl.uint64,
    "fp16": tl.float16, "bf16": tl.bfloat16, "fp32": tl.float32, "fp64": tl.float64,
}


def _natural(value: bool | int | float) -> Any:
    if isinstance(value, bool):
        return tl.int1
    if isinstance(value, float):
        return tl.float32
    if -(1 << 31) <= value < 1 << 31:
        return tl.int32
    if -(1 << 63) <= value < 1 << 63:
        return tl.int64
    if value < 1 << 64:
        return tl.uint64
    raise NotInAKernel(f"the integer {value} does not fit 64 bits")


def _scalar(value: Any, kind: Any) -> Any:
    data = np.array([value]).astype(numpy_dtype(kind))
    return tl.tensor(interpreter.TensorHandle(data, kind), kind)
