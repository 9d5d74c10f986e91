"""Predicts the time of a launch on a target, and the resource that bounds it.

A hint, never a measurement: ``accuracy`` counts how near predictions were. Only
``time_lower_bound`` is proved.

Not modeled: clusters, warp specialization, thread divergence, the effect of power on the clock, TLB
misses, and the partition of L2 that holds a line.

Constants without a source are fitted to measurements on an H200; those marked [estimated] are not
measured.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import ceil, sqrt

from grader.engine.compiler.sass import Code
from grader.engine.compiler.targets import WARP, Target
from grader.engine.compiler.time_lower_bound import least_seconds
from grader.engine.compiler.timing_model.control_flow import (
    Flow,
    Work,
    flow_of,
    slow_paths,
    width,
    with_calls,
    without,
)
from grader.engine.compiler.timing_model.instruction_costs import (
    PIPES,
    SCHEDULERS,
    Pipe,
    cost,
    multiplied,
    rate,
)
from grader.engine.compiler.timing_model.warp_simulator import latency
from grader.recording.compiled_kernel import Binary
from grader.recording.launch_stats import SECTOR, Prediction, Survey, Traffic

LINE = 128  # bytes

_BLEND = 3.5
"""Power of the norm that combines parts which overlap: 1 would be serial execution, and infinity
perfect overlap. Two equal parts take 1.22 times as long as each."""
_OVERLAP = 3
"""Largest power of the same norm for pipes and latency within an SM (streaming multiprocessor). The
power is 1 for a lone program, and grows by a half with each further resident program."""
_PRODUCTS = 1.2
"""Power of the same norm for tensor cores and the pipe of exponentials: a warp waits for a product
before it takes exponentials of it, and only other programs overlap with that. Attention on an H200
took as long as both one after the other where heads were 64 wide, and 0.9 times that at 128."""
_L2_USABLE = 0.6  # share of L2 in which a launch finds data of an earlier one
_SHARED_READS = 1.25
"""Factor by which further reads of a sector are cheaper than the first: some requests merge in L1
or between the partitions of L2 [estimated]."""
_SECTORS_OF_LINE = LINE // SECTOR
_LONE = {"load": 2.0, "store": 4.0}
"""Cost of a sector that a request accesses alone in its line, in sectors of whole lines: a slice of
L2 reads two sectors at once, and merges a part of a sector into its line. Measured on an H200:
loads of random elements and of columns 1.8 and 1.9, stores of columns 4.2."""
_WORD = 4  # bytes, the narrowest asynchronous copy
_NARROW_COPY = 1.25
"""Cycles of L1 for each sector that a request copies in words. Measured on an H200: 20 for copies
of every fourth word, 16 sectors a request, and 4 to 7 for adjacent ones, 4 or 5 sectors."""
_MANY, _SCATTERED = 16, 0.6
"""Lines of a request from which L1 looks up each in so many cycles [one kernel on an H200]."""
_ALONE = 0.9  # sectors per lane from which every lane has a sector of its own
_ATOMIC = 2.8
"""Cost of the atomics of a request on one sector, in sectors that L2 delivers: 2.7 for one lane and
2.9 for eight, measured on an H200 with 2**20 counters."""
_LANES_OF_LINE = LINE // 4
_ONE_LINE = 0.65
"""Rate of the atomics on different sectors of a line, of those on one address: L2 serializes both.
Measured on an H200 with 1,024 counters, 0.58 for random and 0.72 for adjacent ones."""
_TAIL_WAVES = 12  # waves beyond which programs end at different times: no tail effect
GAP = 12e-6  # seconds from one launch of Python to the next, measured on an H200
_OFTEN = 8  # a tensor stays in L2 if it takes an eighth of it and each sector is read eight times
_L1 = 0.5  # share of an SM's memory beside shared memory in which L1 keeps data for reuse
_SEVERAL = 4  # loads of a sector by the iterations of a loop
_TWICE = 2.0  # times as many bytes as there are, which a walk through rows that overlap may load
_ALIKE = 0.01  # relative difference in sectors below which two lines read the same sectors
_SPILLS = frozenset(("LDL", "STL"))
_NOTHING = dict.fromkeys((
    "dram", "l2", "compute", "latency", "launch", "programs", "atomics"), 0.0)


def predict(binary: Binary, code: Code, survey: Survey, target: Target, cold: bool = True,
            ) -> Prediction:
    """Predicts the time of one launch.

    Args:
        binary: the compiled kernel: warps, occupancy, spills, tensor cores.
        survey: the traffic and FLOP of the launch at full size.
        cold: L2 holds nothing that the launch reads. Otherwise an earlier launch left it there if
            it fits.

    Returns:
        ``seconds`` of the launch, the two largest of its parts, and ``parts`` in seconds by name;
        ``pipes`` are those of the part "compute".
    """
    if not survey.programs:
        return _prediction(target.launch_seconds, {**_NOTHING, "launch": target.launch_seconds},
                           dict[str, float].fromkeys(PIPES, 0.0))
    flops_of = {index: each * binary.warps for index, step in enumerate(code.instructions)
                if (each := multiplied(step)) > 1}
    work, threads = _work_of(survey, flops_of, binary.warps), binary.warps * WARP
    slow = slow_paths(code)
    flow, longest = (with_calls(without(flow_of(code, one, threads, flops_of), slow), code)
                     for one in (work, work.longest()))
    warm = not cold and _footprint(survey) <= _L2_USABLE * target.l2
    cycles = _busy(binary, code, flow, survey, target)
    busy = max(*cycles.values(), _norm(_PRODUCTS, [cycles["tensor"], cycles["xu"]]))
    latencies = _latencies(survey, target, warm)
    alone = latency(code, flow, target, binary.warps, latencies)
    idle = max(0.0, alone - (busy / binary.warps if _in_phases(code, flow) else busy))
    compute, waiting, multiprocessors = _waves(binary, survey, target, busy, idle)
    if longest.runs != flow.runs:
        multiprocessors = max(multiprocessors, latency(
            code, longest, target, binary.warps, latencies) / target.clock)
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
    return _prediction(together + target.launch_seconds, parts, {
        pipe: compute * each / busy if busy else 0.0 for pipe, each in cycles.items()})


def predict_call(predictions: Sequence[Prediction], target: Target) -> Prediction:
    """Predicts the time of a call from its launches' predictions.

    After a launch that is shorter than ``GAP``, the GPU waits until Python launches the next one.

    Raises:
        ValueError: there are no launches.
    """
    if not predictions:
        raise ValueError("a call without launches takes no time on a GPU")
    seconds, parts = 0.0, dict(_NOTHING)
    pipes: dict[str, float] = dict.fromkeys(PIPES, 0.0)
    for number, one in enumerate(predictions):
        work = one.seconds - target.launch_seconds
        gap = max(0.0, GAP - work) if number else target.launch_seconds
        seconds += work + gap
        for name, value in one.parts.items():
            parts[name] += gap if name == "launch" else value
        for pipe, value in one.pipes.items():
            pipes[pipe] += value
    return _prediction(seconds, parts, pipes)


def _work_of(survey: Survey, flops_of: Mapping[int, float], warps: int) -> Work:
    """One program's average share of the traffic and FLOP of a survey."""
    moved: dict[int, float] = defaultdict(float)
    requests: dict[int, float] = defaultdict(float)
    for row in survey.traffic:
        if row.line is not None:
            moved[row.line] += row.bytes
            requests[row.line] += row.requests / warps
    runs = {line: survey.programs * times for line, times in survey.executions.items()
            if line in moved and times > 0}
    return Work(survey.executions, {line: moved[line] / each for line, each in runs.items()},
                {line: requests[line] / each for line, each in runs.items()},
                survey.flops / survey.programs if flops_of else 0.0, survey.blocks)


