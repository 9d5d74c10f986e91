"""Prediction: how long a launch would take on a target, and what bounds it.

A hint, never a measurement: on an H200, predictions of this kind were within 25 % for two thirds of
sixty kernels and within a factor of two for nine tenths. What is proved is in ``bound``.

Not modelled: bank conflicts of shared memory, clusters, warp specialisation, thread divergence,
what power does to the clock, TLB misses, and which partition of L2 holds what.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, sqrt
from typing import Literal

from grader.binary import Binary
from grader.engine.compiler.bound import least_seconds
from grader.engine.compiler.flow import Flow, Work, flow_of, width
from grader.engine.compiler.pipes import PIPES, SCHEDULERS, cost, multiplied, rate
from grader.engine.compiler.sass import Code
from grader.engine.compiler.targets import WARP, Target
from grader.engine.compiler.warp import latency
from grader.facts import SECTOR, Prediction, Survey, Traffic

LINE = 128  # bytes

_BLEND = 6
"""Power of the norm that joins what goes on at the same time: 1 would be one after the other, and
infinity perfect overlap. Two equal parts come to 1.12 of each."""
_OVERLAP = 3
"""The most of the same for pipes and waiting within a multiprocessor: it grows with the programs on
it, from 1 for one that waits for itself, by a half for each other that works meanwhile."""
_L2_USABLE = 0.6
"""Share of L2 in which data of an earlier launch are still found."""
_SHARED_READS = 1.5
"""A sector that several programs want comes so much cheaper: some requests meet in L1 or on the way
between the halves of L2 [estimated]."""
_SCATTERED = LINE // SECTOR
"""L2 looks up lines: a sector fetched alone costs as much as a whole line. Column-wise softmax and
strided stores, measured, took 2.1 and 2.6 times as long as their sectors alone explain."""
_ALONE = 0.9  # sectors per lane from which every lane has one of its own
_ATOMIC_LANES = 0.03
"""Lanes of atomics for each byte per second that L2 hands out, spread over all of it [estimated].
"""
_LANES_OF_LINE = LINE // 4
_SAME = 2.0
"""Lanes per sector, beyond the eight that fit, from which neighbours are hit over and over: then
L2 takes the atomics of a whole line one by one, as a histogram of 256 bins showed."""
_TAIL_WAVES = 12  # beyond, programs end at different times, and no last wave stands out
GAP = 12e-6
"""Seconds from one launch to the next where Python makes them, measured on an H200."""
_OFTEN = 8
"""A tensor of less than an eighth of L2 of which each sector is read eight times stays there."""
_L1 = 0.5
"""Share of a multiprocessor's memory beside the shared part in which data stay to be used again."""
_ALIKE = 0.01
"""Two lines that read as many sectors of one tensor, but for so many, read the same ones."""
_SPILLS = frozenset(("LDL", "STL"))
_NOTHING = dict.fromkeys((
    "dram", "l2", "compute", "latency", "launch", "programs", "atomics"), 0.0)


def predict(binary: Binary, code: Code, survey: Survey, target: Target, cold: bool = True,
            ) -> Prediction:
    """The time of one launch.

    Args:
        cold: nothing that it reads is in L2 yet. Otherwise an earlier launch left it there, where
            it fits.
    """
    if not survey.programs:
        return _prediction(target.launch_seconds, {**_NOTHING, "launch": target.launch_seconds})
    flow = flow_of(code, work_of(survey, code), binary.warps * WARP, _flops_of(binary, code))
    warm = not cold and _footprint(survey) <= _L2_USABLE * target.l2
    busy = _busy(binary, code, flow, survey, target)
    alone = latency(code, flow, target, binary.warps, _latencies(survey, target, warm))
    compute, waiting, multiprocessors = _waves(binary, survey, target, busy, alone)
    beyond_l1, beyond_l2 = _spilled(binary, code, flow, survey, target)
    parts = {
        "dram": (_dram(survey, warm) + beyond_l2) / target.dram,
        "l2": (_l2(binary, survey, target) + beyond_l1) / target.l2_rate,
        "compute": compute, "latency": waiting,
        "programs": survey.programs / target.programs_per_second,
        "atomics": _atomics(survey, target), "launch": target.launch_seconds,
    }
    together = _norm(_BLEND, [parts["dram"], parts["l2"], multiprocessors, parts["programs"],
                              parts["atomics"]])
    together = max(together, least_seconds(survey, target, binary, cold))
    return _prediction(together + target.launch_seconds, parts)


