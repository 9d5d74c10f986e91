"""Named performance defects of launches, decided from what was compiled and what was counted.

A defect is named only where it costs something: good kernels re-read weights out of L2, launch one
small program after a large launch, and use small products where memory is the bound.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Literal

from grader.engine.compiler.targets import WARP, Target
from grader.recording.compiled_kernel import Binary
from grader.recording.launch_stats import SECTOR, Survey, Traffic

LEAST_LAUNCH = 0.1  # of a call's time; launches that take less are not looked at
# What moves less than this share of a launch's sectors does not decide how fast it is.
SHARE = 0.2
MMA_SHARE = 0.62  # of wgmma's rate that mma.sync reaches on the same GPU


@dataclass(frozen=True)
class Defect:
    """A defect by name. ``code`` is that of the diagnosis: T01 to T04 and T06.

    ``weight``: a "hint" says what could be better and may cost nothing as things are.
    """

    name: str
    code: str
    line: int | None
    seen: str
    advice: str
    weight: Literal["defect", "hint"] = "defect"


@dataclass(frozen=True)
class Observed:
    """One launch of a call.

    ``sizes``: bytes from the first to the last element of each tensor argument, by parameter.
    ``storages``: which memory it lies in. ``indexed``: lines whose addresses depend on loads.
    """

    binary: Binary
    survey: Survey | None
    indexed: Collection[int] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)
    storages: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class LaunchCost:
    """A launch as the checks for defects see it. Each time (s) is a lower bound."""

    binary: Binary
    survey: Survey
    target: Target
    indexed: Collection[int]
    sizes: Mapping[str, int]

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
        """What cannot be avoided by other programs: memory and products."""
        return max(self.memory, self.products)

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
        """How often programs come past it, all together."""
        rounds = self.survey.executions.get(traffic.line, 1.0) if traffic.line is not None else 1.0
        return max(1.0, rounds * self.programs)

    def lanes(self, traffic: Traffic) -> float:
        return traffic.lanes / self.accesses(traffic)


def _mma_where_better_is(binary: Binary, target: Target) -> bool:
    return binary.tensor_cores == "mma" and target.capability in (90, 100, 103)


def peak(target: Target, binary: Binary) -> tuple[float, str]:
    """What the units that a kernel multiplies on can do: operations a second, and their name."""
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
    costs = [LaunchCost(one.binary, one.survey, target, one.indexed, one.sizes)
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
    defects += [*_atomics(launch), *_dots(launch)]
    defects += _loops(launch, defects)
    return [*defects, *_narrow(launch)]


# ---------------------------------------------------------------------------------------------
# T03: how work is cut into launches and programs, idle lanes, and atomics that meet

FEW_PROGRAMS = 0.6  # of the multiprocessors; from 80 programs of 132 on, the loss is small
TAIL = 0.6  # of the GPU that works on average, where the last wave is nearly empty
IDLE_LANES = 0.45  # a row of 65 elements in a block of 128 is above it, and needs its 128
CONTENDED = 0.5  # of the time that the rest needs
UNFUSED = 0.3  # of a call's bytes that go out and come back between launches
READ_ONCE = 1.1  # of a tensor's bytes; a stencil reads each element several times


def _launch_bound(launches: Sequence[LaunchCost]) -> list[Defect]:
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


def _programs(launch: LaunchCost) -> Iterator[Defect]:
    target, binary, programs = launch.target, launch.binary, launch.programs
    if not launch.large:
        return
    if programs <= FEW_PROGRAMS * target.multiprocessors:
        yield Defect(
            "too few programs", "T03", None,
            f"{programs} program{'s' * (programs > 1)} for {target.multiprocessors} "
            f"multiprocessors: the rest of the GPU has nothing to do",
            "Cut the work into more programs, also along the axis that is reduced.")
    waves = programs / target.multiprocessors
    alone = launch.bound_by_products or binary.occupancy.programs == 1
    if waves > 1 and alone and waves / ceil(waves) < TAIL:
        yield Defect(
            "wave tail", "T03", None,
            f"{programs} programs on {target.multiprocessors} multiprocessors need {ceil(waves)} "
            f"turns, and in the last one {waves - ceil(waves) + 1:.0%} of them work",
            "Choose tiles so that programs are a multiple of the multiprocessors or just under "
            "it, split K, or let each program take several tiles.")
    # where L2 takes longer, programs start while others wait for it
    if launch.starting > max(launch.work, launch.caches, 3 * target.launch_seconds):
        each = (launch.survey.loaded.low + launch.survey.stored.low) / programs
        yield Defect(
            "tiny programs", "T03", None,
            f"{programs:,} programs move {each:,.0f} bytes each: starting them takes "
            f"{launch.starting / launch.work:.1f} times as long as the memory needs",
            "Give each program more: a larger block, or several rows.")
    yield from _idle_lanes(launch)


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


def _atomics(launch: LaunchCost) -> list[Defect]:
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
    return [Defect(
        "unfused launches", "T03", None,
        f"{len(launches)} launches hand {between // 2:,} bytes to one another through memory",
        "Do these steps in one kernel: what one step makes stays in registers for the next.")]


def _may_fuse(producer: Observed, output: str, consumer: Observed, taken: str,
              target: Target) -> bool:
    """Whether a program of the consumer needs nothing but what one program makes, or a few whole
    ones do. Where programs reach for what their neighbours made, as of a stencil, a launch is
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
        if (t.kind == "atomic" or used > (POOR_SHARED_SECTORS if shared else POOR_SECTORS)
                or t.sectors - t.ideal_sectors < SHARE * launch.sectors
                or (not shared and _rest_is_used(launch, t))):
            continue
        indexed = t.line in launch.indexed
        verb = {"load": "read", "store": "written"}[t.kind]
        yield Defect(
            "uncoalesced access" if indexed else "strided access", "T02", t.line,
            f"{t.bytes:,} bytes of `{t.tensor}` are {verb} in {t.sectors:,} sectors of 32 bytes: "
            f"{t.bytes / (t.sectors * SECTOR):.0%} of what moves is used",
            "Neighbouring lanes go wherever the indices say; sort the indices, or fetch whole rows "
            "for each." if indexed else
            "Let neighbouring lanes take neighbouring elements in memory; where rows meet columns, "
            "move a tile and transpose it in the program.")



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
    where = f" at {len(lines)} lines," if len(lines) > 1 else ""
    return [Defect(
        "data read again", "T01", max(lines, default=None),
        f"{survey.loaded.low:,} bytes or more come from memory, where {needed:,} would do: "
        f"`{worst.tensor}` is read{where} again after it has left the caches",
        "Keep what was read in registers, or do the work in one pass, as with a running maximum "
        "and sum.")]


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
# Fewer rounds of a loop end before a pipeline pays.
ROUNDS_OF_PRODUCTS = 4
ROUNDS = 8


