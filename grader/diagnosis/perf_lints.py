"""Named performance defects of launches, decided from what was compiled and what was counted.

A defect is named only where it costs something: good kernels re-read weights out of L2, launch one
small program after a large launch, and use small products where memory is the bound.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any, Literal

from grader.diagnosis import messages
from grader.engine.compiler.targets import WARP, Target
from grader.recording.compiled_kernel import Binary
from grader.recording.launch_stats import SECTOR, Survey, Traffic

LEAST_LAUNCH = 0.1  # of a call's time; launches that take less are not looked at
# What moves less than this share of a launch's sectors does not decide how fast it is.
SHARE = 0.2
DONE = {"load": "read", "store": "written"}
MMA_SHARE = 0.62  # of wgmma's rate that mma.sync reaches on the same GPU


Weight = Literal["defect", "hint"]


@dataclass(frozen=True)
class Defect:
    """A defect by name. ``code`` is that of the diagnosis: T01 to T04 and T06, or none.

    ``seen`` and ``advice`` are those of ``messages.defect``.
    ``weight``: a "hint" says what could be better and may cost nothing as things are.
    """

    name: str
    code: str
    line: int | None
    seen: str
    advice: str
    weight: Weight = "defect"


def _defect(name: str, code: str, line: int | None, weight: Weight = "defect",
            **figures: Any) -> Defect:
    return Defect(name, code, line, *messages.defect(name, figures), weight)


@dataclass(frozen=True)
class Unaligned:
    """An argument that makes the accesses of a line narrow, because it is not a multiple of 16.

    ``value``: of an integer; of a tensor, the bytes from a multiple of 16 to its start. ``bits``:
    of the widest access of a thread, were all arguments multiples of 16. ``in_address`` and
    ``in_mask``: whether the address and the mask of the access are computed from it.
    """

    line: int
    kind: str
    name: str
    value: int
    is_tensor: bool
    bits: int
    in_address: bool
    in_mask: bool


@dataclass(frozen=True)
class Observed:
    """One launch of a call.

    ``sizes``: bytes from the first to the last element of each tensor argument, by parameter.
    ``storages``: which memory it lies in. ``indexed``: lines whose addresses depend on loads.
    ``unaligned``: why accesses are narrow, as far as it was examined.
    """

    binary: Binary
    survey: Survey | None
    indexed: Collection[int] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)
    storages: Mapping[str, int] = field(default_factory=dict)
    unaligned: Collection[Unaligned] = ()


@dataclass(frozen=True)
class LaunchCost:
    """A launch as the checks for defects see it. Each time (s) is a lower bound."""

    binary: Binary
    survey: Survey
    target: Target
    indexed: Collection[int]
    sizes: Mapping[str, int]
    unaligned: Collection[Unaligned] = ()

    @property
    def programs(self) -> int:
        return self.survey.programs

    @property
    def memory(self) -> float:
        return (self.survey.loaded.low + self.survey.stored.low) / self.target.dram

    @property
    def caches(self) -> float:
        return self.sectors * SECTOR / self.target.l2_rate

    @property
    def products(self) -> float:
        best, _ = peak(self.target, self.binary)
        share = MMA_SHARE if _mma_where_better_is(self.binary, self.target) else 1.0
        return self.survey.flops / (best * share)

    @property
    def starting(self) -> float:
        return self.programs / self.target.programs_per_second

    @property
    def meeting(self) -> float:
        return self.survey.hottest / self.target.atomics_per_second

    @property
    def work(self) -> float:
        """The unavoidable time: memory traffic and matrix products."""
        return max(self.memory, self.products)

    @property
    def loops(self) -> float:
        """The time of the iterations of one program's loops, one after the other."""
        rounds = max((one.most for one in self.survey.blocks if one.header), default=0.0)
        return rounds * ITERATION / self.target.clock

    @property
    def total(self) -> float:
        return max(self.work, self.caches, self.starting, self.meeting)

    @property
    def large(self) -> bool:
        return self.work > self.target.launch_seconds / 2

    @property
    def bound_by_products(self) -> bool:
        return self.products >= self.memory / 2

    @property
    def sectors(self) -> int:
        return sum(t.sectors for t in self.survey.traffic)

    def accesses(self, traffic: Traffic) -> float:
        """The number of executions of the access over all programs."""
        rounds = self.survey.executions.get(traffic.line, 1.0) if traffic.line is not None else 1.0
        return max(1.0, rounds * self.programs)

    def lanes(self, traffic: Traffic) -> float:
        return traffic.lanes / self.accesses(traffic)


