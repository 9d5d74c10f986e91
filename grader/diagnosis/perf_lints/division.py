"""T03: how work is cut into launches and programs, idle lanes, and atomics that meet."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from grader.diagnosis.perf_lints.launch import Defect, LaunchCost, Observed
from grader.engine.compiler.targets import WARP, Target
from grader.recording.launch_stats import SECTOR, Traffic

FEW_PROGRAMS = 0.6  # of the multiprocessors; from 80 programs of 132 on, the loss is small
TAIL = 0.6  # of the GPU that works on average, where the last wave is nearly empty
IDLE_LANES = 0.45  # a row of 65 elements in a block of 128 is above it, and needs its 128
CONTENDED = 0.5  # of the time that the rest needs
UNFUSED = 0.3  # of a call's bytes that go out and come back between launches
READ_ONCE = 1.1  # of a tensor's bytes; a stencil reads each element several times


def launch_bound(launches: Sequence[LaunchCost]) -> list[Defect]:
    target = launches[0].target
    work = sum(launch.work for launch in launches)
    overhead = len(launches) * target.launch_seconds
    if work >= overhead / 2:
        return []
    begin, rest = f"{overhead * 1e6:.1f} µs to begin", f"{work * 1e6:.1f} µs"
    if len(launches) > 1:
        return [Defect("launch-bound", "T03", None,
                       f"{len(launches)} launches take about {begin}, and their work {rest}",
                       "Do the work in one launch.")]
    return [Defect("launch-bound", "T03", None,
                   f"the launch takes about {begin}, and its work {rest}",
                   "A launch costs more than this work: give it more, or record several into a "
                   "CUDA graph.", "hint")]


def programs(launch: LaunchCost) -> list[Defect]:
    target, binary, programs = launch.target, launch.binary, launch.programs
    if not launch.large:
        return []
    found = []
    if programs <= FEW_PROGRAMS * target.multiprocessors:
        found.append(Defect(
            "too few programs", "T03", None,
            f"{programs} program{'s' * (programs > 1)} for {target.multiprocessors} "
            f"multiprocessors: the rest of the GPU has nothing to do",
            "Cut the work into more programs, also along the axis that is reduced."))
    waves = programs / target.multiprocessors
    alone = launch.bound_by_products or binary.occupancy.programs == 1
    if waves > 1 and alone and waves / ceil(waves) < TAIL:
        found.append(Defect(
            "wave tail", "T03", None,
            f"{programs} programs on {target.multiprocessors} multiprocessors need {ceil(waves)} "
            f"turns, and in the last one {waves - ceil(waves) + 1:.0%} of them work",
            "Choose tiles so that programs are a multiple of the multiprocessors or just under "
            "it, split K, or let each program take several tiles."))
    # where L2 takes longer, programs start while others wait for it
    if launch.starting > max(launch.work, launch.caches, 3 * target.launch_seconds):
        each = (launch.survey.loaded.low + launch.survey.stored.low) / programs
        found.append(Defect(
            "tiny programs", "T03", None,
            f"{programs:,} programs move {each:,.0f} bytes each: starting them takes "
            f"{launch.starting / launch.work:.1f} times as long as the memory needs",
            "Give each program more: a larger block, or several rows."))
    found += _idle_lanes(launch)
    return found


def _idle_lanes(launch: LaunchCost) -> list[Defect]:
    threads = launch.binary.warps * WARP
    if launch.bound_by_products or launch.memory < launch.target.launch_seconds:
        return []
    widest = max(launch.survey.traffic, key=lambda t: t.bytes)
    lanes = launch.lanes(widest)
    if lanes >= IDLE_LANES * threads:
        return []
    return [Defect(
        "idle lanes", "T06", widest.line,
        f"{threads} threads share {lanes:.0f} element{'s' * (lanes >= 1.5)} at a time: most of "
        f"them have none",
        "Use fewer warps (num_warps), or a larger block.")]


def atomics(launch: LaunchCost) -> list[Defect]:
    survey = launch.survey
    if launch.meeting <= max(CONTENDED * launch.work, launch.target.launch_seconds):
        return []
    lines = [t.line for t in sorted(survey.traffic, key=lambda t: -t.lanes) if t.kind == "atomic"]
    return [Defect(
        "contended atomics", "T03", lines[0] if lines else None,
        f"{survey.hottest:,} atomic operations meet on one element, one after the other: about "
        f"{launch.meeting * 1e3:.2f} ms",
        "Add up in the program first, so that one operation stands for many, or spread them over "
        "several elements and add those in a second step.")]


def unfused(launches: Sequence[Observed], target: Target) -> list[Defect]:
    """Launches that hand all they made to the next one through memory, element by element."""
    moved = between = 0
    producers: dict[int, tuple[Observed, str]] = {}
    for one in launches:
        assert one.survey is not None
        moved += one.survey.loaded.low + one.survey.stored.low
        taken: dict[int, Traffic] = {}
        for t in one.survey.traffic:
            storage = one.storages.get(t.tensor)
            if t.kind == "load" and storage is not None and storage in producers:
                taken[storage] = t
        if taken and all(_may_fuse(*producers[storage], one, t.tensor, target)
                         for storage, t in taken.items()):
            between += sum(2 * t.unique_sectors * SECTOR for t in taken.values())
        for t in one.survey.traffic:
            if t.kind != "load" and t.tensor in one.storages:
                producers[one.storages[t.tensor]] = one, t.tensor
    if not moved or between <= UNFUSED * moved:
        return []
    return [Defect(
        "unfused launches", "T03", None,
        f"{len(launches)} launches hand {between // 2:,} bytes to one another through memory",
        "Do these steps in one kernel: what one step makes stays in registers for the next.")]


def _may_fuse(producer: Observed, made: str, consumer: Observed, taken: str,
              target: Target) -> bool:
    """Whether a program of the consumer needs nothing but what one program makes, or a few whole
    ones do. Where programs reach for what their neighbours made, as of a stencil, a launch is
    needed between the steps; and a step of few programs cannot do the work of many."""
    first, second = producer.survey, consumer.survey
    assert first is not None and second is not None
    if producer.binary.dot or consumer.binary.dot:
        return False
    if ("store", made) in first.apart and ("load", taken) in second.apart:
        return (first.programs == second.programs
                or min(first.programs, second.programs) >= target.multiprocessors)
    read = sum(t.bytes for t in second.traffic if (t.kind, t.tensor) == ("load", taken))
    return (first.programs == second.programs
            and read <= READ_ONCE * consumer.sizes.get(taken, read))
