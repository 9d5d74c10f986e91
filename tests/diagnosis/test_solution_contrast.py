"""The statements that decide a failure, found by runs with statements of the solution."""

from __future__ import annotations

import pytest

import grader
from grader.diagnosis import codes, messages
from grader.diagnosis.solution_contrast import MOST_RUNS, Cause, causes
from grader.report import Finding
from grader.suite.mutants import Mutant, Patch
from tests.diagnosis.test_todo_pointers import MODULES

RIGHT = "def f(x):\n" + "".join(f"    a{n} = x + {n}\n" for n in range(8)) + "    return a1\n"


def _causes(wrong: str, needed: set[str]) -> tuple[list[tuple[int, str]], int]:
    runs: list[str] = []

    def passes(text: str) -> bool:
        runs.append(text)
        return {line.strip() for line in text.split("\n")} >= needed

    return [(one.line, one.kind) for one in causes(wrong, RIGHT, "", {"f"}, passes)], len(runs)


def test_places_of_two_causes_are_no_alternatives():
    finding = Finding("N01", "4 of 4 elements are wrong.", line=9)
    known = Mutant("m", "", codes=("N01",), meaning="Both.", todos=(3, 2, 7), patches=())
    both = [Cause(4, todo=2), Cause(5, todo=3)]

    two, one, none = (codes.explain(finding, [known], {}, causes=some)
                      for some in (both, both[:1], ()))

    assert (two.where, two.also) == ("Line 4 and line 5, TODO 2 and 3 (seen at line 9)", 5)
    assert one.where == "Line 4, TODO 2 (seen at line 9)"
    assert none.where == "Line 9, TODO 3, 2 or 7"


def test_what_differs_without_effect_is_no_cause():
    wrong = RIGHT.replace("x + 2", "x + 20").replace("x + 5", "x + 50").replace("x + 7", "x + 70")

    named, runs = _causes(wrong, {"a5 = x + 5"})

    assert named == [(7, "number")]
    assert runs <= 6


def test_two_causes_are_named_and_three_are_another_kernel():
    wrong = RIGHT.replace("x + 2", "x + 20").replace("x + 5", "x + 50").replace("x + 7", "x + 70")

    two, _ = _causes(wrong, {"a2 = x + 2", "a7 = x + 7"})
    three, _ = _causes(wrong, {"a2 = x + 2", "a5 = x + 5", "a7 = x + 7"})

    assert [line for line, _ in two] == [4, 9]
    assert three == []


@pytest.mark.parametrize("needed", [{"no such line"}, set[str]()],
                         ids=["the solution fails it too", "the submission passes it"])
def test_a_case_that_tells_nothing_has_no_cause(needed):
    assert _causes(RIGHT.replace("x + 2", "x + 20"), needed)[0] == []


def test_a_name_that_only_the_right_statement_would_use_is_unused():
    right = "def f(x, n):\n    y = x + 1\n    z = y * n\n    return z\n"
    wrong = right.replace("y * n", "x * n")

    [cause] = causes(wrong, right, "", {"f"}, lambda text: "y * n" in text)

    assert (cause.line, cause.part, cause.unused) == (3, "x", ("y",))
    assert messages.mistake(cause.kind, cause.part, cause.unused) == (
        "One name in this statement is not the one that belongs there. Look at `x`. `y` is not "
        "used anywhere.")


def test_runs_are_bounded():
    text = "".join(f"    b{n} = x + {n}\n" for n in range(32))
    wrong = "def f(x):\n" + text.replace(" + ", " - ")
    count = 0

    def passes(text: str) -> bool:
        nonlocal count
        count += 1
        return "-" not in text

    assert causes(wrong, "def f(x):\n" + text, "", {"f"}, passes) == []
    assert count <= MOST_RUNS


# -- in a grade ------------------------------------------------------------------------------------


# (module, text of the solution, mistake, place, words of the meaning)
MISTAKES = [
    ("matrix-mul", "dtype=tl.float32)", "dtype=tl.float16)", "TODO", "16 bits"),
    ("matrix-mul", "offs_m[:, None] * stride_am + offs_k[None, :] * stride_ak",
     "offs_m[:, None] * stride_ak + offs_k[None, :] * stride_am", "TODO", ""),
    ("layer-norm", "tl.sum(x, axis=0) / n_cols", "n_cols / tl.sum(x, axis=0)", "TODO 8",
     "other's place"),
]


@pytest.mark.parametrize(("slug", "old", "new", "place", "words"), MISTAKES)
def test_a_grade_names_the_line_and_its_todo(slug, old, new, place, words, tmp_path, sandbox):
    module = MODULES[slug]
    suite = grader.load_suite(module.suite, module.folder, module.solution.parent)
    text = module.solution.read_text()
    assert text.count(old) == 1
    line = text[:text.index(old)].count("\n") + 1
    path = tmp_path / "kernel.py"
    path.write_text(text.replace(old, new))

    report = grader.grade(path, suite, sandbox=sandbox, effort="diagnosis")

    finding = report.first_failure.findings[0]
    assert finding.line == line
    assert f"ine {line}, {place}" in finding.where
    assert words in finding.means


def test_another_way_to_write_a_kernel_has_no_line_of_the_solution(tmp_path, sandbox):
    module = MODULES["vector-add"]
    suite = grader.load_suite(module.suite, module.folder, module.solution.parent)
    path = tmp_path / "kernel.py"
    path.write_text(OTHER_WAY)

    report = grader.grade(path, suite, sandbox=sandbox, effort="diagnosis")

    finding = report.first_failure.findings[0]
    assert finding.code == "N01"
    assert "decides the failure" not in finding.means


OTHER_WAY = '''
import torch
import triton
import triton.language as tl


@triton.jit
def add(a, b, c, size, width: tl.constexpr):
    at = tl.program_id(0) * width + tl.arange(0, width)
    inside = at < size
    left = tl.load(a + at, mask=inside)
    right = tl.load(b + at, mask=inside)
    tl.store(c + at, left - right, mask=inside)


def vector_add(x, y):
    result = torch.empty_like(x, memory_format=torch.contiguous_format)
    if x.numel():
        add[(triton.cdiv(x.numel(), 256),)](x.contiguous(), y.contiguous(), result, x.numel(), 256)
    return result
'''


# -- known mistakes ------------------------------------------------------------------------------


@pytest.mark.parametrize(("find", "is_it"), [
    ("@decorated(1)\n", True), ("a + 1", True), ("a + 2", False)])
def test_a_known_mistake_of_another_statement_is_not_the_cause(find, is_it):
    solution = "@decorated(1)\ndef f(a):\n    b = a + 1\n    c = a + 2\n    return b, c\n"
    wrong = solution.replace("decorated(1)", "decorated(2)") if find[0] == "@" else \
        solution.replace("a + 1", "a - 1")
    mutant = Mutant("m", "", (Patch(find, ""),), ("N01",), "")

    (cause,) = causes(wrong, solution, "", {"f"}, lambda text: "2)" not in text and "-" not in text)

    assert cause.may_be(mutant, solution) == is_it
