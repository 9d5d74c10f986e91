"""Every kind of mistake with memory is found where it is made, and nothing is found elsewhere."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from grader.engine.interpreter.eager import interpreted
from tests.fidelity.memory import bounds, duplicates, lanes, pointers, stops, unwritten, wide
from tests.fidelity.memory.cases import Kind, Right, Wrong, deadline, found, gist, speaks_of

KINDS: dict[str, Kind] = {
    name: kind
    for room in (bounds, pointers, unwritten, duplicates, wide, stops)
    for name, kind in room.KINDS.items()
}
WRONG = {f"{kind}: {name}": case for kind in KINDS for name, case in KINDS[kind].wrong.items()}
RIGHT = {f"{kind}: {name}": case for kind in KINDS for name, case in KINDS[kind].right.items()}

together_and_one_by_one = pytest.mark.parametrize(
    "chunk", [None, 1], ids=["together", "one by one"])


@pytest.fixture(autouse=True)
def in_time() -> Iterator[None]:
    with deadline(60.0):
        yield


@together_and_one_by_one
@pytest.mark.parametrize("case", WRONG.values(), ids=WRONG)
def test_a_mistake_is_found(case: Wrong, chunk: int | None) -> None:
    findings = found(case, chunk)

    assert [speaks_of(finding, case) for finding in findings] == [[]], findings


@together_and_one_by_one
@pytest.mark.parametrize("case", RIGHT.values(), ids=RIGHT)
def test_nothing_is_found_in_a_right_kernel(case: Right, chunk: int | None) -> None:
    with interpreted(order=case.order, duplicate_writes=case.duplicate_writes,
                     chunk=chunk) as trace:
        out, expected = case.run()

    assert trace.findings == []
    torch.testing.assert_close(out, expected, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("case", WRONG.values(), ids=WRONG)
def test_findings_do_not_depend_on_how_many_programs_run_at_once(case: Wrong) -> None:
    one_by_one, *others = (gist(found(case, chunk)) for chunk in (1, 2, 3, None))

    assert others == [one_by_one] * 3


@pytest.mark.parametrize("kind", KINDS)
def test_every_check_is_shown_mistakes_and_near_misses(kind: str) -> None:
    assert len(KINDS[kind].wrong) >= 2
    assert len(KINDS[kind].right) >= 3


# ---------------------------------------------------------------------------------------------
# Found by a second run


def results(case: lanes.Contrast, chunk: int | None, **settings: object) -> torch.Tensor:
    with interpreted(chunk=chunk, duplicate_writes=case.duplicate_writes, **settings) as trace:
        out = case.run()
    assert trace.findings == []
    return out


@together_and_one_by_one
@pytest.mark.parametrize("case", lanes.RESTS_ON_MASKED_LANES.values(),
                         ids=lanes.RESTS_ON_MASKED_LANES)
def test_two_poisons_tell_a_kernel_that_rests_on_masked_lanes(case: lanes.Contrast,
                                                              chunk: int | None) -> None:
    first, second = (results(case, chunk, poison=poison) for poison in (0, 1))

    assert not torch.equal(first.nan_to_num(nan=1e38), second.nan_to_num(nan=1e38))


@together_and_one_by_one
@pytest.mark.parametrize("case", lanes.INDEPENDENT_OF_MASKED_LANES.values(),
                         ids=lanes.INDEPENDENT_OF_MASKED_LANES)
def test_two_poisons_change_nothing_in_a_right_kernel(case: lanes.Contrast,
                                                      chunk: int | None) -> None:
    for poison in (0, 1):
        assert torch.equal(results(case, chunk, poison=poison), case.expected)


@together_and_one_by_one
@pytest.mark.parametrize("case", lanes.RESTS_ON_THE_ORDER.values(), ids=lanes.RESTS_ON_THE_ORDER)
def test_two_orders_tell_a_kernel_that_rests_on_one(case: lanes.Contrast,
                                                    chunk: int | None) -> None:
    forward, reverse = (results(case, chunk, order=order) for order in ("forward", "reverse"))

    assert not torch.equal(forward, reverse)


@together_and_one_by_one
@pytest.mark.parametrize("case", lanes.INDEPENDENT_OF_THE_ORDER.values(),
                         ids=lanes.INDEPENDENT_OF_THE_ORDER)
def test_two_orders_change_nothing_in_a_right_kernel(case: lanes.Contrast,
                                                     chunk: int | None) -> None:
    for order in ("forward", "reverse"):
        assert torch.equal(results(case, chunk, order=order), case.expected)
