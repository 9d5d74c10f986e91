"""Landlock: restricts this process and its descendants to given files."""

import contextlib
import functools
import os
import stat
import struct
from collections.abc import Iterable
from pathlib import Path

from grader.sandbox.linux import prctl, syscall

# From <linux/landlock.h>; the numbers of these calls are the same on every architecture but alpha.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION = 1  # flag of the first call: only say which ABI this kernel has
_PATH_BENEATH = 1
_SET_NO_NEW_PRIVS = 38

_WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 1, 1 << 2, 1 << 3
_REMOVE_DIR, _REMOVE_FILE, _MAKE_DIR, _MAKE_FILE = 1 << 4, 1 << 5, 1 << 7, 1 << 8
_MOVE = 1 << 13  # LANDLOCK_ACCESS_FS_REFER
_TRUNCATE, _IOCTL_DEVICE = 1 << 14, 1 << 15
_FILES_OF_ABI = {1: (1 << 13) - 1, 2: 1 << 13, 3: _TRUNCATE, 5: _IOCTL_DEVICE}

# Rights on files and on all below folders.
READ = _READ_FILE | _READ_DIR
EXECUTE = READ | 1 << 0
WRITE = _READ_FILE | _WRITE_FILE | _TRUNCATE | _IOCTL_DEVICE  # files and devices that exist
DEVICES = READ | WRITE
OWN = (READ | _WRITE_FILE | _TRUNCATE | _REMOVE_DIR | _REMOVE_FILE | _MAKE_DIR | _MAKE_FILE
       | _MOVE)  # everything but execution
_TCP_BIND_AND_CONNECT = 0b11  # from ABI 4
_ABSTRACT_SOCKETS_AND_SIGNALS = 0b11  # from ABI 6


@functools.cache
def abi() -> int:
    """The ABI version of this kernel's Landlock; 0 without, or where it is switched off."""
    try:
        return syscall(_CREATE_RULESET, None, 0, _VERSION)
    except OSError:
        return 0


def attributes(version: int) -> bytes:
    """Packs the ruleset that handles every right of an ABI version.

    These are all accesses to files, TCP, and signals and abstract sockets to processes outside. A
    kernel refuses unknown bits, and a structure that is longer than its own.
    """
    files = sum(bits for since, bits in _FILES_OF_ABI.items() if since <= version)
    tcp = _TCP_BIND_AND_CONNECT if version >= 4 else 0
    scoped = _ABSTRACT_SOCKETS_AND_SIGNALS if version >= 6 else 0
    return struct.pack("=QQQ", files, tcp, scoped)[:24 if version >= 6 else 16 if tcp else 8]


def ruleset(allowed: Iterable[tuple[int, Iterable[Path]]]) -> int:
    """Opens a ruleset: rights on files, and on folders with all below them; none has to exist."""
    handled = attributes(abi())
    files = int.from_bytes(handled[:8], "little")
    fd = syscall(_CREATE_RULESET, handled, len(handled), 0)
    for rights, paths in allowed:
        for path in paths:
            with contextlib.suppress(FileNotFoundError, NotADirectoryError, PermissionError):
                _add(fd, rights & files, path)
    return fd


def _add(fd: int, rights: int, path: Path) -> None:
    target = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if not stat.S_ISDIR(os.fstat(target).st_mode):
            rights &= ~_READ_DIR  # a rule for a file may hold rights on files only
        syscall(_ADD_RULE, fd, _PATH_BENEATH, struct.pack("=Qi", rights, target), 0)
    finally:
        os.close(target)


def enforce(fd: int) -> None:
    """Takes away all other files for good, from this process and its descendants."""
    prctl(_SET_NO_NEW_PRIVS, 1)
    syscall(_RESTRICT_SELF, fd, 0)
    os.close(fd)
