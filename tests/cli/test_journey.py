"""The product as a learner meets it: real commands in an empty folder, on the shipped course.

Two journeys are typed as in a shell; the others happen in this process, on a sandbox that is warm.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

import grader
from grader.report import Report
from grader.suite import Case, Kind
from tests.support import scripts, toy
from tests.support.shipped import MODULES, material_of
from tritonlab.authoring import expectations, runner
from tritonlab.authoring.proofs import Fact, faults, keep, recall
from tritonlab.course import course

pytestmark = pytest.mark.course

ROOT = Path(__file__).parents[2]
SOLUTIONS = ROOT / "solutions" / "missing-elements"
WORKSPACE = Path("tritonlab-workspace/track1")
load_suite = grader.load_suite


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


@pytest.fixture
def shipped(run, warm, monkeypatch):
    """Types a command in this process, with the course that is shipped."""
    monkeypatch.delenv("TRITONLAB_COURSE")
    return run


def test_from_start_to_certificate(type_, tmp_path):
    kernel = tmp_path / WORKSPACE / "vector-add" / "kernel.py"
    solution = (SOLUTIONS / "01-vector-add" / "kernel.py").read_text()

    started = type_("start", "1.1")
    untouched = type_("grade")
    kernel.write_text(solution.replace("mask = offs < n_elements", "mask = offs <= n_elements"))
    mistaken = type_("grade")
    kernel.write_text(solution)
    right = type_("grade", "vector-add", "--json")
    certificate = json.loads(type_("certificate", "--json", "--name", "Ada").stdout)

    assert (started.returncode, kernel.is_file()) == (0, True)
    assert untouched.returncode == 1
    assert "Begin with step A (TODO 1, 2)" in untouched.stdout
    assert mistaken.returncode == 1
    assert "(store-out-of-bounds)" in mistaken.stdout
    assert right.returncode == 0
    report = json.loads(right.stdout)
    assert (report["verdict"], report["evidence"], report["saved"]) == ("PASSED", "efficient", True)
    assert certificate["name"] == "Ada"
    assert certificate["totals"]["tracks"]["track1"]["passed"] == 1
    assert certificate["totals"]["core"] == {"passed": 1, "total": 19, "earlier": 0}
    entry = next(e for e in certificate["modules"] if e["module"] == "track1/vector-add")
    assert (entry["state"], entry["grades"], entry["seed"]) == ("passed", 3, report["seed"])


def few(path: Path, exercise: Path | None = None,
        solution: Path | None = None) -> grader.Suite:
    """A suite without the values by which no mistake is known: a fraction of its time."""
    suite = load_suite(path, exercise, solution)
    named = {name for mutant in suite.mutants for name in (*mutant.wrong, *mutant.right)}

    def kept(cases: Sequence[Case], before: str = "") -> list[Case]:
        return [case for case in cases if before + case.name in named
                or case.kind not in (Kind.CORRECTNESS, Kind.EDGE)]

    return replace(suite, cases=kept(suite.cases), functions=[
        replace(one, cases=kept(one.cases, f"{one.entry}: ")) for one in suite.functions])


@pytest.mark.parametrize("module", list(course.load().modules), ids=lambda module: module.slug)
def test_a_module_is_walked_from_start_to_verify(shipped, home, monkeypatch, module):
    """The solution is graded whole unless that was proved before; to verify takes fewer cases."""
    [solution] = runner.facts("solution", material_of(module.id))
    typed_solution = replace(solution, conditions=("with a comment, by `tritonlab grade`",))
    proved = any(recall(fact) is not None for fact in (solution, typed_solution))
    if proved:
        monkeypatch.setitem(vars(grader), "load_suite", few)
    assert shipped("start", module.id).code == 0
    for file in module.solution.parent.rglob("*"):
        if file.is_file() and "__pycache__" not in file.parts:
            typed = home / WORKSPACE.parent / module.id / file.relative_to(module.solution.parent)
            typed.parent.mkdir(parents=True, exist_ok=True)
            typed.write_bytes(file.read_bytes() + b"\n# typed\n" * (file.suffix == ".py"))

    reports: list[Report] = []
    grade = grader.grade
    monkeypatch.setitem(vars(grader), "grade", lambda *arguments, **options: (
        reports.append(grade(*arguments, **options)) or reports[-1]))
    graded = shipped("grade", module.id, "--plain")
    certificate = json.loads(shipped("certificate", "--json", "--name", "Ada").out)
    monkeypatch.setitem(vars(grader), "load_suite", few)
    verified = shipped("verify", str(WORKSPACE.parent), "--plain")

    assert graded.code == 0, graded.out + graded.err
    assert list(expectations.solution_passes(reports[0])) == []
    if not proved:
        keep(typed_solution)
    assert [entry["module"] for entry in certificate["modules"] if entry["state"] == "passed"] == [
        module.id]
    assert verified.code == 0, verified.out + verified.err


def test_a_certificate_of_the_whole_course_counts_its_modules(shipped, judge, tmp_path):
    page = tmp_path / "certificate.html"
    judge(toy.PASSING)
    for module in course.load().modules:
        if module.core:
            shipped("start", module.id)
            assert shipped("grade", module.id).code == 0

    certificate = json.loads(shipped("certificate", "--json", "--name", "Ada").out)
    shipped("certificate", "--html", str(page))

    assert certificate["totals"]["core"] == {"passed": 19, "total": 19, "earlier": 0}
    assert "has passed 19 of 19 core modules" in page.read_text()


def test_the_exercise_runs_its_own_public_cases(type_, tmp_path):
    kernel = WORKSPACE / "vector-add" / "kernel.py"
    type_("start", "vector-add")
    (tmp_path / kernel).write_text((SOLUTIONS / "01-vector-add" / "kernel.py").read_text())

    ran = type_(program=str(kernel))

    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "5 of 5 public checks passed" in ran.stdout


def test_the_tour_ends_well(shipped, home, monkeypatch):
    monkeypatch.setitem(vars(grader), "load_suite", few)

    ran = shipped("tour", "--json")

    assert ran.code == 0, ran.out + ran.err
    assert [step["ok"] for step in json.loads(ran.out)["steps"]] == [True] * 5
    assert list(home.iterdir()) == []


@pytest.mark.parametrize(("text", "code", "says"), [
    ("def softmax(x):\n    return (x\n", 1, "'(' was never closed"),
    ("import os\nos._exit(0)\n", 1, "exited with status 0"),
    ("raise SystemExit(0)\n", 1, "SystemExit"),
    ("x = '" + "\\xff" * 3 + "'\n", 1, "softmax"),
], ids=["no Python", "exits", "SystemExit", "no softmax"])
def test_a_file_that_cannot_be_graded_gets_one_clear_message(shipped, home, text, code, says):
    shipped("start", "softmax")
    header = "" if "return (x" in text else "import triton\n@triton.jit\ndef k(): pass\n"
    entry = "" if text.startswith(("def", "x")) else "def softmax(x): return x\n"
    (home / WORKSPACE / "softmax" / "kernel.py").write_text(header + text + entry)

    graded = shipped("grade", "--plain")

    assert graded.code == code
    assert says in graded.out
    assert "Traceback" not in graded.out + graded.err


def runs(name: str) -> Fact:
    return Fact("lesson.py prints more than 10 lines and warns of nothing", material_of(name),
                ("tracks",))


@pytest.fixture(scope="module")
def lessons():
    """What lessons print that were not proved before."""
    paths = {name: module.folder / "lesson.py" for name, module in MODULES.items()
             if recall(runs(name)) is None}
    printed = scripts.ran(list(paths.values()))
    return {name: printed[path] for name, path in paths.items()}


@pytest.mark.parametrize("name", MODULES, ids=[module.slug for module in MODULES.values()])
def test_lessons_run(lessons, name):
    def failures():
        status, out, err = lessons[name]
        if status or len(out.splitlines()) <= 10:
            yield f"exit status {status}: {out}{err}"

    assert faults(runs(name), failures)[0] == ()
