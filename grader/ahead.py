"""Runs cases ahead: while the judge compares one, the next are recorded and replayed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

Case = TypeVar("Case")
Called = TypeVar("Called")
Trial = TypeVar("Trial")
T = TypeVar("T")


class Ahead(Generic[Case, Called, Trial]):
    """Two steps for each of several cases, each begun before the steps of the cases before it end.

    While one case is compared, the next one is in its second step and the one after in its first.
    """

    def __init__(self, cases: Iterable[Case], call: Callable[[Case], Callable[[], Called]],
                 replay: Callable[[Called], Callable[[], Trial]]) -> None:
        """Nothing is begun yet.

        Args:
            cases: in the order in which they will be taken.
            call: begins the first step and returns what waits for its end.
            replay: the same of the second step, from what the first one gave.
        """
        self._rest = deque(cases)
        self._call, self._replay = call, replay
        self._called: Callable[[], Called] | None = None
        self._replayed: Callable[[], Trial] | None = None

    def take(self) -> Trial:
        """Wait for the trial of the next case.

        Raises:
            Exception: what its steps raised.
        """
        replayed = self._replayed or self._begin_replay()
        try:
            return replayed()
        finally:
            more = self._called is not None or self._rest
            self._replayed = self._begin_replay() if more else None

    def _begin_replay(self) -> Callable[[], Trial]:
        called = self._called or self._begin_call()
        replayed = _begun(lambda: self._replay(called()))
        self._called = self._begin_call() if self._rest else None
        return replayed

    def _begin_call(self) -> Callable[[], Called]:
        case = self._rest.popleft()
        return _begun(lambda: self._call(case))


def _begun(step: Callable[[], Callable[[], T]]) -> Callable[[], T]:
    """Begin a step; what it raises belongs to its own case, and comes out where that is taken."""
    try:
        return step()
    except Exception as error:
        raised = error

    def fail() -> T:
        raise raised

    return fail
