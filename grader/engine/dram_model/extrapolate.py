"""Extrapolates from sampled programs to a launch: sums by strata, DRAM traffic by waves."""

import itertools
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from grader.engine.dram_model.reuse_distance import SampledWaves, WaveAccess, moved
from grader.engine.dram_model.sampling import (
    TURNS,
    Calls,
    Groups,
    SampledAccess,
    Sampler,
    SamplingStopped,
    TooLong,
    cost_of_one,
    in_chunks,
)
from grader.engine.dram_model.sector_counts import (
    are_private,
    counted,
    coverage,
    differs,
    distinct,
    expanded,
    extent,
    joined,
    spans_of,
)
from grader.engine.interpreter.address_space import Region
from grader.engine.interpreter.block_value import Array
from grader.engine.interpreter.source_blocks import SourceBlock
from grader.engine.interpreter.traffic import Key
from grader.engine.interpreter.transaction import Spinning
from grader.recording.launch_stats import SECTOR, BlockRuns, Interval, Survey, Traffic

_STRATA_COST = 1 << 21  # elements of all programs that are run for the sums
_FEW_STRATA = 64  # programs: loops are cut before fewer programs are run
_MOST_STRATA = 256  # programs of one stratum
_PROBE_SHARE, _WAVES_SHARE = 0.4, 0.75  # of the remaining time
_WAVE_COST = 3 << 23  # elements of all programs that are run for the waves
_MORE_COST = 1 << 22  # for more than two whole waves
_LEAST_WAVES, _MOST_WAVES = 4, 24  # where there is time for them
_MOST_STEPS = 600  # of all waves
_CLUSTERS = (32, 16, 8)  # adjacent programs: so many elements of 2, 4, 8 bytes share 64 bytes
_FEWEST_CLUSTERS = 4
_USABLE = 0.6  # share of L2 that behaves like an ideal LRU cache
_DRAM_READ = 64  # bytes that a read of HBM moves at least
_TRIALS = 2
_MOST_PLACES = 64  # lines and tensors whose traffic is reported, the heaviest
_LONGEST_NAME = 200  # characters of a tensor's name


class Unsteady(Exception):
    """Addresses of the launch depend on unknown values; the message is a sentence."""


