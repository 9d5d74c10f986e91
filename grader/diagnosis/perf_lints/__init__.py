"""Named performance defects of launches, decided from what was compiled and what was counted.

A defect is named only where it costs something: good kernels re-read weights out of L2, launch one
small program after a large launch, and use small products where memory is the bound.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from grader.diagnosis.perf_lints.code import SPILLED, code_alone, dots, loops, narrow, spills
from grader.diagnosis.perf_lints.division import atomics, launch_bound, programs, unfused
from grader.diagnosis.perf_lints.launch import Defect, LaunchCost, Observed
from grader.diagnosis.perf_lints.movement import poor_sectors, read_again
from grader.engine.compiler.targets import Target
from grader.recording.compiled_kernel import Binary
from grader.recording.launch_stats import Survey

__all__ = ["SPILLED", "Defect", "Observed", "defects", "of_call"]

LEAST_LAUNCH = 0.1  # of a call's time; launches that take less are not looked at


def defects(binary: Binary, survey: Survey | None, target: Target, launches: int = 1, *,
            indexed: Collection[int] = (), sizes: Mapping[str, int] | None = None
            ) -> tuple[Defect, ...]:
    """The defects of one launch, worst first within each code.

    Args:
        survey: what it moves at its real size; without it only the code is judged.
        launches: how many such launches one call makes.
        indexed: lines whose addresses depend on loaded values
            (``grader.submission.dataflow``).
        sizes: bytes of each tensor argument by parameter.
    """
    found = [*spills(binary)]
    if survey is None:
        return (*found, *code_alone(binary, target))
    launch = LaunchCost(binary, survey, target, indexed, sizes or {})
    found += launch_bound([launch] * launches)
    strided = poor_sectors(launch)
    found += strided
    found += programs(launch)
    found += read_again(launch, found)
    found += atomics(launch)
    found += dots(launch)
    found += loops(launch, found)
    found += narrow(launch)
    return tuple(found)


def of_call(launches: Sequence[Observed], target: Target) -> tuple[Defect, ...]:
    """The defects of all launches of one call, and of how the work is cut into launches.

    A launch that takes less than a tenth of the time is not looked at. Each defect is named once
    for a line.
    """
    known = [LaunchCost(o.binary, o.survey, target, o.indexed, o.sizes)
             for o in launches if o.survey is not None]
    whole = sum(launch.total for launch in known)
    found: dict[tuple[str, int | None], Defect] = {}
    of_all = launch_bound(known) if known else []
    if not of_all and len(known) == len(launches):
        of_all = unfused(launches, target)
    for one in launches:
        if one.survey is not None:
            time = LaunchCost(one.binary, one.survey, target, one.indexed, one.sizes).total
            if time < LEAST_LAUNCH * whole:
                continue
        for defect in defects(one.binary, one.survey, target, indexed=one.indexed,
                              sizes=one.sizes):
            if defect.name != "launch-bound":
                found.setdefault((defect.name, defect.line), defect)
    return (*of_all, *found.values())
