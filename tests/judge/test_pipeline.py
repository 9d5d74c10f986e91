"""Cases that run ahead: in order, each with its own trial, and each with its own failure."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from grader.judge.pipeline import Pipeline


class Steps:
    """Two steps that note when they begin and end; they fail where they are told to."""

    def __init__(self, fails: tuple[str, ...] = ()) -> None:
        self.seen: list[str] = []
        self._fails = fails

    def _step(self, name: str, gives: str) -> Callable[[], str]:
        self.seen.append(f"{name} begins")
        if f"{name} begins" in self._fails:
            raise ValueError(f"{name} begins")

        def wait() -> str:
            self.seen.append(f"{name} ends")
            if f"{name} ends" in self._fails:
                raise ValueError(f"{name} ends")
            return gives

        return wait

    def call(self, case: str) -> Callable[[], str]:
        return self._step(f"call {case}", case)

    def replay(self, called: str) -> Callable[[], str]:
        return self._step(f"replay {called}", called.upper())


def test_the_next_cases_are_under_way_when_one_is_taken():
    steps = Steps()
    ahead = Pipeline("abcd", steps.call, steps.replay)

    assert ahead.take() == "A"
    assert steps.seen == [
        "call a begins", "call a ends", "replay a begins",
        "call b begins", "call b ends", "replay b begins", "call c begins",
        "replay a ends", "call c ends", "replay c begins", "call d begins"]
    assert [ahead.take() for _ in range(3)] == ["B", "C", "D"]
    assert len(steps.seen) == 16


def test_nothing_begins_before_the_first_case_is_taken():
    steps = Steps()
    Pipeline("abc", steps.call, steps.replay)

    assert steps.seen == []


@pytest.mark.parametrize("where", ["call b begins", "call b ends", "replay b begins",
                                   "replay b ends"])
def test_what_a_step_raises_comes_out_where_its_case_is_taken(where):
    steps = Steps(fails=(where,))
    ahead = Pipeline("abcd", steps.call, steps.replay)

    assert ahead.take() == "A"
    with pytest.raises(ValueError, match=where):
        ahead.take()
    assert (ahead.take(), ahead.take()) == ("C", "D")
