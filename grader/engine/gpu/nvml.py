"""Clocks, and what holds them back, from the library that comes with every NVIDIA driver.

It is asked directly: ``nvidia-smi`` takes longer than most measurements and is a program to start,
and the package for it would be a dependency for four calls.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_SM, _MEMORY = 1, 2  # nvmlClockType_t
_REASONS = {  # nvmlClocksEventReasons; being idle and what the user set are no throttling
    0x04: "power cap", 0x08: "hardware slowdown", 0x10: "sync boost", 0x20: "thermal",
    0x40: "thermal (hardware)", 0x80: "power brake",
}


@dataclass(frozen=True)
class ClockState:
    """One look at a device: clocks in MHz, 0 where nobody tells, and the bits of the reasons."""

    sm_mhz: int = 0
    memory_mhz: int = 0
    reasons: int = 0


class Monitor:
    """Looks at one device; where the library or the device is missing, it sees nothing."""

    def __init__(self, uuid: str) -> None:
        self._library: Any
        self._library, self._device = _device(uuid)

    def look(self) -> ClockState:
        if self._library is None:
            return ClockState()
        return ClockState(self._clock(_SM), self._clock(_MEMORY), self._reasons())

    def _clock(self, which: int) -> int:
        value = ctypes.c_uint()
        failed = self._library.nvmlDeviceGetClockInfo(self._device, which, ctypes.byref(value))
        return 0 if failed else int(value.value)

    def _reasons(self) -> int:
        value = ctypes.c_ulonglong()
        failed = self._library.nvmlDeviceGetCurrentClocksThrottleReasons(
            self._device, ctypes.byref(value))
        return 0 if failed else int(value.value)


def words(reasons: int) -> str:
    """What held the clocks back, such as ``power cap, thermal``."""
    return ", ".join(word for bit, word in _REASONS.items() if reasons & bit)


def driver_version() -> str:
    """Of the driver, such as ``580.159.04``; empty where nobody tells."""
    library = _library()
    text = ctypes.create_string_buffer(96)
    if library is None or library.nvmlSystemGetDriverVersion(text, len(text)):
        return ""
    return text.value.decode("ascii", "replace")


def _library() -> ctypes.CDLL | None:
    try:
        library = ctypes.CDLL("libnvidia-ml.so.1")
        return None if library.nvmlInit_v2() else library
    except (OSError, AttributeError):
        return None


def _device(uuid: str) -> tuple[ctypes.CDLL | None, ctypes.c_void_p]:
    library, device = _library(), ctypes.c_void_p()
    find: Callable[..., int] | None = getattr(library, "nvmlDeviceGetHandleByUUID", None)
    if find is None or find(uuid.encode(), ctypes.byref(device)):
        return None, device
    return library, device
