"""Surveys a recording at its real size: a few programs of each launch, on memory never touched."""

import os
import time
from collections.abc import Sequence
from math import prod

from grader.engine.dram_model.extrapolate import Unsteady, surveyed
from grader.engine.dram_model.sampling import Addresses, Sampler, SamplingStopped, TooLong
from grader.engine.interpreter.transaction import Spinning
from grader.executor.binding import Binder, Kernels, LaunchRefused
from grader.executor.memory import SMALL, Storages
from grader.finding import fault
from grader.recording.arena import itemsize
from grader.recording.compiled_kernel import AccessLayout
from grader.recording.launch_stats import Survey, Unsurveyable
from grader.recording.model import Alloc, Fill, Launch, MalformedRecording, Move, Recording
from grader.report import Finding, words

_BUDGET_S = 3.0  # for all launches; what is run of them takes about 1 s where nothing is odd
_LEAST_S, _LEAST_EFFORT = 0.1, 0.06  # of one launch


def survey(recording: Recording, layout: Sequence[Sequence[int]], arena: int, kernels: Kernels,
           resident: Sequence[int], l2_bytes: int,
           layouts: Sequence[Sequence[AccessLayout]] = (),
           ) -> tuple[list[Survey | Unsurveyable], list[Finding]]:
    """Survey every launch of a recording; an access out of bounds ends it with a finding.

    Args:
        layout: where the inputs lie in the file ``arena``. What is a hole in that file has no
            values: a launch whose accesses depend on them is not surveyed.
        resident: for each launch, how many of its programs are on the GPU at the same time.
        l2_bytes: the size of the L2 cache.
        layouts: for each launch, those of its accesses.

    Returns:
        One entry for each launch, up to the one that failed, and the findings that say why it did.

    Raises:
        MalformedRecording: views, names or arguments do not fit together.
    """
    launches = recording.launches
    if len(resident) != len(launches):
        raise MalformedRecording("a survey needs resident programs for each launch")
    virtual = {number for number, (offset, size) in enumerate(layout)  # those with holes
               if size and os.lseek(arena, offset, os.SEEK_HOLE) < offset + size}
    storages = Storages(arena, layout, recording, 0, virtual)
    memory = Addresses()
    memory.known = {id(storages.check(view)) for view in recording.inputs
                    if view.storage not in virtual}
    surveys: list[Survey | Unsurveyable] = []
    end = time.process_time() + _BUDGET_S
    for event in recording.events:
        try:
            match event:
                case Alloc():
                    storages.allocate(event)
                case Fill() | Move():
                    _write(storages, memory, event)
                case Launch():
                    number = len(surveys)
                    now = time.process_time()
                    share = (end - now) / (len(launches) - number)
                    memory.deadline = now + max(_LEAST_S, share)
                    surveys.append(_launch(event, storages, memory, kernels, resident[number],
                                           l2_bytes, max(_LEAST_EFFORT, 1 / len(launches)),
                                           layouts[number] if layouts else ()))
        except (LaunchRefused, SamplingStopped) as error:
            memory.observed.add(error.finding)
        except MemoryError as error:
            memory.observed.add(Finding("R04", fault("no memory", text=str(error))))
        if findings := memory.observed.findings():
            return surveys, findings
    return surveys, []


def _write(storages: Storages, memory: Addresses, event: Fill | Move) -> None:
    """Host code writes: kept where a kernel may read it as an index, forgotten where not."""
    target, written = event.target, storages.check(event.target)
    computed = len(written.data) <= SMALL and (
        isinstance(event, Fill) or id(storages.check(event.source)) in memory.known)
    whole = not written.is_input and prod(target.shape) * itemsize(target) == len(written.data)
    if computed and (whole or id(written) in memory.known):
        storages.write(event)
        memory.known.add(id(written))
    else:
        memory.known.discard(id(written))


def _launch(launch: Launch, storages: Storages, memory: Addresses, kernels: Kernels, resident: int,
            l2_bytes: int, effort: float, layouts: Sequence[AccessLayout],
            ) -> Survey | Unsurveyable:
    try:
        kernel, bound = Binder(kernels, storages.pointer, storages.descriptor).bind(launch)
        sampler = Sampler(kernel, launch.grid, bound, memory, layouts)
        return surveyed(sampler, launch.kernel, resident, l2_bytes, effort)
    except Unsteady as error:
        return Unsurveyable(launch.kernel, str(error))
    except Spinning:
        return Unsurveyable(launch.kernel, words(
            "programs wait", kernel=launch.kernel))
    except TooLong:
        return Unsurveyable(launch.kernel, words(
            "long program", kernel=launch.kernel))