def spills(binary: Binary, allowed: int = SPILLED - 1) -> list[Defect]:
    """Finds registers that are spilled to memory.

    Args:
        allowed: bytes per thread that are not a defect.
    """
    if binary.spill_bytes <= allowed:
        return []
    return [Defect(
        "register spills", "T04", None,
        f"`{binary.kernel}` keeps {binary.spill_bytes} bytes of each thread in memory, since its "
        f"values do not fit {binary.registers} registers with {binary.warps} warps",
        "Spread a block over more warps (num_warps), or make it smaller and loop.")]


def _no_tensor_cores(binary: Binary, target: Target) -> list[Defect]:
    if not binary.dot or binary.tensor_cores or target.capability < 80:
        return []
    return [Defect(
        "no tensor cores", "T06", _product_line(binary),
        "tl.dot is computed by ordinary multiply-adds, not by tensor cores",
        "Use fp16 or bf16 operands, or allow tf32 (input_precision) where its precision is "
        "enough.")]


def _dots(launch: LaunchCost) -> list[Defect]:
    """What keeps products from the rate that the GPU has."""
    binary, target = launch.binary, launch.target
    if not (binary.dot and launch.bound_by_products and launch.large):
        return []
    if not binary.tensor_cores:
        return _no_tensor_cores(binary, target)
    line = _product_line(binary)
    bigger = "Use larger tiles, such as 128 x 128 with 4 or 8 warps."
    if _mma_where_better_is(binary, target):
        return [Defect(
            "small tiles", "T06", line,
            "tl.dot is computed by mma.sync: tiles under 64 rows, or fewer than 4 warps, do not "
            "reach the fast tensor-core instructions of this GPU", bigger)]
    defects = []
    loaded = sum(t.lanes for t in launch.survey.traffic if t.kind == "load")
    reuse = launch.survey.flops / 2 / loaded if loaded else 0.0
    starved = launch.caches / launch.products
    if 0 < reuse < SMALL_REUSE and (target.capability >= 90 or starved > 1):
        defects.append(Defect(
            "small tiles", "T06", line,
            f"Each element that is loaded takes part in {reuse:.0f} multiplications; L2 cannot "
            f"feed the tensor cores at this rate", bigger,
            "defect" if starved > STARVED else "hint"))
    narrow = [a for a in binary.accesses if a.kind == "async copy" and 0 < a.bits <= 32]
    if narrow:
        worst = max(narrow, key=lambda a: a.count)
        defects.append(Defect(
            "narrow async copies", "T06", worst.line,
            f"An operand of tl.dot is copied to shared memory in pieces of {worst.bits // 8} bytes "
            f"({sum(a.count for a in narrow)} instructions) instead of 16",
            "Store the operand so that neighbours along K lie side by side, or load it through a "
            "descriptor."))
    return defects