def _mma_where_better_is(binary: Binary, target: Target) -> bool:
    return binary.tensor_cores == "mma" and target.capability in (90, 100, 103)


def peak(target: Target, binary: Binary) -> tuple[float, str]:
    """Returns the peak FLOP/s and the name of the units that a kernel uses."""
    if not binary.tensor_cores:
        return target.fp32, "FP32"
    if binary.tf32:
        return target.tf32_tensor, "TF32 tensor cores"
    if binary.factors == ("fp8",):
        return target.fp8_tensor, "FP8 tensor cores"
    return target.fp16_tensor, "FP16 tensor cores"


def of_call(launches: Sequence[Observed], target: Target) -> tuple[Defect, ...]:
    """The defects of all launches of one call, and of how the work is cut into launches.

    A launch that takes less than a tenth of the time is not looked at. Each defect is named once
    for a line.
    """
    costs = [LaunchCost(one.binary, one.survey, target, one.indexed, one.sizes, one.unaligned)
             if one.survey else None for one in launches]
    surveyed = [cost for cost in costs if cost]
    whole = sum(cost.total for cost in surveyed)
    defects = _launch_bound(surveyed) if surveyed else []
    if not defects and len(surveyed) == len(launches):
        defects = _unfused(launches, target)
    named: dict[tuple[str, int | None], Defect] = {}
    for one, cost in zip(launches, costs, strict=True):
        if cost is None:
            own = [*spills(one.binary), *_no_tensor_cores(one.binary, target)]
        elif cost.total < LEAST_LAUNCH * whole:
            continue
        else:
            own = _of_launch(cost)
        for defect in own:
            named.setdefault((defect.name, defect.line), defect)
    return (*defects, *named.values())


def _of_launch(launch: LaunchCost) -> list[Defect]:
    """The defects of one launch, worst first within each code."""
    defects = [*spills(launch.binary), *_poor_sectors(launch), *_programs(launch)]
    defects += _read_again(launch, defects)
    narrow = list(_narrow(launch))
    defects += [*_atomics(launch), *_dots(launch)]
    defects += _loops(launch, [*defects, *narrow])
    return [*defects, *narrow]


# ---------------------------------------------------------------------------------------------
# T03: how work is cut into launches and programs, idle lanes, and atomics that meet

FEW_PROGRAMS = 0.6  # of the SMs; from 80 programs of 132 on, the loss is small
TAIL = 0.6  # of the GPU that works on average, where the last wave is nearly empty
IDLE_LANES = 0.45  # a row of 65 elements in a block of 128 is above it, and needs its 128
ITERATION = 20.0  # cycles of one iteration of a loop, at least: a few dependent instructions
CONTENDED = 0.5  # of the time that the rest needs
UNFUSED = 0.3  # of a call's bytes that go out and come back between launches
READ_ONCE = 1.1  # of a tensor's bytes; a stencil reads each element several times


def _launch_bound(launches: Sequence[LaunchCost]) -> list[Defect]:
    target = launches[0].target
    work = sum(max(launch.work, launch.loops) for launch in launches)
    overhead = len(launches) * target.launch_seconds
    if work >= overhead / 2:
        return []
    begin, work = overhead * 1e6, work * 1e6
    if len(launches) > 1:
        return [_defect("launch-bound", "T03", None, launches=len(launches), begin=begin,
                        work=work)]
    return [_defect("small size", "", None, "hint", begin=begin, work=work)]


def _programs(launch: LaunchCost) -> Iterator[Defect]:
    target, binary, programs = launch.target, launch.binary, launch.programs
    if not launch.large:
        return
    if programs <= FEW_PROGRAMS * target.multiprocessors:
        yield _defect("too few programs", "T03", None, programs=programs,
                      multiprocessors=target.multiprocessors)
    waves = programs / target.multiprocessors
    alone = launch.bound_by_products or binary.occupancy.programs == 1
    if waves > 1 and alone and waves / ceil(waves) < TAIL:
        yield _defect("wave tail", "T03", None, programs=programs, turns=ceil(waves),
                      multiprocessors=target.multiprocessors, last=waves - ceil(waves) + 1)
    # where L2 takes longer, programs start while others wait for it
    if launch.starting > max(launch.work, launch.caches, 3 * target.launch_seconds):
        each = (launch.survey.loaded.low + launch.survey.stored.low) / programs
        yield _defect("tiny programs", "T03", None, programs=programs, n_bytes=each,
                      times=launch.starting / launch.work)
    yield from _idle_lanes(launch)


