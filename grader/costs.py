"""What a run cost beside what the job needs: bytes, sectors, launches, programs, code."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from grader.binary import ALL_SUMS, Access, Binary, Factor
from grader.engine.compiler.targets import find
from grader.facts import LaunchFacts, Survey, Traffic
from grader.recording import Alloc, Recording
from grader.report import Finding
from grader.session import Session
from grader.suite import AMPERE, Limits, Suite

HEAVY = 0.1  # of the bytes: lines and launches that move less are not asked how
DEFAULT_WARPS = 4  # of a program, where the launch names no num_warps
MANY_PROGRAMS, SAMPLE = 1024, 32  # larger grids are sampled at both ends before they run whole


Counted = LaunchFacts | Survey


def count(limits: Limits, least: int, launches: Sequence[Counted],
          block: int) -> tuple[dict[str, str], list[Finding]]:
    """The facts of a performance case, given whether it passes or fails, and what is over a limit.

    Bytes are *issued* bytes: every active lane of every load and store, caches ignored, because
    that is what the learner's code decides.

    Args:
        least: bytes that the job needs.
        launches: what was counted, of all programs or of some.
        block: the learner's own block size.
    """
    facts: dict[str, str] = {}
    findings: list[Finding] = []
    if limits.traffic is not None:
        issued = sum(launch.issued for launch in launches)
        facts["traffic"] = f"{issued / least:.2f}x of the minimum, limit {limits.traffic:.2f}x"
        if issued > limits.traffic * least:
            allowed = f", and {limits.traffic:.2f} times are allowed" * (limits.traffic > 1)
            findings.append(Finding("T01", f"The kernels moved {issued:,} bytes where {least:,} "
                                           f"do: {issued / least:.2f} times as many{allowed}."
                                           f"{_most(launches)}"))
    if limits.sectors is not None:
        worst, found = _sectors(launches, limits.sectors)
        facts["sectors"] = f"{worst:.2f}x of the minimum, limit {limits.sectors:.2f}x"
        findings += found
    if limits.launches is not None:
        made = len(launches)
        facts["launches"] = f"{made}, limit {limits.launches}"
        if made > limits.launches:
            findings.append(Finding("T03", f"The function made {in_launches(made)} where "
                                           f"{limits.launches} does."))
    if limits.programs is not None:
        most = limits.programs(block) if callable(limits.programs) else limits.programs
        programs = sum(launch.programs for launch in launches)
        idle = sum(launch.idle_programs for launch in launches)
        facts["programs"] = f"{programs}, limit {most}"
        if idle:
            findings.append(Finding("L03", f"{idle} of {programs} programs stored nothing."))
        elif programs > most:
            findings.append(Finding("T03", f"{programs} programs ran where {most} do."))
    return facts, findings


def _most(launches: Sequence[Counted]) -> str:
    """Where most bytes are moved, as a further sentence."""
    rows = [row for launch in launches for row in launch.traffic if row.line is not None]
    if not rows:
        return ""
    row = max(rows, key=lambda row: row.bytes)
    return f" Line {row.line} {row.kind}s most of them, {row.bytes:,} bytes of `{row.tensor}`."


def operations(limits: Limits, least: int,
               launches: Sequence[Counted]) -> tuple[dict[str, str], list[Finding]]:
    """How many operations of tl.dot ran for the ``least`` that the job needs, and T01 for more."""
    if limits.flops is None:
        return {}, []
    made = sum(launch.flops for launch in launches)
    told = {"operations": f"{made / least:.2f}x of the minimum, limit {limits.flops:.2f}x"}
    if made <= limits.flops * least:
        return told, []
    return told, [Finding("T01", f"tl.dot computed {made:,} operations where {least:,} do: "
                                 f"{made / least:.2f} times as many, and {limits.flops:.2f} times "
                                 "are allowed. What they are computed of was loaded as well.")]


def scratch(limits: Limits, recording: Recording) -> tuple[dict[str, str], list[Finding]]:
    """How many bytes were allocated that hold no result, and T01 for more than are allowed."""
    if limits.scratch is None:
        return {}, []
    kept = {view.storage for view in recording.results}
    sizes = [event.nbytes for event in recording.events
             if isinstance(event, Alloc) and event.storage not in kept]
    told = {"scratch memory": f"{sum(sizes):,} bytes, limit {limits.scratch:,}"}
    if sum(sizes) <= limits.scratch:
        return told, []
    return told, [Finding("T01", f"The function allocates {sum(sizes):,} bytes beside its results, "
                                 f"the largest tensor has {max(sizes):,}: {limits.scratch:,} are "
                                 "allowed.")]


def axes(limits: Limits, recording: Recording) -> tuple[dict[str, str], list[Finding]]:
    """The longest axis of the grids, and T03 for a launch whose axis is longer than allowed."""
    if limits.axis is None:
        return {}, []
    most, launch = max(((max(launch.grid), launch) for launch in recording.launches),
                       default=(0, None), key=lambda one: one[0])
    told = {"programs along an axis": f"{most}, limit {limits.axis}"}
    if launch is None or most <= limits.axis:
        return told, []
    return told, [Finding("T03", f"The grid of `{launch.kernel}` is {launch.grid}: axis "
                                 f"{launch.grid.index(most)} has {most} programs, and no dimension "
                                 f"of the job needs more than {limits.axis}. This axis counts "
                                 "more than one dimension.", line=launch.line)]


def described(limits: Limits, recording: Recording) -> tuple[dict[str, str], list[Finding]]:
    """How many descriptors launches get from the host, and T06 where that is not what is asked."""
    if limits.described is None:
        return {}, []
    given = [(launch, name) for launch in recording.launches
             for name, argument in launch.arguments.items() if argument.kind == "descriptor"]
    told = {"descriptors from the host": f"{len(given)}, {'some' if limits.described else 'none'} "
                                         "asked for"}
    if bool(given) == limits.described:
        return told, []
    if not given:
        return told, [Finding("T06", "No launch gets a tensor descriptor: they are asked to be "
                                     "made on the host.",
                              line=next((one.line for one in recording.launches), None))]
    launch, name = given[0]
    return told, [Finding("T06", f"`{launch.kernel}` gets `{name}` as a tensor descriptor that the "
                                 "host has made, where the kernel is asked to make its own.",
                          line=launch.line)]


def _sectors(launches: Sequence[Counted], most: float) -> tuple[float, list[Finding]]:
    """The worst line among those that move much, and T02 for each that passes the limit."""
    worst, findings = 1.0, []
    for launch in launches:
        for row in _heavy(launch):
            share = row.sectors / max(1, row.ideal_sectors)
            worst = max(worst, share)
            if share > most:
                findings.append(Finding(
                    "T02", f"`{launch.kernel}` {row.kind}s {100 / share:.0f} % of each 32-byte "
                           f"sector of `{row.tensor}` that an access moves: the elements of an "
                           f"access lie apart in memory.{_again(row, share)}", line=row.line))
    return worst, findings


def _again(row: Traffic, share: float) -> str:
    """How often sectors are requested whose rest other accesses use, as a further sentence."""
    if row.ideal_sectors < row.unique_sectors:
        return ""  # nothing uses the rest
    return (f" Other accesses use the rest: each sector is requested {row.redundancy:.1f} times "
            f"where {row.redundancy / share:.1f} would do.")


def _heavy(launch: Counted) -> list[Traffic]:
    """The places that move a good part of a launch's bytes; the others cost next to nothing."""
    total = sum(row.bytes for row in launch.traffic)
    return [row for row in launch.traffic if row.bytes >= HEAVY * total]


