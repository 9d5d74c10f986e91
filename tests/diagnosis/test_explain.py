"""A failure explained: the known mistake, what separates the cases, one case graded again."""

from __future__ import annotations

import ast
import shlex
from dataclasses import replace
from inspect import signature
from pathlib import Path
from string import Formatter
from types import SimpleNamespace

import msgspec
import pytest
import torch

import grader
import grader.suite.spec
from grader import Finding, Verdict
from grader.diagnosis import codes, messages
from grader.diagnosis.case_contrast import Traits, Values, separation, traits_of, values_of
from grader.diagnosis.controlled_reruns import name_the_cause, undefined_or_ordered
from grader.diagnosis.difference import NEARLY, Difference, effect
from grader.diagnosis.explain import explained, result_of
from grader.diagnosis.source_lines import located
from grader.diagnosis.wrong_value_patterns import likeness
from grader.diagnosis.wrong_value_regions import Tiling, place
from grader.finding import MemoryAccess, fault
from grader.judge.contract import broken_contract, wrong_places_follow
from grader.processes.replies import Run
from grader.recording.launch_stats import LaunchFacts, Traffic
from grader.recording.model import Launch, Recording
from grader.submission import source
from grader.submission.dataflow import lines_behind
from grader.submission.operator_precedence import comparison_of_joined, explained_by_precedence
from grader.suite import (
    EXACT,
    Cost,
    Mutant,
    Suite,
    call,
    correctness,
    edge,
    integers,
    rand,
    refuses,
)
from grader.suite.case_selection import UnknownCase, select, shortest
from grader.text import mentions, sentence
from tests.support.tiers import by_default

ROOT = Path(__file__).parents[2]

# ---------------------------------------------------------------------------------------------
# The mutant that fails alike


def mutant(name: str, code: str = "N01", **marks: object) -> Mutant:
    return Mutant(name, name, (), (code,), f"means {name}", todos=(ord(name),), **marks)


ONE, THREE = ({"text": {"pattern": f"^{count} of"}} for count in (1, 3))
NOT_FOUR = {"text": {"not": {"contains": "4 of"}}}
WRONG = Finding("N01", "3 of 4 elements are wrong.")
MASK = mutant("m", wrong=("odd",), right=("even",))
FORMULA = mutant("f", wrong=("odd", "even"))
SPECIAL = mutant("s", sign=ONE, wrong=("odd",))


@pytest.mark.parametrize(("mutants", "failed", "passed", "named"), [
    ([MASK, FORMULA], {"odd"}, {"even"}, "m"),
    ([MASK, FORMULA], {"odd", "even"}, set(), "f"),
    ([MASK, SPECIAL], {"odd"}, {"even"}, "m"),
    ([mutant("u"), MASK], {"odd"}, {"even"}, "m"),
    ([mutant("u"), MASK], {"odd", "even"}, set(), "u"),
    ([mutant("u")], {"odd"}, set(), "u"),
    ([mutant("o", "M02")], {"odd"}, {"even"}, None),
    ([MASK], {"even"}, {"odd"}, None),
    ([MASK], {"odd"}, set(), None),
    ([FORMULA], {"odd"}, set(), None),
    ([MASK, replace(MASK, id="n")], {"odd"}, {"even"}, None),
    ([MASK, replace(MASK, id="n", wrong=("odd", "late"))], {"odd"}, {"even"}, None),
    ([MASK, replace(MASK, id="n", wrong=("odd", "late"))], {"odd"}, {"even", "late"}, "m"),
    ([MASK, replace(MASK, id="n", wrong=("odd", "late"))], {"odd", "late"}, {"even"}, "n"),
    ([MASK, mutant("l", wrong=("late",), right=("later",))], {"odd"}, {"even"}, "m"),
], ids=["what fails and what passes", "all fail", "a sign that is not there", "more marks speak",
        "marks that fail", "no marks", "another code", "the wrong way round",
        "nothing right was run", "half of it was run", "two as likely",
        "one as likely in the end", "one that is not after all", "one that is",
        "one of which nothing is known"])
def test_the_known_mistake_is_the_one_with_most_marks_confirmed(mutants, failed, passed, named):
    found = codes.known_mistake(WRONG, mutants, frozenset(failed), frozenset(passed))

    assert (found.id if found else None) == named


def test_the_places_to_look_at_are_those_of_mistakes_that_are_still_possible():
    some = codes.explain(WRONG, [MASK, FORMULA, SPECIAL], {}, frozenset({"odd"}),
                            frozenset())
    none = codes.explain(WRONG, [MASK], {}, frozenset({"even"}), frozenset({"odd"}))

    assert some.todos == (ord("f"), ord("m"))  # the sign of the third is not there
    assert none.todos == (ord("m"),)  # where none is possible, all are named
    telling = codes.explain(WRONG, [MASK, mutant("s", sign=ONE)], {}, frozenset({"even"}))
    assert telling.todos == (ord("m"),)  # or those whose sign is there
    passing = codes.explain(WRONG, [MASK, replace(FORMULA, wrong=("odd", "late"))], {},
                            frozenset({"odd"}), frozenset({"late"}))
    assert passing.todos == (ord("m"),)  # the other one fails a case that passed


def test_the_place_of_the_line_comes_first_among_those_of_a_mistake():
    last = replace(mutant("m"), todos=(7, 8, 9))

    found = codes.explain(replace(WRONG, line=5), [last], {5: 9})

    assert found.todos == (9, 7, 8)
    assert (found.where, "--todo 9" in found.next_step) == ("Line 5, TODO 9, 7 or 8", True)


CLASH = Finding("M04", MemoryAccess("two lanes", "stored", 1, 20, 0, (1, 1, 1), "c_ptr", 64))
ELSEWHERE = Finding("S01", fault("on the CPU", code="torch.empty", device=""))
NO_POINTER = Finding("L05", "Unsupported ptr type <['128'], int64> in `tl.load`, no device")


@pytest.mark.parametrize(("file", "where"), [
    ("", "Line 5"), ("package/api.py", "Line 5 of package/api.py")])
def test_a_finding_names_the_file_of_its_line_where_an_exercise_has_several(file, where):
    finding = codes.explain(replace(WRONG, line=5), [], {}, file=file)

    assert (finding.where, finding.to_dict()["file"]) == (where, file)


