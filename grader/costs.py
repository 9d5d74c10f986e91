"""What a run cost beside what the job needs: bytes, launches, programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from grader.outcome import Run
from grader.recording import Recording
from grader.report import Finding
from grader.session import Session
from grader.suite import Case, Suite

MANY_PROGRAMS, SAMPLE = 1024, 32  # larger grids are sampled at both ends before they run whole


def count(case: Case, inputs: Sequence[Any], run: Run, suite: Suite,
          block: int) -> tuple[dict[str, str], list[Finding]]:
    """The facts of a performance case, given whether it passes or fails, and what is over a limit.

    Bytes are *issued* bytes: every active lane of every load and store, caches ignored, because
    that is what the learner's code decides. ``block`` is the learner's own block size.
    """
    facts: dict[str, str] = {}
    findings: list[Finding] = []
    limits = case.limits
    if limits is None:
        return facts, findings
    if limits.traffic is not None:
        least = suite.cost(*inputs).bytes
        times = run.bytes / least
        facts["traffic"] = f"{times:.2f}x of the minimum, limit {limits.traffic:.2f}x"
        if run.bytes > limits.traffic * least:
            findings.append(Finding("T01", f"The kernels moved {run.bytes:,} bytes where {least:,} "
                                           f"do: {times:.2f} times as many."))
    if limits.launches is not None:
        made = len(run.facts)
        facts["launches"] = f"{made}, limit {limits.launches}"
        if made > limits.launches:
            findings.append(Finding("T03", f"The function made {in_launches(made)} where "
                                           f"{limits.launches} does."))
    if limits.programs is not None:
        most = limits.programs(block) if callable(limits.programs) else limits.programs
        programs = sum(launch.programs for launch in run.facts)
        idle = sum(launch.idle_programs for launch in run.facts)
        facts["programs"] = f"{programs}, limit {most}"
        if idle:
            findings.append(Finding("L03", f"{idle} of {programs} programs stored nothing."))
        elif programs > most:
            findings.append(Finding("T03", f"{programs} programs ran where {most} do."))
    return facts, findings


def idle_grid(suite: Suite, session: Session, recording: Recording,
              inputs: Sequence[Any]) -> list[Finding]:
    """L03 for a grid far too large, seen on a sample: running it whole would take minutes.

    Only for suites that bound the programs; elsewhere an idle program is no fault.
    """
    counted = any(case.limits and case.limits.programs is not None for case in suite.cases)
    programs = max((launch.programs for launch in recording.launches), default=0)
    if not counted or programs < MANY_PROGRAMS:
        return []
    run = session.replay(recording, inputs, sample=SAMPLE)
    idle = sum(launch.idle_programs for launch in run.facts)
    if idle < SAMPLE:
        return []
    return [Finding("L03", f"{idle} of {2 * SAMPLE} programs stored nothing, the first and the "
                           f"last {SAMPLE} of a grid of {programs}.")]


def in_launches(number: int) -> str:
    return f"{number or 'no'} launch{'' if number == 1 else 'es'}"
