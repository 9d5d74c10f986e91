"""What pipelining and occupancy say of plans that promise too much, or leave room unused."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import grader
from grader.diagnosis import codes
from grader.engine.compiler.targets import find
from grader.engine.compiler.targets import occupancy as counted
from grader.judge.contract import wrong_answer
from grader.report import Finding

pytestmark = pytest.mark.course

SUITES = Path(__file__).parents[2] / "grader" / "suites" / "optimization"


@pytest.fixture(scope="module")
def pipelining() -> grader.Suite:
    return grader.load_suite(SUITES / "02-pipelining" / "suite.py")


@pytest.fixture(scope="module")
def occupancy() -> grader.Suite:
    return grader.load_suite(SUITES / "08-occupancy" / "suite.py")


def said(suite: grader.Suite, name: str, answer: object) -> Finding | None:
    """What a case finds in an answer, put in words."""
    case = next(case for case in suite.all_cases if case.name == name)
    assert case.call is not None
    found = wrong_answer(case.call, answer, case.inputs)
    return codes.explain(found[0], suite.mutants, {}, frozenset({name})) if found else None


def asked(suite: grader.Suite, name: str) -> list[tuple]:
    return list(next(case for case in suite.all_cases if case.name == name).inputs[0])


@pytest.mark.parametrize(("name", "first", "words", "means"), [
    ("the tiles of all stages fit", 3, None, None),
    ("the tiles of all stages fit", 5, "5 x 65,536 = 327,680 bytes", "All stages keep their tiles"),
    ("the tiles of all stages fit", 4, "4 x 65,536 = 262,144 bytes", "counted as s - 1 buffers"),
    ("as many stages as fit", 3, None, None),
    ("as many stages as fit", 1, "3 stages fit as well", "leaves part of the GPU unused"),
])
def test_a_number_of_stages_is_told_by_what_is_wrong_with_it(pipelining, name, first, words, means):
    loops = asked(pipelining, name)
    right = [min(most, rounds, limit // tile) for tile, limit, rounds, most in loops]

    found = said(pipelining, name, [first, *right[1:]])

    assert (found is None) == (words is None)
    assert found is None or (words in found.seen and means in found.means)


@pytest.mark.parametrize(("name", "first", "words", "means"), [
    ("no more blocks than fit", [12, 48, 0.75, "registers"], None, None),
    ("no more blocks than fit", [15, 60, 60 / 64, "registers"], "15 blocks are claimed and 12 fit",
     "next multiple of the unit"),
    ("as many blocks as fit", [12, 48, 0.75, "registers"], None, None),
    ("as many blocks as fit", [1, 4, 4 / 64, "blocks"], "1 block is claimed, and 12 fit",
     "leaves part of the GPU unused"),
    ("consistent fields", [12, 12, 0.75, "registers"], "12 blocks are not 12 warps",
     ""),
    ("consistent fields", [0, 0, 0.0, "registers"], "0 blocks fit, and the limiter is", ""),
])
def test_an_occupancy_is_told_by_what_is_wrong_with_it(occupancy, name, first, words, means):
    kernels = asked(occupancy, name)
    assert kernels[0] == (33, 0, 4, "h100")
    rule = sys.modules["grader_suite_08-occupancy"].right

    found = said(occupancy, name, [first, *(list(rule(*kernel)) for kernel in kernels[1:])])

    assert (found is None) == (words is None)
    assert found is None or (words in found.seen and means in found.means)


def test_blocks_dealt_out_one_by_one_are_as_many_as_the_compiler_room_counts(occupancy):
    """Two ways to the same numbers: the suite's, and those of `tritonlab inspect`."""
    rule = sys.modules["grader_suite_08-occupancy"].right
    for registers, shared, warps, name in asked(occupancy, "as many blocks as fit"):
        blocks, *_, limiter = rule(registers, shared, warps, name)
        if limiter != "unlaunchable" and name in ("a100", "h100", "h200", "b200"):
            assert counted(registers, shared, warps, find(name)).programs == blocks