def _product_line(binary: Binary) -> int | None:
    return next((line for line, _, _ in binary.products if line is not None), None)


def _loops(launch: LaunchCost, earlier: Sequence[Defect]) -> list[Defect]:
    """Loops that wait for memory in every round."""
    binary, target = launch.binary, launch.target
    if binary.stages or not launch.large or any(d.name in (
            "too few programs", "idle lanes", "no tensor cores", "small tiles") for d in earlier):
        return []
    loads = [(launch.survey.executions.get(t.line, 0.0), t.line, t) for t in launch.survey.traffic
             if t.kind == "load" and t.line is not None]
    rounds = max((executions for executions, _, _ in loads), default=0.0)
    if binary.dot:
        if rounds < ROUNDS_OF_PRODUCTS or not launch.bound_by_products:
            return []
        wait = "tl.dot waits for its operands in every round of the loop"
        advice = "Give the launch num_stages=3 or more."
    else:
        if rounds < ROUNDS or launch.memory < 3 * target.launch_seconds:
            return []
        # bytes that one multiprocessor asks for at a time, if every round waits
        resident = min(binary.occupancy.programs, ceil(launch.programs / target.multiprocessors))
        in_flight = resident * sum(t.bytes / launch.accesses(t) for executions, _, t in loads
                                   if executions >= rounds / 2)
        # bytes that keep its share of the memory busy over its latency
        needed = target.latency_dram / target.clock * target.dram / target.multiprocessors
        if in_flight >= needed:
            return []
        wait = f"each round of the loop waits for its loads, {in_flight / 1024:.0f} KiB for each " \
               f"multiprocessor, where {needed / 1024:.0f} KiB have to be on their way"
        advice = "Write the loop as tl.range(..., num_stages=3), take larger blocks, or launch " \
                 "more programs for each multiprocessor."
    _, line, _ = max(loads, key=lambda load: load[:2])
    return [Defect("no pipelining", "T06", line, f"The loop is not pipelined: {wait}", advice)]


def _narrow(launch: LaunchCost) -> Iterator[Defect]:
    """Tensors that threads could access in wide pieces, and do in narrow ones everywhere."""
    threads = launch.binary.warps * WARP
    for tensor, kind in sorted({(t.tensor, t.kind) for t in launch.survey.traffic}):
        rows = [t for t in launch.survey.traffic if (t.tensor, t.kind) == (tensor, kind)]
        widths = [a.bits for t in rows for a in launch.binary.accesses
                  if a.line == t.line and a.kind == kind]
        main = max(rows, key=lambda t: t.sectors)
        if kind == "atomic" or not widths or not main.lanes or (
                main.sectors < SHARE * launch.sectors or main.coalescing < 0.9):
            continue
        element = 8 * main.bytes // main.lanes
        possible = min(128, element * int(launch.lanes(main) // threads))
        if max(widths) <= 32 and possible >= 4 * max(widths):
            yield Defect(
                "scalar access", "T06", main.line,
                f"`{tensor}` is {'read' if kind == 'load' else 'written'} {max(widths) // 8} bytes "
                f"at a time by each thread, where {possible // 8} would do",
                "Start at an address that is a multiple of 16 bytes, and keep sizes and strides "
                "multiples of 16 elements; while memory is the bound it costs little.", "hint")