def code_limits(limits: Limits, launches: Sequence[Counted],
                binaries: Sequence[Binary]) -> tuple[dict[str, str], list[Finding]]:
    """The facts of compiled code, and what does not keep to the limits.

    ``binaries`` are those of the launches in order; none where one does not compile, which the
    compile gate says.
    """
    told: dict[str, str] = {}
    findings: list[Finding] = []
    if not binaries:
        return told, findings
    if limits.vector is not None:
        widths = [(access.bits, binary.kernel, access.line, _share(launch, binary, access))
                  for launch, binary in zip(launches, binaries, strict=True)
                  for access in _accesses(launch, binary)]
        least, kernel, line, why = min(widths, default=(0, "", None, ""), key=lambda one: one[0])
        in_tiles = not widths and any(map(_bulk_lines, binaries))
        told["vector"] = f"{'whole tiles' if in_tiles else f'{least} bits'}, " \
                         f"at least {limits.vector}"
        if least < limits.vector and not in_tiles:
            seen = (f"A thread of `{kernel}` moves {least} bits at a time where {limits.vector} "
                    f"do{why}." if widths else
                    "No load or store of the compiled kernels moves a good part of the bytes; "
                    f"threads are asked to move {limits.vector} bits at a time.")
            findings.append(Finding("T06", seen, line=line))
    if limits.spills is not None:
        most = max(binaries, key=lambda binary: binary.spill_bytes)
        told["spills"] = f"{most.spill_bytes} bytes a thread, limit {limits.spills}"
        if most.spill_bytes > limits.spills:
            findings.append(Finding(
                "T04", f"`{most.kernel}` spills {most.spill_bytes} bytes a thread to memory: its "
                       f"blocks do not fit {most.registers} registers of {most.warps} warps."))
    if limits.shared is not None:
        most = max(binaries, key=lambda binary: binary.shared)
        told["shared memory"] = f"{most.shared:,} bytes a program, limit {limits.shared:,}"
        if most.shared > limits.shared:
            findings.append(Finding(
                "T05", f"A program of `{most.kernel}` takes {most.shared:,} bytes of shared memory "
                       f"where {limits.shared:,} are allowed."))
    dots = [binary for binary in binaries if binary.dot]
    floor = HEAVY * sum(launch.issued for launch in launches)
    main = [binary for launch, binary in zip(launches, binaries, strict=True)
            if launch.issued >= floor]
    if limits.stages is not None or limits.most_stages is not None:
        stages, found = _stages(limits, [one for one in main if one.dot] or main)
        told |= stages
        findings += found
    if limits.loop_shuffles is not None:
        shuffles = [(count, line, binary.kernel) for binary in main
                    for line, count in binary.loop_shuffles]
        passed = sum(count for count, *_ in shuffles)
        told["shuffles in loops"] = f"{passed}, limit {limits.loop_shuffles}"
        if passed > limits.loop_shuffles:
            _, line, kernel = max(shuffles, key=lambda one: one[0])
            findings.append(Finding(
                "T06", f"In every round of a loop of `{kernel}`, {passed} instructions pass values "
                       f"from thread to thread, where {limits.loop_shuffles or 'none'} need to.",
                line=line))
    if limits.tensor_cores:
        used = sorted({binary.tensor_cores for binary in dots if binary.tensor_cores})
        told["tensor cores"] = " and ".join(used) or "not used"
        if not used or not all(binary.tensor_cores for binary in dots):
            why = _too_old(dots or binaries, "Triton knows none of")
            findings.append(Finding("T06", f"The matrix product does not use tensor cores{why}."))
    if limits.factors:
        facts, more = _factors(limits.factors, dots)
        told, findings = told | facts, [*findings, *more]
    if limits.imprecise_sums is not None:
        facts, more = _imprecise_sums(limits.imprecise_sums, dots)
        told, findings = told | facts, [*findings, *more]
    for asked, look in ((limits.bulk, _bulk), (limits.specialized, _specialized)):
        if asked:
            facts, more = look(launches, binaries)
            told, findings = told | facts, [*findings, *more]
    return told, findings


