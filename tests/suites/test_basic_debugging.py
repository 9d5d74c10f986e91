"""What the suite of basic debugging says about the file as learners get it."""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import grader
from grader.judge.contract import wrong_answer
from grader.judge.draws import Draws
from grader.recording.host_values import from_json, to_json
from grader.report import Finding
from grader.sandbox import Sandbox
from grader.suite import Suite

pytestmark = pytest.mark.course

ROOT = Path(__file__).parents[2]
MODULE = Path("debugging") / "01-basic-debugging"
EXERCISE = ROOT / "tracks" / MODULE / "kernel.py"
SUITE = ROOT / "grader" / "suites" / MODULE


def test_the_suite_knows_the_exercise_as_learners_get_it() -> None:
    original = (SUITE / "original.txt").read_text(encoding="utf-8")

    assert original == EXERCISE.read_text(encoding="utf-8")


def test_the_readme_lists_every_phase_and_cause_that_the_suite_takes() -> None:
    text = (ROOT / "tracks" / MODULE / "README.md").read_text(encoding="utf-8")
    tree = ast.parse((SUITE / "suite.py").read_text(encoding="utf-8"))
    lists = {node.targets[0].id: ast.literal_eval(node.value) for node in tree.body
             if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
             and node.targets[0].id in ("PHASES", "CAUSES")}

    assert len(lists["PHASES"]) == 6
    assert len(lists["CAUSES"]) >= 12
    for word in (*lists["PHASES"], *lists["CAUSES"]):
        assert f"| `{word}` |" in text


def test_the_values_give_away_all_nine(sandbox: Sandbox) -> None:
    suite = grader.load_suite(SUITE / "suite.py")

    report = grader.grade(EXERCISE, suite, sandbox=sandbox, effort="values")

    failed = {finding.function for finding in report.findings()}
    assert failed >= {function.entry for function in suite.functions}
    assert failed >= {"compare", "compare_shapes", "trace_program", "diagnosis"}


def test_a_sum_that_grows_in_the_loop_gets_its_cause(sandbox: Sandbox) -> None:
    suite = grader.load_suite(SUITE / "suite.py")
    only = [function for function in suite.functions if function.entry == "col_sum"]

    report = grader.grade(EXERCISE, replace(suite, functions=only, cases=()), sandbox=sandbox)

    finding = report.first_failure.findings[0]
    assert finding.code == "L05"
    assert "`acc` is a block of fp32 of shape [32] before the loop" in finding.seen
    assert "enters the loop with one shape" in finding.means
    assert finding.function == "col_sum"  # whose hints are offered


def alone(sandbox: Sandbox, text: str, case: str, tmp_path: Path) -> Finding:
    kernel = tmp_path / "kernel.py"
    kernel.write_text(text, encoding="utf-8")
    report = grader.grade(kernel, grader.load_suite(SUITE / "suite.py"), only=case, sandbox=sandbox)
    return next(iter(report.findings()))


FIRST = """\
    v = tl.load(x_ptr + row * N + cols, mask=cols < N)

    tl.store(out_ptr + row, v[0])
"""


@pytest.mark.parametrize(("old", "new", "case", "means", "not_means"), [
    ("", "", "row_max: all equal to -7.25", "the padding value took part", "window"),
    ("", "", "avg_pool1d: 100 floats, k 3, stride 2, pad 1", "assigned to the next window", "lamp"),
    (FIRST, FIRST.replace(" * N + cols, mask=cols < N", "").replace("v[0]", "v"),
     "first_elem: 20 x 50 floats", "One column is right", ""),
    ("tl.relu(x)", "tl.where(x > 0, x, 0.0)", "relu: NaN, infinities, 0, a denormal number",
     "Comparisons with NaN are false", ""),
    ("(BLOCK,), dtype=tl.float32", "(BLOCK, BLOCK), dtype=tl.float16", "col_sum: 50 x 70 floats",
     "", "one shape"),
    ("tl.dot(p, v,", "tl.dot(p.to(v.dtype), v,", "weighted_sum: 16 x 70 times 70 x 40",
     "Float16 and TF32 have 10", ""),
], ids=["padding", "window", "no stride", "comparison", "other type", "narrowed"])
def test_a_mistake_is_told_for_what_it_is(sandbox: Sandbox, tmp_path: Path, old: str, new: str,
                                          case: str, means: str, not_means: str) -> None:
    text = EXERCISE.read_text(encoding="utf-8")
    assert not old or text.count(old) == 1

    finding = alone(sandbox, text.replace(old, new) if old else text, case, tmp_path)

    assert means in finding.means
    assert not not_means or not_means not in finding.means


OWN = f"(3, 0, 0)  x =:  {[125.5 + n for n in range(8)]}\n"


