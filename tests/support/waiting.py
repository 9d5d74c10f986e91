"""Waits for events, for as long as they take."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
HANG_S = 120.0  # catches a hang; what happens at all happens sooner on a busy machine too


def wait_until(happened: Callable[[], T], every_s: float = 0.01) -> T:
    """Calls ``happened`` until it returns a true value, and returns that."""
    deadline = time.monotonic() + HANG_S
    while not (value := happened()):
        assert time.monotonic() < deadline, f"it did not happen within {HANG_S:.0f} s"
        time.sleep(every_s)
    return value