@pytest.mark.parametrize(("finding", "sign"), [
    (CLASH, {"kind": "two lanes"}), (ELSEWHERE, {"kind": "on the CPU", "device": ""}),
    (NO_POINTER, {"text": {"contains": "no device"}}),
], ids=["lanes", "device", "no pointer"])
def test_a_mistake_without_a_sign_does_not_speak_for_what_its_words_tell_apart(finding, sign):
    plain = mutant("p", finding.code)
    signed = mutant("s", finding.code, sign=sign)

    alone, with_a_sign = (codes.explain(finding, known, {}).means
                          for known in ([plain], [plain, signed]))

    assert alone not in (codes.MEANINGS[finding.code], "means p")
    assert with_a_sign == "means s"


def test_what_threads_of_one_program_miss_has_words_and_a_step_of_its_own():
    within = Finding("M09", MemoryAccess("no barrier", "loaded", 16, 0, 0, (1, 1, 1), "s_ptr", 64,
                                         earlier="stored", earlier_line=8), line=9)
    between = Finding("M09", MemoryAccess("race", "loaded", 1, 0, 1, (2, 1, 1), "s_ptr", 64),
                      line=9)

    inner, outer = (codes.explain(finding, [mutant("p", "M09")], {9: 2})
                    for finding in (within, between))

    assert "threads of a program" in inner.means
    assert "`tl.debug_barrier()`" in inner.next_step and "variable" in inner.next_step
    assert outer.means == "means p"
    assert "tritonlab hint" in outer.next_step


KERNEL_LINES = """\
def kernel(x_ptr, y_ptr, n):
    offs = tl.arange(0, 8)
    other = 1
    where = y_ptr + offs
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    tl.store(where, x, mask)
"""


@pytest.mark.parametrize(("line", "lines"), [(7, (2, 4, 5)), (6, (2, 5)), (3, ()), (99, ())])
def test_the_lines_behind_an_access_are_those_of_its_addresses_and_mask(line, lines):
    assert lines_behind(KERNEL_LINES, line) == lines
    assert lines_behind("def (", line) == ()


def test_where_no_mistake_is_known_the_places_behind_an_access_are_named_too():
    todos = {2: 1, 3: 2, 4: 3, 5: 4, 7: 5}

    memory, values = (codes.explain(Finding(code, "", line=7), [], todos, text=KERNEL_LINES).todos
                      for code in ("M02", "L05"))

    assert memory == (5, 4)
    assert values == (5,)


VALUE_LINES = """\
@triton.jit
def kernel(x_ptr, y_ptr, n):
    offs = tl.arange(0, 8)
    x = tl.load(x_ptr + offs)
    total = x * 2
    tl.store(y_ptr + offs, total)
"""


@pytest.mark.parametrize(("mutants", "says"), [
    ([replace(mutant("l"), todos=(8,), wrong=("odd",), right=("even",))],
     "TODO 8"),
    ([replace(mutant("l"), todos=(8,), sign=THREE, right=("even",))], "TODO 8"),
    ([replace(mutant("l"), todos=(8,), sign=THREE, right=("even",)),
      replace(mutant("k"), todos=(3,), sign=NOT_FOUR, wrong=("odd",), right=("even",))],
     "TODO 8"),
    ([replace(mutant("l"), todos=(3,), sign=NOT_FOUR, right=("even",))],
     "TODO 3"),
    ([replace(mutant("l"), todos=(3, 8), right=("odd",))], "TODO 8 or 9"),
], ids=["a possible one", "one whose sign is there", "beside one without", "what is not a sign",
        "one that it is not"])
def test_a_value_may_be_wrong_where_no_known_mistake_is(mutants, says):
    found = codes.explain(WRONG, mutants, {3: 7, 4: 8, 5: 9, 6: 10}, frozenset({"odd"}),
                          text=VALUE_LINES)

    assert found.where == says


# ---------------------------------------------------------------------------------------------
# What separates failing from passing cases


def traits(shape: tuple[int, ...], **more: object) -> Traits:
    return Traits(**{"name": str(shape), "dtype": "float32", "shape": shape, "contiguous": True,
                     "drawn_for": 64, **more})


HALF = {"dtype": "float16"}
VIEW = {"contiguous": False}
SEPARATIONS = {
    "dtype": ([traits((4, 8), **HALF), traits((2, 9), **HALF)],
              [traits((4, 8)), traits((2, 9)), traits((3, 3))],
              "All 2 cases in float16 fail; the same shapes in float32 pass.", HALF),
    "dtype, other shapes": ([traits((4, 8), **HALF), traits((2, 7), **HALF)],
                            [traits((4, 8)), traits((2, 9)), traits((3, 3))],
                            "All 2 cases in float16 fail; all 3 cases in float32 pass.", HALF),
    "layout": ([traits((4, 8), **VIEW), traits((3, 5), **VIEW)], [traits((4, 8)), traits((3, 5))],
               "All 2 cases with non-contiguous inputs fail; all 2 with contiguous inputs "
               "pass.", VIEW),
    "empty": ([traits((0, 8)), traits((3, 0))], [traits((4, 8)), traits((3, 5))],
              "All 2 cases with empty tensors fail; all 2 with non-empty tensors pass.",
              {"shape": (0, 3)}),
    "tail": ([traits((65,), block=64, programs=2), traits((127,), block=64, programs=2),
              traits((5,), block=64, programs=1)],
             [traits((64,), block=64, programs=1), traits((128,), block=64, programs=2)],
             "All 3 cases whose last block is partial fail; all 2 whose last block is full "
             "pass.", {"shape": (130,), "block": 64, "programs": 3}),
    "tail of rows": ([traits((4, 65), block=64, programs=4), traits((64, 127), block=64)],
                     [traits((1, 64), block=64, programs=1), traits((6, 128), block=64)],
                     "All 2 cases whose rows end in a partial block fail; all 2 whose rows fill "
                     "whole blocks pass.", {"shape": (64, 63), "block": 64}),
    "programs": ([traits((65,), block=64, programs=2), traits((128,), block=64, programs=2)],
                 [traits((64,), block=64, programs=1), traits((5,), block=64, programs=1)],
                 "All 2 cases with several programs fail; all 2 with a single program pass.",
                 {"shape": (64,), "block": 32, "programs": 2}),
    "powers of two": ([traits((4, 127)), traits((4, 3))], [traits((4, 128)), traits((4, 1))],
                      "All 2 cases whose last dimension is not a power of two fail; all 2 whose "
                      "last dimension is a power of two pass.", {"shape": (4, 129)}),
    "width": ([traits((2, 4096)), traits((1, 2500))], [traits((4, 1024)), traits((90, 1000))],
              "All 2 cases whose last dimension is 2,500 or more fail; all 2 where it is 1,024 or "
              "less pass.", {"shape": (4, 2600)}),
    "elements": ([traits((300,)), traits((256,))], [traits((100,)), traits((128,))],
                 "All 2 cases with 256 or more elements fail; all 2 with 128 or fewer elements "
                 "pass.", {"shape": (299,)}),
    "rank": ([traits((4, 4)), traits((3, 2, 5))], [traits((16,)), traits((5,)), traits((31,))],
             "All 2 cases with 2 or 3 dimensions fail; all 3 with 1 dimension pass.",
             {"shape": (4, 4)}),
}


