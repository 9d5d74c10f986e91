"""The product as a learner meets it: real commands in an empty folder, nothing replaced."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOLUTION = ROOT / "solutions" / "missing-elements" / "03-softmax" / "kernel.py"
KERNEL = Path("tritonlab-workspace/track1/softmax/kernel.py")


@pytest.fixture
def type_(tmp_path):
    """Types a command and gives back exit code, output and error output."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("TRITONLAB")}
    environment["CUDA_VISIBLE_DEVICES"] = ""  # the same on every machine

    def run(*words: str, program: str = "tritonlab") -> subprocess.CompletedProcess[str]:
        start = ["-m", "tritonlab"] if program == "tritonlab" else [program]
        return subprocess.run([sys.executable, *start, *words], cwd=tmp_path, env=environment,
                              capture_output=True, text=True)

    return run


def test_from_start_to_certificate(type_, tmp_path):
    kernel = tmp_path / KERNEL

    started = type_("start", "1.3")
    untouched = type_("grade")
    kernel.write_text(SOLUTION.read_text().replace("other=-float", "other=0.0 * float"))
    mistaken = type_("grade")
    kernel.write_text(SOLUTION.read_text())
    right = type_("grade", "softmax", "--json")
    certificate = json.loads(type_("certificate", "--json", "--name", "Ada").stdout)

    assert (started.returncode, kernel.is_file()) == (0, True)
    assert untouched.returncode == 1
    assert "18 of 18 blanks are left: TODO 1 to 18." in untouched.stdout
    assert mistaken.returncode == 1
    assert "What failed first" in mistaken.stdout
    assert right.returncode == 0
    report = json.loads(right.stdout)
    assert (report["verdict"], report["evidence"], report["saved"]) == ("PASSED", "efficient", True)
    assert certificate["name"] == "Ada"
    assert certificate["totals"]["tracks"]["track1"]["passed"] == 1
    assert certificate["totals"]["core"] == {"passed": 1, "total": 19, "earlier": 0}
    entry = next(e for e in certificate["modules"] if e["module"] == "track1/softmax")
    assert (entry["state"], entry["grades"], entry["seed"]) == ("passed", 3, report["seed"])


def test_the_exercise_runs_its_own_public_cases(type_, tmp_path):
    type_("start", "softmax")
    (tmp_path / KERNEL).write_text(SOLUTION.read_text())

    ran = type_(program=str(KERNEL))

    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "5 of 5 public checks passed" in ran.stdout


def test_the_tour_ends_well(type_, tmp_path):
    ran = type_("tour", "--json")

    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert [step["ok"] for step in json.loads(ran.stdout)["steps"]] == [True] * 5
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("text", "code", "says"), [
    ("def softmax(x):\n    return (x\n", 1, "'(' was never closed"),
    ("import os\nos._exit(0)\n", 1, "exited with status 0"),
    ("raise SystemExit(0)\n", 1, "SystemExit"),
    ("x = '" + "\\xff" * 3 + "'\n", 1, "softmax"),
], ids=["no Python", "exits", "SystemExit", "no softmax"])
def test_a_file_that_cannot_be_graded_gets_one_clear_message(type_, tmp_path, text, code, says):
    type_("start", "softmax")
    header = "" if "return (x" in text else "import triton\n@triton.jit\ndef k(): pass\n"
    entry = "" if text.startswith(("def", "x")) else "def softmax(x): return x\n"
    (tmp_path / KERNEL).write_text(header + text + entry)

    graded = type_("grade", "--plain")

    assert graded.returncode == code
    assert says in graded.stdout
    assert "Traceback" not in graded.stdout + graded.stderr


@pytest.mark.parametrize("lesson", sorted(ROOT.glob("tracks/*/*/lesson.py")),
                         ids=lambda path: path.parent.name)
def test_lessons_run(lesson):
    ran = subprocess.run([sys.executable, "-W", "error", lesson], capture_output=True, text=True)

    assert ran.returncode == 0, ran.stderr
    assert len(ran.stdout.splitlines()) > 10