@pytest.mark.parametrize(("name", "printed", "words"), [
    ("the last of four programs", OWN, ""),
    ("the last of four programs", "(0, 0, 0)  x =:  [0. 0.]\n" + OWN, "program 0 printed too"),
    ("no such program", "(0, 0, 0)  x =:  [0.]\n(1, 0, 0)  x =:  [0.]\n",
     "programs 0, 1 printed too; program 3 was requested, which does not exist"),
    ("no such program", "nothing\nhere\n",
     "which does not exist, and 'nothing' and 1 more line was printed"),
    ("no such program", "", ""),
])
def test_only_the_requested_program_may_print(name: str, printed: str,
                                                       words: str) -> None:
    suite = grader.load_suite(SUITE / "suite.py")
    call = next(case.call for case in suite.cases if case.name == f"trace_program: {name}")
    assert call is not None
    x = torch.arange(32 if name.startswith("the last") else 20) + 101.5

    found = wrong_answer(call, printed, [x])

    assert bool(found) == bool(words)
    assert not found or words.lower() in found[0].seen.lower()


SOLUTION = ROOT / "solutions" / MODULE / "kernel.py"


def compare_failures(kernel: Path, suite: Suite) -> Iterator[str]:
    """Names of the cases of `compare` that a file fails. It is imported in this process."""
    spec = importlib.util.spec_from_file_location("submission_of_a_test", kernel)
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    driver: dict[str, Any] = {}
    exec(suite.calls, driver)
    for case in suite.cases:
        if case.call is None or not case.call.of.startswith("compare"):
            continue
        inputs = Draws(suite.name, "00" * 16).draw(case.name, case.inputs)
        try:
            answer = from_json(to_json(driver[case.call.of](module, *inputs)))
        except Exception as error:
            if case.raises is None or not isinstance(error, case.raises):
                yield case.name
        else:
            if case.raises or wrong_answer(case.call, answer, inputs):
                yield case.name


