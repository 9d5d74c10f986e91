"""Look-ahead: while the judge compares one case, the next are recorded and replayed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Generic, NoReturn, TypeVar

from grader.processes.pool import Later

Case = TypeVar("Case")
Call = TypeVar("Call")
T = TypeVar("T")


class Pipeline(Generic[Case, Call]):
    """Two steps for each of several cases, each begun before the steps of the cases before it end.

    While one case is compared, the next ones are in their second step, and one more in its first.
    """

    def __init__(self, cases: Iterable[Case], record: Callable[[Case], Later[Call]],
                 replay: Callable[[Call], Later[Call]], depth: int = 2) -> None:
        """Nothing is begun yet.

        Args:
            cases: in the order in which they will be taken.
            record: begins the first step.
            replay: begins the second step, from the value of the first one.
            depth: second steps that are under way, one more than run at the same time: so the next
                one is there when one ends.
        """
        self._rest = deque(cases)
        self._record, self._replay, self._depth = record, replay, depth
        self._recording: Later[Call] | None = None
        self._replaying: deque[Later[Call]] = deque()

    def take(self) -> Call:
        """Waits for the steps of the next case.

        Raises:
            Exception: what its steps raised.
        """
        if not self._replaying:
            self._begin_replays()
        replayed = self._replaying.popleft()()  # a failure is raised before waiting for others
        self._begin_replays()
        return replayed

    def _begin_replays(self) -> None:
        while len(self._replaying) < self._depth and (self._recording is not None or self._rest):
            recording = self._recording or _begun(self._record, self._rest.popleft())
            self._replaying.append(_begun(lambda call: self._replay(call()), recording))
            self._recording = _begun(self._record, self._rest.popleft()) if self._rest else None
            if isinstance(self._replaying[-1], _Failed):
                break


class _Failed:
    """Waits for nothing: the step failed when it was begun."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __call__(self) -> NoReturn:
        raise self._error


def _begun(step: Callable[[T], Later[Call]], subject: T) -> Later[Call]:
    """Begins a step; what it raises belongs to its own case, and is raised where that is taken."""
    try:
        return step(subject)
    except Exception as error:
        return _Failed(error)
