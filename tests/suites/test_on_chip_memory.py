"""What the suites of on-chip memory and of reductions across programs say of answers and texts."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import grader
from grader.judge import compare
from grader.judge.contract import wrong_answer, wrong_text
from grader.report import Finding

pytestmark = pytest.mark.course

SUITES = Path(__file__).parents[2] / "grader" / "suites" / "optimization"


@pytest.fixture(scope="module")
def memory() -> grader.Suite:
    return grader.load_suite(SUITES / "03-shared-memory" / "suite.py")


@pytest.fixture(scope="module")
def reduction() -> grader.Suite:
    return grader.load_suite(SUITES / "06-two-phase-reduction" / "suite.py")


def said(suite: grader.Suite, name: str, answer: object, *inputs: object) -> list[Finding]:
    """What a call finds in an answer; to other questions than its own, where they are given."""
    case = next(case for case in suite.all_cases if case.name == name)
    assert case.call is not None
    return wrong_answer(case.call, answer, inputs or case.inputs)


FITS = "plans fit, and their costs are right"
LEAST = "plans have the least traffic"
TIES = "ties of plans"
PROBLEM = (256, 256, 256, 2, 49_152, 3)


@pytest.mark.parametrize(("case", "plan", "words"), [
    (FITS, (128, 256, 16, 36_864, 524_288), ""),
    (FITS, (24, 16, 16, 3_840, 1), "block_m is not in"),
    (FITS, (256, 256, 16, 49_152, 1), "65,536 elements"),
    (FITS, (128, 256, 32, 24_576, 524_288), "3 x 24,576 bytes are 73,728 bytes of shared memory"),
    (FITS, (128, 256, 16, 12_288, 524_288), "3 stages of two tiles take 36,864 bytes"),
    (FITS, (128, 256, 16, 36_864, 524_289), "its programs move 524,288 bytes"),
    (LEAST, (128, 256, 16, 36_864, 524_288), ""),
    (LEAST, (256, 128, 16, 36_864, 524_288), ""),
    (LEAST, (128, 128, 32, 49_152, 655_360), "moves 655,360 bytes; 524,288 are possible"),
    (TIES, (128, 256, 16, 36_864, 524_288), ""),
    (TIES, (256, 128, 16, 36_864, 524_288), "by the rule for ties it is 128 x 256 x 16"),
])
def test_a_plan_is_told_by_the_rule_that_it_breaks(memory, case, plan, words) -> None:
    found = said(memory, case, [plan], (PROBLEM,))

    assert bool(found) == bool(words)
    assert not found or words in found[0].seen


@pytest.mark.parametrize(("call", "right"), [
    ("tl.reduce((mean, m2, n), 0, merge)", True),
    ("triton.language.reduce((mean, m2, n), axis=0, combine_fn=merge)", True),
    ("reduce((mean, m2, n), 0, merge)", True),
    ("tl.sum(mean, 0)", False),
    ("tl.reduce(mean, 0, tl.maximum)", False),
])
def test_a_tree_of_the_files_own_is_seen_however_it_is_called(memory, call, right) -> None:
    case = next(case for case in memory.all_cases if case.reading is not None)
    text = f"def merge(a, b, c, d, e, f):\n    return a, b, c\n\ndef k():\n    x = {call}\n"

    found = wrong_text(case.reading, {"kernel.py": text})

    assert [finding.code for finding in found] == ([] if right else ["T06"])


@pytest.mark.parametrize("mean", [0.0, 100.0, 1e4])
def test_one_walk_in_float32_is_near_enough_and_squares_are_not(memory, mean) -> None:
    part = next(part for part in memory.parts if part.entry == "column_stats")
    x = (torch.randn(1_000, 16, generator=torch.Generator().manual_seed(1)) + mean)

    running, squares = torch.zeros(16), torch.zeros(16)
    for number, row in enumerate(x, 1):
        delta = row - running
        running = running + delta / number
        squares = squares + delta * (row - running)
    naive = (x * x).mean(0) - x.mean(0) ** 2

    def wrong(var: torch.Tensor) -> bool:
        return bool(compare.judge((x.mean(0), var), [x], part.reference, part.tolerance))

    assert not wrong(squares / 1_000)
    assert wrong(naive) == (mean > 0)


@pytest.mark.parametrize(("problem", "groups", "fits", "most"), [
    ((4_096, 50 << 20, 132), 128, "", ""),
    ((4_096, 50 << 20, 132), 64, "", "128 fit as well"),
    ((4_096, 50 << 20, 132), 256, "the limit is 132", ""),
    ((65_536, 4 << 20, 256), 16, "half of the L2 cache is 2,097,152", ""),
    ((10_000_000, 4 << 20, 256), 1, "", ""),
    ((16, 50 << 20, 132), 100, "expected a power of two", "128 fit"),
    ((16, 50 << 20, 132), 0, "expected a power of two", "128 fit"),
])
def test_groups_are_told_by_the_bound_that_they_break(reduction, problem, groups, fits,
                                                      most) -> None:
    unfit = said(reduction, "groups fit the cache and the programs", [groups], (problem,))
    few = said(reduction, "as many groups as fit", [groups], (problem,))

    assert (bool(unfit), bool(few)) == (bool(fits), bool(most))
    assert not unfit or fits in unfit[0].seen
    assert not few or (few[0].code, most in few[0].seen) == ("T07", True)