def separated(*sides: object) -> str:
    """The contrast in words; empty where nothing separates the cases."""
    return messages.text(separation(*sides) or "")


@pytest.mark.parametrize("name", SEPARATIONS)
def test_what_separates_the_cases_is_told_only_where_it_does_so_exactly(name):
    failed, passed, says, also = SEPARATIONS[name]
    exception = replace(passed[0], **also)

    assert separated(failed, passed) == says
    assert says.partition(";")[0] not in separated(failed, [*passed, exception])
    assert separated(failed[:1], passed) == separated(failed, passed[:1]) == ""


def test_that_empty_cases_pass_separates_nothing():
    assert separated([traits((4, 8)), traits((4, 9))], [traits((0,)), traits((0, 3))]) == ""


@pytest.mark.parametrize(("bad", "good", "says"), [
    ((-9.0, -1.0), (-1.0, 3.0), "All 2 cases with only negative values fail; all 2 with other "
                                "values too pass."),
    ((-9.0, 1.0), (1.0, 3.0), "All 2 cases with negative values fail; all 2 without negative "
                              "values pass."),
    ((0.0, 1e4), (0.0, 3.0), "All 2 cases with values as large as 1e+04 fail; all 2 with values up "
                             "to 3 pass."),
    ((0.0, 4.0), (0.0, 3.0), ""),
], ids=["only negative", "negative", "large", "hardly larger"])
def test_values_separate_where_the_form_does_not(bad, good, says):
    def values(case: Traits) -> Values:
        low, high = bad if case.name == "bad" else good
        return Values(low, high, finite=True)

    failed, passed = [traits((4, 8), name="bad")] * 2, [traits((4, 8))] * 2

    assert separated(failed, passed, values) == says


def test_few_numbers_are_looked_at_where_nothing_separates():
    asked = []

    def values(case: Traits) -> Values:
        asked.append(case)
        return Values(-1.0, 1.0, finite=True)

    assert separated([traits((4, 8))] * 40, [traits((4, 8))] * 40, values) == ""
    assert len(asked) == 16


def test_traits_and_values_are_read_off_the_inputs():
    x = torch.tensor([[1.0, -2.0, 7.0], [4.0, torch.inf, 5.0]])

    assert traits_of("a", [x.mT, 3.0], 64) == Traits("a", "float32", (3, 2), False, 64)
    assert traits_of("a", [3.0, None], 64) is None
    assert values_of([x, 3.0]) == Values(-2.0, 7.0, finite=False)
    assert values_of([torch.empty(0)]) is None


# ---------------------------------------------------------------------------------------------
# Which case is meant

NAMES = ("4 x 127 floats, one less than a power of two", "4 x 127 in float16", "float16",
         "a float16 matrix", "every other row, 100 of 200", "every other row of float16")


@pytest.mark.parametrize(("words", "name"), [
    ("float16", "float16"), ("FLOAT16 ", "float16"), ("4 x 127 fl", NAMES[0]),
    ("less than a", NAMES[0]), ("a  float16", NAMES[3]), ("x 127 in", NAMES[1]),
])
def test_a_case_goes_by_its_name_and_by_words_that_mean_no_other(words, name):
    assert select(words, NAMES) == name


@pytest.mark.parametrize("words", ["4096", "4,096", "4 096", "16384 x 4096"])
def test_large_numbers_are_typed_with_or_without_a_gap(words):
    names = ("16 384 x 4 096 floats", "64 x 1 024 floats", "300 x 1 000, 500 of 600")

    assert select(words, names) == names[0]


@pytest.mark.parametrize(("words", "near", "several"), [
    ("4 x 127", NAMES[:2], 2), ("row", NAMES[4:], 2), ("flaot16", ("float16",), 0), ("", (), 0),
    ("nothing like it at all whatsoever", (), 0),
])
def test_other_words_are_refused_with_names_to_choose_from(words, near, several):
    with pytest.raises(UnknownCase) as refused:
        select(words, NAMES)

    assert set(near) <= set(refused.value.near)
    assert refused.value.several == several


def test_a_name_is_shortened_only_to_what_still_means_it():
    short = [shortest(name, NAMES) for name in NAMES]

    assert short[0] == "4 x 127 floats"
    assert short[4] == "every other row, 100 of 200"  # its first clause begins another name too
    assert [select(words, NAMES) for words in short] == list(NAMES)


def test_a_name_is_not_cut_within_a_number():
    names = ("powi: the cube of 1,000 floats", "powi: the cube of 1,000 floats, transposed")

    assert shortest(names[0], names) == names[0]


# ---------------------------------------------------------------------------------------------
# A comparison that `&` took apart


@pytest.mark.parametrize(("mask", "says"), [
    ("(i >= 0) & i < n", "compares `(i >= 0) & i` with `n`."),
    ("i < n & j < m", "compares `n & j` with `i` and `m`."),
    ("(i >= 0) & (i < n) | j > m", "compares `(i >= 0) & (i < n) | j` with `m`."),
    ("(i >= 0) & (i < n)", None),
    ("(i & 1) == 0", None),
    ("0 <= i < n", None),
], ids=["a side", "both sides", "the last of three", "parentheses", "a bit", "a chain"])
def test_a_comparison_without_parentheses_is_named(mask, says):
    text = f"@triton.jit\ndef k(i, j, n, m):\n    mask = {mask}\n\ndef host(a, b):\n    a & b < a\n"

    found = comparison_of_joined(text)

    assert (found and messages.text(found)) == (
        says and f"`&` and `|` bind tighter than comparisons: line 3 {says}")


def test_it_is_what_a_wrong_mask_means_and_nothing_else():
    text = "@triton.jit\ndef k(i, n):\n    mask = (i >= 0) & i < n\n"
    wrong, slow = Finding("M01", "Program 0 loaded.", line=7), Finding("T01", "Too much.")

    (told,) = explained_by_precedence([wrong], text)

    assert told.line == 7 and "line 3 compares" in told.means
    assert explained_by_precedence([WRONG], text)[0].line == 3
    assert explained_by_precedence([slow], text) == [slow]
    assert explained_by_precedence([wrong], "def k(:") == [wrong]