FARNESS = 'torch.where(finite, off, float("inf")).where(bad, -1.0)'
BAD = "(finite & (off > atol + rtol * e.abs()))"
WIDE = "a, e = actual.detach().double().cpu(), expected.detach().double().cpu()"
WRONG_COMPARES = {
    "NaN is nearer than any number": (FARNESS, "off.nan_to_num(0.0).where(bad, -1.0)"),
    "NaN is skipped by fmax": (FARNESS, "off.nan_to_num(-1.0).where(bad, -1.0)"),
    "NaN is farther than infinity": (
        "_first(farness == farness.max())",
        "_first(nan) if nan.any() else _first(farness == farness.max())"),
    "infinity is farther than NaN": (
        "_first(farness == farness.max())",
        "_first(infinite) if infinite.any() else _first(farness == farness.max())"),
    "infinity is nearer than any number": (
        FARNESS, "torch.where(finite, off, nan * 1e300).where(bad, -1.0)"),
    "good elements take part in worst": (FARNESS, 'torch.where(finite | ~bad, off, float("inf"))'),
    "worst is relative": (FARNESS, 'torch.where(finite, off / e.abs(), float("inf"))'
                                   '.where(bad, -1.0)'),
    "worst is what passes the tolerance most": (
        FARNESS, 'torch.where(finite, off - rtol * e.abs(), float("inf")).where(bad, -1.0)'),
    "worst is signed": (FARNESS, 'torch.where(finite, a - e, float("inf")).where(bad, -1e300)'),
    "the last of several worst": (
        "_first(farness == farness.max())",
        "tuple(int(i) for i in (farness == farness.max()).nonzero()[-1])"),
    "rtol scales actual": (BAD, "(finite & (off > atol + rtol * a.abs()))"),
    "rtol scales the larger": (BAD, "(finite & (off > atol + rtol * a.abs().maximum(e.abs())))"),
    "rtol scales the smaller": (BAD, "(finite & (off > atol + rtol * a.abs().minimum(e.abs())))"),
    "rtol scales a signed number": (BAD, "(finite & (off > atol + rtol * e))"),
    "the larger tolerance counts": (BAD, "(finite & (off > (rtol * e.abs()).clamp(min=atol)))"),
    "the limit itself is bad": (BAD, "(finite & (off >= atol + rtol * e.abs()) & (a != e))"),
    "no tolerance": (BAD, "(finite & (a != e))"),
    "the difference is signed": ("off = (a - e).abs()", "off = a - e"),
    "infinities of any sign agree": ("& (a != e)\n", "& (a.abs() != e.abs())\n"),
    "equal infinities are bad with rtol 0": (
        "infinite = ~(finite | a.isnan() | e.isnan()) & (a != e)",
        "infinite = ~(finite | a.isnan() | e.isnan()) & ~(off <= atol + rtol * e.abs())"),
    "infinity is near with rtol 0": (
        "infinite = ~(finite | a.isnan() | e.isnan()) & (a != e)",
        "infinite = ~(finite | a.isnan() | e.isnan()) & (off > atol + rtol * e.abs())"),
    "NaN counts as infinite": ("~(finite | a.isnan() | e.isnan())",
                               "~finite & ~(a.isnan() & e.isnan())"),
    "infinity beside NaN counts": ("~(finite | a.isnan() | e.isnan())",
                                   "(a.isinf() | e.isinf() & ~a.isnan())"),
    "NaN in actual only": ("a.isnan() != e.isnan()", "a.isnan() & ~e.isnan()"),
    "mismatches of NaN are yes or no": ("int(nan.sum())", "int(nan.any())"),
    "mismatches of infinity are yes or no": ("int(infinite.sum())", "int(infinite.any())"),
    "NaN is not among the bad": ("n_bad, n_total = int(bad.sum())",
                                 "n_bad, n_total = int((bad & ~nan).sum())"),
    "max_abs of bad elements": ("max_abs=_largest(off[finite])",
                                "max_abs=_largest(off[finite & bad])"),
    "max_rel over actual": ("/ e[divisible].abs()", "/ a[divisible].abs()"),
    "max_rel over a signed number": ("/ e[divisible].abs()", "/ e[divisible]"),
    "max_rel where actual is not 0": ("finite & (e != 0)", "finite & (e != 0) & (a != 0)"),
    "zeros have signs": ("bad = nan", "bad = (finite & (a.signbit() != e.signbit())) | nan"),
    "computed in the type of actual": (WIDE, "a, e = actual, expected.to(actual.dtype)"),
    "computed in the type of expected": (WIDE, "a, e = actual.to(expected.dtype), expected"),
    "computed in the common type": (
        WIDE, "a, e = (t.to(torch.promote_types(actual.dtype, expected.dtype)) "
              "for t in (actual, expected))"),
    "floats stay, integers are widened": (
        WIDE, "a, e = (t if t.is_floating_point() else t.double() for t in (actual, expected))"),
    "integers stay, floats are widened": (
        WIDE, "a, e = (t.double() if t.is_floating_point() else t for t in (actual, expected))"),
    "half types become float32": (
        WIDE, "a, e = (t.float() if t.itemsize < 4 else t.double() for t in (actual, expected))"
              ";a, e = (t.to(a.dtype) for t in (a, e))"),
    "the inputs are flattened by view": (WIDE, WIDE + "; a.view(-1), e.view(-1)"),
    "first_bad in column-major order": (
        "first, worst = _first(bad)",
        "first, worst = min((tuple(map(int, i)) for i in bad.nonzero()), key=lambda i: i[::-1])"),
    "NaN is replaced in place": (WIDE, WIDE + "\n    nans = a.isnan() & e.isnan()"
                                              "\n    a[nans] = 0\n    e[nans] = 0"),
    "shapes are broadcast": (
        "actual.shape != expected.shape",
        "torch.broadcast_shapes(actual.shape, expected.shape) != actual.shape"),
    "only counts have to agree": ("actual.shape != expected.shape",
                                  "actual.numel() != expected.numel()"),
    "no element is a failure": ("ok=n_bad == 0", "ok=n_total > 0 and n_bad == 0"),
}


def test_no_case_of_compare_fails_the_solution() -> None:
    suite = grader.load_suite(SUITE / "suite.py")

    assert list(compare_failures(SOLUTION, suite)) == []


@pytest.mark.parametrize(("printed", "failed"), [
    ("actual", []),
    ("expected", ["compare: truth values"]),
], ids=["both values", "one value twice"])
def test_a_message_may_give_bools_as_words(printed: str, failed: list[str], tmp_path: Path) -> None:
    old = "got {a[first].item():.9g}, expected {e[first].item():.9g}"
    new = f"got {{{printed}[first].item()}}, expected {{expected[first].item()}}"
    text = SOLUTION.read_text(encoding="utf-8")
    assert text.count(old) == 1
    kernel = tmp_path / "kernel.py"
    kernel.write_text(text.replace(old, new), encoding="utf-8")

    failures = list(compare_failures(kernel, grader.load_suite(SUITE / "suite.py")))

    assert set(failed) <= set(failures)
    assert bool(failures) == bool(failed)


@pytest.mark.parametrize("name", WRONG_COMPARES)
def test_a_wrong_compare_fails(name: str, tmp_path: Path) -> None:
    old, new = WRONG_COMPARES[name]
    text = SOLUTION.read_text(encoding="utf-8")
    assert text.count(old) == 1
    kernel = tmp_path / "kernel.py"
    kernel.write_text(text.replace(old, new), encoding="utf-8")

    assert any(compare_failures(kernel, grader.load_suite(SUITE / "suite.py")))
