"""System calls of Linux that Python does not wrap; they raise OSError as those of ``os`` do."""

import ctypes
import os

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def prctl(option: int, value: int = 0, third: int = 0) -> int:
    """Calls prctl(2), with an option from <linux/prctl.h>."""
    result = _libc.prctl(option, ctypes.c_ulong(value), ctypes.c_ulong(third), ctypes.c_ulong(0),
                         ctypes.c_ulong(0))
    return int(_checked(result, f"prctl({option})"))


def syscall(number: int, *arguments: int | bytes | None) -> int:
    """Calls the kernel by number; bytes are passed by address."""
    words = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    return int(_checked(_libc.syscall(ctypes.c_long(number), *words), f"system call {number}"))


def capset(header: bytes, data: bytes) -> None:
    """Sets capabilities, by the structures of <linux/capability.h>."""
    _checked(_libc.capset(header, data), "capset")


def _checked(result: int, call: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{call}: {os.strerror(number)}")
    return result
