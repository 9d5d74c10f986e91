"""Strands: work that waits takes turns, gets its answers, and ends when nobody wants it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import pytest

from grader.strands import Strand, Wait

Later = Callable[[], Any]


def noted(said: list[str], name: str, *laters: Later) -> Callable[[Wait], list[Any]]:
    def work(wait: Wait) -> list[Any]:
        answers = []
        try:
            for number, later in enumerate(laters):
                said.append(f"{name}{number}")
                answers.append(wait(later))
        finally:
            said.append(f"{name} ends")
        return answers

    return work


def test_strands_take_turns_where_they_wait():
    said: list[str] = []
    one = Strand(noted(said, "a", lambda: 1, lambda: 2))
    other = Strand(noted(said, "b", lambda: 3))

    assert said == []  # nothing is begun yet
    while not (one.over and other.over):
        one.advance()
        other.advance()

    assert said == ["a0", "b0", "a1", "b ends", "a ends"]
    assert (one.result(), other.result()) == ([1, 2], [3])


def test_what_was_waited_for_is_raised_where_the_work_waits():
    caught: list[str] = []

    def work(wait: Wait) -> str:
        try:
            wait(lambda: 1 / 0)
        except ZeroDivisionError as error:
            caught.append(str(error))
        return "and goes on"

    strand = Strand(work)
    strand.advance()
    strand.advance()

    assert strand.over
    assert (caught, strand.result()) == (["division by zero"], "and goes on")


def test_what_the_work_raises_comes_out_where_its_result_is_wanted():
    strand = Strand(lambda wait: wait(dict)["nothing"])
    strand.advance()
    strand.advance()

    with pytest.raises(KeyError, match="nothing"):
        strand.result()


@pytest.mark.parametrize("turns", [0, 1, 2])
def test_work_that_is_dropped_ends_where_it_waits(turns):
    said: list[str] = []
    before = threading.active_count()
    strand = Strand(noted(said, "a", *[lambda: None] * 5))
    for _ in range(turns):
        strand.advance()

    strand.drop()

    assert said == [*(f"a{number}" for number in range(turns)), *["a ends"] * bool(turns)]
    assert threading.active_count() == before


def test_who_waits_is_told_of_an_interruption_and_the_work_can_still_be_dropped():
    def interrupted() -> None:
        raise KeyboardInterrupt

    said: list[str] = []
    strand = Strand(noted(said, "a", interrupted))
    strand.advance()

    with pytest.raises(KeyboardInterrupt):
        strand.advance()
    strand.drop()

    assert said == ["a0", "a ends"]


def test_the_work_sees_the_context_of_who_began_it():
    place: ContextVar[str] = ContextVar("place", default="nowhere")
    token = place.set("here")
    strand = Strand(lambda wait: place.get())
    place.reset(token)
    strand.advance()

    assert strand.result() == "here"
