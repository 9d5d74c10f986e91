"""Costs of a run against a case's limits: bytes, sectors, launches, programs, code."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from grader.engine.compiler.targets import find
from grader.finding import fault
from grader.processes.session import Session
from grader.recording.compiled_kernel import Access, Binary
from grader.recording.launch_stats import SECTOR, LaunchFacts, Survey, Traffic
from grader.recording.model import Recording
from grader.report import Finding
from grader.suite import CheckResult, CompiledCode, Cost, Limits, Suite
from grader.suite.spec import AMPERE

HEAVY = 0.1  # of the bytes: lines and launches that move less are not asked how
MANY_PROGRAMS, SAMPLE = 1024, 32  # larger grids are sampled at both ends before they run whole


Counted = LaunchFacts | Survey


def check(limits: Limits, needed: Cost, launches: Sequence[LaunchFacts], recording: Recording,
          block: int) -> tuple[dict[str, str], list[Finding]]:
    """Checks a run's bytes, operations and launches against the case's limits.

    Args:
        needed: by the job at least.
        launches: what was counted, of all programs.
        block: the learner's own block size.
    """
    facts, findings = count(limits, needed, launches, block)
    return _with(limits.check(recording) if limits.check else (), facts, findings)


def _with(checked: Sequence[CheckResult], facts: dict[str, str],
          findings: Sequence[Finding]) -> tuple[dict[str, str], list[Finding]]:
    """Adds facts that a check of a suite returned, and a finding for each that is wrong."""
    return facts | {fact.name: fact.value for fact in checked}, [*findings, *(
        Finding(fact.code, fact.wrong, line=fact.line) for fact in checked if fact.wrong)]


def count(limits: Limits, needed: Cost, launches: Sequence[Counted],
          block: int) -> tuple[dict[str, str], list[Finding]]:
    """The facts of a performance case, given whether it passes or fails, and what is over a limit.

    Bytes are *issued* bytes: every active lane of every load and store, caches ignored, because
    that is what the learner's code decides. The arguments are those of ``check``; ``launches`` may
    be counted of some programs.
    """
    facts: dict[str, str] = {}
    findings: list[Finding] = []
    if limits.traffic is not None:
        issued, least = sum(launch.issued for launch in launches), needed.bytes
        facts["traffic"] = f"{issued / least:.2f}x of the minimum, limit {limits.traffic:.2f}x"
        if issued > limits.traffic * least:
            findings.append(Finding("T01", fault("bytes", measured=issued, limit=limits.traffic,
                                                 least=least, ratio=issued / least,
                                                 **_heaviest(launches))))
    if limits.sectors is not None:
        worst, over_limit = _sectors(launches, limits.sectors)
        facts["sectors"] = f"{worst:.2f}x of the minimum, limit {limits.sectors:.2f}x"
        findings += over_limit
    if limits.requests is not None and (rows := _requests(launches)):
        worst = max(ratio for *_, ratio in rows)
        facts["requests"] = f"{worst:.2f}x of the minimum of sectors, limit {limits.requests:.2f}x"
        findings += [_poor_request(*row) for row in rows if row[-1] > limits.requests]
    if limits.launches is not None:
        n_launches = len(launches)
        facts["launches"] = f"{n_launches}, limit {limits.launches}"
        if n_launches > limits.launches:
            findings.append(Finding("T03", fault("launches over limit", measured=n_launches,
                                                 limit=limits.launches)))
    if limits.programs is not None:
        most = limits.programs(block) if callable(limits.programs) else limits.programs
        programs = sum(launch.programs for launch in launches)
        idle = sum(launch.idle_programs for launch in launches)
        facts["programs"] = f"{programs}, limit {most}"
        if idle:
            findings.append(Finding("L03", fault("idle programs", measured=idle,
                                                 programs=programs)))
        elif programs > most:
            findings.append(Finding("T03", fault("programs", measured=programs, limit=most)))
    if limits.flops is not None:
        flops, least = sum(launch.flops for launch in launches), needed.flops
        facts["operations"] = f"{flops / least:.2f}x of the minimum, limit {limits.flops:.2f}x"
        if flops > limits.flops * least:
            findings.append(Finding("T01", fault("operations", measured=flops, least=least,
                                                 ratio=flops / least, limit=limits.flops)))
    return facts, findings


def _heaviest(launches: Sequence[Counted]) -> dict[str, Any]:
    """Returns the line and tensor that move the most bytes."""
    rows = [row for launch in launches for row in launch.traffic if row.line is not None]
    if not rows:
        return {}
    row = max(rows, key=lambda row: row.bytes)
    return {"line": row.line, "action": row.kind, "line_bytes": row.bytes, "tensor": row.tensor}


def _sectors(launches: Sequence[Counted], most: float) -> tuple[float, list[Finding]]:
    """The worst line among those that move much, and T02 for each that passes the limit."""
    worst, findings = 1.0, []
    for launch in launches:
        for row in _heavy(launch):
            share = row.sectors / max(1, row.ideal_sectors)
            worst = max(worst, share)
            if share > most:
                again = {"requested": row.redundancy, "needed": row.redundancy / share} \
                    if row.ideal_sectors >= row.unique_sectors else {}  # nothing uses the rest
                findings.append(Finding("T02", fault(
                    "sectors", kernel=launch.kernel, tensor=row.tensor, action=row.kind,
                    share=1 / share, **again), line=row.line))
    return worst, findings


def _requests(launches: Sequence[Counted]) -> list[tuple[str, Traffic, float]]:
    """Kernel, place, and sectors over as few as would hold the bytes of each warp's instruction."""
    return [(launch.kernel, row, SECTOR * row.request_sectors / row.request_bytes)
            for launch in launches for row in _heavy(launch)
            if row.request_bytes and row.kind != "atomic"]


