"""Programs that get into each other's way are found; programs that take turns are left alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from grader.engine.interpreter.eager import interpreted
from tests.fidelity.memory import races
from tests.fidelity.memory.cases import Right, Wrong, deadline, found, gist, marked, speaks_of

together_and_one_by_one = pytest.mark.parametrize(
    "chunk", [None, 1], ids=["together", "one by one"])
either_order = pytest.mark.parametrize("order", ["forward", "reverse"])


@pytest.fixture(autouse=True)
def in_time() -> Iterator[None]:
    with deadline(60.0):
        yield


@together_and_one_by_one
@pytest.mark.parametrize("case", races.RACES.wrong.values(), ids=races.RACES.wrong)
def test_a_race_is_found(case: Wrong, chunk: int | None) -> None:
    findings = found(case, chunk)

    assert [speaks_of(finding, case) for finding in findings] == [[]], findings


@pytest.mark.parametrize("case", races.RACES.wrong.values(), ids=races.RACES.wrong)
def test_findings_do_not_depend_on_how_many_programs_run_at_once(case: Wrong) -> None:
    one_by_one, *others = (gist(found(case, chunk)) for chunk in (1, 2, 3, None))

    assert others == [one_by_one] * 3


@either_order
@together_and_one_by_one
@pytest.mark.parametrize(("kernel", "run", "tensor"), races.RACY.values(), ids=races.RACY)
def test_a_race_in_both_directions_is_found_in_either_order(
        kernel: Any, run: Callable[[], None], tensor: str, order: Any, chunk: int | None) -> None:
    """Whether the load or the store comes second depends on the order; each has its finding."""
    with interpreted(order=order, chunk=chunk, duplicate_writes=True) as trace:
        run()

    races_found = [finding for finding in trace.findings if finding.code == "M09"]
    assert races_found == trace.findings
    assert races_found
    for finding in races_found:
        assert finding.line in marked(kernel, "M09")
        assert f"`{tensor}`" in finding.seen or not tensor
        both = re.findall(r"program (?:\d+|\(\d+, \d+\))(?![\d,])", finding.seen)
        assert len(set(both)) == 2  # who came second, and whose memory it was


@together_and_one_by_one
@pytest.mark.parametrize(("kernel", "run", "tensor"), races.RACY_IN_ONE_ORDER.values(),
                         ids=races.RACY_IN_ONE_ORDER)
def test_a_race_that_one_order_hides_is_found_in_the_other(
        kernel: Any, run: Callable[[], None], tensor: str, chunk: int | None) -> None:
    found_races = []
    for order in ("forward", "reverse"):
        with interpreted(order=order, chunk=chunk) as trace:
            run()
        found_races += [finding for finding in trace.findings if finding.code == "M09"]

    assert found_races
    assert all(f.line in marked(kernel, "M09") and f"`{tensor}`" in f.seen for f in found_races)


@pytest.mark.parametrize("case", races.RACES.wrong.values(), ids=races.RACES.wrong)
def test_a_race_is_found_in_reverse_order_too(case: Wrong) -> None:
    with interpreted(order="reverse") as trace:
        case.run()

    assert case.code in {finding.code for finding in trace.findings}
    assert all(f"`{case.tensor}`" in f.seen for f in trace.findings if f.code == case.code)


@either_order
@pytest.mark.parametrize("chunk", [None, 1, 3])
@pytest.mark.parametrize("case", races.ORDERED.values(), ids=races.ORDERED)
def test_programs_that_take_turns_are_left_alone(case: Right, order: Any,
                                                 chunk: int | None) -> None:
    with interpreted(order=order, chunk=chunk) as trace:
        out, expected = case.run()

    assert trace.findings == []
    torch.testing.assert_close(out, expected, rtol=0, atol=0)


@pytest.mark.parametrize("case", races.CO_RESIDENT.values(), ids=races.CO_RESIDENT)
def test_programs_that_all_wait_for_each_other_run_at_once(case: Right) -> None:
    with interpreted() as trace:
        out, expected = case.run()

    assert trace.findings == []
    torch.testing.assert_close(out, expected, rtol=0, atol=0)


@pytest.mark.parametrize("case", races.LATE_STARTERS.values(), ids=races.LATE_STARTERS)
def test_programs_that_wait_for_later_ones_do_not_take_long(case: Right) -> None:
    with deadline(10.0), interpreted(order=case.order) as trace:
        out, expected = case.run()

    assert trace.findings == []
    torch.testing.assert_close(out, expected, rtol=0, atol=0)
