"""Performance profiling: the evidence is what its maker makes, and devices are as they are told."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.evidence import performance_profiling as evidence

pytestmark = pytest.mark.course

ROOT = Path(__file__).parents[2]
GIVEN = ROOT / "tracks" / "debugging" / "03-performance-profiling"
SOLUTION = ROOT / "solutions" / "debugging" / "03-performance-profiling"


def loaded(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"profiling_{name}", SOLUTION / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)  # for dataclasses
    spec.loader.exec_module(module)
    return module


def test_the_profiles_are_what_the_tracer_and_the_kept_run_say():
    made = evidence.text()

    kept = {place.read_text(encoding="utf-8") for place in evidence.PLACES}

    assert kept == {made}, "python -m tests.evidence.performance_profiling"


def test_learner_and_solution_have_the_same_devices():
    assert (GIVEN / "devices.py").read_bytes() == (SOLUTION / "devices.py").read_bytes()


@pytest.mark.parametrize("seed", range(3))
def test_the_solution_measures_the_given_device_rightly(seed):
    device = loaded("devices").SimulatedDevice(cold_ms=0.028, launch_ms=0.002, seed=seed)

    stats = loaded("kernel").benchmark(device.launch, device)

    assert stats.median_ms == pytest.approx(0.030, rel=0.02)
    assert stats.p20_ms <= stats.median_ms <= stats.p80_ms


def test_the_lesson_has_the_numbers_of_the_profiles():
    text = (GIVEN / "lesson.py").read_text(encoding="utf-8")
    gpu = json.loads((GIVEN / "profiles.json").read_text(encoding="utf-8"))["gpu"]

    assert f"COPY = {gpu['copy_gbps'] / 1e3:.3f}e12" in text
    assert f"LAUNCH_MS = {gpu['launch_ms']:.4f}" in text
