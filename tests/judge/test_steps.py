"""Exercises with blanks that are left: which steps are right, wrong, and next."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace

import pytest

import grader
from grader import Report, Verdict
from grader.judge import steps as stepwise
from grader.report import CaseResult, Finding, Kind
from grader.submission.completion import complete
from grader.suite import Mutant
from grader.suite.mutants import read_mutants
from tests.support.steps import BLANKS, MODULES, filled, mistakes, texts
from tests.support.tiers import by_default
from tritonlab.course.course import Module
from tritonlab.grading.grade import steps_of, suite_of

_WITH_DOCSTRING = ast.Module | ast.ClassDef | ast.FunctionDef
BY_SLUG = {module.slug: module for module in MODULES}


@pytest.fixture
def graded(tmp_path, sandbox):
    def grade(module: Module, text: str, **options) -> Report:
        (tmp_path / "kernel.py").write_text(text)
        suite = suite_of(module)
        return grader.grade(tmp_path / "kernel.py", suite, sandbox=sandbox,
                            **{"effort": "values", "steps": steps_of(module)} | options)

    return grade


def states(report: Report) -> dict[str, str]:
    return {step.group: step.state for step in report.steps}


def check_keeps_the_solution(report: Report, module: Module, text: str) -> None:
    """No finding points at a line that is not the learner's, or quotes one."""
    completed = complete(text, *texts(module))
    code = {re.sub(r"\s", "", line) for line in completed.lines.values() if len(line) > 16}
    for finding in report.findings():
        words = re.sub(r"\s", "", f"{finding.seen} {finding.means}")
        assert finding.code == "P01" or finding.line not in completed.lines
        assert not [line for line in code if line in words]


# -- in the default tier ---------------------------------------------------------------------------


@pytest.mark.parametrize("slug", ["vector-add", "softmax", "custom-kernels"])
def test_an_untouched_exercise_runs_nothing_and_names_the_first_step(graded, slug):
    module = BY_SLUG[slug]
    events: list[object] = []

    report = graded(module, texts(module)[0], on_event=events.append)

    assert (report.verdict, events, {*states(report).values()}) == (Verdict.FAILED, [], {"open"})
    assert "Begin with step A" in report.results[0].findings[0].seen


@pytest.mark.parametrize("slug", by_default(1, ["vector-add", "softmax"]))
def test_steps_that_are_right_are_named_and_never_pass(graded, slug):
    module = BY_SLUG[slug]
    text = filled(module, ("A", "B"))

    report = graded(module, text)

    assert [states(report)[group] for group in "ABC"] == ["right", "right", "open"]
    assert (report.verdict, report.exit_code, report.evidence) == (Verdict.FAILED, 1, "")
    (finding,) = report.findings()
    assert "Steps A and B are right. Next: step C" in finding.seen
    assert finding.todos == module.hints[2].todos
    check_keeps_the_solution(report, module, text)


@pytest.mark.parametrize(("slug", "groups", "find", "put", "wrong"), by_default(2, [
    ("vector-add", "AB", "pid * BLOCK_SIZE", "pid * BLOCK_SIZE + 1", "B"),
    ("softmax", "ABC", "cols < n_cols", "cols <= n_cols", "B"),
    ("softmax", "BC", "x_ptr + row * stride_x", "row * stride_x", "B"),
]))
def test_the_step_that_is_wrong_is_named(graded, slug, groups, find, put, wrong):
    module = BY_SLUG[slug]
    text = filled(module, groups, texts(module)[1].replace(find, put))

    report = graded(module, text)

    assert [group for group, state in states(report).items() if state == "wrong"] == [wrong]
    finding = report.first_failure.findings[0]
    todos = next(group.todos for group in module.hints if group.group == wrong)
    assert finding.todos
    assert {*finding.todos} <= {*todos}
    assert f"Step {wrong} (" in finding.seen
    assert report.verdict is Verdict.FAILED
    check_keeps_the_solution(report, module, text)


def test_a_step_that_is_partly_filled_in_takes_part(graded):
    module = BY_SLUG["softmax"]
    text, old = filled(module, "AB"), texts(module)[0].split("\n")
    lines = text.split("\n")
    at = next(n for n, line in enumerate(old) if line.strip().startswith("mask = ..."))
    lines[at] = old[at]

    right = graded(module, "\n".join(lines))
    wrong = graded(module, "\n".join(lines).replace("row * stride_x", "row * 3"))

    assert (states(right)["A"], states(right)["B"]) == ("right", "begun")
    assert "so far" in right.results[0].findings[0].seen
    assert states(wrong)["B"] == "wrong"


def test_a_file_with_other_names_gets_the_list_of_its_blanks(graded):
    module = BY_SLUG["softmax"]
    text = filled(module, "AB").replace("cols = ", "mine = ").replace("cols <", "mine <")

    report = graded(module, text)

    assert (report.verdict, report.steps) == (Verdict.FAILED, ())
    assert report.results[0].findings[0].data.kind == "blanks"