def surveyed(sampler: Sampler, name: str, resident: int, l2_bytes: int,
             effort: float = 1.0) -> Survey:
    """Surveys a launch until its memory's deadline.

    Args:
        resident: programs that are on the GPU at the same time.
        l2_bytes: size of the L2 cache.
        effort: share of the usual number of programs that is run.

    Raises:
        Unsteady: addresses depend on unknown values.
        SamplingStopped: a program fails.
        Spinning: programs wait for each other.
        TooLong: the first few programs take too long.
    """
    grid = sampler.memory.running.grid
    programs = prod(grid)
    if not programs:
        nothing = Interval(0, 0)
        return Survey(name, grid, 0, 0, (), {}, nothing, nothing, 0, 0, 0)
    probes = np.unique([0, programs // 2, programs - 1])
    sampler.memory.turns_run = TURNS[-1]
    end, now = sampler.memory.deadline, time.process_time()
    sampler.memory.deadline = now + _PROBE_SHARE * (end - now)
    probe = sampler.run(probes)
    guessed = _check_steady(sampler, name, probes, probe)
    now = time.process_time()
    sampler.memory.deadline = now + _WAVES_SHARE * (end - now)
    waves = _run_waves(sampler, programs, min(resident, programs), effort)
    sampler.memory.deadline = end
    sums = _Scaled(sampler, programs)
    most = effort * _STRATA_COST
    cost = cost_of_one(sampler, programs, most / _FEW_STRATA) or most
    chosen = _strata(grid, max(1, int(most / cost)))
    try:
        sums.add(in_chunks(sampler, np.array(sorted(chosen)), cost), chosen)
    except TooLong:
        sums.add(probe, dict.fromkeys(probes.tolist(), programs / len(probes)))
    return replace(sums.survey(name, grid, waves, l2_bytes), guessed=guessed)


# -- whether values matter ----------------------------------------------------------------------


def _check_steady(sampler: Sampler, name: str, probes: Array, probe: Groups) -> int:
    """Runs programs again with other values for unknown ones; addresses must stay the same.

    Afterwards, values that the launch stores are unknown. Returns the line of a loop that iterates
    another number of times then, or 0.
    """
    memory, guessed = sampler.memory, 0
    before = memory.known
    memory.known = before - {id(sampler.region(access.key.region).storage)
                            for _, trail in probe for access in trail.accesses
                            if access.key.kind != "load"}
    try:
        for trial in range(_TRIALS):
            memory.trial = np.random.default_rng(trial)
            try:
                again = sampler.run(probes, silent=True)
                alike = _prints(probe) == _prints(again)
                guessed = guessed or _unsteady_loop(probe, again)
            except (SamplingStopped, Spinning):
                alike = False
            if not alike:
                raise Unsteady(
                    f"Where `{name}` reads or writes depends on values that are only known once "
                    "the kernels before it, or it itself, ran at this size.")
    except BaseException:
        memory.known = before
        raise
    finally:
        memory.trial = None
    return guessed


def _unsteady_loop(probe: Groups, again: Groups) -> int:
    """The line of a loop that iterates another number of times; 0 without one."""
    totals: list[dict[tuple[Calls, SourceBlock], float]] = []
    for groups in (probe, again):
        totals.append(defaultdict(float))
        for _, trail in groups:
            for place, runs in trail.passes.items():
                totals[-1][place] += runs
    one, other = totals
    return min((block.header for calls, block in one.keys() | other.keys()
                if block.header and one[calls, block] != other[calls, block]), default=0)


def _prints(groups: Groups) -> list[object]:
    return [
        (group.tolist(), access.key, access.first.tobytes(), access.nbytes.tobytes(),
         access.rows.tobytes())
        for group, trail in groups for access in trail.accesses]


# -- waves: programs that are on the GPU at the same time, for the DRAM model -------------------


@dataclass(frozen=True)
class _Waves:
    """Accesses of ``size`` programs of each sampled wave, of the ``resident`` ones it has."""

    waves: Sequence[tuple[Groups, Array]]  # each with half of the programs that were run of it
    size: int
    resident: int

    def steps(self, sampler: Sampler, numbers: Mapping[int, int],
              ) -> tuple[list[WaveAccess], dict[tuple[int, str], float]]:
        """The accesses of all waves in order, and a program's average sectors by tensor."""
        steps: list[WaveAccess] = []
        issued: dict[tuple[int, str], float] = defaultdict(float)
        programs = sum(len(group) for groups, _ in self.waves for group, _ in groups)
        for wave, (groups, early_ones) in enumerate(self.waves):
            for (_, key), parts in _aligned(groups):
                tensor = numbers.get(id(sampler.region(key.region).storage))
                if tensor is None:  # no program of the strata accesses it
                    continue
                sectors, early, asked, plain, whole = [], [], 0.0, 0.0, True
                for access, group in parts:
                    counts = counted(access, len(group))
                    half, weight = np.isin(group, early_ones), access.weight
                    if access.alike:  # one row stands for all programs
                        half = np.asarray(half.any(keepdims=True))
                        weight = weight.sum(keepdims=True)
                    sectors.append(counts.numbers)
                    whole &= (all_early := bool(half.all()))
                    early.append(counts.numbers if all_early else counts.numbers[half[counts.rows]])
                    asked += float(counts.sectors @ weight)
                    plain += (len(group) if access.alike else 1) * float(counts.sectors.sum())
                reads, writes = key.kind != "store", key.kind != "load"
                nest = tuple((loop * _MOST_WAVES + wave, weight)
                             for loop, weight in parts[0][0].nest)
                numbers_of_all = distinct(np.concatenate(sectors))
                steps.append(WaveAccess(
                    wave, tensor, reads, writes, numbers_of_all,
                    numbers_of_all if whole else distinct(np.concatenate(early)),
                    asked / plain, nest))
                for way in ("read",) * reads + ("written",) * writes:
                    issued[tensor, way] += asked / programs
        return steps, issued


def _aligned(groups: Groups) -> list[tuple[tuple[int, Key], list[tuple[SampledAccess, Array]]]]:
    """Accesses of all groups, aligned: the n-th of each, where they have the same key."""
    aligned: dict[tuple[int, Key], list[tuple[SampledAccess, Array]]] = {}
    for group, trail in groups:
        for number, access in enumerate(trail.accesses):
            aligned.setdefault((number, access.key), []).append((access, group))
    return sorted(aligned.items(), key=lambda item: (item[0][0], item[0][1].region))


def _run_waves(sampler: Sampler, programs: int, resident: int, effort: float) -> _Waves | None:
    """Runs a few waves in the middle of the launch, whole or in part; None if time is too short.

    A part consists of clusters of adjacent programs all over the wave: some programs share sectors
    with an adjacent one, some with a distant one.
    """
    total = programs // resident  # without a partial last wave, which is not typical
    least = min(2, total)
    cost = cost_of_one(sampler, programs, effort * _WAVE_COST / (least * resident))
    if cost is None:
        return None
    affordable = max(1, int(effort * _WAVE_COST / cost))
    cluster = next((n for n in _CLUSTERS if resident >= 2 * _FEWEST_CLUSTERS * n
                    and least * _FEWEST_CLUSTERS * n <= affordable), _CLUSTERS[-1])
    if affordable < least * resident:  # then fewer programs of more waves
        least = max(least, min(_LEAST_WAVES, total, affordable // (_FEWEST_CLUSTERS * cluster)))
    clusters = _clusters(resident, affordable // least, cluster)
    size = resident if clusters is None else clusters * cluster
    more = affordable // size if clusters else int(effort * _MORE_COST / cost) // size
    count = max(least, min(_MOST_WAVES, total, more))
    start = max(0, (total - count) // 2)
    waves: list[tuple[Groups, Array]] = []
    steps = 0
    try:
        for wave in range(start, start + count):
            if steps > _MOST_STEPS:
                break
            end = min((wave + 1) * resident, programs)
            if clusters is None:
                mine = half = np.arange(wave * resident, end)
            else:
                mine, half = _spread(wave * resident, end, clusters, cluster)
            groups = in_chunks(sampler, mine, cost, silent=True)
            waves.append((groups, half))
            steps += max((len(trail.accesses) for _, trail in groups), default=0)
    except TooLong:
        if not waves:
            return None
    return _Waves(waves, size, resident)


def _clusters(resident: int, most: int, cluster: int) -> int | None:
    """The even number of clusters of a wave to run; None for the whole wave."""
    count = max(_FEWEST_CLUSTERS, most // cluster // 2 * 2)
    return None if resident <= most or (count + 1) * cluster >= resident else count


def _spread(start: int, end: int, count: int, cluster: int) -> tuple[Array, Array]:
    """Programs of clusters between two numbers, and those of every second cluster.

    Clusters start at multiples of their size, as groups of programs that share data often do.
    """
    blocks = np.arange(-(-start // cluster), end // cluster)
    count = min(count, len(blocks))
    firsts = np.sort(np.random.default_rng(count).choice(blocks, count, replace=False))
    members = firsts[:, None] * cluster + np.arange(cluster)
    return members.ravel(), members[np.arange(count) % 2 == 0].ravel()


# -- sums over all programs ---------------------------------------------------------------------


def _strata(grid: tuple[int, int, int], most: int) -> dict[int, float]:
    """The programs to run, with the number that each represents.

    Along each axis the last program is a stratum of its own, as tails are there; of each stratum
    some programs are chosen, evenly spread.
    """
    along = [[range(n - 1), range(n - 1, n)] if n > 1 else [range(1)] for n in grid]
    kinds = list(itertools.product(*along))
    sizes = [prod(map(len, axes)) for axes in kinds]
    total, chosen = sum(sizes), {}
    for (xs, ys, zs), size in zip(kinds, sizes, strict=True):
        share = max(1, min(size, _MOST_STRATA, round(most * size / total), most))
        share = max(share, min(size, 4))
        # with jitter: programs a power of two apart often behave alike
        within = np.random.default_rng(size).random(share) if share < size else 0.5
        places = distinct(((np.arange(share) + within) * size / share).astype(np.int64))
        for place in places.tolist():
            x, rest = place % len(xs), place // len(xs)
            y, z = rest % len(ys), rest // len(ys)
            number = xs[x] + grid[0] * (ys[y] + grid[1] * zs[z])
            chosen[number] = size / len(places)
    return chosen


class _Scaled:
    """Sums over all programs of a launch, from those that were run."""

    def __init__(self, sampler: Sampler, programs: int) -> None:
        self._sampler, self._programs = sampler, programs
        self._sampled = 0
        # lanes, bytes, sectors, ideal sectors
        self._sums: dict[Key, Array] = defaultdict(lambda: np.zeros(4))
        self._requests: dict[Key, Array] = defaultdict(lambda: np.zeros(4))
        # of each program that ran: its number, sectors, weights, and the programs it represents
        self._touched: dict[Key, list[tuple[Array, ...]]] = defaultdict(list)
        self._visits: dict[tuple[int | None, str, tuple[str, ...]], float] = defaultdict(float)
        # executions of each block of the source, by all programs and at most by one
        self._passes: dict[tuple[Calls, SourceBlock], list[float]] = defaultdict(lambda: [0.0, 0.0])
        self._flops = 0.0
        # elements of atomics, and how often, by region
        self._hits: dict[int, list[tuple[Array, ...]]] = defaultdict(list)
        # loads and stores by region and kind: spans of programs; those that programs share
        self._spans: dict[tuple[int, str], list[tuple[Array, ...]]] = defaultdict(list)
        self._shared: set[tuple[int, str]] = set()

    def add(self, groups: Groups, scale: Mapping[int, float]) -> None:
        for group, trail in groups:
            stands = np.array([scale[number] for number in group.tolist()])
            self._sampled += len(group)
            self._flops += trail.products * float(stands.mean())
            for visit, count in trail.visits.items():
                self._visits[visit] += count * float(stands.mean())
            for key, requests in trail.requests.items():
                self._requests[key] += requests * float(stands.mean())
            for place, count in trail.passes.items():
                sums = self._passes[place]
                sums[0] += count * float(stands.mean())
                sums[1] = max(sums[1], count / len(group))
            for access in trail.accesses:
                self._add(access, group, stands)

    def _add(self, access: SampledAccess, group: Array, stands: Array) -> None:
        counts = counted(access, len(group))
        each = stands * access.weight
        scaled = each.sum(keepdims=True) if access.alike else each
        self._sums[access.key] += np.array([
            counts.lanes @ scaled, counts.lanes @ scaled * access.itemsize,
            counts.sectors @ scaled, counts.ideal @ scaled])
        rows, numbers = counts.rows, counts.numbers
        if access.alike:  # the first two programs show that all share their sectors
            few = min(2, len(group))
            rows, numbers = np.repeat(np.arange(few), len(numbers)), np.tile(numbers, few)
        self._touched[access.key].append((group[rows], numbers, access.weight[rows], stands[rows]))
        place = access.key.region, access.key.kind
        if access.alike:
            self._shared.add(place)
        elif access.key.kind != "atomic" and place not in self._shared:
            self._spans[place].append(spans_of(access, group, stands))
        if access.key.kind == "atomic":
            which, within = expanded(access.nbytes // access.itemsize)
            places = access.first[which] // access.itemsize + within
            self._hits[access.key.region].append((places, each[access.rows[which]]))

    # -- what comes out ------------------------------------------------------------------------

    def survey(self, name: str, grid: tuple[int, int, int], waves: _Waves | None, l2_bytes: int
               ) -> Survey:
        traffic = self._traffic()
        loaded, stored, surely = self._dram(traffic, waves, l2_bytes)
        return Survey(
            name, grid, self._programs, self._sampled, traffic, self._executions(), loaded, stored,
            sum(t.lanes for t in traffic if t.kind == "atomic"), self._hottest(),
            round(self._flops), self._apart(), min(surely, loaded.low), self._blocks())

    def _traffic(self) -> tuple[Traffic, ...]:
        rows = [Traffic(key.line, key.kind, self._region(key).name[:_LONGEST_NAME],
                        *(round(each) for each in (*sums, min(self._distinct([key]), sums[2]),
                                                   *self._requests[key])))
                for key, sums in self._sums.items()]
        heaviest = sorted(rows, key=lambda t: -t.sectors)[:_MOST_PLACES]
        return tuple(sorted(heaviest, key=lambda t: (t.line or 0, t.kind, t.tensor)))

    def _apart(self) -> tuple[tuple[str, str], ...]:
        """Kinds and tensors of which each program accesses a range of its own."""
        names = set()
        for place in self._spans.keys() - self._shared:
            region, kind = self._sampler.region(place[0]), place[1]
            touched = [part for key, parts in self._touched.items()
                       if (key.region, key.kind) == place for part in parts]
            if are_private(self._spans[place], touched, region.nbytes):
                names.add((kind, region.name[:_LONGEST_NAME]))
        return tuple(sorted(names)[:_MOST_PLACES])

    def _region(self, key: Key) -> Region:
        return self._sampler.region(key.region)

    def _executions(self) -> dict[int, float]:
        times: dict[int, float] = defaultdict(float)
        for (line, *_), count in self._visits.items():
            if line is not None:
                times[line] = max(times[line], round(count / self._programs, 6))
        return dict(sorted(times.items()))

    def _blocks(self) -> tuple[BlockRuns, ...]:
        return tuple(BlockRuns(calls, *block, round(runs / self._programs, 6), round(most, 6))
                     for (calls, block), (runs, most) in sorted(self._passes.items()))

    def _hottest(self) -> int:
        most = 0.0
        for hits in self._hits.values():
            places, counts = joined(hits)
            if len(places):
                _, which = np.unique(places, return_inverse=True)
                most = max(most, float(np.bincount(which.reshape(-1), counts).max()))
        return round(most)

    def _distinct(self, keys: Sequence[Key]) -> float:
        """Distinct sectors of the whole launch, from the overlap of the programs that ran."""
        parts = [part for key in keys for part in self._touched.get(key, [])]
        if not parts:
            return 0.0
        columns = joined(parts)
        programs, numbers, weights, _ = columns
        order = np.lexsort((-weights, programs, numbers))
        programs, numbers, weights, stands = (column[order] for column in columns)
        own, new = differs(numbers, programs), differs(numbers)
        ran = len(np.unique(programs))
        each = float(weights[own].sum())  # sectors of all programs that ran
        sampled = float(weights[new].sum())
        total = float((weights * stands)[own].sum())
        most = extent([self._region(key) for key in keys])
        return min(float(most), coverage(each / ran, sampled, ran, total))

    def _dram(self, traffic: Sequence[Traffic], waves: _Waves | None, l2_bytes: int
              ) -> tuple[Interval, Interval, int]:
        """Bytes loaded from and stored to DRAM as intervals, and bytes certainly loaded."""
        storages: dict[int, list[Key]] = defaultdict(list)
        for key in self._sums:
            storages[id(self._region(key).storage)].append(key)
        numbers = {storage: number for number, storage in enumerate(storages)}
        ways = {"read": ("load", "atomic"), "written": ("store", "atomic")}
        keys_of = {(numbers[storage], way): [k for k in keys if k.kind in kinds]
                   for storage, keys in storages.items() for way, kinds in ways.items()}
        reached = {at: self._distinct(keys) for at, keys in keys_of.items() if keys}
        if waves is None:
            most = {way: SECTOR * sum(t.sectors for t in traffic if t.kind in kinds)
                    for way, kinds in ways.items()}
            loaded, stored = (Interval(min(most[way], round(sum(
                SECTOR * n for (_, w), n in reached.items() if w == way))), most[way])
                for way in ways)
            return loaded, stored, loaded.low
        extents = {numbers[storage]: extent([self._region(key) for key in keys])
                   for storage, keys in storages.items()}
        steps, issued = waves.steps(self._sampler, numbers)
        if not steps:
            return Interval(0, 0), Interval(0, 0), 0
        bound = {at: min(n, extents[at[0]]) for at, n in reached.items()}
        ratio = {at: sum(self._sums[key][2] for key in keys) / (issued[at] * self._programs)
                 for at, keys in keys_of.items() if issued.get(at)}
        result = moved(SampledWaves(
            steps, waves.resident / waves.size,
            self._programs / waves.resident, extents, bound, ratio), _USABLE * l2_bytes)
        more = {n: 1 + share * (_DRAM_READ // SECTOR - 1) for n, share in result.isolated.items()}
        surely = SECTOR * sum(n * more.get(tensor, 1.0) for tensor, n in result.surely.items())
        return _interval(result.loaded, more), _interval(result.stored, {}), round(surely)


def _interval(tensors: Mapping[int, tuple[float, float]], more: Mapping[int, float]) -> Interval:
    low, high = (round(SECTOR * sum(pair[i] * more.get(n, 1.0) for n, pair in tensors.items()))
                 for i in (0, 1))
    return Interval(low, max(low, high))
