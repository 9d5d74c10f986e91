"""Predicted time by unit: which segments add up, which units are shown, how the error is stated."""

from __future__ import annotations

import io
import json
from collections import Counter
from itertools import chain
from pathlib import Path

import pytest

from grader.engine.compiler.timing_model.accuracy import ACCURACY, DEVICE, Accuracy
from grader.recording.launch_stats import Prediction
from tritonlab.render import unit_times
from tritonlab.render.screen import Screen

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"
KEPT = ("h200-2026-11-27-performance.json", "h200-2026-11-28-held-out.json",
        "h200-2026-11-28-held-out-2.json", "h200-2026-11-28-held-out-3.json")
PRODUCT = Prediction(1e-3, "compute", "dram", {
    "dram": 0.2e-3, "l2": 0.4e-3, "compute": 0.9e-3, "latency": 0.0, "launch": 0.1e-3,
    "programs": 0.001e-3, "atomics": 0.0}, {"tensor": 0.7e-3, "xu": 0.3e-3, "fma": 0.0})


def printed(prediction: Prediction, *, plain: bool, width: int = 80) -> str:
    stream = io.StringIO()
    unit_times.show(Screen(stream, plain=plain, width=width), "a case", prediction)
    return stream.getvalue()


def test_launch_busiest_unit_and_rest_add_up_to_the_time():
    segments = unit_times.stack(PRODUCT)

    assert [one.unit for one in segments] == ["launch", "tensor", unit_times.REST]
    assert [one.seconds for one in segments] == pytest.approx([0.1e-3, 0.7e-3, 0.2e-3])
    assert sum(count for _, count in unit_times.columns(PRODUCT, 40)) == 40


def test_units_are_listed_by_how_long_they_are_busy():
    assert [one.unit for one in unit_times.busy(PRODUCT)] == ["tensor", "l2", "xu", "dram"]


def test_a_bound_by_launches_shows_the_busiest_unit_after_it():
    tiny = Prediction(4e-6, "launch", "dram", {"launch": 3e-6, "dram": 0.5e-6, "compute": 0.0})

    assert [(one.unit, one.seconds) for one in unit_times.stack(tiny)] == [
        ("launch", 3e-6), ("dram", 0.5e-6), (unit_times.REST, pytest.approx(0.5e-6))]
    assert unit_times.bound(tiny) == "the launch itself, then DRAM"


def test_the_plain_text_has_the_same_numbers_as_the_bars():
    plain, bars = printed(PRODUCT, plain=True), printed(PRODUCT, plain=False)

    assert ("a case: time 1.00 ms = launch 100 µs + tensor cores 700 µs + imperfect overlap 200 µs"
            in plain)
    assert "a case: busy: tensor cores 70 %, the L2 cache 40 %, MUFU (exp, log, sqrt) 30 %" in plain
    assert "tensor cores 700 µs" in bars
    assert sum("███" in line for line in bars.splitlines()) == len(unit_times.busy(PRODUCT)) + 1
    assert max(map(len, bars.splitlines())) <= 80
    for text in (plain, bars):
        assert "31 kernels bound by tensor cores" in " ".join(text.split())


def test_a_unit_without_measurements_has_an_unknown_error():
    divided = Prediction(1e-3, "compute", "dram", PRODUCT.parts, {"fp64": 0.9e-3})

    assert unit_times.accuracy(divided).startswith("Error: unknown")


def test_the_stated_errors_are_those_of_the_kept_measurements():
    kept = [json.loads((RESULTS / name).read_text(encoding="utf-8")) for name in KEPT]
    totals, near, double = Counter(), Counter(), Counter()
    for row in chain(*(one["compared"]["cases"].values() for one in kept)):
        if row["ratio"]:
            off = max(row["ratio"], 1 / row["ratio"])
            totals[row["bound"]] += 1
            near[row["bound"]] += off <= 1.25
            double[row["bound"]] += off <= 2

    assert all(DEVICE in one["device"] for one in kept)
    assert {unit: Accuracy(totals[unit], near[unit], double[unit])
            for unit in totals if totals[unit] > 1} == ACCURACY
