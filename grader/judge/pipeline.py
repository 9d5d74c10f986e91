"""Look-ahead: while the judge compares one case, the next are recorded and replayed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Generic, NoReturn, TypeVar

Case = TypeVar("Case")
Call = TypeVar("Call")


class Pipeline(Generic[Case, Call]):
    """Two steps for each of several cases, each begun before the steps of the cases before it end.

    While one case is compared, the next ones are in their second step, and one more in its first.
    """

    def __init__(self, cases: Iterable[Case], record: Callable[[Case], Callable[[], Call]],
                 replay: Callable[[Call], Callable[[], Call]], depth: int = 2) -> None:
        """Nothing is begun yet.

        Args:
            cases: in the order in which they will be taken.
            record: begins the first step and returns a function that waits for its end.
            replay: the same of the second step, from the value of the first one.
            depth: second steps that are under way, one more than run at the same time: so the next
                one is there when one ends.
        """
        self._rest = deque(cases)
        self._record, self._replay, self._depth = record, replay, depth
        self._recording: Callable[[], Call] | None = None
        self._replaying: deque[Callable[[], Call]] = deque()

    def take(self) -> Call:
        """Wait for the steps of the next case.

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
            recording = self._recording or self._begin_recording()
            self._replaying.append(_begun(partial(self._replay_of, recording)))
            self._recording = self._begin_recording() if self._rest else None
            if isinstance(self._replaying[-1], _Failed):
                break

    def _replay_of(self, recording: Callable[[], Call]) -> Callable[[], Call]:
        return self._replay(recording())

    def _begin_recording(self) -> Callable[[], Call]:
        return _begun(partial(self._record, self._rest.popleft()))


class _Failed:
    """Waits for nothing: the step failed when it was begun."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __call__(self) -> NoReturn:
        raise self._error


def _begun(step: Callable[[], Callable[[], Call]]) -> Callable[[], Call]:
    """Begin a step; what it raises belongs to its own case, and is raised where that is taken."""
    try:
        return step()
    except Exception as error:
        return _Failed(error)