def _prediction(seconds: float, parts: Mapping[str, float], pipes: Mapping[str, float],
                ) -> Prediction:
    order = sorted(parts, key=lambda name: -parts[name])
    return Prediction(seconds, order[0], order[1], dict(parts), dict(pipes))


def _norm(power: float, values: Sequence[float]) -> float:
    most = max(values, default=0.0)
    return most * sum((value / most) ** power for value in values) ** (1 / power) if most else 0.0


def _footprint(survey: Survey) -> float:
    """Distinct bytes that a launch reads or writes."""
    touched: dict[str, int] = defaultdict(int)
    for row in survey.traffic:
        touched[row.tensor] = max(row.unique_sectors, touched[row.tensor])
    return float(sum(touched.values()) * SECTOR)


def _latencies(survey: Survey, target: Target, warm: bool) -> dict[int | None, float]:
    """Latency in cycles of the loads of each line.

    The first line that reads a tensor has the latency of DRAM, even where other programs read the
    same data: all of them start at the same time. Later lines, and small tensors that are read
    again and again, have the latency of L2.
    """
    latencies: dict[int | None, float] = {}
    loaded: set[str] = set()
    for row in sorted(survey.traffic, key=lambda row: row.line or 0):
        if row.kind == "store":
            continue
        small = row.redundancy >= _OFTEN and row.unique_sectors * SECTOR <= target.l2 / _OFTEN
        in_l2 = warm or small or row.tensor in loaded
        loaded.add(row.tensor)
        cycles = float(target.latency_l2 if in_l2 else target.latency_dram)
        if _walks(row, survey):
            first = 1 / row.redundancy  # an earlier iteration brought the sector to L1
            cycles = first * cycles + (1 - first) * target.latency_l1
        latencies[row.line] = max(cycles, latencies.get(row.line, 0.0))
    return latencies


