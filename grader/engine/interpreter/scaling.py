"""From a few programs of a launch to all of them: sums by strata of the grid, DRAM by waves."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from grader.engine.interpreter.attempt import Spinning
from grader.engine.interpreter.dram import SECTOR, Moved, Step, Waves, distinct, moved
from grader.engine.interpreter.handle import Array
from grader.engine.interpreter.regions import Region
from grader.engine.interpreter.sampling import Access, Sampler, Stopped, TooLong, Trail
from grader.engine.interpreter.traffic import Key
from grader.facts import Interval, Survey, Traffic

_SHIFT = 5  # a sector is 32 bytes
_ROW_BITS = 40
_STRATA_COST = 1 << 21  # of all programs that are run for the sums, in lanes
_FEW_STRATA = 64  # programs: rather these with few turns of their loops than fewer of them
_MOST_STRATA = 256  # programs of one kind
_WAVE_COST = 3 << 23  # of all programs that are run for the DRAM model
_LEAST_WAVES, _MOST_WAVES = 4, 24  # where there is time for them
_MOST_STEPS = 600  # of all waves
_CLUSTERS = (32, 16, 8)  # neighbours: so many elements of 2, 4, 8 bytes share 64 bytes
_FEWEST_CLUSTERS = 4
_CHUNK = 16  # programs that are run at once
_RUN_COST = 3  # lanes whose time a run of neighbours costs on top of its own
_TURNS = (9, 5, 3)  # of a loop that is cut
_WAVES_SHARE = 0.6  # of the time
_USABLE = 0.6  # of L2, before lines leave that an ideal cache of its size would keep
_TRIALS = 2
_MOST_PLACES = 64  # lines and tensors whose traffic is told, the heaviest
_LONGEST_NAME = 200  # characters of a tensor's name

Groups = list[tuple[Array, Trail]]


class Unsteady(Exception):
    """Where the launch reaches depends on values that are not known; the text is a sentence."""


@dataclass(frozen=True)
class _Sums:
    """Of one access: for each program of the group, one turn of its loops."""

    lanes: Array
    sectors: Array
    ideal: Array
    rows: Array  # of each distinct (program, sector)
    numbers: Array


def surveyed(sampler: Sampler, name: str, resident: int, l2_bytes: int, granule: int) -> Survey:
    """The survey of a launch, in the time that its memory has left.

    Raises:
        Unsteady: addresses depend on values that are not known.
        Stopped: a program fails.
        Spinning: programs wait for each other.
        TooLong: a few programs alone take too long.
    """
    grid = sampler.memory.running.grid
    programs = grid[0] * grid[1] * grid[2]
    if not programs:
        nothing = Interval(0, 0)
        return Survey(name, grid, 0, 0, (), {}, nothing, nothing, 0, 0, 0)
    probes = np.unique([0, programs // 2, programs - 1])
    sampler.memory.turns_run = _TURNS[-1]
    probe = sampler.run(probes)
    _check_steady(sampler, name, probes, probe)
    _forget_stored(sampler, probe)
    end, now = sampler.memory.deadline, time.monotonic()
    sampler.memory.deadline = now + _WAVES_SHARE * (end - now)
    waves = _waves(sampler, programs, min(resident, programs))
    sampler.memory.deadline = end
    sums = _Scaled(sampler, programs)
    chosen = _strata(grid, _affordable(sampler, programs, _STRATA_COST, _FEW_STRATA) or 1)
    try:
        sums.add(_in_chunks(sampler, np.array(sorted(chosen))), chosen)
    except TooLong:
        sums.add(probe, dict.fromkeys(probes.tolist(), programs / len(probes)))
    return sums.survey(name, grid, waves, l2_bytes, granule)


def _in_chunks(sampler: Sampler, programs: Array, *, silent: bool = False) -> Groups:
    return [pair for at in range(0, len(programs), _CHUNK)
            for pair in sampler.run(programs[at:at + _CHUNK], silent=silent)]


def _lane_count(access: Access) -> int:
    total = (len(access.first) * access.nbytes if isinstance(access.nbytes, int)
             else int(access.nbytes.sum()))
    return int(total) // access.itemsize


# ---------------------------------------------------------------------------------------------
# Whether values matter


def _check_steady(sampler: Sampler, name: str, probes: Array, probe: Groups) -> None:
    """Run again with other values where none are known: nothing may be reached elsewhere."""
    memory = sampler.memory
    known = set(memory.known)
    memory.known -= _stored(sampler, probe)
    try:
        for trial in range(_TRIALS):
            memory.trial = np.random.default_rng(trial)
            try:
                alike = _prints(probe) == _prints(sampler.run(probes, silent=True))
            except (Stopped, Spinning):
                alike = False
            if not alike:
                raise Unsteady(
                    f"Where `{name}` reads or writes depends on values that are only known once "
                    "the kernels before it, or it itself, ran at this size.")
    finally:
        memory.trial, memory.known = None, known


def _prints(groups: Groups) -> list[object]:
    return [
        (group.tolist(), access.key, access.first.tobytes(), np.asarray(access.nbytes).tobytes(),
         access.rows.tobytes())
        for group, trail in groups for access in trail.accesses]


def _stored(sampler: Sampler, groups: Groups) -> set[int]:
    return {id(sampler.region(access.key.region).storage)
            for _, trail in groups for access in trail.accesses if access.key.kind != "load"}


def _forget_stored(sampler: Sampler, groups: Groups) -> None:
    sampler.memory.known -= _stored(sampler, groups)


# ---------------------------------------------------------------------------------------------
# Sums over all programs


def _strata(grid: tuple[int, int, int], most: int) -> dict[int, float]:
    """Programs to run, and how many each stands for: the last along an axis apart from the rest,
    since tails are there, and of each kind some that are evenly spread."""
    along = [[(range(n - 1), n - 1), (range(n - 1, n), 1)] if n > 1 else [(range(1), 1)]
             for n in grid]
    kinds = [(xs, ys, zs) for (xs, _), (ys, _), (zs, _) in itertools.product(*along)]
    sizes = [len(xs) * len(ys) * len(zs) for xs, ys, zs in kinds]
    total, chosen = sum(sizes), {}
    for (xs, ys, zs), size in zip(kinds, sizes, strict=True):
        share = max(1, min(size, _MOST_STRATA, round(most * size / total), most))
        share = max(share, min(size, 4))
        # not evenly: programs a power of two apart are often alike
        within = np.random.default_rng(size).random(share) if share < size else 0.5
        places = distinct(((np.arange(share) + within) * size / share).astype(np.int64))
        for place in places.tolist():
            x, rest = place % len(xs), place // len(xs)
            y, z = rest % len(ys), rest // len(ys)
            number = xs[x] + grid[0] * (ys[y] + grid[1] * zs[z])
            chosen[number] = size / len(places)
    return chosen


def _sums(access: Access, programs: int) -> _Sums:
    rows, count = access.rows, 1 if access.alike else programs
    low = access.first >> _SHIFT
    high = (access.first + (access.nbytes - 1)) >> _SHIFT
    sectors = high - low + 1
    which = np.repeat(np.arange(len(low)), sectors)
    within = np.arange(len(which)) - np.repeat(np.cumsum(sectors) - sectors, sectors)
    keys = (rows[which].astype(np.int64) << _ROW_BITS) + low[which] + within
    if (keys[1:] <= keys[:-1]).any():
        keys = distinct(keys)
    owners, numbers = keys >> _ROW_BITS, keys & ((1 << _ROW_BITS) - 1)
    nbytes = np.broadcast_to(np.asarray(access.nbytes), rows.shape)
    total = np.bincount(rows, nbytes, count)
    return _Sums(total / access.itemsize, np.bincount(owners, minlength=count).astype(float),
                 np.ceil(total / SECTOR), owners, numbers)


class _Scaled:
    """Sums over all programs of a launch, from those that were run."""

    def __init__(self, sampler: Sampler, programs: int) -> None:
        self._sampler, self._programs = sampler, programs
        self._sampled = 0
        self._sums: dict[Key, Array] = {}  # lanes, bytes, sectors, ideal
        self._touched: dict[Key, list[tuple[Array, Array, Array, Array]]] = {}
        self._visits: dict[tuple[int | None, str, tuple[str, ...]], float] = {}
        self._flops = 0.0
        self._hits: dict[int, list[tuple[Array, Array]]] = {}  # elements of atomics, by storage

    def add(self, groups: Groups, scale: Mapping[int, float]) -> None:
        for group, trail in groups:
            stands = np.array([scale[number] for number in group.tolist()])
            self._sampled += len(group)
            self._flops += trail.products * float(stands.mean())
            for visit, count in trail.visits.items():
                self._visits[visit] = self._visits.get(visit, 0) + count * float(stands.mean())
            for access in trail.accesses:
                self._add(access, group, stands)

    def _add(self, access: Access, group: Array, stands: Array) -> None:
        sums = _sums(access, len(group))
        weight = np.broadcast_to(np.asarray(access.weight, float), (len(group),))
        each = stands * weight
        scaled = each.sum(keepdims=True) if access.alike else each
        made = np.array([sums.lanes @ scaled, sums.lanes @ scaled * access.itemsize,
                         sums.sectors @ scaled, sums.ideal @ scaled])
        self._sums[access.key] = self._sums.get(access.key, np.zeros(4)) + made
        touched = self._touched.setdefault(access.key, [])
        if access.alike:
            touched.extend((np.full(len(sums.numbers), program), sums.numbers,
                            np.full(len(sums.numbers), weight[i]),
                            np.full(len(sums.numbers), stands[i]))
                           for i, program in enumerate(group.tolist()[:2]))
        else:
            touched.append((group[sums.rows], sums.numbers, weight[sums.rows],
                            stands[sums.rows]))
        if access.key.kind == "atomic":
            self._note_atomics(access, group, each)

    def _note_atomics(self, access: Access, group: Array, each: Array) -> None:
        first, nbytes = access.first, np.broadcast_to(np.asarray(access.nbytes), access.first.shape)
        lanes = nbytes // access.itemsize
        which = np.repeat(np.arange(len(first)), lanes)
        within = np.arange(len(which)) - np.repeat(np.cumsum(lanes) - lanes, lanes)
        places = first[which] // access.itemsize + within
        self._hits.setdefault(access.key.region, []).append((places, each[access.rows[which]]))

    # -- what comes out ------------------------------------------------------------------------

    def survey(self, name: str, grid: tuple[int, int, int], waves: _Sampled | None, l2_bytes: int,
               granule: int) -> Survey:
        traffic = self._traffic()
        loaded, stored = self._dram(traffic, waves, l2_bytes, granule)
        return Survey(
            name, grid, self._programs, self._sampled, traffic, self._executions(), loaded, stored,
            sum(t.lanes for t in traffic if t.kind == "atomic"), self._hottest(),
            round(self._flops))

    def _traffic(self) -> tuple[Traffic, ...]:
        made = []
        for key, (lanes, nbytes, sectors, ideal) in self._sums.items():
            unique = min(self._distinct([key]), sectors)
            made.append(Traffic(key.line, key.kind, self._region(key).name[:_LONGEST_NAME],
                                round(lanes),
                                round(nbytes), round(sectors), round(ideal), round(unique)))
        heaviest = sorted(made, key=lambda t: -t.sectors)[:_MOST_PLACES]
        return tuple(sorted(heaviest, key=lambda t: (t.line or 0, t.kind, t.tensor)))

    def _region(self, key: Key) -> Region:
        return self._sampler.region(key.region)

    def _executions(self) -> dict[int, float]:
        made: dict[int, float] = {}
        for (line, _, _), count in self._visits.items():
            if line is not None:
                made[line] = max(made.get(line, 0.0), count / self._programs)
        return dict(sorted(made.items()))

    def _hottest(self) -> int:
        most = 0.0
        for hits in self._hits.values():
            places = np.concatenate([p for p, _ in hits])
            counts = np.concatenate([c for _, c in hits])
            if len(places):
                _, which = np.unique(places, return_inverse=True)
                most = max(most, float(np.bincount(which.reshape(-1), counts).max()))
        return round(most)

    def _distinct(self, keys: Sequence[Key]) -> float:
        """Distinct sectors of the whole launch, by how many the programs that ran have in common.
        """
        parts = [part for key in keys for part in self._touched.get(key, [])]
        if not parts:
            return 0.0
        programs, numbers, weights, stands = (
            np.concatenate([part[i] for part in parts]) for i in range(4))
        order = np.lexsort((-weights, programs, numbers))
        programs, numbers, weights, stands = (
            a[order] for a in (programs, numbers, weights, stands))
        own = np.ones(len(numbers), np.bool_)
        own[1:] = (numbers[1:] != numbers[:-1]) | (programs[1:] != programs[:-1])
        new = np.ones(len(numbers), np.bool_)
        new[1:] = numbers[1:] != numbers[:-1]
        count = len(np.unique(programs))
        each = float(weights[own].sum())  # sectors of all programs that ran
        seen = float(weights[new].sum())
        total = float((weights * stands)[own].sum())
        extent = _extent([self._region(key) for key in keys])
        return min(float(extent), _coverage(each / count, seen, count, total))

    def _dram(self, traffic: Sequence[Traffic], waves: _Sampled | None, l2_bytes: int,
              granule: int) -> tuple[Interval, Interval]:
        """Bytes loaded from and stored to DRAM."""
        storages: dict[int, list[Key]] = {}
        for key in self._sums:
            storages.setdefault(id(self._region(key).storage), []).append(key)
        numbers = {storage: number for number, storage in enumerate(storages)}
        sets = {"read": ("load", "atomic"), "written": ("store", "atomic")}
        keys_of = {(numbers[storage], what): [k for k in keys if k.kind in kinds]
                   for storage, keys in storages.items() for what, kinds in sets.items()}
        reached = {at: self._distinct(keys) for at, keys in keys_of.items() if keys}
        if waves is None:
            reach = [Interval(round(sum(SECTOR * n for (_, w), n in reached.items() if w == what)),
                              sum(SECTOR * t.sectors for t in traffic if t.kind in sets[what]))
                     for what in ("read", "written")]
            return (Interval(min(reach[0].low, reach[0].high), reach[0].high),
                    Interval(min(reach[1].low, reach[1].high), reach[1].high))
        extents = {numbers[storage]: _extent([self._region(key) for key in keys])
                   for storage, keys in storages.items()}
        steps, issued = waves.steps(self._sampler, numbers)
        if not steps:
            return Interval(0, 0), Interval(0, 0)
        bound = {at: min(n, extents[at[0]]) for at, n in reached.items()}
        ratio = {}
        for at, keys in keys_of.items():
            scaled = sum(self._sums[key][2] for key in keys)
            ratio[at] = scaled / (issued[at] * self._programs) if issued.get(at) else 1.0
        result = moved(Waves(
            steps, waves.resident / waves.size,
            self._programs / waves.resident, extents, bound, ratio), _USABLE * l2_bytes)
        return _interval(result, "read", granule), _interval(result, "written", granule)


def _interval(result: Moved, what: str, granule: int) -> Interval:
    tensors = result.loaded if what == "read" else result.stored
    more = {n: 1 + result.isolated.get(n, 0.0) * (granule // SECTOR - 1) if what == "read" else 1.0
            for n in tensors}
    low, high = (SECTOR * sum(pair[i] * more[n] for n, pair in tensors.items()) for i in (0, 1))
    return Interval(round(low), max(round(low), round(high)))


def _extent(regions: Sequence[Region]) -> int:
    """Sectors from the first to the last of some views of one storage."""
    first = min(region.start for region in regions) >> _SHIFT
    last = max(region.start + region.nbytes - 1 for region in regions) >> _SHIFT
    return last - first + 1


def _coverage(each: float, seen: float, count: int, total: float) -> float:
    """Distinct things of all programs, if ``count`` of them have ``each`` and ``seen`` together.

    ``total``: of all programs, each counted for itself. Who meets is taken to be a matter of
    chance: then the number of things to choose from follows from how many were met twice.
    """
    if count == 1 or seen >= 0.999 * each * count:
        return total
    if seen <= 1.001 * each:
        return seen
    low, high = seen, 1e6 * total
    for _ in range(100):
        middle = (low * high) ** 0.5
        expected = middle * -np.expm1(count * np.log1p(-min(each / middle, 1 - 1e-12)))
        low, high = (middle, high) if expected < seen else (low, middle)
    return float(low * -np.expm1(total / each * np.log1p(-min(each / low, 1 - 1e-12))))


# ---------------------------------------------------------------------------------------------
# Waves of neighbours


@dataclass(frozen=True)
class _Sampled:
    """What ``size`` programs of some waves did, of ``resident`` ones that a wave has."""

    waves: tuple[Groups, ...]
    halves: tuple[Array, ...]  # half of the programs that were run of each
    size: int
    resident: int

    def steps(self, sampler: Sampler, numbers: Mapping[int, int],
              ) -> tuple[list[Step], dict[tuple[int, str], float]]:
        """The steps of all waves in order, and how many sectors a program asks for on average."""
        steps: list[Step] = []
        issued: dict[tuple[int, str], float] = {}
        programs = sum(len(group) for groups in self.waves for group, _ in groups)
        for wave, (groups, early_ones) in enumerate(zip(self.waves, self.halves, strict=True)):
            for (_, key), parts in _aligned(groups):
                tensor = numbers[id(sampler.region(key.region).storage)]
                found, early, asked, plain = [], [], 0.0, 0.0
                for access, group in parts:
                    sums = _sums(access, len(group))
                    half = np.isin(group, early_ones)
                    found.append(sums.numbers)
                    if access.alike:
                        early.append(sums.numbers if half.any() else sums.numbers[:0])
                    else:
                        early.append(sums.numbers[half[sums.rows]])
                    times = len(group) if access.alike else 1
                    weight = np.broadcast_to(np.asarray(access.weight, float), (len(group),))
                    plain += times * float(sums.sectors.sum())
                    asked += float(sums.sectors[0] * weight.sum() if access.alike
                                   else sums.sectors @ weight)
                reads, writes = key.kind != "store", key.kind != "load"
                nest = tuple((loop * _MOST_WAVES + wave, weight)
                             for loop, weight in parts[0][0].nest)
                steps.append(Step(wave, tensor, reads, writes, distinct(np.concatenate(found)),
                                  distinct(np.concatenate(early)), asked / plain, nest))
                for what in ("read",) * reads + ("written",) * writes:
                    at = tensor, what
                    issued[at] = issued.get(at, 0.0) + asked / programs
        return steps, issued


def _aligned(groups: Groups) -> Iterator[tuple[tuple[int, Key], list[tuple[Access, Array]]]]:
    """Accesses of all groups side by side: the n-th of each, where they are of one kind."""
    found: dict[tuple[int, Key], list[tuple[Access, Array]]] = {}
    for group, trail in groups:
        for number, access in enumerate(trail.accesses):
            found.setdefault((number, access.key), []).append((access, group))
    yield from sorted(found.items(), key=lambda item: (item[0][0], item[0][1].region))


def _waves(sampler: Sampler, programs: int, resident: int) -> _Sampled | None:
    """Run a few waves in the middle of the launch, whole or in part; None: no time for it.

    A part is made of clusters of neighbours all over the wave: some share sectors with the program
    beside them, some with one that is far away.
    """
    total = -(-programs // resident)
    least = min(2, total)
    affordable = _affordable(sampler, programs, _WAVE_COST, least * resident)
    if affordable is None:
        return None
    if affordable < least * resident:  # then fewer programs and more waves
        least = min(_LEAST_WAVES, total)
        affordable = max(1, affordable // 2)
    cluster = next((n for n in _CLUSTERS if resident >= 2 * _FEWEST_CLUSTERS * n
                    and least * _FEWEST_CLUSTERS * n <= affordable), _CLUSTERS[-1])
    clusters = _clusters(resident, affordable // least, cluster)
    size = resident if clusters is None else clusters * cluster
    count = max(min(2, total), min(_MOST_WAVES, total, affordable // size))
    start = max(0, (total - count) // 2)
    waves: list[Groups] = []
    halves = []
    try:
        for wave in range(start, start + count):
            if sum(_length(groups) for groups in waves) > _MOST_STEPS:
                break
            end = min((wave + 1) * resident, programs)
            if clusters is None:
                mine = half = np.arange(wave * resident, end)
            else:
                mine, half = _spread(wave * resident, end, clusters, cluster)
            waves.append(_in_chunks(sampler, mine, silent=True))
            halves.append(half)
    except TooLong:
        if not waves:
            return None
    return _Sampled(tuple(waves), tuple(halves), size, resident)


def _affordable(sampler: Sampler, programs: int, cost: int, wanted: int) -> int | None:
    """How many programs may run, with as many turns of their loops as leave room for ``wanted``;
    None where even one takes too long."""
    number = None
    for turns in _TURNS:
        sampler.memory.turns_run = turns
        try:
            number = int(cost / max(1.0, _cost(
                sampler.run(np.array([programs // 2]), silent=True))))
        except TooLong:
            continue
        if number >= wanted:
            break
    return None if number is None else max(1, number)


def _cost(groups: Groups) -> float:
    """In lanes: what a program computes, and the runs of bytes that are kept of it."""
    return float(sum(_lane_count(access) + _RUN_COST * len(access.first)
                     for _, trail in groups for access in trail.accesses))


def _clusters(resident: int, most: int, cluster: int) -> int | None:
    """How many clusters of a wave to run, an even number; None: all of it."""
    count = max(_FEWEST_CLUSTERS, most // cluster // 2 * 2)
    return None if resident <= most or (count + 1) * cluster >= resident else count


def _spread(start: int, end: int, count: int, cluster: int) -> tuple[Array, Array]:
    """Programs of clusters between two numbers, and those of every second cluster. They begin at
    multiples of their size, as what programs share often does."""
    blocks = np.arange(-(-start // cluster), end // cluster)
    count = min(count, len(blocks))
    firsts = np.sort(np.random.default_rng(count).choice(blocks, count, replace=False))
    made = firsts[:, None] * cluster + np.arange(cluster)
    return made.ravel(), made[np.arange(count) % 2 == 0].ravel()


def _length(groups: Groups) -> int:
    return max((len(trail.accesses) for _, trail in groups), default=0)

