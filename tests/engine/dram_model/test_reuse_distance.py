"""The DRAM model beside a simulated cache that sees every access of every program."""

from __future__ import annotations

import numpy as np
import pytest

from grader.engine.dram_model import extrapolate, reuse_distance
from tests.support import survey_cases
from tests.support.lru import Cache, simulate
from tests.support.surveys import Recorded

pytestmark = pytest.mark.course

EDGE = (0.75, 1.33)  # of the footprint that decides: nearer to it the model gives an interval


@pytest.fixture(autouse=True)
def reads_of_one_sector(monkeypatch):
    """The simulated cache reads single sectors from DRAM."""
    monkeypatch.setattr(extrapolate, "_DRAM_READ", 32)


@pytest.mark.parametrize("case", survey_cases.CASES, ids=lambda case: case.__name__)
def test_dram_bytes_are_those_of_a_simulated_cache(case):
    with Recorded() as recorded:
        case(recorded)
        programs, resident = survey_cases.programs_of(recorded)
        for l2 in survey_cases.SIZES:
            real = simulate(programs, resident, l2)

            made = recorded.one(round(l2 / survey_cases.USABLE))

            for model, moved in zip((made.loaded, made.stored), real, strict=True):
                assert 0.8 * model.low <= moved <= 1.2 * model.high, l2
                narrow = model.high <= 1.1 * model.low
                assert narrow or model.low <= 1.05 * moved, l2
                assert narrow or moved <= 1.05 * model.high, l2


@pytest.mark.parametrize(("case", "l2"), [
    (survey_cases.streaming, 256 << 10),
    (survey_cases.softmax_three_passes, 1 << 20),
    (survey_cases.softmax_three_long_passes, 256 << 10),
    (survey_cases.softmax_three_long_passes, 4 << 20),
    (survey_cases.matmul_in_rows, 256 << 10),
    (survey_cases.matmul_in_groups, 256 << 10),
    (survey_cases.random_gather, 4 << 20),
], ids=lambda value: getattr(value, "__name__", value))
def test_the_interval_is_narrow_away_from_what_l2_holds(case, l2):
    with Recorded() as recorded:
        case(recorded)

        made = recorded.one(round(l2 / survey_cases.USABLE))

    assert made.loaded.high < 1.1 * made.loaded.low
    assert made.stored.high < 1.1 * made.stored.low


def test_the_interval_is_wide_where_reuse_just_fits():
    with Recorded() as recorded:
        survey_cases.softmax_three_passes(recorded)

        made = recorded.one(round((256 << 10) / survey_cases.USABLE))

    assert made.loaded.high > 1.5 * made.loaded.low


def test_the_simulated_cache_forgets_what_was_touched_longest_ago():
    cache = Cache(2)
    for sector in (1, 2, 1, 3, 2):  # 3 takes the place of 2, then 2 that of 1
        cache.touch(sector, reads=True, writes=sector == 3)
    cache.flush()

    assert (cache.loaded, cache.stored) == (4, 1)


@pytest.mark.parametrize(("sets", "block"), [
    ([np.arange(2048)], 1024), ([np.arange(64), np.arange(128, 160)], 32),
    ([np.arange(64), np.arange(100, 164)], 4), ([np.arange(64), np.array([], np.int64)], 64),
    ([np.arange(63)], 1), ([np.array([0, 1, 2, 3, 6, 7])], 2), ([np.array([1, 2])], 1),
    ([np.array([0, 1, 4, 5, 8, 9, 12, 13])], 2), ([np.arange(0, 64, 2)], 1)])
def test_sectors_that_are_accessed_together_count_as_blocks(sets, block, monkeypatch):
    steps = [reuse_distance.WaveAccess(number, 0, True, False, one, one)
             for number, one in enumerate((*sets, sets[0]))]
    sectors = [step.sectors for step in steps]

    assert reuse_distance._block(sectors) == block
    pairs = reuse_distance._pairs(steps, sectors, written=False)
    isolated = reuse_distance._isolated(steps)
    monkeypatch.setattr(reuse_distance, "_MOST_BLOCK", 1)
    assert np.array_equal(pairs, reuse_distance._pairs(steps, sectors, written=False))
    assert isolated == reuse_distance._isolated(steps)
