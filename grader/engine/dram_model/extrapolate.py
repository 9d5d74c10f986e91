"""Extrapolates from sampled programs to a launch: sums by strata, DRAM traffic by waves."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping, Sequence

import numpy as np

from grader.engine.dram_model.private_ranges import PrivateRanges
from grader.engine.dram_model.reuse_distance import SampledWaves, distinct, moved
from grader.engine.dram_model.sampling import (
    TURNS,
    Groups,
    SampledAccess,
    Sampler,
    SamplingStopped,
    TooLong,
    cost_of_one,
    in_chunks,
)
from grader.engine.dram_model.sector_counts import counted, coverage, extent
from grader.engine.dram_model.waves import Sampled, run_waves
from grader.engine.interpreter.address_space import Region
from grader.engine.interpreter.block_value import Array
from grader.engine.interpreter.traffic import Key
from grader.engine.interpreter.transaction import Spinning
from grader.recording.launch_stats import SECTOR, Interval, Survey, Traffic

_STRATA_COST = 1 << 21  # elements of all programs that are run for the sums
_FEW_STRATA = 64  # programs: loops are cut before fewer programs are run
_MOST_STRATA = 256  # programs of one stratum
_PROBE_SHARE, _WAVES_SHARE = 0.4, 0.75  # of the remaining time
_USABLE = 0.6  # share of L2 that behaves like an ideal LRU cache
_TRIALS = 2
_MOST_PLACES = 64  # lines and tensors whose traffic is reported, the heaviest
_LONGEST_NAME = 200  # characters of a tensor's name


class Unsteady(Exception):
    """Addresses of the launch depend on unknown values; the message is a sentence."""


def surveyed(sampler: Sampler, name: str, resident: int, l2_bytes: int, granule: int,
             effort: float = 1.0) -> Survey:
    """Surveys a launch until its memory's deadline.

    Args:
        sampler: the launch.
        name: of the kernel.
        resident: programs that are on the GPU at the same time.
        l2_bytes: size of the L2 cache.
        granule: bytes that a DRAM read moves at least.
        effort: share of the usual number of programs that is run.

    Raises:
        Unsteady: addresses depend on unknown values.
        SamplingStopped: a program fails.
        Spinning: programs wait for each other.
        TooLong: the first few programs take too long.
    """
    grid = sampler.memory.running.grid
    programs = grid[0] * grid[1] * grid[2]
    if not programs:
        nothing = Interval(0, 0)
        return Survey(name, grid, 0, 0, (), {}, nothing, nothing, 0, 0, 0)
    probes = np.unique([0, programs // 2, programs - 1])
    sampler.memory.turns_run = TURNS[-1]
    end, now = sampler.memory.deadline, time.process_time()
    sampler.memory.deadline = now + _PROBE_SHARE * (end - now)
    probe = sampler.run(probes)
    _check_steady(sampler, name, probes, probe)
    _forget_stored(sampler, probe)
    now = time.process_time()
    sampler.memory.deadline = now + _WAVES_SHARE * (end - now)
    waves = run_waves(sampler, programs, min(resident, programs), effort)
    sampler.memory.deadline = end
    sums = _Scaled(sampler, programs)
    most = effort * _STRATA_COST
    cost = cost_of_one(sampler, programs, most / _FEW_STRATA) or most
    chosen = _strata(grid, max(1, int(most / cost)))
    try:
        sums.add(in_chunks(sampler, np.array(sorted(chosen)), cost), chosen)
    except TooLong:
        sums.add(probe, dict.fromkeys(probes.tolist(), programs / len(probes)))
    return sums.survey(name, grid, waves, l2_bytes, granule)


# ---------------------------------------------------------------------------------------------
# Whether values matter


def _check_steady(sampler: Sampler, name: str, probes: Array, probe: Groups) -> None:
    """Runs programs again with other values for unknown ones; addresses must stay the same."""
    memory = sampler.memory
    known = set(memory.known)
    memory.known -= _stored(sampler, probe)
    try:
        for trial in range(_TRIALS):
            memory.trial = np.random.default_rng(trial)
            try:
                alike = _prints(probe) == _prints(sampler.run(probes, silent=True))
            except (SamplingStopped, Spinning):
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
    """The programs to run, with the number that each represents.

    Along each axis the last program is a stratum of its own, as tails are there; of each stratum
    some programs are chosen, evenly spread.
    """
    along = [[(range(n - 1), n - 1), (range(n - 1, n), 1)] if n > 1 else [(range(1), 1)]
             for n in grid]
    kinds = [(xs, ys, zs) for (xs, _), (ys, _), (zs, _) in itertools.product(*along)]
    sizes = [len(xs) * len(ys) * len(zs) for xs, ys, zs in kinds]
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
        self._sums: dict[Key, Array] = {}  # lanes, bytes, sectors, ideal
        self._touched: dict[Key, list[tuple[Array, Array, Array, Array]]] = {}
        self._visits: dict[tuple[int | None, str, tuple[str, ...]], float] = {}
        self._flops = 0.0
        self._hits: dict[int, list[tuple[Array, Array]]] = {}  # elements of atomics, by storage
        self._runs = PrivateRanges()

    def add(self, groups: Groups, scale: Mapping[int, float]) -> None:
        for group, trail in groups:
            stands = np.array([scale[number] for number in group.tolist()])
            self._sampled += len(group)
            self._flops += trail.products * float(stands.mean())
            for visit, count in trail.visits.items():
                self._visits[visit] = self._visits.get(visit, 0) + count * float(stands.mean())
            for access in trail.accesses:
                self._add(access, group, stands)

    def _add(self, access: SampledAccess, group: Array, stands: Array) -> None:
        told = counted(access, len(group))
        weight = np.broadcast_to(np.asarray(access.weight, float), (len(group),))
        each = stands * weight
        scaled = each.sum(keepdims=True) if access.alike else each
        made = np.array([told.lanes @ scaled, told.lanes @ scaled * access.itemsize,
                         told.sectors @ scaled, told.ideal @ scaled])
        self._sums[access.key] = self._sums.get(access.key, np.zeros(4)) + made
        touched = self._touched.setdefault(access.key, [])
        if access.alike:
            touched.extend((np.full(len(told.numbers), program), told.numbers,
                            np.full(len(told.numbers), weight[i]),
                            np.full(len(told.numbers), stands[i]))
                           for i, program in enumerate(group.tolist()[:2]))
        else:
            touched.append((group[told.rows], told.numbers, weight[told.rows],
                            stands[told.rows]))
        self._runs.add(access, group, told, stands)
        if access.key.kind == "atomic":
            self._note_atomics(access, group, each)

    def _note_atomics(self, access: SampledAccess, group: Array, each: Array) -> None:
        first, nbytes = access.first, np.broadcast_to(np.asarray(access.nbytes), access.first.shape)
        lanes = nbytes // access.itemsize
        which = np.repeat(np.arange(len(first)), lanes)
        within = np.arange(len(which)) - np.repeat(np.cumsum(lanes) - lanes, lanes)
        places = first[which] // access.itemsize + within
        self._hits.setdefault(access.key.region, []).append((places, each[access.rows[which]]))

    # -- what comes out ------------------------------------------------------------------------

    def survey(self, name: str, grid: tuple[int, int, int], waves: Sampled | None, l2_bytes: int,
               granule: int) -> Survey:
        traffic = self._traffic()
        loaded, stored, surely = self._dram(traffic, waves, l2_bytes, granule)
        return Survey(
            name, grid, self._programs, self._sampled, traffic, self._executions(), loaded, stored,
            sum(t.lanes for t in traffic if t.kind == "atomic"), self._hottest(),
            round(self._flops), self._apart(), min(surely, loaded.low))

    def _traffic(self) -> tuple[Traffic, ...]:
        made = []
        for key, (lanes, nbytes, sectors, ideal) in self._sums.items():
            unique = min(self._distinct([key]), sectors)
            made.append(Traffic(key.line, key.kind, self._region(key).name[:_LONGEST_NAME],
                                round(lanes),
                                round(nbytes), round(sectors), round(ideal), round(unique)))
        heaviest = sorted(made, key=lambda t: -t.sectors)[:_MOST_PLACES]
        return tuple(sorted(heaviest, key=lambda t: (t.line or 0, t.kind, t.tensor)))

    def _apart(self) -> tuple[tuple[str, str], ...]:
        places = ((kind, self._sampler.region(number)) for number, kind in self._runs.apart(
            lambda number: self._sampler.region(number).nbytes))
        found = {(kind, region.name[:_LONGEST_NAME]) for kind, region in places}
        return tuple(sorted(found)[:_MOST_PLACES])

    def _region(self, key: Key) -> Region:
        return self._sampler.region(key.region)

    def _executions(self) -> dict[int, float]:
        made: dict[int, float] = {}
        for (line, _, _), count in self._visits.items():
            if line is not None:
                made[line] = max(made.get(line, 0.0), round(count / self._programs, 6))
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
        """Distinct sectors of the whole launch, from the overlap of the programs that ran."""
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
        ran = len(np.unique(programs))
        each = float(weights[own].sum())  # sectors of all programs that ran
        seen = float(weights[new].sum())
        total = float((weights * stands)[own].sum())
        most = extent([self._region(key) for key in keys])
        return min(float(most), coverage(each / ran, seen, ran, total))

    def _dram(self, traffic: Sequence[Traffic], waves: Sampled | None, l2_bytes: int,
              granule: int) -> tuple[Interval, Interval, int]:
        """Bytes loaded from and stored to DRAM as intervals, and bytes certainly loaded."""
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
            loaded, stored = (Interval(min(r.low, r.high), r.high) for r in reach)
            return loaded, stored, loaded.low
        extents = {numbers[storage]: extent([self._region(key) for key in keys])
                   for storage, keys in storages.items()}
        steps, issued = waves.steps(self._sampler, numbers)
        if not steps:
            return Interval(0, 0), Interval(0, 0), 0
        bound = {at: min(n, extents[at[0]]) for at, n in reached.items()}
        ratio = {}
        for at, keys in keys_of.items():
            scaled = sum(self._sums[key][2] for key in keys)
            ratio[at] = scaled / (issued[at] * self._programs) if issued.get(at) else 1.0
        result = moved(SampledWaves(
            steps, waves.resident / waves.size,
            self._programs / waves.resident, extents, bound, ratio), _USABLE * l2_bytes)
        more = {n: 1 + share * (granule // SECTOR - 1) for n, share in result.isolated.items()}
        surely = SECTOR * sum(n * more.get(tensor, 1.0) for tensor, n in result.surely.items())
        return (_interval(result.loaded, more), _interval(result.stored, {}), round(surely))


def _interval(tensors: Mapping[int, tuple[float, float]], more: Mapping[int, float]) -> Interval:
    low, high = (SECTOR * sum(pair[i] * more.get(n, 1.0) for n, pair in tensors.items())
                 for i in (0, 1))
    return Interval(round(low), max(round(low), round(high)))
