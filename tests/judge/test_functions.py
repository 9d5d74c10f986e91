"""Suites of several functions, several results, keyword arguments, and calls of host code."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

import grader
from grader import Finding, Verdict
from grader.diagnosis.codes import known_mistake
from grader.diagnosis.explain import mistakes_in
from grader.diagnosis.messages import NOT_WRITTEN
from grader.finding import WrongValues, fault
from grader.judge.discrimination import examine
from grader.report import Kind
from grader.submission.source import inspect, read
from grader.suite import (
    EXACT,
    Case,
    Cost,
    Function,
    Mutant,
    Property,
    Suite,
    Tolerance,
    call,
    correctness,
    edge,
    load,
    performance,
    rand,
    sibling,
)
from grader.suite.cases import names_in
from grader.suite.error_bounds import elementwise, total

ROOT = Path(__file__).parents[2]
FILE = '''from __future__ import annotations
import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x_ptr, out_ptr, factor, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(out_ptr + offs, x * factor, mask=offs < n)


@triton.jit
def print_kernel(x_ptr):
    tl.device_print("value", tl.load(x_ptr + tl.program_id(0)))


@triton.jit
def mul_kernel(a_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(a_ptr + offs, mask=offs < 2 * n)
    tl.store(out_ptr + offs, a * 2, mask=offs < 2 * n)


def _scaled(x, factor):
    out = torch.empty_like(x)
    scale_kernel[(triton.cdiv(x.numel(), 64),)](x, out, factor, x.numel(), BLOCK=64)
    return out


def double(x: torch.Tensor) -> torch.Tensor:
    return _scaled(x, 2.0)


def parts(x: torch.Tensor, factor: float = 3.0, *, both: bool = False):
    if both:
        return _scaled(x, factor), _scaled(x, -factor)
    return _scaled(x, factor)


def twice(a: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(a)
    mul_kernel[(triton.cdiv(2 * a.numel(), 64),)](
        torch.view_as_real(a), torch.view_as_real(out), a.numel(), BLOCK=64)
    return out


@dataclass(frozen=True)
class Answer:
    pair: tuple[int, float]
    names: list[str]


def answer(number: int, pair: tuple[int, int]) -> Answer:
    if number < 0:
        raise ValueError(f"number: expected 0 or more, got {number}")
    return Answer((number + pair[0], math.nan), ["a"] * pair[1])


def shown(x: torch.Tensor) -> None:
    print_kernel[(x.numel(),)](x)


PLAN: dict[str, float] = {"share": 0.5}
'''

CALLS = '''
import contextlib, io

def printed(module, x):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        module.shown(x)
    return out.getvalue()

def outside(module, x):
    module.print_kernel[(x.numel() + 1,)](x)
    return "done"

def plan(module):
    return module.PLAN
'''


def check_answer(found: object, number: int, pair: tuple[int, int]) -> None:
    assert found.type == "Answer", f"a {found.type} was returned"
    assert found.pair[0] == number + pair[0], f"the first number is {found.pair[0]}"
    assert isinstance(found.pair, tuple) and found.pair[1] != found.pair[1]
    assert found.names == ["a"] * pair[1]


def two(x: torch.Tensor, factor: float = 3.0, both: bool = False):
    exact = x.double() * factor
    return (exact, -exact) if both else exact


SUITE = Suite(
    functions=[
        Function("double", ("x",), reference=lambda x: x.double() * 2, tolerance=EXACT,
                 cost=lambda x: Cost(bytes=2 * x.nbytes), peer=lambda x: x * 2, cases=[
                     correctness("100 floats", rand(100), public=True),
                     performance("1 000 floats", rand(1_000), traffic=1.0)]),
        Function("parts", ("x", "factor"), keyword_only=("both",), reference=two,
                 tolerance=EXACT, result_names=("plus", "minus"), cases=[
                     correctness("one", rand(70)),
                     correctness("two", rand(70), 4.0, True),
                     edge("one of another factor", rand(7), 0.5)]),
        Function("twice", ("a",), reference=lambda a: a.to(torch.complex128) * 2, tolerance=EXACT,
                 peer=lambda a: a * 2, cases=[
                     correctness("complex", rand(40, 2).then(torch.view_as_complex))]),
    ],
    cases=[
        call("an answer", "answer", 3, (4, 2), check=check_answer),
        call("a refusal", "answer", -1, (4, 2), raises=ValueError, mentions=("number", "-1")),
        call("what is printed", "printed", rand(3), eager=True,
             check=lambda text, x: _eq(text.count("value"), x.numel())),
        call("a plan", "plan", check=lambda plan: _eq(plan, {"share": 0.5})),
    ],
    host={"answer": ("number", "pair")},
    calls=CALLS,
    name="toy",
)


def _eq(found: object, wanted: object) -> None:
    assert found == wanted, f"{found!r} instead of {wanted!r}"


@pytest.fixture
def graded(tmp_path: Path, sandbox):
    def run(*change: str, suite: Suite = SUITE, **options: object) -> grader.Report:
        assert not change or change[0] in FILE
        (tmp_path / "kernel.py").write_text(FILE.replace(*change) if change else FILE)
        return grader.grade(tmp_path / "kernel.py", suite, sandbox=sandbox, **options)

    return run


def verdicts(report: grader.Report) -> dict[str, str]:
    return {result.name: str(result.verdict) for result in report.results}


def first(report: grader.Report) -> tuple[str, str, str]:
    failure = report.first_failure
    assert failure is not None, verdicts(report)
    return failure.name, failure.findings[0].code, failure.findings[0].seen


def test_a_right_file_passes_every_function_and_call(graded):
    report = graded()

    assert set(verdicts(report).values()) == {"PASSED"}, list(report.findings())
    assert list(verdicts(report))[:-1] == [
        "double: 100 floats", "parts: one", "parts: two", "parts: one of another factor",
        "twice: complex", "an answer", "a refusal", "what is printed", "a plan",
        "double: 1 000 floats"]


@pytest.mark.parametrize(("change", "name", "code", "says"), [
    (("_scaled(x, 2.0)", "_scaled(x, 2.5)"), "double: 100 floats", "N01", "100 of 100"),
    (("_scaled(x, -factor)", "_scaled(x, factor)"), "parts: two", "N01", "of `minus`"),
    (("return _scaled(x, factor), _scaled(x, -factor)", "return _scaled(x, factor)"),
     "parts: two", "S01", "returned one tensor, expected 2 tensors in a tuple"),
    (("    return _scaled(x, factor)\n", "    return (_scaled(x, factor),)\n"),
     "parts: one", "S01", "returned 1 tensor in a tuple, expected one tensor"),
    (("_scaled(x, -factor)\n", "_scaled(x[:5], -factor)\n"),
     "parts: two", "S01", "Result `minus` has shape (5,), expected (70,)"),
    (("a * 2", "a * tl.where(offs % 2, 1, 2)"), "twice: complex", "N01", "of 80 real and"),
    (("(number + pair[0]", "(number - pair[0]"), "an answer", "Q01", "The first number is -1"),
    (("return Answer(", "return torch.ones(3) or Answer("), "an answer", "R01", "RuntimeError"),
    (('["a"] * pair[1])', "torch.ones(3))"), "an answer", "S01", "a Tensor"),
    (("    return Answer(", "    return 7 or Answer("), "an answer", "Q01", "returned 7, "),
    (("raise ValueError", "raise TypeError"), "a refusal", "E02", "expected ValueError"),
    (("got {number}", "got less"), "a refusal", "E03", "-1"),
    (("(x.numel(),)](x)", "(x.numel() + 1,)](x)"), "what is printed", "M01", "past the end"),
    (("    print_kernel", "    raise KeyError\n    print_kernel"), "what is printed", "R01",
     "KeyError"),
    (("0.5}", "0.25}"), "a plan", "Q01", "0.25"),
    (("PLAN:", "PLAN = {}\nOTHER:"), "a plan", "Q01", "{}"),
    (("def answer(number: int", "def answer(n: int"), "the file", "P04",
     "`answer(number, pair)`"),
    (("*, both: bool = False", "*, all: bool = False"), "the file", "P04",
     "parts(x, factor, *, both)"),
    (("def twice(", "def thrice("), "the file", "P04", "`twice(a)`"),
], ids=lambda value: value[0][:24] if isinstance(value, tuple) else None)
def test_what_is_wrong_fails_its_own_case(graded, change, name, code, says):
    seen = first(graded(*change, effort="first"))

    assert seen[:2] == (name, code), seen
    assert says in seen[2]


@pytest.mark.parametrize(("change", "function"), [
    (("_scaled(x, -factor)", "_scaled(x, factor)"), "parts"), (("0.5}", "0.25}"), "plan"),
])
def test_a_finding_names_its_function(graded, change, function):
    report = graded(*change)

    assert report.first_failure is not None
    assert report.first_failure.findings[0].function == function


def test_a_wrong_function_leaves_the_others_as_they_are(graded):
    found = verdicts(graded("x * factor", "x + factor"))

    assert [name for name, verdict in found.items() if verdict == "FAILED"] == [
        "double: 100 floats", "parts: one", "parts: two", "parts: one of another factor",
        "double: 1 000 floats"]


def test_cases_are_told_apart_from_those_of_the_same_function_only(graded):
    suite = replace(SUITE, functions=[replace(function, cases=[*function.cases, *(
        correctness(f"{count} halves", rand(count, dtype="float16")) for count in (100, 70))])
        if function.entry == "double" else function for function in SUITE.functions])

    report = graded("return _scaled(x, 2.0)", "return _scaled(x, 2.0 + x.element_size() % 4)",
                    suite=suite)

    assert report.first_failure.name == "double: 100 halves"
    assert "in float32" in report.first_failure.findings[0].seen
    assert "complex" not in report.first_failure.findings[0].seen


def test_sizes_follow_the_block_of_the_same_function(graded):
    double, parts, _ = SUITE.functions
    double = replace(double, cases=[
        correctness("100 floats", rand(100)),
        edge("a block and one", rand(lambda block: block + 1)),
        performance("1 000 floats", rand(1_000), programs=lambda block: -(-1_000 // block))])
    small = (
        "    return _scaled(x, 2.0)", "    out, n = torch.empty_like(x), x.numel()\n"
        "    scale_kernel[(triton.cdiv(n, 16),)](x, out, 2.0, n, BLOCK=16)\n    return out")

    report = graded(*small, suite=Suite(functions=[double, parts]))

    assert set(verdicts(report).values()) == {"PASSED"}, list(report.findings())
    alone = graded(*small, suite=Suite(functions=[parts, double]), only="double: a block and one")
    assert alone.results[0].details.inputs == ("x: float32, 17, stride 1",)


def test_an_empty_result_may_begin_where_its_storage_ends(graded):
    _, parts, _ = SUITE.functions
    parts = replace(parts, cases=[edge("nothing", rand(0), 4.0, True, launches=0)])
    columns = ("        return _scaled(x, factor), _scaled(x, -factor)",
               "        both = x.new_empty(x.numel(), 2)\n        return both[:, 0], both[:, 1]")

    report = graded(*columns, suite=Suite(functions=[parts]))

    assert verdicts(report) == {"parts: nothing": "PASSED"}, list(report.findings())


ADDED = '''import torch
import triton
import triton.language as tl


@triton.jit
def double_kernel(x_ptr, out_ptr, total_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n, other=0.0)
    tl.store(out_ptr + offs, 2 * x, mask=offs < n)
    tl.atomic_add(total_ptr, tl.sum(x))


def double(x):
    out, total = torch.empty_like(x), torch.zeros(1, device=x.device)
    double_kernel[(triton.cdiv(x.numel(), BLOCK),)](x, out, total, x.numel(), BLOCK=BLOCK)
    return out, total
'''


@pytest.mark.parametrize(("block", "code"), [(16, "M09"), (1024, "")],
                         ids=["64 programs add", "one program adds"])
def test_the_last_of_several_results_has_to_be_the_same_in_any_order_too(
        tmp_path, sandbox, block, code):
    (tmp_path / "kernel.py").write_text(ADDED.replace("=BLOCK", f"={block}").replace(
        "(), BLOCK)", f"(), {block})"))
    suite = Suite("double", ("x",), reference=lambda x: (2 * x.double(), x.double().sum().view(1)),
                  tolerance=Tolerance(lambda x: (elementwise(2 * x), total(x[None]))),
                  name="toy", cases=[correctness("1 024 floats", rand(1_024, mean=8.0))])

    # Of two orders of 64 sums, one in five rounds to the very same total: a seed says which inputs.
    report = grader.grade(tmp_path / "kernel.py", suite, sandbox=sandbox, effort="values", seed="2")

    assert (first(report)[1] if report.first_failure else "") == code


def test_one_case_of_one_function_can_be_graded_alone(graded):
    report = graded(only="parts: two")

    assert verdicts(report) == {"parts: two": "PASSED"}
    assert report.results[0].details.inputs[1] == "factor: 4.0"


@pytest.mark.parametrize(("name", "inputs"), [
    ("an answer", ("number: 3", "pair: (4, 2)")),
    ("a plan", ("input 1: 'share'",)),
], ids=["a function of the contract", "what the suite asks"])
def test_what_is_asked_goes_by_no_name_of_another_function(graded, name, inputs):
    double = SUITE.functions[0]
    one = Suite("double", ("x",), reference=double.reference, tolerance=EXACT, cases=[
        *SUITE.cases[:1], call("a plan", "plan", "share", check=lambda plan, what: _eq(
            plan[what], 0.5))], host=SUITE.host, calls=CALLS.replace("(module)", "(module, what)"),
        name="toy")

    report = graded(suite=one, only=name)

    assert verdicts(report) == {name: "PASSED"}
    assert report.results[0].details.inputs == inputs


def test_public_cases_of_all_functions_are_graded(graded):
    assert next(iter(verdicts(graded(public_only=True)))) == "double: 100 floats"


@pytest.mark.parametrize(("effort", "cases"), [("values", 10), ("first", 1)])
def test_less_effort_leaves_out_what_cannot_change_the_verdict(graded, effort, cases):
    report = graded("_scaled(x, 2.0)", "_scaled(x, 2.5)", effort=effort)

    assert report.verdict is Verdict.FAILED
    assert len(report.results) == cases
    assert len(graded(effort=effort).results) == 11  # a right one is compiled all the same


def test_after_a_failure_only_cases_that_tell_its_mistakes_are_run_for_a_diagnosis(graded):
    def mistake(name, code, **cases):
        return Mutant(name, name, (), (code,), name, **cases)

    mutants = (
        mistake("a factor", "N01", wrong=("double: 1 000 floats",), right=("twice: complex",)),
        mistake("of another function", "N01", wrong=("parts: two",)),
        mistake("with another code", "M01", wrong=("double: 100 floats",), right=("a plan",)))
    suite = replace(SUITE, mutants=mutants)

    report = graded("_scaled(x, 2.0)", "_scaled(x, 2.5)", suite=suite, effort="diagnosis")

    assert verdicts(report) == {"double: 100 floats": "FAILED", "twice: complex": "PASSED",
                                "double: 1 000 floats": "FAILED"}
    assert report.first_failure.findings[0].means == "a factor"
    assert len(graded(suite=suite, effort="diagnosis").results) == 11


COUNTING = f"""{FILE}