def _stages(limits: Limits, binaries: Sequence[Binary]) -> tuple[dict[str, str], list[Finding]]:
    """How deep the pipelines are, the shallowest for a lower limit and the deepest for an upper."""
    told: dict[str, list[str]] = {}
    findings = []
    for limit, choose, beyond, bound in ((limits.stages, min, operator.lt, "at least"),
                                         (limits.most_stages, max, operator.gt, "at most")):
        if limit is None:
            continue
        one = choose(binaries, key=lambda binary: binary.stages)
        depth = f"{one.stages} in {one.shared:,} bytes of shared memory"
        told.setdefault(depth, []).append(f"{bound} {limit}")
        if beyond(one.stages, limit):
            findings.append(Finding(
                "T06", f"The pipeline of `{one.kernel}` is {one.stages} stages deep, in "
                       f"{one.shared:,} bytes of shared memory, where {bound} {limit} are asked "
                       f"for{_too_old([one], 'Triton loads nothing ahead on')}."))
    return {"stages": "; ".join(f"{depth}, {' and '.join(bounds)}"
                                for depth, bounds in told.items())}, findings


def _too_old(binaries: Sequence[Binary], what: str) -> str:
    """What Triton does not do for a GPU before Ampere, if that is what the code is for."""
    old = [find(one.target) for one in binaries if divmod(one.capability, 10) < AMPERE]
    return f"; {what} the {old[0].title}" if old else ""


def _factors(asked: Factor, dots: Sequence[Binary]) -> tuple[dict[str, str], list[Finding]]:
    """T06 where a product of matrices is computed of other numbers than it is asked for."""
    used = sorted({factor for binary in dots for factor in binary.factors})
    told = {"factors": f"{' and '.join(used) or 'none on tensor cores'}, {asked} asked for"}
    for binary in dots:
        if binary.factors != (asked,):
            multiplies = f"Tensor cores multiply {' and '.join(binary.factors)} by " \
                         f"{binary.tensor_cores} in `{binary.kernel}`" if binary.factors else \
                         f"`{binary.kernel}` multiplies without tensor cores"
            return told, [Finding("T06", f"{multiplies}, where those of the "
                                         f"{find(binary.target).title} are asked for {asked}.",
                                  line=binary.products[0][0] if binary.products else None)]
    if not dots:
        return told, [Finding("T06", "No kernel multiplies matrices by tl.dot.")]
    return told, []


