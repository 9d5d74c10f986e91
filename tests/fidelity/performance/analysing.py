"""From a case to its defects: recorded, compiled for a GPU, surveyed at its real size, judged."""

from __future__ import annotations

import inspect
import mmap
import os
import textwrap
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from grader.diagnosis.perf_lints import Defect, Observed, of_call
from grader.engine.compiler.compile import build
from grader.engine.compiler.kernel_reader import binary_of
from grader.engine.compiler.targets import Target
from grader.executor.binding import without_memory
from grader.executor.survey import survey
from grader.recording.arena import extent, itemsize
from grader.recording.compiled_kernel import AccessLayout, Binary
from grader.recording.launch_stats import Survey
from grader.recording.model import Launch, View
from grader.submission.dataflow import indirect_lines

from .case import Case
from .recorded import Recorded, record


@dataclass(frozen=True)
class Analysis:
    """What is known of a case on a machine without a GPU. ``why``: what could not be surveyed."""

    case: Case
    launches: tuple[Observed, ...]
    defects: tuple[Defect, ...]
    why: str
    seconds: float

    @property
    def names(self) -> frozenset[str]:
        return frozenset(defect.name for defect in self.defects)

    @property
    def right(self) -> bool:
        return self.names == self.case.finds and not self.why


def analyse(case: Case, target: Target) -> Analysis:
    """Raises DoesNotCompile for a kernel that no such GPU runs."""
    recorded = record(case)
    started = time.perf_counter()
    launches = recorded.recording.launches
    binaries = [binary for _, binary in compiled(recorded, target)]
    surveys, why = surveyed(recorded, [b.occupancy.programs for b in binaries], target,
                            [binary.layouts for binary in binaries])
    observed = tuple(
        Observed(binary, made, _indexed(recorded, launch), *_tensors(launch))
        for launch, binary, made in zip(launches, binaries, surveys, strict=True))
    return Analysis(case, observed, of_call(observed, target), why,
                    time.perf_counter() - started)


def compiled(recorded: Recorded, target: Target) -> list[tuple[Any, Binary]]:
    """What every launch becomes, in order: Triton's compiled kernel, and what is read of it."""
    known: dict[int, tuple[Any, Binary]] = {}
    made: list[tuple[Any, Binary]] = []
    for launch in recorded.recording.launches:
        kernel, arguments = without_memory(recorded.kernels).bind(launch)
        code = build(kernel, arguments, launch.options, target)
        if id(code) not in known:
            known[id(code)] = (code, binary_of(code, target, launch.kernel, launch.options))
        made.append(known[id(code)])
    return made


def surveyed(recorded: Recorded, resident: Sequence[int], target: Target,
             layouts: Sequence[Sequence[AccessLayout]] = ()) -> tuple[list[Survey | None], str]:
    """What every launch moves, and why not where that cannot be told."""
    fd, layout = _arena(recorded)
    try:
        launches, findings = survey(
            recorded.recording, layout, fd, recorded.kernels,
            [max(1, programs * target.multiprocessors) for programs in resident], target.l2,
            layouts)
    finally:
        os.close(fd)
    why = "; ".join([finding.seen for finding in findings]
                    + [one.why for one in launches if not isinstance(one, Survey)])
    known = [one if isinstance(one, Survey) else None for one in launches]
    return known + [None] * (len(resident) - len(known)), why


def _arena(recorded: Recorded) -> tuple[int, list[list[int]]]:
    """The inputs as the executor gets them: indices as they are, all else a hole."""
    fd = os.memfd_create("cases")
    layout, end = [], 0
    for tensor in recorded.tensors:
        size = tensor.untyped_storage().nbytes()
        os.ftruncate(fd, end + size)
        if not tensor.is_floating_point() and tensor.any():
            os.pwrite(fd, tensor.numpy().tobytes(), end)
        layout.append([end, size])
        end += -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
    os.ftruncate(fd, end)
    return fd, layout


def _indexed(recorded: Recorded, launch: Launch) -> frozenset[int]:
    kernel = recorded.kernels[launch.kernel].fn
    lines, first = inspect.getsourcelines(kernel)
    source = textwrap.dedent("".join(lines))
    return frozenset(line + first - 1 for line in indirect_lines(source, kernel.__name__))


def _tensors(launch: Launch) -> tuple[Mapping[str, int], Mapping[str, int]]:
    """Bytes and storage of each tensor, by parameter."""
    views: dict[str, View] = {}
    for name, argument in launch.arguments.items():
        if argument.kind == "tensor":
            views[name] = argument.value
        elif argument.kind == "descriptor":
            views[name] = argument.value.reach
    return ({name: extent(view) * itemsize(view) for name, view in views.items()},
            {name: view.storage for name, view in views.items()})