# ---------------------------------------------------------------------------------------------
# What only looks different


@pytest.mark.parametrize(("last", "codes_found"), [("nan", []), ("1.0", ["M06"])])
def test_another_nan_is_no_change(last, codes_found):
    odd = torch.tensor([0x7FC00001], dtype=torch.int32).view(torch.float32)  # a NaN of other bits
    first, again = torch.tensor([1.0, torch.nan]), torch.tensor([1.0, float(last)])
    again = torch.where(again.isnan(), odd, again)
    runs = iter([Run((), (again,)), Run((), (again,))])
    session = SimpleNamespace(replay=lambda *_, **__: next(runs))

    found = undefined_or_ordered(session, Recording((), (), ()), [], Run((), (first,)))

    assert [finding.code for finding in found] == codes_found


@pytest.mark.parametrize(("right", "codes_found"), [
    (None, ["M09"]), (lambda results: bool(results[0] > 0.9), []),
    (lambda results: bool(results[0] > 1.1), []),
], ids=["every bit counts", "near enough", "wrong in both orders, and rounded otherwise"])
def test_another_order_may_round_otherwise_where_a_suite_says_so(right, codes_found):
    first, reversed_ = torch.tensor([1.0]), torch.tensor([1.0 + 2.0**-23])
    runs = iter([Run((), (reversed_,)), Run((), (first,))])
    session = SimpleNamespace(replay=lambda *_, **__: next(runs))

    found = undefined_or_ordered(session, Recording((), (), ()), [], Run((), (first,)), right)

    assert [finding.code for finding in found] == codes_found


def test_garbage_is_found_where_another_order_may_round_otherwise():
    first, again = torch.tensor([1.0]), torch.tensor([2.0])
    session = SimpleNamespace(replay=lambda *_, **__: Run((), (again,)))

    found = undefined_or_ordered(session, Recording((), (), ()), [], Run((), (first,)),
                                 lambda results: True)

    assert [finding.code for finding in found] == ["M06"]


def test_one_of_several_results_that_changes_is_named():
    first, again = torch.tensor([[1.0, 2.0]]), torch.tensor([[1.0, 3.0]])
    both = (torch.zeros(1), again)
    session = SimpleNamespace(replay=lambda *_, **__: Run((), both))

    (found,) = undefined_or_ordered(session, Recording((), (), ()), [],
                                    Run((), (torch.zeros(1), first)))

    assert (found.data.value("number"), found.data.value("index")) == (1, (0, 1))
    assert found.seen.startswith("Result 2 depends on the undefined values")


def test_a_result_of_the_wrong_form_explains_stores_at_wrong_places():
    shape, strange = Finding("S01", "The result has shape (3,), expected (4,)."), Finding("L05", "")
    past, twice = Finding("M02", "stored past the end"), Finding("M04", "stored twice")

    assert wrong_places_follow(shape, [past, twice])
    assert not wrong_places_follow(shape, [past, Finding("M01", "loaded past the end")])
    assert not wrong_places_follow(shape, [strange])
    assert not wrong_places_follow(Finding("T03", "two launches"), [past])


@pytest.mark.parametrize(("turned", "says"), [
    (lambda t: t.mT, "The values are in the order of the transposed result."),
    (lambda t: t.flip(-2), "The rows are in reverse order."),
], ids=["transposed", "reversed"])
def test_another_order_is_seen_where_terms_nearly_cancel(turned, says):
    torch.manual_seed(0)
    exact = torch.randn(64, 64, dtype=torch.float64) * 8
    exact[3, 60] = 1e-5  # a sum of large terms, whose rounding is large beside it
    got = (turned(exact) + 1e-6).half()

    assert messages.pattern(likeness(got.double() != exact, got, exact)) == says


def test_inputs_that_change_places_are_named_where_terms_nearly_cancel():
    torch.manual_seed(0)
    x, weight, bias = torch.randn(16, 256), torch.randn(256) + 1, torch.randn(256)
    exact = x.double() * weight.double() + bias.double()
    other = x.double() * bias.double() + weight.double()
    got = other.float() + 2e-7 * torch.randn(16, 256)  # as rounding of the terms does

    def told(result):
        found = likeness((result - exact).abs() > 1e-6, result, exact,
                         [("what f(x, b, w) gives", other)])
        return found and messages.pattern(found)

    assert told(got) == "Every element is what f(x, b, w) gives."
    assert "f(x, b, w)" not in str(told(got + 1e-4))


# ---------------------------------------------------------------------------------------------
# A grade of one case

KERNEL = '''\
import torch
import triton
import triton.language as tl


@triton.jit
def double_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    tl.store(out_ptr + offs, x * 2, mask=mask)


def double(x):
    if x.dim() != 1:
        raise ValueError(f"x: expected 1 dimension, got {x.dim()}")
    print("called with", x.numel())
    x = x.contiguous()
    out = torch.empty_like(x)
    double_kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
    return out
'''


def doubles(submission):
    (x,) = submission.draw(rand(100))
    if not torch.equal(submission(x), 2 * x):
        raise AssertionError(f"{float(x[0]):.9g} was not doubled")


SUITE = Suite(
    entry="double",
    parameters=("x",),
    reference=lambda x: x.double() * 2,
    tolerance=EXACT,
    cost=lambda x: Cost(bytes=2 * x.nbytes),
    cases=[
        correctness("a thousand, as floats", rand(1000)),
        correctness("a thousand in float16", rand(1000, dtype="float16")),
        correctness("two blocks", rand(128)),
        edge("one element", rand(1)),
        edge("two blocks less one", rand(lambda B: 2 * B - 1)),
        refuses("a matrix", rand(2, 3), raises=ValueError, mentions=["x"]),
    ],
    properties=(grader.suite.spec.Property("doubles", test=doubles),),
    name="toy/double",
)
CHANGES = {
    "factor": ("x * 2", "x * 3", "Every element is 1.5 times the expected value."),
    "program": ("x * 2", "tl.where(tl.program_id(0) == 3, x, x * 2)",
                "Exactly program 3's elements, 192 to 255, are wrong. Each of these elements is "
                "half the expected value."),
    "tail": ("x * 2", "tl.where(tl.program_id(0) == n // BLOCK, x, x * 2)",
             "Only elements 960 and up, in the partial last block of 64, are wrong."),
    "steps": ("x * 2", "tl.where(offs % 4 == 1, x, x * 2)",
              "Only every 4th element, starting with element 1, is wrong."),
    "shift": ("x_ptr + offs, mask=mask", "x_ptr + offs + 1, mask=offs + 1 < n, other=0.0",
              "Every element holds the value expected 1 place later."),
    "constant": ("x * 2", "x * 0 + 7", "Every element is 7."),
    "garbage": ("x * 2", "x * 2 + 0 * tl.sum(tl.where(tl.program_id(0) == n // BLOCK, tl.load("
                         "x_ptr + offs, mask=mask), 0.0), 0)", "The last 40 of 1,000"),
}