def _imprecise_sums(most: int, dots: Sequence[Binary]) -> tuple[dict[str, str], list[Finding]]:
    """N04 for sums of float8 that stay in Hopper's tensor cores for too long."""
    worst = max(dots, key=lambda binary: binary.imprecise_sums, default=None)
    if worst is None:
        return {}, []
    found = "all" if worst.imprecise_sums >= ALL_SUMS else f"{worst.imprecise_sums:,}"
    told = {"imprecise sums": f"{found}, limit {most:,}"}
    if worst.imprecise_sums <= most:
        return told, []
    return told, [Finding(
        "N04", f"In `{worst.kernel}`, tensor cores of the {find(worst.target).title} add up "
               f"{found} products before a sum goes on in float32, where {most:,} are allowed: of "
               "sums of float8 they keep fewer bits.",
        line=worst.products[0][0] if worst.products else None)]


def _bulk(launches: Sequence[Counted],
          binaries: Sequence[Binary]) -> tuple[dict[str, str], list[Finding]]:
    """T06 for a line that loads much, piece by piece: nothing of it is left to the copy engine."""
    for launch, binary in zip(launches, binaries, strict=True):
        lines = {row.line for row in _heavy(launch) if row.kind == "load"}
        direct = [access for access in binary.accesses if access.kind in ("load", "async copy")]
        pieces = [access for access in direct if access.line in lines]
        if lines and not _bulk_lines(binary):
            pieces = pieces or direct
        if pieces:
            worst = max(pieces, key=lambda access: access.count)
            return {"loads": "in pieces"}, [Finding(
                "T06", f"`{binary.kernel}` loads tiles in pieces of {worst.bits // 8} bytes, each "
                       f"by a thread that computes its address; none of them is a bulk copy of "
                       f"the {find(binary.target).title}.", line=worst.line)]
    return {"loads": "whole tiles"}, []


def _specialized(launches: Sequence[Counted],
                 binaries: Sequence[Binary]) -> tuple[dict[str, str], list[Finding]]:
    """T06 for a program that has as many warps as it was launched with: all do the same."""
    told = {}
    for binary in binaries:
        asked = binary.options.get("num_warps") or DEFAULT_WARPS
        told["warps"] = f"{binary.warps}, {asked} asked for by num_warps"
        if binary.warps == asked:
            return told, [Finding(
                "T06", f"A program of `{binary.kernel}` has {binary.warps} warps on the "
                       f"{find(binary.target).title}, as many as its launch asks for: none is "
                       "added that has a role of its own.")]
    return told, []


def _share(launch: Counted, binary: Binary, access: Access) -> str:
    """Why an access is no wider, where no more of each block falls to a thread."""
    threads = 32 * binary.warps
    for row in launch.traffic:
        if row.line == access.line and row.kind == access.kind and row.lanes:
            size, lanes = row.bytes // row.lanes, row.lanes // max(1, launch.programs)
            if 8 * size * lanes == access.bits * threads:
                return (f": {lanes:,} elements of {size} bytes, shared by {threads} threads, are "
                        f"{access.bits // 8} bytes each")
    return ""


def _accesses(launch: Counted, binary: Binary) -> list[Access]:
    """The instructions of threads by which a launch moves most of its bytes."""
    heavy = {row.line for row in _heavy(launch)}
    direct = [access for access in binary.accesses if access.bits and access.kind != "atomic"]
    wide = [access for access in direct if access.line in heavy]
    return wide if wide or heavy & _bulk_lines(binary) else direct


def _bulk_lines(binary: Binary) -> set[int | None]:
    """Where whole tiles are moved at once, by no thread."""
    return {access.line for access in binary.accesses if access.kind == "bulk copy"}


def idle_grid(suite: Suite, session: Session, recording: Recording,
              inputs: Sequence[Any]) -> list[Finding]:
    """L03 for a grid far too large, seen on a sample: running it whole would take minutes.

    Only for suites that bound the programs; elsewhere an idle program is no fault.
    """
    programs = max((launch.programs for launch in recording.launches), default=0)
    if not suite.counts_programs or programs < MANY_PROGRAMS:
        return []
    run = session.replay(recording, inputs, sample=SAMPLE)
    idle = sum(launch.idle_programs for launch in run.facts)
    if idle < SAMPLE:
        return []
    return [Finding("L03", f"{idle} of {2 * SAMPLE} programs stored nothing, the first and the "
                           f"last {SAMPLE} of a grid of {programs}.")]


def in_launches(number: int) -> str:
    return f"{number or 'no'} launch{'' if number == 1 else 'es'}"