def _busy(binary: Binary, code: Code, flow: Flow, survey: Survey, target: Target,
          ) -> dict[Pipe, float]:
    """Cycles for which one program occupies each pipe of its SM."""
    pipes: dict[Pipe, float] = dict.fromkeys(PIPES, 0.0)
    dot_on_fma = binary.dot and not binary.tensor_cores
    ways, sectors = _ways(binary), _sectors_of_request(survey)
    for step, runs in zip(code.instructions, flow.runs, strict=True):
        if runs:
            price = cost(step, target, dot_on_fma)
            busy = price.busy
            if step.name == "LDGSTS" and width(step) == _WORD:
                busy = _NARROW_COPY * sectors.get(step.line, _WORD * WARP / SECTOR)
            pipes["issue"] += runs * binary.warps / SCHEDULERS
            pipes[price.pipe] += runs * binary.warps * busy * ways.get(
                (step.line, step.name[:3]), 1.0)
    looked_up = sum(map(_lookups, survey.traffic)) / survey.programs
    pipes["lsu"] = max(pipes["lsu"], looked_up)
    rates = [rate(step, target) for step in code.instructions if multiplied(step)]
    if binary.tensor_cores and rates:  # where the opcodes have no shapes
        pipes["tensor"] = max(pipes["tensor"], survey.flops / survey.programs / max(rates))
    return pipes


def _ways(binary: Binary) -> dict[tuple[int | None, str], float]:
    """Bank conflicts of shared loads (LDS, LDSM) and stores (STS, STSM), averaged over a line."""
    counts: dict[tuple[int | None, str], float] = defaultdict(float)
    cycles: dict[tuple[int | None, str], float] = defaultdict(float)
    for one in binary.shared_accesses:
        key = one.line, "LDS" if one.kind == "load" else "STS"
        counts[key] += one.count
        cycles[key] += one.count * (one.ways or 1.0)
    return {key: cycles[key] / count for key, count in counts.items() if count}


def _sectors_of_request(survey: Survey) -> dict[int | None, float]:
    """Sectors that a request of a warp accesses, by the line of the source."""
    return {row.line: row.request_sectors / row.requests for row in survey.traffic if row.requests}


def _lookups(row: Traffic) -> float:
    """Cycles of L1 for an access: it looks up the lines of a request, or moves 128 bytes of it."""
    if row.requests:
        each = _SCATTERED if row.request_lines > _MANY * row.requests else 1.0
        return max(row.request_lines * each, row.request_sectors / _SECTORS_OF_LINE)
    return row.sectors * (1.0 if _lone(row) else 1 / _SECTORS_OF_LINE)


def _in_phases(code: Code, flow: Flow) -> bool:
    """Whether the warps of a program wait for each other, and then for the same latencies.

    Warps that multiply on tensor cores do so too, but their products go on meanwhile.
    """
    steps = code.instructions
    return not any(map(multiplied, steps)) and any(
        step.name == "BAR" and runs for step, runs in zip(steps, flow.runs, strict=True))


def _waves(binary: Binary, survey: Survey, target: Target, busy: float, idle: float
           ) -> tuple[float, float, float]:
    """Seconds of pipes, of latency, and of both with their overlap, for all programs.

    Args:
        busy: cycles for which a program occupies the busiest pipe.
        idle: further cycles of a program that has an SM alone.
    """
    resident = _resident(binary, survey, target)
    waves = survey.programs / (target.multiprocessors * resident)

    def wave(programs: float) -> float:
        return _norm(min(_OVERLAP, (1 + programs) / 2), [idle, programs * busy])

    if waves > _TAIL_WAVES:
        programs, cycles = waves * resident, waves * wave(resident)
    else:
        programs = ceil(survey.programs / target.multiprocessors)  # of the fullest SM
        whole, rest = divmod(programs, resident)
        waves, cycles = whole + bool(rest), whole * wave(resident) + (wave(rest) if rest else 0.0)
    return programs * busy / target.clock, waves * idle / target.clock, cycles / target.clock


def _dram(survey: Survey, warm: bool) -> float:
    """Bytes between DRAM and L2: the geometric mean of the survey's bounds."""
    loaded = sqrt(float(survey.loaded.low) * survey.loaded.high)
    stored = sqrt(float(survey.stored.low) * survey.stored.high)
    return (0.0 if warm else loaded) + stored