@pytest.fixture
def graded(tmp_path, sandbox):
    def grade(text: str, suite: Suite = SUITE, **options) -> grader.Report:
        path = tmp_path / "kernel.py"
        path.write_text(text)
        return grader.grade(path, suite, sandbox=sandbox, **options)

    return grade


def changed(old: str, new: str) -> str:
    assert old in KERNEL
    return KERNEL.replace(old, new)


def seen(report: grader.Report) -> str:
    failure = report.first_failure
    assert failure is not None
    return failure.findings[0].seen


@pytest.mark.parametrize("name", [name for name in CHANGES if name != "garbage"])
def test_a_failure_says_where_the_difference_lies(graded, name):
    old, new, says = CHANGES[name]

    assert says in seen(graded(changed(old, new)))


LAUNCH = "    double_kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)\n"
STORE = "    tl.store(out_ptr + offs, x * 2, mask=mask)\n"
NOT_STORED = {
    "no launch": ((LAUNCH, ""), "; the function launched no kernel.", "launch one"),
    "another tensor": (("(x, out, x", "(x, torch.empty_like(x), x"), "; this tensor is not an "
                       "argument of any launch.", "is passed a different tensor"),
    "no store": ((STORE, ""), " programs stored nothing.", "there is no store"),
    "nothing passes the mask": ((STORE, STORE.replace("mask=mask", "mask=offs < 0")),
                                " programs stored nothing.", "is always false"),
    "too few programs": (("triton.cdiv(x.numel(), 64)", "1"), "the only program stored other "
                         "elements.",
                         "the grid is too small"),
}


@pytest.mark.parametrize("name", NOT_STORED)
def test_why_elements_are_not_stored_is_told_by_what_was_launched(graded, name):
    change, says, means = NOT_STORED[name]

    finding = graded(changed(*change), only="a thousand, as floats").first_failure.findings[0]

    assert finding.code == "M03"
    assert says in finding.seen
    assert means in finding.means


def test_a_store_through_a_descriptor_is_one_to_its_tensor(graded):
    described = KERNEL.replace("n, BLOCK", "n, out_desc, BLOCK").replace(
        STORE, "    out_desc.store([tl.program_id(0) * BLOCK], x * 2)\n").replace(
        LAUNCH, "    from triton.tools.tensor_descriptor import TensorDescriptor\n"
                "    desc = TensorDescriptor.from_tensor(out, [64])\n"
                "    double_kernel[(1,)](x, out, x.numel(), desc, BLOCK=64)\n")

    finding = graded(described, only="a thousand, as floats").first_failure.findings[0]

    assert finding.code == "M03"
    assert "the only program stored other elements." in finding.seen
    assert "the grid is too small" in finding.means


ROWS = '''\
import torch
import triton
import triton.language as tl


@triton.jit
def rows_kernel(x_ptr, out_ptr, sums_ptr, R, C, BLOCK_R: tl.constexpr, BLOCK_C: tl.constexpr):
    rows, cols = tl.arange(0, BLOCK_R), tl.arange(0, BLOCK_C)
    offs = rows[:, None] * C + cols[None, :]
    mask = (rows < R)[:, None] & (cols < C)[None, :]
    x = tl.load(x_ptr + offs, mask=mask, other=0.0)
    tl.store(out_ptr + offs, x * 2, mask=mask)
    tl.store(sums_ptr + rows, tl.sum(x, axis=1), mask=rows < R)


def doubled(x):
    out, sums = torch.empty_like(x), x.new_empty(x.shape[0])
    rows_kernel[(1,)](x, out, sums, x.shape[0], x.shape[1], BLOCK_R=32, BLOCK_C=32)
    return out, sums
'''
TWO_RESULTS = Suite(
    entry="doubled", parameters=("x",), result_names=("out", "sums"),
    reference=lambda x: (2 * x.double(), x.double().sum(1)), tolerance=EXACT,
    cost=lambda x: Cost(bytes=1), cases=[correctness("whole numbers", integers(20, 30))])
OUT_MASK = "x * 2, mask=mask)"
SUMS = "    tl.store(sums_ptr + rows, tl.sum(x, axis=1), mask=rows < R)\n"


@pytest.mark.parametrize(("old", "new", "code", "says", "means"), [
    (OUT_MASK, "x * 2, mask=(rows <= R)[:, None] & (cols < C)[None, :])", "M02",
     "; that is exactly one row past the end.", "exactly one row past the end"),
    (OUT_MASK, "x * 2, mask=(rows < R)[:, None] & (cols <= C)[None, :])", "M02",
     "stored 1 element past the end", "is true for indices outside the tensor"),
    (OUT_MASK, "x * 2, mask=(cols < C)[None, :])", "M02", "stored 360 elements",
     "is true for indices outside the tensor"),
    (SUMS, "", "M03", "of `sums` were never stored by a kernel; the first is index 0; programs "
     "stored to other tensors only.", "none of their stores"),
], ids=["a row", "a column", "all rows of the tile", "one of two results"])
def test_one_row_too_many_and_a_result_that_no_store_reaches_are_told(
        graded, old, new, code, says, means):
    assert old in ROWS

    finding = graded(ROWS.replace(old, new), TWO_RESULTS).first_failure.findings[0]

    assert finding.code == code
    assert says in finding.seen
    assert means in finding.means


def test_a_grid_with_an_axis_that_nothing_asks_for_is_a_place_to_look_at():
    text = KERNEL_LINES.replace("def kernel", "@triton.jit\ndef kernel") + """\

def host(x, y, n):
    grid = (n, 2)
    kernel[grid](x, y, n)
"""
    seen = MemoryAccess("two programs", "stored", 1, 0, 8, (8, 2, 1), "y_ptr")
    told = msgspec.structs.replace(seen, axes="part", asked=(0,))

    places = [codes.explain(Finding("M04", data, line=8), [], {5: 4, 8: 7, 11: 9}, text=text).todos
              for data in (told, seen)]

    assert places == [(9, 7), (7, 4)]