def _poor_request(kernel: str, row: Traffic, ratio: float) -> Finding:
    measured = row.request_sectors / row.requests
    return Finding("T02", fault("requests", kernel=kernel, tensor=row.tensor, action=row.kind,
                                share=1 / ratio, measured=measured, needed=measured / ratio),
                   line=row.line)


def _heavy(launch: Counted) -> list[Traffic]:
    """The places that move a good part of a launch's bytes; the others cost next to nothing."""
    total = sum(row.bytes for row in launch.traffic)
    return [row for row in launch.traffic if row.bytes >= HEAVY * total]


def code_limits(limits: Limits, launches: Sequence[Counted],
                binaries: Sequence[Binary]) -> tuple[dict[str, str], list[Finding]]:
    """The facts of compiled code, and what does not keep to the limits.

    ``binaries`` are those of the launches in order; none where one does not compile, which the
    compile gate reports.
    """
    facts: dict[str, str] = {}
    findings: list[Finding] = []
    if not binaries:
        return facts, findings
    if limits.vector is not None:
        widths = [(access.bits, binary.kernel, access.line, _share(launch, binary, access))
                  for launch, binary in zip(launches, binaries, strict=True)
                  for access in _accesses(launch, binary)]
        least, kernel, line, block = min(widths, default=(0, "", None, {}), key=lambda one: one[0])
        in_tiles = not widths and any(map(_bulk_lines, binaries))
        facts["vector"] = f"{'whole tiles' if in_tiles else f'{least} bits'}, " \
                         f"at least {limits.vector}"
        if least < limits.vector and not in_tiles:
            findings.append(Finding("T06", fault(
                "vector", measured=least, limit=limits.vector, kernel=kernel, **block)
                if widths else fault("no access", limit=limits.vector), line=line))
    if limits.spills is not None:
        most = max(binaries, key=lambda binary: binary.spill_bytes)
        facts["spills"] = f"{most.spill_bytes} bytes per thread, limit {limits.spills}"
        if most.spill_bytes > limits.spills:
            findings.append(Finding("T04", fault(
                "spills", measured=most.spill_bytes, kernel=most.kernel,
                registers=most.registers, warps=most.warps)))
    if limits.shared is not None:
        most = max(binaries, key=lambda binary: binary.shared)
        facts["shared memory"] = f"{most.shared:,} bytes per program, limit {limits.shared:,}"
        if most.shared > limits.shared:
            findings.append(Finding("T05", fault("shared", measured=most.shared,
                                                 limit=limits.shared, kernel=most.kernel)))
    dots = [binary for binary in binaries if binary.dot]
    floor = HEAVY * sum(launch.issued for launch in launches)
    main = [binary for launch, binary in zip(launches, binaries, strict=True)
            if launch.issued >= floor]
    if limits.stages is not None:
        facts["stages"], over_limit = _stages(
            limits.stages, [one for one in main if one.dot] or main)
        findings += over_limit
    if limits.tensor_cores:
        used = sorted({binary.tensor_cores for binary in dots if binary.tensor_cores})
        facts["tensor cores"] = " and ".join(used) or "not used"
        if not used or not all(binary.tensor_cores for binary in dots):
            findings.append(Finding("T06", fault("tensor cores",
                                                 target=_too_old(dots or binaries))))
    if limits.bulk:
        more_facts, more = _bulk(launches, binaries)
        facts, findings = facts | more_facts, [*findings, *more]
    if limits.check_code:
        code = CompiledCode(binaries, main, find(binaries[0].target).title)
        return _with(limits.check_code(code), facts, findings)
    return facts, findings


