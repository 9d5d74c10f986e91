"""Inputs and results at their real size: drawn and compared where the judge has room for them.

That is a GPU where torch has one: the same arithmetic in float64, a hundred times as fast. The
judge's own context holds nothing that the kernels' process could reach.
"""

from __future__ import annotations

import functools
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from math import prod
from operator import is_
from typing import Any

import torch

from grader.diagnosis.difference import Difference, as_tuple
from grader.judge import compare
from grader.judge.contract import broken_contract
from grader.recording.arena import itemsize
from grader.recording.model import Recording
from grader.report import Finding
from grader.suite import Case, Suite

ROOM = 20  # float64 tensors of the largest one's size that comparing may hold at a time
OWN_ROOM = 4 << 30  # bytes for that on the CPU
LEAST_ROWS = 64  # of a part; smaller ones are not tried
MOST_MOVED = 1 << 30  # bytes of all results; of larger ones some parts are looked at
PARTS, PART_BYTES = 8, 64 << 20  # of these, in float64


@functools.cache
def device() -> str:
    """The device on which the judge works on large tensors: ``cuda`` or ``cpu``."""
    try:
        return "cuda" if torch.cuda.is_available() else "cpu"
    except RuntimeError:  # a driver that is there and does not work
        return "cpu"


def start() -> None:
    """Starts CUDA where it is used, which takes a second."""
    with suppress(RuntimeError):  # whoever needs it reports that
        torch.empty(1, device=device())


def free() -> None:
    """Returns memory that others may need: on a GPU torch keeps what it once had."""
    if device() == "cuda":
        torch.cuda.synchronize()
        torch.cuda.empty_cache()


def check(suite: Suite, case: Case, recording: Recording, results: Sequence[torch.Tensor],
          inputs: Sequence[Any]) -> tuple[list[Finding], Difference | None]:
    """Checks results against the contract, and compares them with the reference.

    They are compared whole, or rows by rows where that takes too much memory.

    Raises:
        MemoryError: they can be compared neither whole nor in parts.
        torch.OutOfMemoryError: a part does not fit either.
    """
    largest = max(value.numel() for value in (*results, *inputs)
                  if isinstance(value, torch.Tensor))
    needed = ROOM * 8 * largest
    with torch.device(device()):  # what a reference makes of nothing lies beside its inputs
        if needed <= _room():
            moved_inputs = _moved(inputs)
            suite = replace(suite, reference=once(suite.reference))
            findings = broken_contract(suite, case, recording, moved_inputs)
            return findings, None if findings else compare.difference(
                suite, _moved(results), moved_inputs, on_gpu=True)
        height = results[0].shape[0] if results[0].dim() else 0
        rows = int(height * _room() / needed)  # at a time
        if rows < LEAST_ROWS or not _has_rows(suite, [tuple(one.shape) for one in results], inputs):
            raise MemoryError(f"comparing the results takes about {needed / 2**30:.0f} GiB")
        for first, last in pairwise([*range(0, height, rows), height]):
            parts = [result[first:last] for result in results]
            moved_inputs = _moved(_part(inputs, height, first, last))
            if difference := compare.difference(suite, _moved(parts), moved_inputs, on_gpu=True):
                return [], difference
    return [], None


def windows(suite: Suite, recording: Recording, inputs: Sequence[Any]) -> list[tuple[int, int]]:
    """(First row, rows) of results that are too large to be moved whole: both ends, and others.

    They are drawn at random. Empty where all is moved, or where rows depend on each other.
    """
    views = recording.results
    shapes = {view.shape for view in views}
    if sum(prod(view.shape) * itemsize(view) for view in views) <= MOST_MOVED or len(shapes) != 1:
        return []
    shape = shapes.pop()
    with torch.device(device()):
        if not _has_rows(suite, [shape] * len(views), inputs):
            return []
    rows = max(1, min(shape[0] // PARTS, PART_BYTES // (8 * prod(shape[1:]))))
    starts = {0, shape[0] - rows, *(secrets.randbelow(shape[0] - rows) for _ in range(PARTS - 2))}
    return [(start, rows) for start in sorted(starts)]


def compare_rows(suite: Suite, rows: Sequence[tuple[int, int]], parts: Sequence[torch.Tensor],
                 recording: Recording, inputs: Sequence[Any]) -> Difference | None:
    """Compares these rows; ``parts`` has all of the first result, then the next's."""
    shape = recording.results[0].shape
    for number, (first, count) in enumerate(rows):
        results = [part.view(count, *shape[1:]) for part in parts[number::len(rows)]]
        part = _part(inputs, shape[0], first, first + count)
        with torch.device(device()):
            if difference := compare.difference(suite, _moved(results), _moved(part),
                                                on_gpu=True):
                return difference
    return None


def once(reference: Callable[..., Any]) -> Callable[..., Any]:
    """A reference that is not computed again for the very inputs of the last time."""
    last: list[tuple[tuple[Any, ...], Any]] = []

    @functools.wraps(reference)
    def remembered(*inputs: Any) -> Any:
        if not last or len(last[0][0]) != len(inputs) or not all(map(is_, last[0][0], inputs)):
            last[:] = [(inputs, reference(*inputs))]
        return last[0][1]

    return remembered


def _room() -> int:
    """Bytes that may be used at a time."""
    if device() == "cpu":
        return OWN_ROOM
    unused = torch.cuda.mem_get_info()[0]
    kept = torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
    return int(0.9 * (unused + kept))


def _has_rows(suite: Suite, shapes: Sequence[tuple[int, ...]], inputs: Sequence[Any]) -> bool:
    """Whether the rows of results of these shapes each depend on the same row of inputs alone.

    That is tried: the reference of a few rows must be the first rows of that of more.
    """
    heights = {shape[0] if shape else 0 for shape in shapes}
    if len(heights) != 1 or (height := heights.pop()) < 2 * LEAST_ROWS:
        return False
    try:
        few, more = (as_tuple(suite.reference(*_moved(_part(inputs, height, 0, count))))
                     for count in (LEAST_ROWS // 2, LEAST_ROWS))
    except (RuntimeError, ValueError, IndexError):
        return False
    return len(few) == len(more) == len(shapes) and all(
        len(one) == LEAST_ROWS // 2 and len(other) == LEAST_ROWS
        and one.shape[1:] == other.shape[1:] == shape[1:]
        and torch.allclose(one, other[:len(one)], rtol=1e-9, atol=1e-30, equal_nan=True)
        for one, other, shape in zip(few, more, shapes, strict=True))


def _moved(values: Sequence[Any]) -> list[Any]:
    return [value.to(device()) if isinstance(value, torch.Tensor) else value for value in values]


def _part(inputs: Sequence[Any], height: int, first: int, last: int) -> list[Any]:
    """The inputs that belong to some rows: of those with as many rows as the results, these."""
    return [value[first:last] if isinstance(value, torch.Tensor) and value.dim()
            and value.shape[0] == height else value for value in inputs]
