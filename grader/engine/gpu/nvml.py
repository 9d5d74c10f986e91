"""NVML: clocks of a GPU and the reasons for throttling.

Called through ctypes: ``nvidia-smi`` takes longer than most measurements and is a program to start,
and the package for NVML would be a dependency for four functions.
"""

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
    """Clocks of a device in MHz, 0 if unknown, and the bits of the reasons."""

    sm_mhz: int = 0
    memory_mhz: int = 0
    reasons: int = 0


class Monitor:
    """Reads the clocks of one device; all zero if the library or the device is missing."""

    def __init__(self, uuid: str) -> None:
        self._library: Any = _library()
        self._device = ctypes.c_void_p()
        find: Callable[..., int] | None = getattr(self._library, "nvmlDeviceGetHandleByUUID", None)
        if find is None or find(uuid.encode(), ctypes.byref(self._device)):
            self._library = None

    def look(self) -> ClockState:
        if self._library is None:
            return ClockState()
        return ClockState(
            self._read("nvmlDeviceGetClockInfo", ctypes.c_uint(), _SM),
            self._read("nvmlDeviceGetClockInfo", ctypes.c_uint(), _MEMORY),
            self._read("nvmlDeviceGetCurrentClocksThrottleReasons", ctypes.c_ulonglong()))

    def _read(self, function: str, value: ctypes.c_uint | ctypes.c_ulonglong, *which: int) -> int:
        """Calls a function that writes to ``value``; 0 if it fails."""
        failed = getattr(self._library, function)(self._device, *which, ctypes.byref(value))
        return 0 if failed else int(value.value)


def words(reasons: int) -> str:
    """Names the reasons that held the clocks back, such as ``power cap, thermal``."""
    return ", ".join(word for bit, word in _REASONS.items() if reasons & bit)


def driver_version() -> str:
    """The version of the driver, such as ``580.159.04``; empty if unknown."""
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
