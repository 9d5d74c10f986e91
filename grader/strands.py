"""Work that waits again and again, side by side: while one piece waits, another goes on."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, Generic, NoReturn, TypeVar

T = TypeVar("T")
Later = Callable[[], Any]  # waits for what was begun
Wait = Callable[[Later], Any]


class _Dropped(BaseException):
    """Ends work that nobody wants any more."""


class Strand(Generic[T]):
    """Work in a thread of its own that runs only while somebody waits for it in ``advance``.

    So nothing of what it uses has to know of threads. It gets a function to wait by: that gives the
    turn back, and what it waits for is waited for in ``advance``, before it has its next turn.
    """

    def __init__(self, work: Callable[[Wait], T]) -> None:
        """Nothing is begun yet."""
        self.over = False
        self._work = work
        self._later: Later = _nothing
        self._answer: Later = _nothing  # gives what was waited for, or raises
        self._result: T | None = None
        self._error: BaseException | None = None
        self._given, self._back = threading.Semaphore(0), threading.Semaphore(0)
        self._runs = False  # it has the turn
        context = contextvars.copy_context()  # who may cancel is known by it
        self._thread = threading.Thread(target=context.run, args=(self._run,), name="strand",
                                        daemon=True)

    def advance(self) -> None:
        """Wait for what it waits for, and let it run until it waits again or has ended.

        Raises:
            grader.Cancelled, KeyboardInterrupt: nobody wants it any more.
        """
        if self.over:
            return
        try:
            answer = self._later()
            self._answer = lambda: answer
        except Exception as error:
            self._answer = partial(_raise, error)
        self._turn()

    def result(self) -> T:
        """What came of it, once it is over.

        Raises:
            BaseException: what it raised.
        """
        if self._error is not None:
            raise self._error
        return self._result  # type: ignore[return-value]

    def drop(self) -> None:
        """End it where it waits."""
        if self._runs:  # who gave it the turn was interrupted
            self._back.acquire()
            self._runs = False
        self._answer = partial(_raise, _Dropped())
        while not self.over and self._thread.ident is not None:
            self._turn()

    def _turn(self) -> None:
        if self._thread.ident is None:
            self._thread.start()
        self._runs = True
        self._given.release()
        self._back.acquire()
        self._runs = False

    def _run(self) -> None:
        self._given.acquire()
        try:
            self._result = self._work(self._wait)
        except BaseException as error:
            self._error = error
        self.over = True
        self._back.release()

    def _wait(self, later: Later) -> Any:
        self._later = later
        self._back.release()
        self._given.acquire()
        return self._answer()


def _nothing() -> None:
    return None


def _raise(error: BaseException) -> NoReturn:
    raise error