def _stages(asked: int | tuple[int, int],
            binaries: Sequence[Binary]) -> tuple[str, list[Finding]]:
    """Depths of the pipelines: the shallowest for a lower limit, the deepest for an upper."""
    least, most = asked if isinstance(asked, tuple) else (asked, math.inf)
    shallow, deep = (choose(binaries, key=lambda one: one.stages) for choose in (min, max))
    beyond = [("stages", shallow, least, shallow.stages < least),
              ("most stages", deep, most, deep.stages > most)]
    words = f"{_depth(shallow)}, at least {least}"
    if most < math.inf:
        words += f" and at most {most}" if _depth(deep) == _depth(shallow) else \
            f"; {_depth(deep)}, at most {most}"
    return words, [Finding("T06", fault(kind, measured=one.stages, limit=limit, kernel=one.kernel,
                                        shared=one.shared, target=_too_old([one])))
                   for kind, one, limit, is_beyond in beyond if is_beyond]


def _depth(binary: Binary) -> str:
    return f"{binary.stages} in {binary.shared:,} bytes of shared memory"


def _too_old(binaries: Sequence[Binary]) -> str:
    """The title of a GPU before Ampere, if that is what the code is for."""
    return next((find(one.target).title for one in binaries
                 if divmod(one.capability, 10) < AMPERE), "")


def _bulk(launches: Sequence[Counted],
          binaries: Sequence[Binary]) -> tuple[dict[str, str], list[Finding]]:
    """Returns T06 for a line that loads much without TMA."""
    for launch, binary in zip(launches, binaries, strict=True):
        lines = {row.line for row in _heavy(launch) if row.kind == "load"}
        direct = [access for access in binary.accesses if access.kind in ("load", "async copy")]
        pieces = [access for access in direct if access.line in lines]
        if lines and not _bulk_lines(binary):
            pieces = pieces or direct
        if pieces:
            worst = max(pieces, key=lambda access: access.count)
            return {"loads": "in pieces"}, [Finding(
                "T06", fault("pieces", measured=worst.bits // 8, kernel=binary.kernel,
                             target=find(binary.target).title), line=worst.line)]
    return {"loads": "whole tiles"}, []


def _share(launch: Counted, binary: Binary, access: Access) -> dict[str, Any]:
    """The block of an access whose width is limited by a thread's share of it."""
    threads = 32 * binary.warps
    for row in launch.traffic:
        if row.line == access.line and row.kind == access.kind and row.lanes:
            size, lanes = row.bytes // row.lanes, row.lanes // max(1, launch.programs)
            if 8 * size * lanes == access.bits * threads:
                return {"n_elements": lanes, "itemsize": size, "threads": threads}
    return {}


def _accesses(launch: Counted, binary: Binary) -> list[Access]:
    """The instructions of threads by which a launch moves most of its bytes."""
    heavy = {row.line for row in _heavy(launch)}
    direct = [access for access in binary.accesses if access.bits and access.kind != "atomic"]
    wide = [access for access in direct if access.line in heavy]
    return wide if wide or heavy & _bulk_lines(binary) else direct


def _bulk_lines(binary: Binary) -> set[int | None]:
    """Lines that move whole tiles at once, by TMA."""
    return {access.line for access in binary.accesses if access.kind == "bulk copy"}


def idle_grid(suite: Suite, session: Session, recording: Recording,
              inputs: Sequence[Any]) -> list[Finding]:
    """L03 for a grid far too large, seen on a sample: running it whole would take minutes.

    Only for suites that bound the programs; elsewhere an idle program is allowed.
    """
    programs = max((launch.programs for launch in recording.launches), default=0)
    if not suite.counts_programs or programs < MANY_PROGRAMS:
        return []
    run = session.replay(recording, inputs, sample=SAMPLE)
    idle = sum(launch.idle_programs for launch in run.facts)
    if idle < SAMPLE:
        return []
    return [Finding("L03", fault("idle sample", measured=idle, sample=2 * SAMPLE,
                                 programs=programs))]
