"""Runs sampled waves, programs that are on the GPU at the same time, for the DRAM model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from grader.engine.dram_model.reuse_distance import WaveAccess
from grader.engine.dram_model.sampling import (
    Groups,
    SampledAccess,
    Sampler,
    TooLong,
    cost_of_one,
    in_chunks,
)
from grader.engine.dram_model.sector_counts import counted, distinct
from grader.engine.interpreter.block_value import Array
from grader.engine.interpreter.traffic import Key

_WAVE_COST = 3 << 23  # elements of all programs that are run
_MORE_COST = 1 << 22  # for more than two whole waves
_LEAST_WAVES, _MOST_WAVES = 4, 24  # where there is time for them
_MOST_STEPS = 600  # of all waves
_CLUSTERS = (32, 16, 8)  # adjacent programs: so many elements of 2, 4, 8 bytes share 64 bytes
_FEWEST_CLUSTERS = 4


@dataclass(frozen=True)
class Sampled:
    """Accesses of ``size`` programs of each sampled wave, of the ``resident`` ones it has."""

    waves: tuple[Groups, ...]
    halves: tuple[Array, ...]  # half of the programs that were run of each
    size: int
    resident: int

    def steps(self, sampler: Sampler, numbers: Mapping[int, int],
              ) -> tuple[list[WaveAccess], dict[tuple[int, str], float]]:
        """The accesses of all waves in order, and a program's average sectors by tensor."""
        steps: list[WaveAccess] = []
        issued: dict[tuple[int, str], float] = {}
        programs = sum(len(group) for groups in self.waves for group, _ in groups)
        for wave, (groups, early_ones) in enumerate(zip(self.waves, self.halves, strict=True)):
            for (_, key), parts in _aligned(groups):
                tensor = numbers.get(id(sampler.region(key.region).storage))
                if tensor is None:  # no program of the strata accesses it
                    continue
                sectors, early, asked, plain = [], [], 0.0, 0.0
                for access, group in parts:
                    counts = counted(access, len(group))
                    half, weight = np.isin(group, early_ones), access.weight
                    if access.alike:  # one row stands for all programs
                        half = np.asarray(half.any(keepdims=True))
                        weight = weight.sum(keepdims=True)
                    sectors.append(counts.numbers)
                    early.append(counts.numbers[half[counts.rows]])
                    asked += float(counts.sectors @ weight)
                    plain += (len(group) if access.alike else 1) * float(counts.sectors.sum())
                reads, writes = key.kind != "store", key.kind != "load"
                nest = tuple((loop * _MOST_WAVES + wave, weight)
                             for loop, weight in parts[0][0].nest)
                steps.append(WaveAccess(
                    wave, tensor, reads, writes, distinct(np.concatenate(sectors)),
                    distinct(np.concatenate(early)), asked / plain, nest))
                for way in ("read",) * reads + ("written",) * writes:
                    issued[tensor, way] = issued.get((tensor, way), 0.0) + asked / programs
        return steps, issued


def _aligned(groups: Groups) -> Iterator[tuple[tuple[int, Key], list[tuple[SampledAccess, Array]]]]:
    """Accesses of all groups, aligned: the n-th of each, where they have the same key."""
    aligned: dict[tuple[int, Key], list[tuple[SampledAccess, Array]]] = {}
    for group, trail in groups:
        for number, access in enumerate(trail.accesses):
            aligned.setdefault((number, access.key), []).append((access, group))
    yield from sorted(aligned.items(), key=lambda item: (item[0][0], item[0][1].region))


def run_waves(sampler: Sampler, programs: int, resident: int, effort: float) -> Sampled | None:
    """Runs a few waves in the middle of the launch, whole or in part.

    A part consists of clusters of adjacent programs all over the wave: some programs share sectors
    with an adjacent one, some with a distant one.

    Returns:
        The sample, or None if there is not enough time.
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
            waves.append(in_chunks(sampler, mine, cost, silent=True))
            halves.append(half)
    except TooLong:
        if not waves:
            return None
    return Sampled(tuple(waves), tuple(halves), size, resident)


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


def _length(groups: Groups) -> int:
    return max((len(trail.accesses) for _, trail in groups), default=0)