TIMES = []


def times(*values):
    TIMES.append(values)
    return len(TIMES)
"""


def test_cases_that_ask_the_same_of_plain_values_share_an_answer(tmp_path, sandbox):
    (tmp_path / "kernel.py").write_text(COUNTING)
    inputs = {"one": (1,), "one again": (1,), "true": (True,), "a tensor": (rand(3),),
              "a tensor again": (rand(3),), "one at last": (1,), "slowly": (1,)}
    answers = {}
    suite = Suite(name="toy", cases=[
        call(name, "times", *values, seconds=9.0 if name == "slowly" else 10.0,
             check=lambda answer, *_, name=name: answers.update({name: answer}))
        for name, values in inputs.items()])

    grader.grade(tmp_path / "kernel.py", suite, sandbox=sandbox)

    assert answers == {"one": 1, "one again": 1, "true": 2, "a tensor": 3, "a tensor again": 4,
                       "one at last": 1, "slowly": 5}


def test_a_property_calls_functions_by_name(graded):
    def law(submission):
        (x,) = submission.draw(rand(50))
        plus, minus = submission.parts(x, 2.0, True)
        assert torch.equal(plus, submission.double(x)), "doubling is no product with 2"
        assert torch.equal(minus, -plus), "minus is not the opposite of plus"

    suite = replace(SUITE, properties=(Property("parts agree", test=law),))

    assert verdicts(graded(suite=suite))["parts agree"] == "PASSED"
    wrong = verdicts(graded("_scaled(x, -factor)", "_scaled(x, factor)", suite=suite))
    assert wrong["parts agree"] == "FAILED"


def test_a_property_fails_by_an_access_though_the_results_are_right(graded):
    suite = replace(SUITE, properties=(Property(
        "it runs", test=lambda submission: submission.double(*submission.draw(rand(50)))),))

    report = graded("tl.load(x_ptr + offs, mask=offs < n)", "tl.load(x_ptr + offs)", suite=suite)

    [result] = [result for result in report.results if result.name == "it runs"]
    assert [finding.code for finding in result.findings] == ["M01"]


def test_a_mistake_in_one_function_explains_no_failure_of_another():
    def minus(submission):
        return [submission.parts(x, -1.0) for x in submission.draw(rand(5))]

    def both(submission):
        return submission.parts(1.0), submission.double(1.0)

    marks = {"p": ("parts: one",), "d": ("double: 100 floats",), "a": ("an answer",),
             "l": ("double: 100 floats", "minus"), "nowhere": ()}
    mutants = tuple(Mutant(name, name, (), ("N01",), name, wrong=wrong)
                    for name, wrong in marks.items())
    laws = [Property(test.__name__, test=test, functions=names_in(test.__code__) & {
        "double", "parts"}) for test in (minus, both)]
    suite = replace(SUITE, mutants=mutants, properties=tuple(laws))

    found = {name: "".join(sorted(m.id[0] for m in mistakes_in(name, suite))) for name in (
        "parts: two", "double: 1 000 floats", "twice: complex", "a refusal", "a plan", "minus",
        "both", "the compiler takes all")}

    assert found == {"parts: two": "lnp", "double: 1 000 floats": "dln", "twice: complex": "n",
                     "a refusal": "an", "a plan": "n", "minus": "lnp", "both": "dlnp",
                     "the compiler takes all": "adlnp"}
    assert [law.about for law in laws] == ["parts", ""]


def test_a_suite_knows_which_functions_its_laws_call():
    laws = load(ROOT / "grader/suites/mastery/01-custom-kernels/suite.py").properties

    assert {law.name: law.about for law in laws}["a norm grows with its row"] == "l2_norm"


@pytest.mark.parametrize(("got", "expected", "says"), [
    ([1.0, float("nan"), float("inf")], [1.0, float("nan"), float("inf")], ""),
    ([1.0, float("nan")], [1.0, 2.0], "element 1 is nan, expected 2"),
    ([1.0, 3.0], [1.0, float("nan")], "element 1 is 3, expected nan"),
    ([float("inf"), 3.0], [float("-inf"), 3.0], "element 0 is inf, expected -inf"),
])
def test_what_is_furthest_off_is_not_what_is_where_it_belongs(got, expected, says):
    suite = sibling(str(ROOT / "grader/suites/mastery/01-custom-kernels/suite.py"), "suite")

    assert suite.furthest(torch.tensor(got), torch.tensor(expected), 1e-6) == says


@pytest.mark.parametrize("change", [
    ("    return _scaled(x, 2.0)", "    raise NotImplementedError"),
    ("    if number < 0", "    raise NotImplementedError('later')\n    if number < 0"),
], ids=["a function", "host code"])
def test_what_is_not_written_yet_is_said_so(graded, change):
    mutant = Mutant("a", "refuses", (), ("R01",), "It refuses.")

    report = graded(*change, suite=replace(SUITE, mutants=(mutant,)))

    findings = [result.findings[0] for result in report.results if result.findings]
    assert {(f.code, f.means) for f in findings} == {("R01", NOT_WRITTEN)}
    assert len(findings) == 2


@pytest.mark.parametrize("marker", ["TODO", "DECIDE"])
def test_a_place_is_called_by_the_word_of_the_suite(graded, marker):
    mutant = Mutant("a", "adds", (), ("N01",), "It adds.", todos=(4,))

    report = graded("x * factor", "x + factor", effort="first",
                    suite=replace(SUITE, marker=marker, mutants=(mutant,)))

    assert report.first_failure is not None
    assert report.first_failure.findings[0].where == f"{marker} 4"


def test_decisions_are_no_blanks(tmp_path):
    path = tmp_path / "kernel.py"
    path.write_text("# DECIDE 1: an axis\n" + FILE.replace("double(x", "double(  # DECIDE 2\n x"))

    submitted = read(path)

    assert sorted(submitted.todos.values()) == [1, 2]
    assert inspect(submitted, SUITE.signatures, 0) == []


def test_the_self_test_examines_every_function():
    wide = replace(SUITE.functions[0], tolerance=Tolerance(
        amplitude=lambda x: elementwise(1e9 * x.double().abs())), cases=[
            correctness("50 floats", rand(50))])  # of few numbers no slope is taken

    found = examine(replace(SUITE, functions=[wide, *SUITE.functions[1:]]), seed=1)

    assert any(fault.startswith("double: ") for fault in found.faults)
    assert not any(fault.startswith("twice: complex") for fault in found.faults)
    assert {trial.case for trial in found.trials} >= {"twice: complex", "parts: two"}


def test_a_case_needs_a_check_or_an_exception():
    with pytest.raises(ValueError, match="neither check= and raises="):
        call("nothing", "answer", 3)


def test_two_cases_of_one_name_are_refused(tmp_path):
    (tmp_path / "suite.py").write_text(
        "from grader.suite import *\n"
        "suite = Suite(cases=[call('a', 'f', check=print), call('a', 'g', check=print)])\n")

    with pytest.raises(ValueError, match="Several cases are called 'a'"):
        load(tmp_path / "suite.py")


def test_a_case_of_host_code_is_of_the_kind_call():
    assert [case.kind for case in SUITE.cases] == [Kind.CALL] * 4
    assert isinstance(SUITE.all_cases[0], Case)


def test_what_host_code_says_of_cost_is_asked_before_a_kernel_is_compiled():
    costly = Function(entry="double", parameters=("x",), cases=[
        performance("counted", rand(8), traffic=1.0), correctness("right", rand(8))])
    suite = Suite(functions=(costly,), cases=[
        call("a plan", "plan", check=print), call("a cheap plan", "plan", check=print, code="T03")])

    assert [case.name for case in suite.ordered()] == [
        "double: right", "a plan", "a cheap plan", "double: counted"]


@pytest.mark.parametrize(("code", "seen", "wrong", "right", "meant"), [
    ("Q01", "For n = 1,000, DESIGN['swish']['bytes'] is 4,000. Each", ["the design of swish"],
     ["the design of glu"], "n"),
    ("Q01", "For n = 1,000, DESIGN['complex_mul'] has 3 programs with tiles of 64: 192 elements "
     "of 1,000.", ["the design of swish", "the design of complex_mul"], ["the design of glu"], ""),
    ("N01", WrongValues("values", 9, 9, (0,), 1.0, 2.0, likeness=fault(
        "formula", every=True, name="what glu(gate, x) gives")),
     ["glu: 1 000 floats", "an open gate lets everything through"], [], "d"),
    ("N01", "9 of 9 elements are wrong.",
     ["glu: 1 000 floats", "an open gate lets everything through"], [], ""),
    ("N01", "9 of 9 elements are wrong.",
     ["poly_act: 1 000 floats, degree 3", "the constant coefficient is the value at zero",
      "poly_act: the same coefficients from both ends"], ["poly_act: one coefficient"], ""),
], ids=["bytes", "a grid", "exchanged", "another sigmoid", "other coefficients"])
def test_a_known_mistake_of_custom_kernels_is_told_of_kernels_that_have_it(code, seen, wrong,
                                                                           right, meant):
    suite = load(ROOT / "grader/suites/mastery/01-custom-kernels/suite.py")
    mutants = mistakes_in(wrong[-1], suite)

    found = known_mistake(Finding(code, seen), mutants, frozenset(wrong), frozenset(right))

    assert (found.id if found else "") == meant