def _idle_lanes(launch: LaunchCost) -> list[Defect]:
    threads = launch.binary.warps * WARP
    if launch.bound_by_products or launch.memory < launch.target.launch_seconds:
        return []
    widest = max(launch.survey.traffic, key=lambda t: t.bytes)
    lanes = launch.lanes(widest)
    if lanes >= IDLE_LANES * threads:
        return []
    return [_defect("idle lanes", "T06", widest.line, threads=threads, elements=lanes)]


def _atomics(launch: LaunchCost) -> list[Defect]:
    survey = launch.survey
    if launch.meeting <= max(CONTENDED * launch.work, launch.target.launch_seconds):
        return []
    lines = [t.line for t in sorted(survey.traffic, key=lambda t: -t.lanes) if t.kind == "atomic"]
    return [_defect("contended atomics", "T03", lines[0] if lines else None,
                    operations=survey.hottest, ms=launch.meeting * 1e3)]


def _unfused(launches: Sequence[Observed], target: Target) -> list[Defect]:
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
    return [_defect("unfused launches", "T03", None, launches=len(launches),
                    n_bytes=between // 2)]


def _may_fuse(producer: Observed, output: str, consumer: Observed, taken: str,
              target: Target) -> bool:
    """Whether a program of the consumer needs nothing but what one program makes, or a few whole
    ones do. Where programs load what their neighbors stored, as of a stencil, a launch is
    needed between the steps; and a step of few programs cannot do the work of many."""
    first, second = producer.survey, consumer.survey
    assert first is not None and second is not None
    if producer.binary.dot or consumer.binary.dot:
        return False
    if ("store", output) in first.apart and ("load", taken) in second.apart:
        return (first.programs == second.programs
                or min(first.programs, second.programs) >= target.multiprocessors)
    read = sum(t.bytes for t in second.traffic if (t.kind, t.tensor) == ("load", taken))
    return (first.programs == second.programs
            and read <= READ_ONCE * consumer.sizes.get(taken, read))


# ---------------------------------------------------------------------------------------------
# T02 and T01: sectors of which little is used, and data that come from memory again

GRANULE = 64  # bytes that memory hands out at least, for a sector that is asked for alone
# Every second element is a half; a column of floats uses an eighth. Between programs that take
# turns at the same sectors, caches give back what a half loses, and no more.
POOR_SECTORS = 0.55  # of the bytes of its sectors that an access uses, where they come once
POOR_SHARED_SECTORS = 0.3  # where other accesses use the rest
MANY_SECTORS = 8  # of a request; a scalar has one
POOR_REQUESTS = 0.3  # of the bytes of the sectors that one instruction of a warp accesses
# At the edge of L2 the count itself is this far off (a brute-force cache agrees within 17 %).
READ_AGAIN = 0.25  # of the bytes that have to move
STAYS = 0.25  # of L2: tensors of this size, such as weights, are found there again


def _efficiency(launch: LaunchCost, t: Traffic) -> float:
    """The share of its sectors that an access uses; one more for a start between two is free."""
    needed = max(float(t.ideal_sectors), t.sectors - launch.accesses(t))
    return t.ideal_sectors / needed if needed else 1.0


def _poor_sectors(launch: LaunchCost) -> Iterator[Defect]:
    if launch.products > 2 * max(launch.caches, launch.memory):
        return
    for t in sorted(launch.survey.traffic, key=lambda t: -t.sectors):
        used = _efficiency(launch, t)
        shared = t.redundancy > 1.1
        if _poor_requests(launch, t):
            yield _defect(
                "scattered requests", "T02", t.line, tensor=t.tensor, done=DONE[t.kind],
                sectors=t.sectors_per_request, used=t.request_use, hits=t.l1_hits)
            continue
        if (t.kind == "atomic" or used > (POOR_SHARED_SECTORS if shared else POOR_SECTORS)
                or t.sectors - t.ideal_sectors < SHARE * launch.sectors
                or (not shared and _rest_is_used(launch, t))):
            continue
        yield _defect(
            "uncoalesced access" if t.line in launch.indexed else "strided access", "T02", t.line,
            n_bytes=t.bytes, tensor=t.tensor, done=DONE[t.kind], sectors=t.sectors,
            used=t.bytes / (t.sectors * SECTOR))


def _poor_requests(launch: LaunchCost, t: Traffic) -> bool:
    """Whether warps use little of their sectors, other requests use the rest, and L1 takes long.

    L1 looks up one line in a cycle. Asynchronous copies that are narrow have a name of their own.
    """
    copied = any(one.kind == "async copy" and one.line == t.line for one in launch.binary.accesses)
    lookups = t.request_lines / launch.target.multiprocessors / launch.target.clock
    return (t.kind != "atomic" and not copied and t.request_use <= POOR_REQUESTS
            and t.request_sectors >= MANY_SECTORS * t.requests
            and _efficiency(launch, t) > POOR_SHARED_SECTORS
            and lookups > max(launch.work, launch.target.launch_seconds))


def _rest_is_used(launch: LaunchCost, t: Traffic) -> bool:
    """Whether other lines use the other elements of the same sectors, as of interleaved pairs."""
    alike = [other for other in launch.survey.traffic
             if other.tensor == t.tensor and other.kind == t.kind]
    sectors = max(other.unique_sectors for other in alike)
    return len(alike) > 1 and sum(other.bytes for other in alike) >= 0.8 * sectors * SECTOR


def _read_again(launch: LaunchCost, earlier: Sequence[Defect]) -> list[Defect]:
    """Bytes that come from DRAM more than once, where DRAM is what the launch waits for.

    A tensor needs to come once, and as a whole at most; without its size nothing can be said of it.
    What fits L2 with much else stays there.
    """
    if any(defect.name == "idle lanes" for defect in earlier):
        return []  # lone elements of one sector come one after the other, out of L1
    survey = launch.survey
    excused = {defect.line for defect in earlier if defect.code == "T02"} | set(launch.indexed)
    loads = [t for t in survey.traffic if t.kind == "load"]
    needed = again = 0
    for tensor in {t.tensor for t in loads}:
        own = [t for t in loads if t.tensor == tensor]
        asked = sum(t.sectors for t in own) * SECTOR
        once = min(asked, launch.sizes.get(tensor, asked) + SECTOR)
        if any(t.line in excused for t in own):
            needed += asked * GRANULE // SECTOR
        else:
            needed += once
            again += asked - once if once > STAYS * launch.target.l2 else 0
    excess = min(again, survey.loaded.low - needed)
    must = needed + survey.stored.low
    if excess <= READ_AGAIN * must or launch.bound_by_products:
        return []
    worst = max(loads, key=lambda t: sum(
        o.sectors for o in loads if o.tensor == t.tensor) * SECTOR - launch.sizes.get(t.tensor, 0))
    lines = [t.line for t in loads if t.tensor == worst.tensor and t.line is not None]
    return [_defect("data read again", "T01", max(lines, default=None), n_bytes=survey.loaded.low,
                    needed=needed, tensor=worst.tensor, lines=len(lines))]


# ---------------------------------------------------------------------------------------------
# T04 and T06: spills, tensor cores, pipelines, and the width of accesses

# A few saved registers stay in L1 and cost nothing that could be measured; from a full vector
# register of every kind on, the inner loop pays.
SPILLED = 128  # bytes per thread
# Multiplications and additions for each element loaded: 64 x 64 tiles give 32, 128 x 64 give 43.
# A tile of 64 x 64 reaches at most half of what 128 x 256 does where tensor cores are fast.
SMALL_REUSE = 37
# L2 takes so many times as long as the products: more than half of the time is lost for certain.
STARVED = 2.0
# Useful share of the sectors of contiguous rows; 64 elements of 2 bytes at any start use 0.8.
CONTIGUOUS = 0.75
# Fewer rounds of a loop end before a pipeline pays.
ROUNDS_OF_PRODUCTS = 4
ROUNDS = 8


def spills(binary: Binary, allowed: int = SPILLED - 1) -> list[Defect]:
    """Finds registers that are spilled to memory.

    Args:
        allowed: bytes per thread that are only a hint.
    """
    if not binary.spill_bytes:
        return []
    if binary.spill_bytes <= allowed:
        return [_defect("few spills", "T04", None, "hint", kernel=binary.kernel,
                        n_bytes=binary.spill_bytes)]
    return [_defect("register spills", "T04", None, kernel=binary.kernel, warps=binary.warps,
                    n_bytes=binary.spill_bytes, registers=binary.registers)]


def _no_tensor_cores(binary: Binary, target: Target) -> list[Defect]:
    if not binary.dot or binary.tensor_cores or target.capability < 80:
        return []
    return [_defect("no tensor cores", "T06", _product_line(binary))]


def _dots(launch: LaunchCost) -> list[Defect]:
    """Finds defects that keep tl.dot below the peak rate."""
    binary, target = launch.binary, launch.target
    if not (binary.dot and launch.bound_by_products and launch.large):
        return []
    if not binary.tensor_cores:
        return _no_tensor_cores(binary, target)
    line = _product_line(binary)
    if _mma_where_better_is(binary, target):
        return [_defect("small tiles", "T06", line)]
    defects = []
    loaded = sum(t.lanes for t in launch.survey.traffic if t.kind == "load")
    reuse = launch.survey.flops / 2 / loaded if loaded else 0.0
    starved = launch.caches / launch.products
    if 0 < reuse < SMALL_REUSE and (target.capability >= 90 or starved > 1):
        defects.append(_defect("small tiles", "T06", line,
                               "defect" if starved > STARVED else "hint", reuse=reuse))
    narrow = [a for a in binary.accesses if a.kind == "async copy" and 0 < a.bits <= 32]
    if narrow:
        worst = max(narrow, key=lambda a: a.count)
        defects.append(_defect("narrow async copies", "T06", worst.line, n_bytes=worst.bits // 8,
                               instructions=sum(a.count for a in narrow)))
    return defects


def _product_line(binary: Binary) -> int | None:
    return next((line for line, _, _ in binary.products if line is not None), None)


def _loops(launch: LaunchCost, earlier: Sequence[Defect]) -> list[Defect]:
    """Loops that wait for memory in every round."""
    binary, target = launch.binary, launch.target
    if binary.stages or not binary.loop_loads or not launch.large or any(d.name in (
            "too few programs", "idle lanes", "no tensor cores", "small tiles") for d in earlier):
        return []
    if binary.dot and any(d.name == "scalar access" for d in earlier):
        return []  # less than 4 bytes cannot be copied asynchronously, whatever num_stages is
    loads = [(launch.survey.executions.get(t.line, 0.0), t.line, t) for t in launch.survey.traffic
             if t.kind == "load" and t.line is not None]
    rounds = max((executions for executions, _, _ in loads), default=0.0)
    if binary.dot:
        if rounds < ROUNDS_OF_PRODUCTS or not launch.bound_by_products:
            return []
        figures = dict[str, Any]()
    else:
        if rounds < ROUNDS or launch.memory < 3 * target.launch_seconds:
            return []
        # bytes in flight per SM if every iteration waits
        resident = min(binary.occupancy.programs, ceil(launch.programs / target.multiprocessors))
        in_flight = resident * sum(t.bytes / launch.accesses(t) for executions, _, t in loads
                                   if executions >= rounds / 2)
        # bytes that keep its share of the memory busy over its latency
        needed = target.latency_dram / target.clock * target.dram / target.multiprocessors
        if in_flight >= needed:
            return []
        figures = {"in_flight": in_flight, "needed": needed}
    _, line, _ = max(loads, key=lambda load: load[:2])
    return [_defect("no pipelining", "T06", line, **figures)]


def _narrow(launch: LaunchCost) -> Iterator[Defect]:
    """Tensors that threads could access in wide pieces, and do in narrow ones everywhere."""
    threads = launch.binary.warps * WARP
    for tensor, kind in sorted({(t.tensor, t.kind) for t in launch.survey.traffic}):
        rows = [t for t in launch.survey.traffic if (t.tensor, t.kind) == (tensor, kind)]
        widths = [a.bits for t in rows for a in launch.binary.accesses
                  if a.line == t.line and a.kind == kind]
        main = max(rows, key=lambda t: t.sectors)
        if kind == "atomic" or not widths or not main.lanes or (
                main.sectors < SHARE * launch.sectors or main.coalescing < CONTIGUOUS):
            continue
        element = 8 * main.bytes // main.lanes
        possible = min(128, element * int(launch.lanes(main) // threads))
        if max(widths) > 32 or possible < 4 * max(widths):
            continue
        causes = [one for one in launch.unaligned if (one.line, one.kind) == (main.line, kind)]
        possible = max((one.bits for one in causes), default=possible)
        step = possible // element
        remedy = _remedy(causes, step)
        yield _defect(
            "scalar access", "T06", main.line,
            "defect" if max(widths) < 32 and remedy in ("hints", "mask") else "hint",
            tensor=tensor, done=DONE[kind], n_bytes=max(widths) // 8, possible=possible // 8,
            causes=[(one.name, one.value, one.is_tensor) for one in causes], step=step,
            remedy=remedy)


def _remedy(causes: Sequence[Unaligned], step: int) -> str:
    """How an access becomes wide that moves ``step`` elements where all arguments are aligned."""
    if not causes:
        return ""
    if all(not one.is_tensor and one.value % step == 0 for one in causes):
        return "hints"
    if any(one.is_tensor for one in causes):
        return "start"
    if all(one.in_mask and not one.in_address for one in causes if one.value % step):
        return "mask"
    return "stride"
