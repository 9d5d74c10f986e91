"""What the suite of advanced optimizations says of search spaces, pruning, grids and trials."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

import grader
from grader.judge.contract import wrong_answer
from grader.report import Finding
from grader.suite import sibling

pytestmark = pytest.mark.course

SUITE = (Path(__file__).parents[2] / "grader" / "suites" / "optimization"
         / "05-advanced-optimizations" / "suite.py")
RULES = sibling(str(SUITE), "suite")


@pytest.fixture(scope="module")
def suite() -> grader.Suite:
    return grader.load_suite(SUITE)


def said(suite: grader.Suite, name: str, answer: object, *inputs: object) -> Finding | None:
    """What a case finds in an answer; without inputs, in one about those of the case."""
    case = next(case for case in suite.cases if case.name == name)
    assert case.call is not None
    found = wrong_answer(case.call, answer, inputs or case.inputs)
    return found[0] if found else None


def space(**changed: object) -> list[dict[str, object]]:
    """What `calls.configurations` answers of all tiles in two stages and three."""
    return [{"tile": tile, "stages": stages, "warps": 4 + 4 * (tile[0] == 128),
             "kwargs": {"BLOCK_M": str(tile[0])}} | changed
            for tile, stages in itertools.product(RULES.TILES, (2, 3))]


def pruned(*, limits: tuple[int, ...] = RULES.LIMITS) -> list[list[int]]:
    """What a right `prune_configs` keeps."""
    kept = []
    for limit, problem in itertools.product(limits, RULES.PROBLEMS):
        good = [number for number, made in enumerate(RULES.SPACE)
                if RULES.is_worth_it(made, problem, limit)]
        kept.append(good or [min(range(len(RULES.SPACE)),
                                 key=lambda n: RULES.stage_bytes(RULES.SPACE[n]))])
    return kept


@pytest.mark.parametrize(("name", "answer", "words"), [
    ("a search space of 12 to 48 configurations", space(), None),
    ("a search space of 12 to 48 configurations", space()[:1], "has 1 different"),
    ("a search space of 12 to 48 configurations", space()[:1] * 20, "has 1 different"),
    ("a search space of 12 to 48 configurations", space() * 4, "has 64 configurations"),
    ("a search space of 12 to 48 configurations", space()[2:], "BLOCK_K = 64, 64, 32."),
    ("stages and warps are options of the launch", space(), None),
    ("stages and warps are options of the launch", space(stages=3),
     "Every configuration of make_configs has num_stages = 3."),
    ("stages and warps are options of the launch", space(warps=4), "has num_warps = 4."),
    ("stages and warps are options of the launch", space(kwargs={"num_warps": "8"}),
     "as a parameter, and the launch option num_warps stays 4"),
    ("the scaling kernel is tuned", {"configs": 4}, None),
    ("the scaling kernel is tuned", {"configs": 3}, "with 3 configurations"),
    ("the scaling kernel is tuned", {"configs": 0}, "with 0 configurations"),
])
def test_a_search_space_is_told_what_it_lacks(suite, name, answer, words) -> None:
    found = said(suite, name, answer)

    assert (found is None) == (words is None)
    assert found is None or words in found.seen


PRUNING = ["one configuration is always left", "no configuration is dropped without a reason",
           "stages fit shared memory", "accumulators fit the registers",
           "no tile is twice as long as the matrices"]


def test_what_the_rules_keep_passes_every_case_of_pruning(suite) -> None:
    assert [said(suite, name, pruned()) for name in PRUNING] == [None] * len(PRUNING)


@pytest.mark.parametrize(("change", "failing", "words"), [
    (lambda kept: [], "one configuration is always left", "left no configuration"),
    (lambda kept: kept[1:] or kept, "no configuration is dropped without a reason", "dropped 64 x"),
    (lambda kept: kept[::-1], "no configuration is dropped without a reason", "another order"),
    (lambda kept: [*kept, -1], "no configuration is dropped without a reason", "not in its input"),
    (lambda kept: [*kept, 10], "stages fit shared memory", "294,912 bytes"),
    (lambda kept: [*kept, 11], "accumulators fit the registers", "256 accumulators"),
    (lambda kept: [*kept, 8], "no tile is twice as long as the matrices", "256 for N = 65"),
], ids=["nothing", "one less", "order", "another", "stages", "accumulators", "sides"])
def test_each_kind_of_wrong_pruning_fails_a_case_of_its_own(suite, change, failing, words) -> None:
    answer = [change(kept) for kept in pruned()]

    assert words in (said(suite, failing, answer) or Finding("", "")).seen


@pytest.mark.parametrize(("name", "answer", "words"), [
    ("num_sms programs start", [1, 3, 16], None),
    ("num_sms programs start", [1, 3, 8], "started 8 programs"),
    ("num_programs programs start", [1, 7, 64, 64], None),
    ("num_programs programs start", [1, 7, 64, 1_000], "1000 programs, expected 64"),
    ("num_programs programs start", [64, 64, 64, 64], "64 programs, expected 1."),
])
def test_too_many_and_too_few_programs_are_told(suite, name, answer, words) -> None:
    answer = answer if "num_programs" in name else [{"programs": count} for count in answer]

    found = said(suite, name, answer)

    assert (found is None) == (words is None)
    assert found is None or words in found.seen


def test_problems_that_share_a_tuned_entry_are_named(suite) -> None:
    name = "each M, N and K is tuned separately"
    problems = next(case for case in suite.cases if case.name == name).inputs[0]
    by_k = [{"programs": 3, "key": (str(k),)} for _, _, k, _ in problems]
    by_all = [{"programs": 3, "key": tuple(map(str, problem))} for problem in problems]

    assert "M is not in the key" in said(suite, name, by_k).seen
    assert said(suite, name, by_all) is None