def predict_each(launches: Sequence[tuple[Binary, Code, Survey]],
                 target: Target) -> list[Prediction]:
    """The times of the launches of one call, the first of them cold."""
    return [predict(*launch, target, cold=number == 0) for number, launch in enumerate(launches)]


def one_after_other(predictions: Sequence[Prediction], target: Target) -> Prediction:
    """The time of a call, from those of its launches.

    From the second on, a launch that ends before Python has made the next one waits for it.

    Raises:
        ValueError: there are no launches.
    """
    if not predictions:
        raise ValueError("a call without launches takes no time on a GPU")
    seconds, parts = 0.0, dict(_NOTHING)
    for number, one in enumerate(predictions):
        work = one.seconds - target.launch_seconds
        gap = max(0.0, GAP - work) if number else target.launch_seconds
        seconds += work + gap
        for name, value in one.parts.items():
            parts[name] += gap if name == "launch" else value
    return _prediction(seconds, parts)


def predict_all(launches: Sequence[tuple[Binary, Code, Survey]], target: Target) -> Prediction:
    """The time of the launches of one call, one after the other.

    Raises:
        ValueError: there are no launches.
    """
    return one_after_other(predict_each(launches, target), target)


def work_of(survey: Survey, code: Code) -> Work:
    """One program's share of what a survey counted, as far as loops are counted by it."""
    moved: dict[int, float] = {}
    for row in survey.traffic:
        if row.line is not None:
            moved[row.line] = moved.get(row.line, 0.0) + row.bytes
    each = {line: moved[line] / survey.programs / times
            for line, times in survey.executions.items() if line in moved and times > 0}
    tensor = any(multiplied(step) > 1 for step in code.instructions)
    return Work(survey.executions, each, survey.flops / survey.programs if tensor else 0.0)


def _prediction(seconds: float, parts: Mapping[str, float]) -> Prediction:
    order = sorted(parts, key=lambda name: -parts[name])
    return Prediction(seconds, order[0], order[1], dict(parts))


def _norm(power: float, values: Sequence[float]) -> float:
    most = max(values, default=0.0)
    return most * sum((value / most) ** power for value in values) ** (1 / power) if most else 0.0


def _flops_of(binary: Binary, code: Code) -> dict[int, float]:
    return {index: each * binary.warps for index, step in enumerate(code.instructions)
            if (each := multiplied(step)) > 1}


def _footprint(survey: Survey) -> float:
    """Bytes that a launch touches at all."""
    touched: dict[str, int] = {}
    for row in survey.traffic:
        touched[row.tensor] = max(row.unique_sectors, touched.get(row.tensor, 0))
    return float(sum(touched.values()) * SECTOR)


def _latencies(survey: Survey, target: Target, warm: bool) -> dict[int | None, float]:
    """Cycles until a load of each line arrives.

    The first line that reads a tensor waits for DRAM, even where other programs want the same:
    they all come at the same time. From L2 come later lines, and small tensors read over and over.
    """
    found: dict[int | None, float] = {}
    seen: set[str] = set()
    for row in sorted(survey.traffic, key=lambda row: row.line or 0):
        if row.kind == "store":
            continue
        small = row.redundancy >= _OFTEN and row.unique_sectors * SECTOR <= target.l2 / _OFTEN
        there = warm or small or row.tensor in seen
        seen.add(row.tensor)
        cycles = float(target.latency_l2 if there else target.latency_dram)
        found[row.line] = max(cycles, found.get(row.line, 0.0))
    return found


def _busy(binary: Binary, code: Code, flow: Flow, survey: Survey, target: Target) -> float:
    """Cycles for which one program occupies the busiest pipe of its multiprocessor."""
    pipes: dict[str, float] = dict.fromkeys(PIPES, 0.0)
    dot: Literal["", "fma", "16", "32"] = ""
    if binary.tensor_cores:
        dot = "32" if binary.tf32 else "16"
    elif binary.dot:
        dot = "fma"
    for step, runs in zip(code.instructions, flow.runs, strict=True):
        if runs:
            price = cost(step, target, dot)
            pipes["issue"] += runs / SCHEDULERS
            pipes[price.pipe] += runs * price.busy
    for name in pipes:
        pipes[name] *= binary.warps
    looked_up = sum(row.sectors * _spread(row) for row in survey.traffic) / survey.programs
    pipes["lsu"] = max(pipes["lsu"], looked_up / _SCATTERED)
    if binary.tensor_cores and survey.flops:  # counted, where the code does not tell shapes
        fastest = max((rate(step, target) for step in code.instructions if multiplied(step)),
                      default=0.0)
        if fastest:
            pipes["tensor"] = max(pipes["tensor"], survey.flops / survey.programs / fastest)
    return max(pipes.values())


