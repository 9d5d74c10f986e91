"""Runs cases ahead: while the judge compares one, the next are recorded and replayed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Generic, NoReturn, TypeVar

Case = TypeVar("Case")
Called = TypeVar("Called")
Trial = TypeVar("Trial")
T = TypeVar("T")


class Ahead(Generic[Case, Called, Trial]):
    """Two steps for each of several cases, each begun before the steps of the cases before it end.

    While one case is compared, the next ones are in their second step, and one more in its first.
    """

    def __init__(self, cases: Iterable[Case], call: Callable[[Case], Callable[[], Called]],
                 replay: Callable[[Called], Callable[[], Trial]], depth: int = 2) -> None:
        """Nothing is begun yet.

        Args:
            cases: in the order in which they will be taken.
            call: begins the first step and returns what waits for its end.
            replay: the same of the second step, from what the first one gave.
            depth: second steps that are under way, one more than run at the same time: so the next
                one is there when one ends.
        """
        self._rest = deque(cases)
        self._call, self._replay, self._depth = call, replay, depth
        self._called: Callable[[], Called] | None = None
        self._replayed: deque[Callable[[], Trial]] = deque()

    def take(self) -> Trial:
        """Wait for the trial of the next case.

        Raises:
            Exception: what its steps raised.
        """
        if not self._replayed:
            self._begin_replays()
        trial = self._replayed.popleft()()  # what fails is told before anything else is waited for
        self._begin_replays()
        return trial

    def _begin_replays(self) -> None:
        while len(self._replayed) < self._depth and (self._called is not None or self._rest):
            called = self._called or self._begin_call()
            self._replayed.append(_begun(partial(self._replay_of, called)))
            self._called = self._begin_call() if self._rest else None
            if isinstance(self._replayed[-1], _Failed):
                break

    def _replay_of(self, called: Callable[[], Called]) -> Callable[[], Trial]:
        return self._replay(called())

    def _begin_call(self) -> Callable[[], Called]:
        return _begun(partial(self._call, self._rest.popleft()))


class _Failed:
    """Waits for nothing: the step failed when it was begun."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __call__(self) -> NoReturn:
        raise self._error


def _begun(step: Callable[[], Callable[[], T]]) -> Callable[[], T]:
    """Begin a step; what it raises belongs to its own case, and comes out where that is taken."""
    try:
        return step()
    except Exception as error:
        return _Failed(error)
