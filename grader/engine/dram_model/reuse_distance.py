"""DRAM traffic by reuse distance in an LRU model of L2, from a few sampled waves.

The programs of a wave execute their accesses side by side. A sector that was accessed before hits
L2 if few enough other sectors were accessed since (its reuse distance), as L2 evicts the least
recently used sector. Distances follow from a table: how many sectors each access of a wave touches
for the first time, or for the first time since each earlier access. Near the capacity of L2 a reuse
may hit or miss, and the result is an interval.

Source: Mattson et al., "Evaluation techniques for storage hierarchies", IBM Systems Journal, 1970.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from grader.engine.dram_model.sector_counts import distinct
from grader.engine.interpreter.block_value import Array
from grader.recording.launch_stats import SECTOR

_EDGE = (0.75, 1.33)  # of the capacity of L2: reuse between these may hit or miss
_FEW = 3  # waves after the first: with fewer, what is new in them may be so by chance
_MOSTLY = 0.8  # of what a wave touches; then it is not
_NOISE = 1.15  # so many times what there is may come out where a few waves stand for all
_ALONE = 0.98  # programs that have less than this share of their sectors alone share them
_GUESSED = 0.05  # of what is seen of a tensor
_MOST_BLOCK = 1024  # sectors that are counted as one where all are accessed together
_BITS = 36  # below them a sector's number fits, above them the number of its tensor


@dataclass(frozen=True)
class WaveAccess:
    """One access of all programs of a wave.

    ``nest``: the cut loops around it, outermost first, each with the iterations that one of its
    iterations represents.
    """

    wave: int
    tensor: int
    reads: bool
    writes: bool
    sectors: Array  # distinct ones, of the programs that were run
    half: Array  # of half of them
    weight: float = 1.0  # iterations of loops that it represents
    nest: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True)
class SampledWaves:
    """The sampled waves and their scale: of each wave, a share of 1 / ``more`` was run.

    ``tensor`` and ``wave`` are those of each step.
    """

    steps: Sequence[WaveAccess]
    more: float
    count: float  # waves of the whole launch
    extents: Mapping[int, int]  # sectors that a tensor has
    distinct: Mapping[tuple[int, str], float]  # sectors read or written by the launch, from afar
    ratio: Mapping[tuple[int, str], float]  # what all programs ask for, by what these promise

    @cached_property
    def tensor(self) -> Array:
        return np.array([step.tensor for step in self.steps])

    @cached_property
    def wave(self) -> Array:
        return np.array([step.wave for step in self.steps])

    def accesses(self, kind: str) -> Array:
        """Whether each step reads, or writes, by ``kind``: "read" or "written"."""
        return np.array([step.reads if kind == "read" else step.writes for step in self.steps])


@dataclass(frozen=True)
class SectorTraffic:
    """Least and most sectors of each tensor that cross between DRAM and L2.

    ``surely``: the least of ``loaded`` without estimates: of a tensor that the programs of a wave
    share, while only a part of them was run, it is certain only that its sectors are loaded once.
    """

    loaded: dict[int, tuple[float, float]]
    stored: dict[int, tuple[float, float]]
    isolated: dict[int, float]  # share of reads without the other half of 64 bytes
    surely: dict[int, float]


def moved(waves: SampledWaves, capacity: float) -> SectorTraffic:
    """Sectors that cross between DRAM and an L2 that holds ``capacity`` bytes."""
    touched = _Table.of(waves, written=False)
    distance = touched.distances(waves.steps)
    limits = [capacity * edge / SECTOR for edge in reversed(_EDGE)]
    bounds: dict[str, dict[int, tuple[float, float]]] = {"read": {}, "written": {}}
    for kind, table in (("read", touched), ("written", touched.written(waves))):
        for tensor in np.unique(waves.tensor[waves.accesses(kind)]).tolist():
            misses = [_misses(waves, table, touched, distance, kind, tensor, limit,
                              at_most=limit == max(limits)) for limit in limits]
            bounds[kind][tensor] = min(misses), max(misses)
    surely = {tensor: min(low, waves.distinct.get((tensor, "read"), low))
              if touched.is_guessed(waves, tensor) else low
              for tensor, (low, _) in bounds["read"].items()}
    return SectorTraffic(bounds["read"], bounds["written"], _isolated(waves.steps), surely)


@dataclass(frozen=True)
class _Table:
    """``fresh[a, b]``: sectors that step a touches and that were last touched in step b - 1;
    in column 0 those that no step touched before. Scaled to all resident programs and by weight.
    ``shared``: of each step, sectors seen that several programs of it have in common."""

    fresh: Array
    shared: Array

    @classmethod
    def of(cls, waves: SampledWaves, *, written: bool) -> Self:
        full = _pairs(waves.steps, [s.sectors for s in waves.steps], written)
        shared = np.zeros(len(waves.steps))
        if waves.more > 1:
            half = _pairs(waves.steps, [s.half for s in waves.steps], written)
            growth = _growth(full, half, waves.more)
            shared = np.where(growth < _ALONE * waves.more, full, 0).sum(axis=1)
            full = full * growth
        fresh = full * np.array([s.weight for s in waves.steps])[:, None]
        for tensor, extent in waves.extents.items():
            for wave in range(int(waves.wave.max()) + 1):
                mine = np.flatnonzero((waves.tensor == tensor) & (waves.wave == wave))
                # for the first time in this wave
                touched = fresh[mine, :mine[0] + 1].sum() if len(mine) else 0
                if touched > extent:
                    fresh[mine] *= extent / touched
        return cls(fresh, shared)

    def written(self, waves: SampledWaves) -> Self:
        """The same of writing steps alone; tensors have nothing in common."""
        writes = waves.accesses("written")
        if set(waves.tensor[writes].tolist()) & set(waves.tensor[~writes].tolist()):
            return self.of(waves, written=True)
        return replace(self, fresh=np.where(writes[:, None], self.fresh, 0),
                       shared=np.where(writes, self.shared, 0))

    def is_guessed(self, waves: SampledWaves, tensor: int) -> bool:
        """Whether the sectors of a tensor were estimated from the overlap of some programs."""
        sampled = sum(len(s.sectors) for s in waves.steps if s.tensor == tensor)
        return bool(self.shared[waves.tensor == tensor].sum() > _GUESSED * sampled)

    def distances(self, steps: Sequence[WaveAccess]) -> Array:
        """[a, b]: distinct sectors touched between a touch in step b - 1 and one in step a."""
        count = len(steps)
        since = np.cumsum(self.fresh, axis=1)  # [s, b]: last touched in step b - 1 or before
        until = np.cumsum(since, axis=0)
        between = np.zeros((count, count + 1))
        sizes = since[:, -1]
        for b in range(1, count):  # the step of the earlier touch is b - 1
            between[b:, b] = (
                until[b - 1:count - 1, b] - until[b - 1, b]
                + 0.5 * since[b:, b] + 0.5 * sizes[b - 1])
        return between / _shared_weight(steps)


def _growth(full: Array, half: Array, more: float) -> Array:
    """The factor by which ``more`` times as many programs touch more sectors.

    Programs are assumed to share sectors at random: then the share of sectors that is still
    missing shrinks by the same factor with each program. Without sharing the factor is ``more``.
    """
    missing = np.clip(full / np.maximum(half, 1e-9) - 1, 0, 1)  # after half of the programs
    missing[half == 0] = 1
    with np.errstate(all="ignore"):
        grown = (1 - missing ** (2 * more)) / (1 - missing ** 2)
    return np.where(missing > 1 - 1e-9, more, grown)


def _shared_weight(steps: Sequence[WaveAccess]) -> Array:
    """[a, b]: iterations represented by one, of the loops around both step a and step b - 1.

    Iterations of a loop that were run follow each other, so between two of them lie no others.
    """
    count = len(steps)
    shared = np.ones((count, count + 1))
    together = np.ones((count, count), np.bool_)
    for level in range(max((len(s.nest) for s in steps), default=0)):
        loops = np.array([s.nest[level][0] if level < len(s.nest) else -1 for s in steps])
        weights = np.array([s.nest[level][1] if level < len(s.nest) else 1.0 for s in steps])
        together &= (loops[:, None] == loops) & (loops >= 0)
        shared[:, 1:] *= np.where(together, weights, 1.0)
    return shared


def _pairs(steps: Sequence[WaveAccess], sectors: Sequence[Array], written: bool) -> Array:
    """[a, b]: sectors of step a last touched in step b - 1; with ``written``, by writing steps."""
    count = len(steps)
    bits = count.bit_length()
    block = _block(sectors)
    keys = [(((np.int64(step.tensor) << _BITS) + touched[::block] // block) << bits) + number
            for number, (step, touched) in enumerate(zip(steps, sectors, strict=True))
            if step.writes or not written]
    if not keys:
        return np.zeros((count, count + 1))
    ordered = np.sort(np.concatenate(keys), kind="stable")
    at = ordered & ((1 << bits) - 1)
    ordered >>= bits
    before = np.zeros(len(at), np.int64)
    before[1:] = (at[:-1] + 1) * (ordered[1:] == ordered[:-1])
    table = np.bincount(at * (count + 1) + before, minlength=count * (count + 1))
    return block * table.reshape(count, count + 1).astype(np.float64)


def _block(sets: Sequence[Array]) -> int:
    """The largest power of two of adjacent sectors, as aligned blocks of which sets consist.

    Each set is in ascending order.
    """
    block = _MOST_BLOCK
    for sectors in sets:
        while block > 1 and (
                len(sectors) % block or (sectors[::block] % block).any()
                or (sectors[block - 1::block] - sectors[::block] != block - 1).any()):
            block //= 2
    return block


def _misses(waves: SampledWaves, table: _Table, touched: _Table, distance: Array, kind: str,
            tensor: int, limit: float, *, at_most: bool) -> float:
    """Sectors of one tensor that miss in all waves, where L2 holds ``limit`` sectors.

    ``at_most``: this is the larger limit, where doubtful misses are left out.
    """
    mine = (waves.tensor == tensor) & waves.accesses(kind)
    missed = np.where(distance <= limit, 0.0, table.fresh)
    missed[:, 0] = 0
    new = table.fresh[:, 0]
    first, later = mine & (waves.wave == 0), mine & (waves.wave > 0)
    more = waves.count - 1  # the first wave in the middle of a launch stands for its first one
    n_later = int(waves.wave.max())
    few = n_later < _FEW
    if not n_later:  # what a wave shares with the one before it is unknown
        later, n_later = first, 1
    ratio = waves.ratio.get((tensor, kind), 1.0)
    again = (missed[first].sum() + missed[later].sum() / n_later * more) * ratio
    steady = new[later].sum() / n_later
    promised = ratio * (new[first].sum() + steady * more)
    distinct_ones = waves.distinct.get((tensor, kind), promised)
    # a group of rows may begin in one of two waves, and not in the next ten
    before = np.concatenate(([-1], waves.wave))  # the wave of each column's step
    same_wave = before[None, :] == waves.wave[later][:, None]
    touched_later = table.fresh[later].sum() - table.fresh[later][same_wave].sum()
    by_chance = few and new[later].sum() < _MOSTLY * touched_later
    unsure = by_chance or promised <= _NOISE * distinct_ones
    if promised <= distinct_ones or (unsure and at_most):
        return float(distinct_ones + again)
    return float(distinct_ones + (promised - distinct_ones) * _far_misses(
        waves, touched, tensor, new[first].sum(), steady, distinct_ones, limit) + again)


def _far_misses(waves: SampledWaves, touched: _Table, tensor: int, size: float, steady: float,
                distinct_ones: float, limit: float) -> float:
    """The share of sectors touched many waves before that L2 has evicted."""
    new = touched.fresh[:, 0]
    last = int(waves.wave.max())
    sizes, news = {}, {}
    for other in np.unique(waves.tensor).tolist():
        mine = waves.tensor == other
        sizes[other] = new[mine & (waves.wave == 0)].sum()
        news[other] = new[mine & (waves.wave > 0)].sum() / last if last else sizes[other]
    growth = sum(news.values())
    if _is_random(waves, tensor, distinct_ones):
        keeps = (limit - sum(sizes.values())) / growth + 1 if growth else np.inf  # waves
        stays = max(0.0, 1 - size / max(distinct_ones, size + 1))
        return float(stays ** max(0.0, keeps - last))
    if not steady:
        return 0.0
    period = distinct_ones / steady  # waves
    reach = sum(min(float(waves.extents.get(other, np.inf)),
                    sizes[other] + max(0.0, period - 1) * news[other]) for other in sizes)
    return 1.0 if reach > limit else 0.0


def _is_random(waves: SampledWaves, tensor: int, distinct_ones: float) -> bool:
    """Whether the waves share as many of the tensor's sectors as they would by chance."""
    sets = [[s.sectors for s in waves.steps if s.tensor == tensor and s.wave == wave]
            for wave in (0, 1)]
    if not all(sets) or not distinct_ones:
        return False
    one, two = (distinct(np.concatenate(sectors)) for sectors in sets)
    by_chance = len(one) * len(two) / distinct_ones
    common = len(np.intersect1d(one, two, assume_unique=True))
    return by_chance >= 8 and 0.5 < common / by_chance < 2


def _isolated(steps: Sequence[WaveAccess]) -> dict[int, float]:
    """The share of each tensor's read sectors whose other half of 64 bytes is not read."""
    shares = {}
    for tensor in {s.tensor for s in steps if s.reads}:
        sets = [s.sectors for s in steps if s.tensor == tensor and s.reads]
        if _block(sets) > 1:
            shares[tensor] = 0.0
            continue
        sectors = distinct(np.concatenate(sets))
        alone = ~np.isin(sectors ^ 1, sectors, assume_unique=True)
        shares[tensor] = float(alone.mean()) if len(sectors) else 0.0
    return shares