def _waves(binary: Binary, survey: Survey, target: Target, busy: float, alone: float
           ) -> tuple[float, float, float]:
    """Seconds of pipes, of latency, and of both together, for all programs."""
    spread = ceil(survey.programs / target.multiprocessors)  # programs of the fullest one
    resident = _resident(binary, survey, target)
    waves = survey.programs / (target.multiprocessors * resident)

    idle = max(0.0, alone - busy)

    def wave(programs: float) -> float:
        return _norm(min(_OVERLAP, (1 + programs) / 2), [idle, programs * busy])

    if waves > _TAIL_WAVES:
        cycles = waves * wave(resident)
        return (waves * resident * busy / target.clock, waves * idle / target.clock,
                cycles / target.clock)
    whole, rest = divmod(spread, resident)
    cycles = whole * wave(resident) + (wave(rest) if rest else 0.0)
    return (spread * busy / target.clock, (whole + bool(rest)) * idle / target.clock,
            cycles / target.clock)


def _dram(survey: Survey, warm: bool) -> float:
    """Bytes between DRAM and L2; the geometric mean where they depend on what L2 keeps."""
    loaded = sqrt(float(survey.loaded.low) * survey.loaded.high)
    stored = sqrt(float(survey.stored.low) * survey.stored.high)
    return (0.0 if warm else loaded) + stored


def _spilled(binary: Binary, code: Code, flow: Flow, survey: Survey, target: Target
             ) -> tuple[float, float]:
    """Bytes of spilled registers that pass L2, and of these those that L2 does not keep either."""
    threads = binary.warps * WARP
    resident = _resident(binary, survey, target)
    held = binary.spill_bytes * threads * resident  # of one multiprocessor
    if held <= _L1 * max(0, target.shared - binary.shared * resident):
        return 0.0, 0.0
    moved = float(survey.programs * threads) * sum(
        runs * width(step) for step, runs in zip(code.instructions, flow.runs, strict=True)
        if step.name in _SPILLS)
    return moved, moved if held * target.multiprocessors > _L2_USABLE * target.l2 else 0.0


def _l2(binary: Binary, survey: Survey, target: Target) -> float:
    """Bytes between L2 and the multiprocessors, weighed by how much trouble they make.

    Lines that read the same sectors of a tensor find them in L1 after the first of them, if what
    the programs of one multiprocessor hold there fits.
    """
    resident = _resident(binary, survey, target)
    room = _L1 * max(0, target.shared - binary.shared * resident)
    weighed = 0.0
    read: dict[str, list[int]] = {}
    for row in sorted(survey.traffic, key=lambda row: row.line or 0):
        again = max(0, row.sectors - row.unique_sectors)
        if row.kind == "load":
            known = read.setdefault(row.tensor, [])
            held = row.sectors * SECTOR / survey.programs * resident
            if held <= room and any(abs(row.unique_sectors - other) <= _ALIKE * other
                                    for other in known):
                continue
            known.append(row.unique_sectors)
        weighed += (row.sectors - again + again / _SHARED_READS) * _spread(row)
    return weighed * SECTOR


def _resident(binary: Binary, survey: Survey, target: Target) -> int:
    """Programs on the fullest multiprocessor at the same time."""
    return max(1, min(binary.occupancy.programs, ceil(survey.programs / target.multiprocessors)))


def _spread(row: Traffic) -> float:
    """What a sector costs: that of a line, where each lane has a sector of its own."""
    alone = row.lanes and row.sectors >= _ALONE * row.lanes and row.coalescing <= 0.5
    return float(_SCATTERED) if alone else 1.0


def _atomics(survey: Survey, target: Target) -> float:
    """Seconds of atomics: those of one line of L2, which come one by one, or all of them."""
    if not survey.atomics:
        return 0.0
    rows = [row for row in survey.traffic if row.kind == "atomic"]
    lanes, sectors = sum(row.lanes for row in rows), sum(row.sectors for row in rows)
    neighbours = _LANES_OF_LINE if lanes > _SAME * 8 * max(sectors, 1) else 1
    on_one_line = min(survey.atomics, survey.hottest * neighbours)
    all_of_them = survey.atomics / (_ATOMIC_LANES * target.l2_rate)
    return max(on_one_line / target.atomics_per_second, all_of_them)