@pytest.mark.course
def test_functions_that_are_left_leave_the_others_to_be_judged(graded):
    module = BY_SLUG["custom-kernels"]
    _, solution = texts(module)
    begin, end = solution.index('    check_tensor("x", x)\n    if x.dim() != 2:'), \
        solution.index("\n\n\ndef flat(")
    text = f"{solution[:begin]}    ...{solution[end:]}"

    right = graded(module, text)
    wrong = graded(module, text.replace("tl.exp(-beta * x)", "tl.exp(beta * x)"))

    assert [*states(right).values()] == ["right", "right", "right", "open", "right"]
    assert "Next: step D: l2_norm." in right.first_failure.findings[0].seen
    assert right.count(Verdict.FAILED) == 1
    assert (states(wrong)["B"], wrong.verdict) == ("wrong", Verdict.FAILED)
    assert wrong.first_failure.name.startswith("swish")


def test_a_report_with_steps_never_passes():
    passed = CaseResult("a case", Kind.CORRECTNESS, Verdict.PASSED)
    report = Report("", "", "", "", {}, "", "", "", (passed,))

    unfinished = replace(report, steps=BLANKS and steps_of(BLANKS[0]))

    assert report.verdict is Verdict.PASSED
    assert (unfinished.verdict, unfinished.evidence) == (Verdict.FAILED, "")


def test_code_of_the_solution_in_a_message_is_replaced():
    module = BY_SLUG["softmax"]
    text = filled(module, "A")
    completed = complete(text, *texts(module))
    line, code = next((n, code) for n, code in completed.lines.items() if "tl.load" in code)
    suite = suite_of(module)
    quoting, naming, own, both = (
        stepwise._without_solution(finding, completed, (1, 2), steps_of(module)[0], suite)
        for finding in (
            Finding("N01", f"see {code} there", line=line),
            Finding("N01", "the sum is 3", line=line),
            Finding("N01", "the sum is 3", line=1),
            Finding("N01", "the sum is 3", line=1, also=2, todos=(1, 2))))

    assert code not in quoting.seen
    assert "The reference solution's code" in quoting.seen
    assert ("the sum is 3" in naming.seen, naming.line, own.line) == (True, None, 1)
    assert both.where == "Line 1 and line 2, TODO 1 and 2"


# -- every module ----------------------------------------------------------------------------------


@pytest.mark.course
@pytest.mark.parametrize("module", BLANKS, ids=lambda module: module.slug)
def test_the_completed_exercise_passes_like_its_solution(graded, module):
    """The solution's own grade is in `test_journey`; it may have more functions."""
    exercise, solution = texts(module)
    completed = complete(exercise, exercise, solution).text
    if _statements(completed) <= _statements(solution):
        return

    report = graded(module, completed, effort="early")

    assert (report.verdict, report.evidence) == (Verdict.PASSED, "efficient")


def _statements(text: str) -> set[str]:
    """The statements of a file, without imports, comments and docstrings."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, _WITH_DOCSTRING) and ast.get_docstring(node) is not None:
            del node.body[0]
    return {ast.dump(statement) for statement in tree.body
            if not isinstance(statement, ast.Import | ast.ImportFrom)}


@pytest.mark.course
@pytest.mark.parametrize("module", BLANKS, ids=lambda module: module.slug)
def test_every_step_filled_in_alone_is_right(graded, module):
    for group in module.hints:
        report = graded(module, filled(module, group.group))

        assert states(report) == {one.group: "right" if one is group else "open"
                                  for one in module.hints}


def _planted() -> Iterator[tuple[Module, Mutant, str]]:
    """The first mistake of each step."""
    for module in BLANKS:
        first: dict[str, Mutant] = {}
        for mutant, group in mistakes(module, read_mutants(
                module.suite.with_name("mutants.toml"))):
            first.setdefault(group.group, mutant)
        yield from ((module, mutant, group) for group, mutant in first.items())


@pytest.mark.course
@pytest.mark.parametrize(("module", "mutant", "group"), [*_planted()],
                         ids=lambda one: getattr(one, "slug", getattr(one, "id", one)))
def test_a_mistake_is_found_in_its_step_beside_other_steps(graded, module, mutant, group):
    groups = [one.group for one in module.hints]
    before = groups[:groups.index(group) + 1]
    if before == groups:
        before = groups[1:]  # one step is left
    text = filled(module, before, mutant.apply(texts(module)[1]))

    report = graded(module, text)

    assert states(report)[group] == "wrong"
    assert {*report.first_failure.findings[0].todos} <= {
        number for one in module.hints if one.group == group for number in one.todos}
    check_keeps_the_solution(report, module, text)
