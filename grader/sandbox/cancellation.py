"""Work that another thread may cancel: who waits for a process looks whether it still should."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from grader.sandbox.errors import Cancelled

LOOK_S = 0.02  # between two looks, of who waits for something

_cancelled: ContextVar[threading.Event | None] = ContextVar("cancelled", default=None)


@contextmanager
def cancelled_by(event: threading.Event | None) -> Iterator[None]:
    """Inside, whoever waits in this thread raises ``Cancelled`` once ``event`` is set.

    Other threads are not concerned, even where they use the same sandbox.
    """
    token = _cancelled.set(event)
    try:
        yield
    finally:
        _cancelled.reset(token)


def is_cancelled() -> bool:
    """Whether the work of this thread is not wanted any more."""
    event = _cancelled.get()
    return event is not None and event.is_set()


def check() -> None:
    """Go on, if the work is still wanted.

    Raises:
        Cancelled: it is not.
    """
    if is_cancelled():
        raise Cancelled
