"""Every module proved: the solution passes, every mutant is killed with its code, others pass."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import grader
from grader import Verdict
from grader.suite import Suite

ROOT = Path(__file__).parent.parent
MODULES = sorted(path.parent.relative_to(ROOT / "tracks")
                 for path in (ROOT / "tracks").glob("*/*/module.toml"))
RIGHT = ROOT / "tests" / "fidelity" / "right"


def suite_of(module: Path) -> Suite:
    return grader.load_suite(ROOT / "grader" / "suites" / module / "suite.py")


def solution_of(module: Path) -> str:
    return (ROOT / "solutions" / module / "kernel.py").read_text()


MUTANTS = [(module, mutant) for module in MODULES for mutant in suite_of(module).mutants]
VARIANTS = [(module, path) for module in MODULES
            for path in sorted((RIGHT / module.name.split("-", 1)[1]).glob("*.py"))]


def explain(report: grader.Report) -> str:
    return "\n".join(f"{result.name}: {finding.code} {finding.seen}"
                     for result in report.results for finding in result.findings) or report.reason


def test_there_are_modules_mutants_and_variants():
    assert len(MODULES) >= 2
    for module in MODULES:
        assert len([m for m, _ in MUTANTS if m == module]) >= 10
        assert len([m for m, _ in VARIANTS if m == module]) >= 5


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_the_solution_passes_every_case(module, sandbox):
    report = grader.grade(ROOT / "solutions" / module / "kernel.py", suite_of(module),
                          sandbox=sandbox)

    assert report.verdict is Verdict.PASSED, explain(report)
    failed = [r.name for r in report.results if r.verdict in (Verdict.FAILED, Verdict.ERROR)]
    assert failed == []
    skipped = [r for r in report.results if r.verdict is Verdict.SKIPPED]
    assert all("GPU" in result.reason for result in skipped)
    assert report.evidence == "efficient"


@pytest.mark.parametrize(("module", "mutant"), MUTANTS,
                         ids=[f"{m.name}-{mutant.id}" for m, mutant in MUTANTS])
def test_every_mutant_is_killed_with_its_code(module, mutant, sandbox, tmp_path):
    kernel = tmp_path / "kernel.py"
    kernel.write_text(mutant.apply(solution_of(module)))

    report = grader.grade(kernel, suite_of(module), sandbox=sandbox)

    assert report.verdict is Verdict.FAILED
    first = report.first_failure
    assert first is not None
    assert first.findings[0].code == mutant.codes[0], explain(report)
    assert set(mutant.codes) <= {finding.code for finding in report.findings()}, explain(report)
    assert first.findings[0].means == mutant.meaning, "the diagnosis names another mistake"
    assert set(first.findings[0].todos) == set(mutant.todos)


@pytest.mark.parametrize(("module", "path"), VARIANTS,
                         ids=[f"{m.name}-{path.stem}" for m, path in VARIANTS])
def test_right_but_different_solutions_pass(module, path, sandbox):
    report = grader.grade(path, suite_of(module), sandbox=sandbox)

    assert report.verdict is Verdict.PASSED, explain(report)


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_the_untouched_exercise_imports_and_names_every_blank(module, sandbox):
    exercise = ROOT / "tracks" / module / "kernel.py"
    suite = suite_of(module)
    exec(compile(exercise.read_text(), str(exercise), "exec"), {"__name__": "kernel"})

    report = grader.grade(exercise, suite, sandbox=sandbox)

    assert report.verdict is Verdict.FAILED
    finding = report.results[0].findings[0]
    assert (finding.code, finding.todos) == ("P01", tuple(range(1, suite.blanks + 1)))


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_hints_cover_every_blank_and_paste_no_line_of_the_solution(module):
    hints = tomllib.loads((ROOT / "tracks" / module / "module.toml").read_text())["hints"]
    lines = {re.sub(r"\s", "", line) for line in solution_of(module).splitlines()}
    lines = {line for line in lines if len(line) > 12}

    assert sorted(n for group in hints for n in group["todos"]) == [
        *range(1, suite_of(module).blanks + 1)]
    for group in hints:
        assert len(group["rungs"]) == 3
        for rung in group["rungs"]:
            assert not [line for line in lines if line in re.sub(r"\s", "", rung)]


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_exercise_and_solution_agree_outside_the_blanks(module):
    exercise = (ROOT / "tracks" / module / "kernel.py").read_text()
    solution = solution_of(module)

    for name in ("def ", "raise ", "if "):
        kept = [line.split("#")[0].strip() for line in exercise.splitlines()
                if line.strip().startswith(name) and "..." not in line]
        for line in kept:
            assert line in solution or "__name__" in line


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_the_lesson_has_its_headings_in_order(module):
    text = (ROOT / "tracks" / module / "README.md").read_text()
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)

    assert headings == [
        "What you will be able to do", "Why it exists", "The idea", "Worked example", "Your task",
        "How it is graded", "Best practices", "Pitfalls", "Going further", "Three questions",
        "Time, prerequisites, next module",
    ]
    assert max(len(line) for block in re.findall(r"```text\n(.*?)```", text, re.DOTALL)
               for line in block.splitlines()) <= 78


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_the_public_cases_are_three_and_one_edge_case(module):
    public = list(suite_of(module).public_cases())

    assert [str(case.kind) for case in public].count("correctness") == 3
    assert [str(case.kind) for case in public].count("edge") == 1