def test_garbage_is_located_too(graded):
    report = graded(changed(*CHANGES["garbage"][:2]))

    assert report.first_failure.findings[0].code == "M06"
    assert "partial last block of 64, differ" not in seen(report)  # no tiling known
    assert "Only the last 40 of 1,000 elements differ." in seen(report)


def test_a_failure_says_what_separates_the_cases(graded):
    report = graded(changed("x * 2", "tl.where(tl.program_id(0) == n // BLOCK, x, x * 2)"))

    assert "pass." not in seen(report)  # one case that passes is too few
    more = replace(SUITE, cases=[*SUITE.cases, correctness("three blocks", rand(192))])
    again = graded(changed("x * 2", "tl.where(tl.program_id(0) == n // BLOCK, x, x * 2)"), more)
    assert seen(again).endswith("All 4 cases whose last block is partial fail; all 2 whose "
                                "last block is full pass.")


def test_what_separates_the_cases_is_told_of_a_case_that_it_is_about(graded):
    views = [edge(f"every other of {n}", rand(n)[::2]) for n in (100, 200, 300)]
    empty = edge("no element", rand(0), launches=0)
    suite = replace(SUITE, cases=[*SUITE.cases[:3], empty, *views])
    text = changed("    x = x.contiguous()\n", "")
    text = text.replace("torch.empty_like(x)", "x.new_empty(x.shape)")

    failed = graded(text, suite).first_failure
    without_empty = "    if not x.numel():\n        return x.new_empty(0)\n    out = "
    launched = graded(text.replace("    out = ", without_empty), suite).first_failure

    assert (failed.name, launched.name) == ("no element", "every other of 100")
    assert "non-contiguous" not in failed.findings[0].seen
    assert "with non-contiguous inputs" in launched.findings[0].seen


def alone(graded, text: str, report: grader.Report, result: grader.CaseResult) -> grader.Report:
    """The grade that a failure's replay asks for."""
    case, seed = shlex.split(result.replay)[1::2]
    return graded(text, only=case, seed=seed)


def test_every_failure_is_repeated_by_its_replay(graded):
    text = changed("x * 2", "tl.where(offs == n - 1, x, x * 2)").replace("BLOCK=64", "BLOCK=32"
                                                                       ).replace("(), 64", "(), 32")
    report = graded(text)
    failures = [r for r in report.results if r.verdict is Verdict.FAILED]

    assert len(failures) == 6
    for failure in failures:
        again = alone(graded, text, report, failure)
        assert [r.name for r in again.results] == [failure.name]
        assert again.results[0].findings[0].seen.startswith(failure.findings[0].seen)
        assert (again.seed, again.evidence, again.partial) == (report.seed, "", True)
    assert seen(alone(graded, text, report, failures[0])) == failures[0].findings[0].seen
    assert {r.replay for r in report.results if r.verdict is Verdict.PASSED} == {""}


def test_sizes_that_follow_the_learner_s_block_are_the_same_again(graded):
    """63 elements for a block of 32: without the cases before, it would be another size."""
    text = changed("x * 2", "x * 3").replace("BLOCK=64", "BLOCK=32").replace("(), 64", "(), 32")
    suite = replace(SUITE, cases=SUITE.cases[1:5])

    report = graded(text, suite, only="two blocks less one", seed="ab")

    assert report.results[0].details.inputs == ("x: float32, 63, stride 1",)


def test_a_case_alone_shows_what_it_was_made_of(graded):
    report = graded(changed("x * 2", "x * 3"), only="two blocks", seed="ab")
    whole = graded(changed("x * 2", "x * 3"), seed="ab")

    made = report.results[0].details
    assert made.inputs == ("x: float32, 128, stride 1",)
    assert made.launches == (
        "double_kernel[2], line 20: x_ptr = float32, 128, stride 1; out_ptr = float32, 128, "
        "stride 1; n = 128; BLOCK = 64",)
    assert len(made.elements) == 8
    assert made.elements[0][0] == "[0]"
    assert f"got {made.elements[0][1]}, expected {made.elements[0][2]}" in \
        report.results[0].findings[0].seen
    assert all(result.details is None for result in whole.results)


def test_what_is_run_for_the_diagnosis_prints_nothing(graded):
    marked = replace(SUITE, mutants=(mutant("m", wrong=("two blocks",), right=("one element",)),))
    text = changed("x * 2", "tl.where(n > 1, x, x * 2)")

    report = graded(text, marked, only="two blocks")

    assert report.output.splitlines() == ["called with 128"]
    assert report.results[0].findings[0].means == "means m"  # as in the whole grade
    assert seen(graded(text, marked, seed=report.seed)) != ""


@pytest.mark.parametrize(("module", "name"), [
    ("03-softmax", "f"), ("03-softmax", "k"), ("01-vector-add", "m"), ("01-vector-add", "l"),
])
def test_a_case_alone_names_the_mistake_that_the_whole_grade_names(graded, module, name):
    suite = grader.load_suite(ROOT / "grader/suites/missing-elements" / module / "suite.py")
    mistake = next(mutant for mutant in suite.mutants if mutant.id == name)
    solution = (ROOT / "solutions/missing-elements" / module / "kernel.py").read_text()
    [case] = [case for case in suite.cases if case.name == (mistake.wrong or ["one element"])[0]]

    report = graded(mistake.apply(solution), suite, only=case.name)

    assert [result.name for result in report.results] == [case.name]
    assert report.results[0].findings[0].means == mistake.meaning
    assert report.results[0].findings[0].todos == mistake.todos


QUOTIENT = "y = numerator * (1.0 / denominator)"
STORED = "acc.to(c_ptr.dtype.element_ty)"
SIBLINGS = [
    ("03-softmax", "f", QUOTIENT, "y = shifted - tl.log(denominator)", "is the logarithm of"),
    ("03-softmax", "f", QUOTIENT, "y = x", "equals `x`"),
    ("04-layer-norm", "c", "var = tl.sum(centered * centered, axis=0) / n_cols",
     "var = tl.sum(centered * centered, axis=0)", "not divided by n_cols"),
    ("04-layer-norm", "f", "weight_ptr + cols", "weight_ptr + n_cols - 1 - cols", "are wrong"),
    ("04-layer-norm", "j", "tl.store(rstd_ptr + row, rstd)",
     "tl.store(rstd_ptr + row, tl.sqrt(var + eps))", "is the reciprocal of"),
    ("02-matrix-mul", "n", STORED, f"tl.maximum({STORED}, 0)", "Every negative value became 0"),
    ("02-matrix-mul", "g", "c_mask = in_m", "c_mask = (offs_m <= M)", "exactly one row past"),
    ("01-vector-add", "g", "total = x + y", "total = 2 * tl.maximum(x, y)", "are wrong"),
    ("01-tiling", "e", "(n_batch, triton.cdiv(m, block_m), triton.cdiv(n, block_n))",
     "(n_batch, max(1, m // block_m), max(1, n // block_n))", "stored other elements"),
]


