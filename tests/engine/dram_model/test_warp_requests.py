"""Sectors of each request of a warp: closed forms, and what is made of scattered requests."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from grader.diagnosis.perf_lints import of_call
from grader.recording.launch_stats import Traffic
from tests.fidelity.performance.analysing import Analysis, analyse
from tests.fidelity.performance.requests import CASES, SECTORS
from tests.support.timed import H200

MEASURED = json.loads((Path(__file__).parents[2] / "benchmarks" / "results" /
                       "h200-2026-11-27-requests.json").read_text())["requests"]
# Triton 3.6, which was measured, gives these another layout: there, threads run along the columns.
OTHER_LAYOUT = {name for name in SECTORS if name.startswith("threads that run down rows")}
analysed: dict[str, Analysis] = {}


def analysis(name: str) -> Analysis:
    if name not in analysed:
        case, = (case for case in CASES if case.name == name)
        analysed[name] = analyse(case, H200)
    return analysed[name]


def traffic(name: str, kind: str) -> Traffic:
    launch, = analysis(name).launches
    assert launch.survey is not None
    row, = (row for row in launch.survey.traffic if row.kind == kind)
    if name in OTHER_LAYOUT and kind == "load" and row.request_use == 1:
        pytest.skip("this version of Triton lets the threads run along the columns")
    return row


@pytest.mark.course
@pytest.mark.parametrize("name", SECTORS)
def test_requests_of_loads_touch_as_many_sectors_as_they_must(name):
    row = traffic(name, "load")

    assert row.sectors_per_request == pytest.approx(SECTORS[name], rel=1e-3)


@pytest.mark.course
@pytest.mark.parametrize("name", sorted(SECTORS.keys() - OTHER_LAYOUT))
def test_requests_are_those_that_nsight_compute_counted(name):
    """On an H200, within 2 %, hits of L1 within 2 % of the sectors."""
    measured, loads, stores = MEASURED[name], traffic(name, "load"), traffic(name, "store")

    assert loads.requests == pytest.approx(measured["load_requests"], rel=0.02)
    assert loads.request_sectors == pytest.approx(measured["load_sectors"], rel=0.02)
    assert stores.request_sectors == pytest.approx(measured["store_sectors"], rel=0.02)
    hits = measured["load_sectors_hit_in_l1"] / measured["load_sectors"]
    assert loads.l1_hits == pytest.approx(hits, abs=0.02)


def test_threads_that_run_down_rows_use_an_eighth_of_each_request():
    row = traffic("threads that run down rows, 16 x 128", "load")

    assert row.coalescing == 1  # of the whole tile
    assert row.request_use == pytest.approx(1 / 8)
    assert row.l1_hits == pytest.approx(7 / 8)


@pytest.mark.parametrize(("name", "found"), [
    ("threads that run down rows, 16 x 128", True), ("transpose in tiles of 64", False),
    ("copy of float32, odd length", False), ("one row for all rows of a tile", False)])
def test_scattered_requests_are_a_defect_and_others_are_not(name, found):
    traffic(name, "load")
    names = {defect.name for defect in of_call(analysis(name).launches, H200)}

    assert ("scattered requests" in names) is found


def test_stores_count_each_element_once_and_masked_elements_not_at_all():
    row = traffic("one row for all rows of a tile", "store")

    assert (row.requests, row.sectors_per_request) == (4096 * 4096 // 128, 16)
    loaded = traffic("copy of float32, odd length", "load")
    assert loaded.request_bytes == pytest.approx(4 * ((1 << 22) - 24), rel=1e-3)
