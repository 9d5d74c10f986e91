"""Waits for events, for as long as they take."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
HANG_S = 120.0  # catches a hang; what happens at all happens sooner on a busy machine too


def wait_until(happened: Callable[[], T], every_s: float = 0.01) -> T:
    """Calls ``happened`` until it returns a true value, and returns that.

    It counts its calls: time in which the machine stood still is no time.
    """
    for _ in range(round(HANG_S / every_s)):
        if value := happened():
            return value
        time.sleep(every_s)
    raise AssertionError(f"it did not happen within {HANG_S:.0f} s")
