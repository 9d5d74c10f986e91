"""What a measured time means beside what the GPU reaches."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch

from grader.engine.gpu.measurement import (
    Ceilings,
    Gpu,
    Measurement,
    bound,
    gb_s,
    impossible,
    judge,
    share,
    tflops,
    words,
)
from grader.report import Verdict
from grader.suite import Cost

H200 = Gpu("NVIDIA H200", "GPU-0", "575.57", (9, 0), 62_914_560, 132, 150_000_000_000)
CEILINGS = Ceilings(H200, 4250.0, 760.0, "2026-11-22T10:00:00+00:00",
                    {"torch": "2.11.0", "triton": "3.6.0", "driver": "575.57"}, 400.0, 50.0)
SUM = Cost(bytes=3 << 30)
PRODUCT = Cost(bytes=6 << 25, flops=2 * 8192**3)


def taking(ms: float, spread: float = 0.02, **more: object) -> Measurement:
    half = spread * ms / 2
    return Measurement(ms, ms - half, ms + half, 40, True, **more)  # type: ignore[arg-type]


def at(part: float, **more: object) -> Measurement:
    return taking(SUM.bytes / (part * CEILINGS.copy_gb_s * 1e6), **more)


def test_ceilings_are_written_with_the_version_object_of_torch():
    data = replace(CEILINGS, versions={"torch": torch.__version__}).to_dict()

    assert json.loads(json.dumps(data))["versions"] == {"torch": str(torch.__version__)}


def test_the_bound_is_what_takes_longer():
    assert bound(SUM, CEILINGS) == "copy"
    assert bound(PRODUCT, CEILINGS) == "matmul"
    assert share(taking(2.0), PRODUCT, CEILINGS) == pytest.approx(
        tflops(taking(2.0), PRODUCT) / 760.0)


def test_float32_is_measured_against_its_own_units():
    slow = taking(30.0)

    assert share(slow, PRODUCT, CEILINGS, "fp32") == pytest.approx(
        tflops(slow, PRODUCT) / 50.0)
    assert CEILINGS.tflops_of("fp32") == 50.0
    assert CEILINGS.tflops_of("fp8") == 760.0
    assert replace(CEILINGS, fp8_tflops=1200.0).tflops_of("fp8") == 1200.0
    assert replace(CEILINGS, fp32_tflops=0.0).tflops_of("fp32") == 760.0


@pytest.mark.parametrize("part, spread, throttled, verdict", [
    (0.71, 0.02, "", Verdict.PASSED),
    (0.69, 0.02, "", Verdict.FAILED),
    (0.71, 0.11, "", Verdict.INCONCLUSIVE),
    (0.30, 0.11, "", Verdict.INCONCLUSIVE),
    (0.69, 0.02, "thermal", Verdict.INCONCLUSIVE),
    (0.69, 0.02, "power cap", Verdict.FAILED),
    (0.71, 0.02, "thermal", Verdict.PASSED),
    (1.10, 0.02, "", Verdict.PASSED),
    (1.40, 0.02, "", Verdict.FAILED),
    (1.40, 0.50, "", Verdict.FAILED),
])
def test_a_time_passes_fails_or_tells_nothing(part, spread, throttled, verdict):
    found, said = judge(at(part, spread=spread, throttled=throttled), SUM, CEILINGS, 0.70)

    assert found is verdict
    assert "70 % is required; 40 repeats" in said


def test_what_is_faster_than_the_gpu_is_impossible():
    assert impossible(at(1.1), SUM, CEILINGS) == ""
    assert "less than a NVIDIA H200 needs" in impossible(at(1.4), SUM, CEILINGS)
    assert "operations" in impossible(taking(0.1), PRODUCT, CEILINGS)
    assert impossible(taking(1e-3), Cost(bytes=1 << 20), CEILINGS) == ""  # it fits L2


def test_words_hold_every_number():
    measured = taking(SUM.bytes / 2.91e9)

    assert words(measured, SUM, CEILINGS, 0.70) == (
        "2.91 TB/s, 68 % of this GPU's copy speed, 70 % is required; 40 repeats, spread 2 %")
    assert words(taking(1.7), PRODUCT, CEILINGS).startswith(
        "646.8 TFLOP/s, 85 % of this GPU's matmul speed; ")
    assert "69 %" in words(at(0.6996), SUM, CEILINGS)
    assert gb_s(measured, SUM) == pytest.approx(2910, rel=1e-3)


def test_all_survive_json():
    measured = taking(1.0, clocks_mhz=(1980, 3201), throttled="power cap", config="2 of 3")

    for value in (H200, CEILINGS, measured):
        assert type(value).from_dict(json.loads(json.dumps(value.to_dict()))) == value


@pytest.mark.parametrize("change", [
    {"ms": 0}, {"ms": float("nan")}, {"ms": "1"}, {"ms": True}, {"p20_ms": 2.0}, {"repeats": 0},
    {"repeats": 1.5}, {"graph": 1}, {"clocks_mhz": [1]}, {"clocks_mhz": [-1, 0]},
    {"throttled": 3}, {"config": "x" * 500}, {"more": 1}, {"ms": 1e300},
], ids=str)
def test_a_forged_measurement_is_refused(change):
    with pytest.raises(ValueError):
        Measurement.from_dict({**taking(1.0).to_dict(), **change})


@pytest.mark.parametrize("change", [
    {"copy_gb_s": 0.0}, {"matmul_tflops": -1.0}, {"gpu": {}}, {"versions": []},
    {"versions": {"torch": 2}}, {"copied_bytes": -1}, {"tf32_tflops": None},
    {"fp8_tflops": -1.0},
], ids=str)
def test_forged_ceilings_are_refused(change):
    with pytest.raises(ValueError):
        Ceilings.from_dict({**CEILINGS.to_dict(), **change})
