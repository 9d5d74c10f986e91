"""What a case asks of launches and exceptions, beside the values."""

from __future__ import annotations

import pytest
import torch

from grader.judge.contract import broken_contract, broken_refusal
from grader.processes.replies import Raised
from grader.recording.model import Launch, Recording
from grader.suite import Cost, Suite, Tolerance, edge, refuses

LAUNCH = Launch("kernel", (1, 1, 1), {})
SUITE = Suite(entry="f", parameters=("x",), reference=lambda x: (), tolerance=Tolerance(),
              cost=lambda: Cost(0), cases=[])


@pytest.mark.parametrize(("count", "codes"), [(0, ["T03"]), (1, ["T03"]), (2, []), (3, ["T03"])])
def test_a_case_that_names_its_launches_takes_neither_more_nor_fewer(count, codes):
    recording = Recording((), (LAUNCH,) * count, (), returned_tuple=True)

    findings = broken_contract(SUITE, edge("two steps", launches=2), recording,
                               [torch.ones(1)])

    assert [finding.code for finding in findings] == codes


@pytest.mark.parametrize(("message", "launches", "codes"), [
    ("mask has 2 dimensions, expected 1", 0, []), ("mask is wrong", 0, ["E03"]),
    ("expected 1 dimension", 0, ["E03"]), ("mask has 2 dimensions, expected 1", 1, ["E01"])])
def test_an_exception_names_every_word_and_comes_before_the_first_launch(message, launches, codes):
    case = refuses("a matrix", raises=ValueError, mentions=("mask", "expected 1"))

    findings = broken_refusal(case, Raised(("ValueError",), message, 3, launches))

    assert [finding.code for finding in findings] == codes
