"""Calls to the Linux kernel that Python has no name for."""

from __future__ import annotations

import ctypes
import os

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long

Argument = int | bytes | ctypes.Array[ctypes.c_char] | None


def prctl(option: int, value: int = 0, third: int = 0) -> int:
    """One of the settings of this process, from <linux/prctl.h>.

    Raises:
        OSError: the kernel does not know it, or does not allow it.
    """
    result = _libc.prctl(option, ctypes.c_ulong(value), ctypes.c_ulong(third), ctypes.c_ulong(0),
                         ctypes.c_ulong(0))
    return int(_checked(result, f"prctl({option})"))


def syscall(number: int, *arguments: Argument) -> int:
    """A system call by its number; bytes and buffers are passed by address.

    Raises:
        OSError: the call failed.
    """
    words = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    return int(_checked(_libc.syscall(ctypes.c_long(number), *words), f"system call {number}"))


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result