@pytest.mark.parametrize(("module", "name", "old", "new", "says"), by_default(4, SIBLINGS))
def test_a_known_mistake_does_not_speak_for_another_that_fails_alike(
        graded, module, name, old, new, says):
    (path,) = (ROOT / "grader/suites").glob(f"*/{module}/suite.py")
    suite = grader.load_suite(path)
    solution = (ROOT / "solutions" / path.parent.parent.name / module / "kernel.py").read_text()
    mistake = next(mutant for mutant in suite.mutants if mutant.id == name)
    assert old in solution

    finding, known = (graded(text, suite, effort="diagnosis").first_failure.findings[0]
                      for text in (solution.replace(old, new), mistake.apply(solution)))

    assert known.means == mistake.meaning
    assert finding.means != mistake.meaning
    assert says in finding.seen


@pytest.mark.course
def test_without_its_own_mutant_no_mistake_is_called_by_another_s_name(graded):
    """The diagnosis is not only complete but careful: leave one out."""
    suite = grader.load_suite(ROOT / "grader/suites/missing-elements/01-vector-add/suite.py")
    solution = (ROOT / "solutions/missing-elements/01-vector-add/kernel.py").read_text()
    for name in ("c", "f", "g"):
        mistake = next(mutant for mutant in suite.mutants if mutant.id == name)
        others = tuple(mutant for mutant in suite.mutants if mutant is not mistake)

        finding = graded(mistake.apply(solution), replace(suite, mutants=others)
                         ).first_failure.findings[0]

        assert finding.code == mistake.codes[0]
        assert finding.means not in {other.meaning for other in others}


@pytest.mark.parametrize("options", [
    {"only": "two blocks"}, {"seed": "ab"}, {"only": "one element", "seed": "ab"},
], ids=str)
def test_a_partial_grade_is_no_evidence(graded, options):
    report = graded(KERNEL, **options)

    assert (report.verdict, report.evidence, report.partial) == (Verdict.PASSED, "", True)
    assert graded(KERNEL).evidence == "correct"


def test_a_case_that_is_not_there_is_refused(graded):
    with pytest.raises(grader.UnknownCase):
        graded(KERNEL, only="three blocks")


def test_a_file_that_cannot_be_graded_has_no_replay(graded):
    report = graded("x = (")

    assert [result.replay for result in report.results] == [""]


# ---------------------------------------------------------------------------------------------
# A description may be missing; it never fails


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64,
                                   torch.int32, torch.int64, torch.uint8, torch.bool], ids=str)
def test_any_difference_can_be_described(dtype):
    generator = torch.Generator().manual_seed(3)
    odd = torch.tensor([0.0, -0.0, torch.nan, torch.inf, -torch.inf, 1e-45, 1e300, 1.0],
                       dtype=torch.float64)
    for shape in ((), (1,), (2,), (5,), (1, 1), (1, 7), (7, 1), (3, 4), (2, 3, 4), (2, 1, 3, 2),
                  (0,), (3, 0), (300,)):
        for density in (0.05, 0.5, 1.0):
            numbers = torch.randn((2, *shape), generator=generator, dtype=torch.float64) * 50
            if dtype.is_floating_point:
                some = torch.rand(numbers.shape, generator=generator) < 0.2
                picks = torch.randint(len(odd), numbers.shape, generator=generator)
                numbers = torch.where(some, odd[picks], numbers)
            result = numbers[0].to(dtype)
            reference = numbers[1] if dtype.is_floating_point else numbers[1].to(dtype)
            wrong = torch.rand(shape, generator=generator) < density

            region = place(wrong, Tiling((2, 4), (3, 1, 1)))
            like = likeness(wrong, result, reference)

            assert region is None or messages.region(region).endswith(".")
            assert like is None or messages.pattern(like).endswith(".")


# ---------------------------------------------------------------------------------------------
# Words


@pytest.mark.parametrize(("message", "word", "there"), [
    ("at most 65,536 columns", "65536", True), ("at most 65_536 columns", "65536", True),
    ("at most 65 536 columns", "65536", True), ("at most 65536 columns", "65,536", False),
    ("got shape (4, 8)", "48", False), ("got shape (1,100)", "100", True),
    ("got 65,5360", "655360", False), ("got 1,048,576", "1048576", True),
])
def test_digits_in_a_message_may_be_grouped(message, word, there):
    assert mentions(message, word) is there


@pytest.mark.parametrize(("text", "said"), [
    ("a word", "A word."), ("package/.github/ci.yml has no jobs", "package/.github/ci.yml has no "
                                                                  "jobs."),
    ("matmul_fp8(a, b) gives NaN", "matmul_fp8(a, b) gives NaN."),
    ("softmax(x) raised", "softmax(x) raised."), ("x: expected 2", "x: expected 2."),
    ("tl.dot takes 16 rows", "tl.dot takes 16 rows."), ("n_cols is 0", "n_cols is 0."),
    ("arange's range is odd", "Arange's range is odd."), ("well-known, and so on",
                                                          "Well-known, and so on."),
    ("", "."),
])
def test_a_sentence_has_a_capital_and_names_of_paths_and_code_keep_theirs(text, said):
    assert sentence(text) == said


def test_a_launch_for_nothing_is_not_told_as_one_too_many():
    case = edge("no element", rand(0), launches=0)
    launch = Launch("k", (1, 1, 1), {}, {}, 7)

    [finding] = broken_contract(Suite(), case, Recording((), (launch,), ()), [])

    told = codes.explain(finding, [], {})
    assert (told.code, told.means) == ("T03", messages.NOTHING_TO_DO)


def test_what_host_code_answers_is_no_matter_of_the_compiler(tmp_path):
    path = tmp_path / "kernel.py"
    path.write_text("def plan(n):\n    return n\n")
    suite = Suite(host={"plan": ("n",)}, calls="def plans(module, n):\n    return module.plan(n)\n",
                  cases=[call("a plan", "plans", 3, check=print, code="T06")])
    findings = [Finding("T06", "The answer is 3, and 4 are possible.")]
    results = [result_of(case, findings)
               for case in (suite.all_cases[0], replace(suite.all_cases[0], name="a launch"))]

    asked, launched = explained(results, suite, source.read(path))

    assert "compiler" not in asked.findings[0].means
    assert launched.findings[0].means == codes.MEANINGS["T06"]


