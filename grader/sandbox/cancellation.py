"""Cancellation of a thread's work by another thread, checked while it waits for a process."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from grader.sandbox.errors import Cancelled

LOOK_S = 0.02  # between two looks, of who waits for something

_cancelled: ContextVar[threading.Event | None] = ContextVar("cancelled", default=None)


@contextmanager
def cancelled_by(event: threading.Event | None) -> Iterator[None]:
    """Makes waits of this thread raise ``Cancelled`` once ``event`` is set.

    Other threads are unaffected, even with the same sandbox.
    """
    token = _cancelled.set(event)
    try:
        yield
    finally:
        _cancelled.reset(token)


def is_cancelled() -> bool:
    """Whether the work of this thread was cancelled."""
    event = _cancelled.get()
    return event is not None and event.is_set()


def check() -> None:
    """Raises ``Cancelled`` if the work of this thread was cancelled."""
    if is_cancelled():
        raise Cancelled