def _spilled(binary: Binary, code: Code, flow: Flow, survey: Survey, target: Target
             ) -> tuple[float, float]:
    """Bytes of spilled registers that L1 does not hold, and those that L2 does not hold."""
    threads = binary.warps * WARP
    held = binary.spill_bytes * threads * _resident(binary, survey, target)  # bytes of one SM
    if held <= _l1_bytes(binary, survey, target):
        return 0.0, 0.0
    moved = float(survey.programs * threads) * sum(
        runs * width(step) for step, runs in zip(code.instructions, flow.runs, strict=True)
        if step.name in _SPILLS)
    return moved, moved if held * target.multiprocessors > _L2_USABLE * target.l2 else 0.0


def _l2(binary: Binary, survey: Survey, target: Target) -> float:
    """Bytes between L2 and the SMs, weighted by the cost of their sectors.

    Of several lines that read the same sectors of a tensor, only the first counts if L1 holds what
    the resident programs of one SM read. Requests of one access are taken to find in L1 what others
    of it have read: strided and overlapping loads on an H200 took no longer than their sectors.
    """
    resident, room = _resident(binary, survey, target), _l1_bytes(binary, survey, target)
    weighed = 0.0
    read: dict[str, list[int]] = {}
    for row in sorted(survey.traffic, key=lambda row: row.line or 0):
        if row.kind == "atomic":
            continue
        if row.kind == "store":
            weighed += _stored(row) * (_LONE["store"] if _lone(row) else 1.0)
            continue
        if _walks(row, survey) and _in_flight(row, survey) * resident <= room:
            weighed += max(row.ideal_sectors, row.unique_sectors)
            continue
        again = max(0, row.sectors - row.unique_sectors)
        if row.kind == "load":
            earlier = read.setdefault(row.tensor, [])
            held = row.sectors * SECTOR / survey.programs * resident
            if held <= room and any(abs(row.unique_sectors - other) <= _ALIKE * other
                                    for other in earlier):
                continue
            earlier.append(row.unique_sectors)
        weighed += row.sectors * _LONE["load"] if _lone(row) else (
            row.sectors - again + again / _SHARED_READS)
    return weighed * SECTOR


def _walks(row: Traffic, survey: Survey) -> bool:
    """Whether the iterations of a loop load further parts of the same sectors."""
    return _runs(row, survey) > 1 and row.redundancy >= _SEVERAL and \
        row.bytes <= _TWICE * row.unique_sectors * SECTOR


def _runs(row: Traffic, survey: Survey) -> float:
    """How often one program executes the line of an access."""
    return 1.0 if row.line is None else survey.executions.get(row.line, 1.0)


def _in_flight(row: Traffic, survey: Survey) -> float:
    """Bytes of the sectors that one program accesses in an iteration."""
    return row.sectors * SECTOR / (survey.programs * _runs(row, survey))


def _resident(binary: Binary, survey: Survey, target: Target) -> int:
    """Resident programs of the fullest SM."""
    return max(1, min(binary.occupancy.programs, ceil(survey.programs / target.multiprocessors)))


def _l1_bytes(binary: Binary, survey: Survey, target: Target) -> float:
    """Bytes that L1 of the fullest SM keeps for reuse."""
    resident = _resident(binary, survey, target)
    return _L1 * max(0, target.shared - binary.shared * resident)


def _stored(row: Traffic) -> int:
    """Sectors that reach L2 or its atomic units: L1 does not merge those of different requests."""
    return max(row.sectors, row.request_sectors)


def _lone(row: Traffic) -> bool:
    """Whether each lane of a request has a sector of its own."""
    if row.kind == "store" and row.requests:
        return row.request_sectors >= _ALONE * row.lanes and row.request_use <= 0.5
    return row.sectors >= _ALONE * row.lanes > 0 and row.coalescing <= 0.5


def _atomics(survey: Survey, target: Target) -> float:
    """Seconds of atomics: of the most used line of L2, which serializes them, or of all."""
    if not survey.atomics:
        return 0.0
    sectors = sum(_stored(row) for row in survey.traffic if row.kind == "atomic")
    hottest_line = min(1.0, survey.hottest * _LANES_OF_LINE / survey.atomics) * sectors
    alike = 1.0 if survey.hottest == survey.atomics else _ONE_LINE
    return max(survey.hottest / target.atomics_per_second,
               hottest_line / (alike * target.atomics_per_second),
               sectors * _ATOMIC * SECTOR / target.l2_rate)
