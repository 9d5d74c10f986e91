"""Random addresses end in findings or in nothing, never in a crash or in somebody else's memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fidelity.memory import fuzz

pytestmark = pytest.mark.course

SCRIPT = Path(fuzz.__file__)


def fuzzed(folder: Path, *options: str) -> dict[str, Any]:
    """Run the script in a process of its own; what it printed."""
    folder.mkdir()
    ended = subprocess.run(
        [sys.executable, str(SCRIPT), str(folder), *options], capture_output=True, text=True,
        timeout=120, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert ended.returncode == 0, ended.stderr[-2000:]
    report: dict[str, Any] = json.loads(ended.stdout)
    return report


def test_two_thousand_random_accesses_do_no_harm_and_are_judged_rightly(tmp_path: Path) -> None:
    report = fuzzed(tmp_path / "kernels")

    assert report["accesses"] == 2000
    assert report["disturbed"] == 0
    assert report["wrong"] == []
    assert report["expected"] > 500  # neither kind is rare
    assert report["harmless"] > 300
    assert report["changed"] > 20  # stores within bounds were carried out


@pytest.mark.parametrize("seed", ["2", "3"])
def test_findings_do_not_depend_on_how_many_programs_run_at_once(tmp_path: Path, seed: str) -> None:
    few = ("--kernels", "40", "--seed", seed)

    together = fuzzed(tmp_path / "together", *few)
    one_by_one = fuzzed(tmp_path / "one_by_one", *few, "--chunk", "1")

    assert together["findings"] == one_by_one["findings"]
    assert together["wrong"] == one_by_one["wrong"] == []