@pytest.mark.parametrize(("data", "policy"), [
    (fault("constexpr function", line=7, called=True, code="half"), True),
    (fault("bound twice", line=7, name="ONE", lines=(3, 5)), True),
    (fault("no kernel", kernel="made"), True),
    (fault("construct", line=7, construct="ListComp"), True),
    (fault("variable around", line=7, called=False, code="SCALE", around="make"), True),
    (fault("construct", line=7, construct="Raise"), False),
    (fault("not offered", line=7, called=True, code="tl.tanh", nearest=""), False),
], ids=lambda value: getattr(value, "kind", None))
def test_what_the_grader_does_not_follow_is_not_put_down_to_triton(data, policy):
    words = codes.explain(Finding("L05", data), [], {}).means

    assert ("even if Triton compiles it" in words) == policy
    assert bool(words) == policy  # of what Triton refuses, its own sentence says all


@pytest.mark.parametrize(("access", "code", "means"), [
    ("tl.load(x_ptr + offs)", "M01", "are outside the tensor, and the load has no mask"),
    ("tl.load(x_ptr + offs, mask=offs < m)", "M01", "is true for indices outside the tensor"),
    ("tl.load(x_ptr + offs, offs < m)", "M01", "is true for indices outside the tensor"),
    ("tl.store(x_ptr + offs, 1.0)", "M02", "and the store has no mask"),
    ("tl.store(x_ptr + offs, 1.0, mask=offs < m)", "M02", "is true for indices outside the tensor"),
    ("read(x_ptr + offs)", "M01", "the mask is missing or wrong"),
], ids=["none", "by keyword", "by position", "store without", "store with", "elsewhere"])
def test_an_access_outside_is_told_by_whether_it_has_a_mask(access, code, means):
    text = f"""import triton
import triton.language as tl

@triton.jit
def kernel(x_ptr, m):
    offs = tl.arange(0, 64)
    x = {access}
"""

    assert means in codes.explain(Finding(code, "It strayed", line=7), [], {}, text=text).means


@pytest.mark.parametrize(("axes", "means", "where"), [
    ("part", "or the grid has an axis that the kernel does not use", "Line 5 or line 9"),
    ("", "their offsets do not depend correctly on the program", "Line 5")])
def test_a_grid_with_an_axis_that_the_kernel_does_not_use_is_named(axes, means, where):
    text = """import triton

@triton.jit
def kernel(x_ptr):
    tl.store(x_ptr + tl.program_id(0), 1.0)


def entry(x):
    kernel[(2, 2)](x)
"""
    twice = MemoryAccess("two programs", "stored", 1, 0, 1, (2, 2, 1), "x_ptr", 8, axes=axes)

    finding = codes.explain(Finding("M04", twice, line=5), [], {}, text=text, entry="entry")

    assert means in finding.means
    assert finding.where == where

@pytest.mark.parametrize(("code", "change", "cause"), [
    ("N01", torch.Tensor.float, "N04"), ("N01", None, "N01"),
    ("M02", torch.Tensor.contiguous, "M08"), ("M02", None, "M02")])
def test_precision_and_layout_are_causes_only_where_the_function_is_right_without(
        code, change, cause):
    given = torch.ones(4, 6, dtype=torch.float16)[:, ::2]
    remedy = change and change(given)

    [finding] = name_the_cause([given], [Finding(code, "4 are wrong.")], lambda inputs: (
        remedy is not None and (inputs[0].dtype, inputs[0].stride()) == (
            remedy.dtype, remedy.stride())))

    assert finding.code == cause


@pytest.mark.parametrize(("line", "named"), [(5, 5), (6, None)], ids=["one line", "two lines"])
def test_a_line_is_named_only_where_it_is_the_only_one(line, named):
    text = ("import triton\nimport triton.language as tl\n@triton.jit\ndef k(x_ptr, mask):\n"
            "    x = tl.load(x_ptr, mask)\n    y = tl.load(x_ptr, mask)\n")
    facts = [LaunchFacts("k", 1, 0, 64, 0, None, 0, 2, 0, tuple(
        Traffic(number, "load", "x_ptr", 8, 32, 1, 1, 1) for number in range(5, line + 1)))]

    [finding] = located([Finding("M06", "garbage")], text, Recording((), (), ()), facts)

    assert finding.line == named


@pytest.mark.parametrize(("kind", "ratio", "is_explained"), [
    ("values", NEARLY, True), ("values", NEARLY + 1, False), ("values", 1.0, False),
    ("nonfinite", 2.0, False)])
def test_only_what_is_nearly_right_on_a_gpu_is_put_down_to_its_instructions(
        kind, ratio, is_explained):
    tensors = (torch.tensor([True]), torch.tensor([1.5]), torch.tensor([1.0]).double())
    difference = Difference(kind, 1, 1, (0,), 1.5, 1.0, ratio, tensors)

    assert (effect(Finding("N01", ""), difference) == "fused") is is_explained


def test_findings_in_equal_circumstances_count_once():
    finding = Finding("N01", "3 are wrong.")
    both = [finding.within("trials", count=4), finding.within("trials", count=4)]

    assert list(dict.fromkeys(both)) == both[:1]


def test_every_fault_has_a_sentence_with_its_figures():
    """Faults whose kind or figures stand in the call itself; others are made of these."""
    faults = messages._FAULTS | dict.fromkeys(messages._NAMES, messages._name)
    others = {"wrong_value_regions.py": messages._REGIONS,
              "wrong_value_patterns.py": messages._PATTERNS,
              "case_details.py": faults | {"everywhere": ""}}
    for path in Path(grader.__file__).parent.rglob("*.py"):
        kinds = others.get(path.name, faults)
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Call(func=ast.Name("fault") | ast.Attribute(attr="fault" | "words"),
                              args=[ast.Constant(kind)], keywords=figures):
                    names = {figure.arg for figure in figures} - {None}
                    form = kinds[kind]
                    if callable(form) and kind not in messages._NAMES:
                        signature(form).bind_partial(**dict.fromkeys(names))
                    elif kind in messages._FAULTS and kinds is faults and all(
                            figure.arg for figure in figures):
                        assert names == {name for _, name, _, _ in Formatter().parse(form)
                                         if name}, kind
