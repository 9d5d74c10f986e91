"""Resource limits of a child: memory, CPU time, files, output."""

import contextlib
import ctypes
import os
import resource
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from grader.recording.codec import JsonObject

Role = Literal["worker", "executor", "compiler", "gpu"]

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # from <malloc.h>
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
MAX_DESCRIPTORS = 256
SPARE_PROCESSES = 64  # beyond those that the user has already


@dataclass(frozen=True)
class ResourceLimits(JsonObject):
    """Limits of one child, in bytes; ``cpu_s`` in seconds of CPU time of one process.

    ``address_space`` and ``resident`` come on top of what the process has when it is forked; the
    latter is for the process and its descendants together. ``output`` is how much of its output is
    kept, and ``files`` bounds each file that it writes, memory files included. ``cpu_s`` ends what
    outlives its request; the deadline of a request is shorter.
    """

    address_space: int = 2 * GIB
    resident: int = 4 * GIB
    output: int = 64 * KIB
    files: int = 64 * MIB
    cpu_s: int = 1800


# Of the GPU process: its driver maps terabytes, and tensors have their real size.
OF_A_GPU = ResourceLimits(address_space=1 << 46, resident=64 * GIB, files=64 * GIB)


def apply(limits: ResourceLimits, *, processes: bool) -> None:
    """Sets the hard limits of this process and its descendants.

    Args:
        processes: limit their number too, where seccomp does not forbid new processes.
    """
    pages = int(Path("/proc/self/statm").read_bytes().split()[0])
    most = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NOFILE: MAX_DESCRIPTORS,
        resource.RLIMIT_FSIZE: limits.files,
        resource.RLIMIT_CPU: limits.cpu_s,
        resource.RLIMIT_AS: pages * resource.getpagesize() + limits.address_space,
    }
    if processes:
        most[resource.RLIMIT_NPROC] = _tasks_of(os.geteuid()) + SPARE_PROCESSES
    for which, limit in most.items():
        _, hard = resource.getrlimit(which)
        limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(which, (limit, limit))


def keep_memory() -> None:
    """Makes the C library keep freed memory for the next tensor: a page fault costs microseconds.

    By default it returns every block of 128 KiB or more to the system at once.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # not every C library has it
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, 64 * MIB)
        mallopt(_TRIM_THRESHOLD, 256 * MIB)


def _tasks_of(user: int) -> int:
    """Processes and threads of a user, which is what RLIMIT_NPROC counts."""
    count = 0
    for entry in os.scandir("/proc"):
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and entry.stat().st_uid == user:
                count += len(os.listdir(f"/proc/{entry.name}/task"))  # noqa: PTH208 - names only
    return count
