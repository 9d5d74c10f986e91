"""How much a child may use: memory, processor time, files, output."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

Role = Literal["worker", "executor", "compiler", "gpu"]

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # from <malloc.h>
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
MAX_DESCRIPTORS = 256
SPARE_PROCESSES = 64  # beyond those that the user has already


@dataclass(frozen=True)
class Limits:
    """In bytes, but for ``cpu_s``, seconds that one process may compute before it is killed.

    ``address_space`` and ``resident`` come on top of what the process has when it is forked; the
    latter is for the process and its descendants together. ``output`` is what is kept of what it
    prints, and ``files`` bounds each file that it writes, memory files included. ``cpu_s`` is for
    what nobody waits for any more; every request has a deadline of its own, which is shorter.
    """

    address_space: int = 2 * GIB
    resident: int = 4 * GIB
    output: int = 64 * KIB
    files: int = 64 * MIB
    cpu_s: int = 1800

    def to_json(self) -> dict[str, int]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Limits:
        return cls(**{name: int(data[name]) for name in cls.__dataclass_fields__})


def of_a_gpu() -> Limits:
    """What the process before a GPU may use: its driver maps memory by the terabyte, and inputs and
    results are there at their real size.
    """
    return Limits(address_space=1 << 46, resident=64 * GIB, files=64 * GIB)


def apply(limits: Limits, *, processes: bool) -> None:
    """Bound what this process and its children may use; hard limits, so none is raised again.

    ``processes``: bound their number too, where nothing else keeps it from starting any.
    """
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_NOFILE, MAX_DESCRIPTORS)
    _limit(resource.RLIMIT_FSIZE, limits.files)
    _limit(resource.RLIMIT_CPU, limits.cpu_s)
    _limit(resource.RLIMIT_AS, _mapped() + limits.address_space)
    if processes:
        _limit(resource.RLIMIT_NPROC, _tasks_of(os.geteuid()) + SPARE_PROCESSES)


def keep_memory() -> None:
    """Have the C library keep what is freed for the next tensor: a fresh page costs microseconds.

    Its other habit is to hand every block of 128 KiB or more back to the system at once.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # not every C library has it
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, 64 * MIB)
        mallopt(_TRIM_THRESHOLD, 256 * MIB)


def _tasks_of(user: int) -> int:
    """Processes and threads of a user on this machine, which is what the system counts."""
    count = 0
    for entry in os.scandir("/proc"):
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and entry.stat().st_uid == user:
                count += len(os.listdir(f"/proc/{entry.name}/task"))  # noqa: PTH208 - names only
    return count


def _limit(which: int, most: int) -> None:
    _, hard = resource.getrlimit(which)
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    resource.setrlimit(which, (most, most))


def _mapped() -> int:
    pages = int(Path("/proc/self/statm").read_bytes().split()[0])
    return pages * resource.getpagesize()
