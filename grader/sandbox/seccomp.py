"""Seccomp: a filter that refuses the system calls which a child does not need.

Everything is allowed that is not refused here by name, up to the last call that was known when this
was written; later ones do not exist, as on an older kernel. A list of what is allowed would be
shorter to argue for, but it would be a list of what torch, NumPy, Triton and the C library happen
to call today on one machine, and each of their releases could make an honest kernel fail. What is
left open only works on this process, on memory, and on files that it may open.

A refused call fails with EPERM, which Python raises as a PermissionError: nothing has happened then
and the message says what was not permitted. Only calls in another numbering than the one that this
filter reads (32-bit programs, x32) end the process, since nothing can be said about them.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import itertools
import operator
import os
import platform
import socket
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from grader.sandbox.limits import Role
from grader.sandbox.linux import prctl, syscall
from grader.sandbox.syscall_numbers import ARCHITECTURES, LAST, NUMBERS, SECCOMP, X32, Architecture

_SET_MODE_FILTER, _SET_NO_NEW_PRIVS = 1, 38
KILL_PROCESS, ALLOW, _ERRNO = 0x80000000, 0x7FFF0000, 0x00050000

# The words of <linux/bpf_common.h> that a filter needs, and where <linux/seccomp.h> has what.
LOAD, RETURN = 0x20, 0x06
JUMP_ALWAYS, JUMP_EQUAL, JUMP_AT_LEAST, JUMP_ANY_BIT = 0x05, 0x15, 0x35, 0x45
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16

_THREAD = 0x00010000  # CLONE_THREAD
_NAMESPACES = 0x7E020000  # CLONE_NEW*, of clone
# What a process needs that runs Triton's assembler: to start it, and to keep files of its own.
_OF_A_COMPILER = ("execve", "fork", "vfork", "mkdir", "mkdirat", "rmdir", "unlink", "unlinkat",
                  "rename", "renameat", "renameat2", "chmod", "fchmod", "fchmodat")
# What the GPU's driver and a C compiler need beside that: affinity and memory of the GPU's node,
# memory files, links and times of files of their own. CUDA begins by listening on a socket of its
# own within the machine; connecting to one stays refused.
_OF_A_GPU = ("sched_setaffinity", "setpriority", "move_pages", "memfd_create", "link", "linkat",
             "symlink", "symlinkat", "utime", "utimes", "utimensat", "creat", "truncate", "bind",
             "listen")
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
# F_SETOWN, F_SETSIG, F_SETOWN_EX, F_SETLEASE, F_NOTIFY: have the kernel signal or hold up others
_OTHERS = (8, 10, 15, 1024, 1026)
_TERMINAL = (0x5412, 0x541C, 0x8901, 0x8902)  # TIOCSTI, TIOCLINUX, FIOSETOWN, SIOCSPGRP
# Of prctl: what only reads, and the names of threads and of memory. Not the death signal, which
# ties a child to its parent, nor anything about tracing, privileges or filters.
_HARMLESS = (2, 3, 7, 11, 15, 16, 21, 23, 27, 30, 37, 38, 39, 40, 42, 0x53564D41, 0x41555856)


@dataclass(frozen=True)
class FilterStep:
    """One BPF instruction; ``if_true`` and ``if_false`` are how many a jump skips."""

    code: int
    value: int
    if_true: int = 0
    if_false: int = 0

    def __post_init__(self) -> None:
        if max(self.if_true, self.if_false) > 255:
            raise ValueError("a jump over more than 255 steps")

    def packed(self) -> bytes:
        return struct.pack("=HBBI", self.code, self.if_true, self.if_false, self.value)


Steps = list[FilterStep]


def refuse(number: int = errno.EPERM) -> Steps:
    return [FilterStep(RETURN, _ERRNO | number)]


_ALLOWED: Steps = [FilterStep(RETURN, ALLOW)]


def _if(jump: int, position: int, values: Sequence[int], then: Steps, otherwise: Steps) -> Steps:
    """Tests the lower 32 bits of an argument, all that the kernel reads of an int."""
    steps = [FilterStep(LOAD, _ARGUMENTS + 8 * position)]
    for value in values:
        steps += [FilterStep(jump, value, 0, len(then)), *then]
    return steps + otherwise


_if_in, _if_any_bit = functools.partial(_if, JUMP_EQUAL), functools.partial(_if, JUMP_ANY_BIT)


def _if_null(position: int, then: Steps, otherwise: Steps) -> Steps:
    lower = _ARGUMENTS + 8 * position
    return [
        FilterStep(LOAD, lower), FilterStep(JUMP_EQUAL, 0, 0, 2 + len(then)),
        FilterStep(LOAD, lower + 4), FilterStep(JUMP_EQUAL, 0, 0, len(then)),
        *then, *otherwise,
    ]


ITSELF = 0x7FFFFFFF  # stands for the process id of the child, and is greater than any


@functools.cache
def template(here: Architecture, role: Role, *, read_only: bool) -> bytes:
    """The packed filter, cached, with ``ITSELF`` in place of the process id."""
    chosen = rules(role=role, read_only=read_only)
    return b"".join(step.packed() for step in assemble(here, chosen))


def rules(pid: int = ITSELF, *, role: Role, read_only: bool) -> dict[str, Steps]:
    """The steps for each system call that is not plainly allowed.

    Args:
        pid: the only process that may be signalled.
        role: the executor may start threads, the compiler programs; a worker neither, and the
            process before a GPU both.
        read_only: refuse to open any file for writing, as nothing else keeps files from it. A
            compiler has to write.
    """
    refused, allowed = refuse(), _ALLOWED
    actions = dict.fromkeys(NUMBERS, refused)
    actions |= {
        "clone": refused,
        "clone3": refuse(errno.ENOSYS),  # its flags lie in memory; the C library then calls clone
        "kill": _if_in(0, [pid], allowed, refused),
        "tkill": _if_in(0, [pid], allowed, refused),
        "tgkill": _if_in(0, [pid], allowed, refused),
        "prlimit64": _if_null(2, allowed, refused),
        "prctl": _if_in(0, _HARMLESS, allowed, refused),
        "fcntl": _if_in(1, _OTHERS, refused, allowed),
        "ioctl": _if_in(1, _TERMINAL, refused, allowed),
        "openat2": refuse(errno.ENOSYS),  # its flags lie in memory too
        "open": _if_any_bit(1, [_WRITING], refused, allowed) if read_only else allowed,
        "openat": _if_any_bit(2, [_WRITING], refused, allowed) if read_only else allowed,
    }
    if role == "executor":
        actions["clone"] = _if_any_bit(0, [_THREAD], allowed, refused)
    elif role in ("compiler", "gpu"):
        needed = (*_OF_A_COMPILER, *(_OF_A_GPU if role == "gpu" else ()), "open", "openat")
        actions |= dict.fromkeys(needed, allowed)
        actions["clone"] = _if_any_bit(0, [_NAMESPACES], refused, allowed)
    if role == "gpu":
        actions["socket"] = _if_in(0, [socket.AF_UNIX], allowed, refused)
    return actions


def assemble(architecture: Architecture, chosen: Mapping[str, Steps]) -> Steps:
    """Assembles the filter: checks the architecture, then searches the call's number."""
    wrong = [FilterStep(RETURN, KILL_PROCESS)]
    by_number = {number: steps for name, steps in chosen.items()
                 if (number := NUMBERS[name][architecture.column]) is not None}
    by_first = [(number, by_number.get(number, _ALLOWED)) for number in range(LAST + 1)]
    by_first += [(LAST + 1, refuse(errno.ENOSYS)), (X32, wrong)]  # from there on
    ranges = [next(alike) for _, alike in itertools.groupby(by_first, operator.itemgetter(1))]
    return [
        FilterStep(LOAD, _ARCHITECTURE),
        FilterStep(JUMP_EQUAL, architecture.audit, 1, 0),
        *wrong,
        FilterStep(LOAD, _NUMBER),
        *_search(ranges),
    ]


def _search(ranges: Sequence[tuple[int, Steps]]) -> Steps:
    if len(ranges) == 1:
        return ranges[0][1]
    middle = len(ranges) // 2
    lower, upper = _search(ranges[:middle]), _search(ranges[middle:])
    if len(lower) > 255:  # too far for a jump with a condition: jump over a jump without one
        return [FilterStep(JUMP_AT_LEAST, ranges[middle][0], 0, 1),
                FilterStep(JUMP_ALWAYS, len(lower)), *lower, *upper]
    return [FilterStep(JUMP_AT_LEAST, ranges[middle][0], len(lower), 0), *lower, *upper]


def architecture() -> Architecture | None:
    """The architecture of this process; None if its numbers are unknown."""
    wide = struct.calcsize("P") == 8
    return ARCHITECTURES.get(platform.machine()) if wide else None


@functools.cache
def available() -> bool:
    """Whether this kernel supports filters."""
    here = architecture()
    if here is None:
        return False
    try:
        syscall(SECCOMP[here.column], _SET_MODE_FILTER, 0, None)
    except OSError as error:
        return error.errno == errno.EFAULT
    return False


def enforce(here: Architecture, role: Role, *, read_only: bool) -> None:
    """Filters every later system call of this process; see ``rules``.

    Raises:
        OSError: the kernel takes no filters.
    """
    packed = template(here, role, read_only=read_only)
    packed = packed.replace(struct.pack("=I", ITSELF), struct.pack("=I", os.getpid()))
    code = ctypes.create_string_buffer(packed, len(packed))
    steps = len(packed) // len(FilterStep(RETURN, ALLOW).packed())
    program = struct.pack("=HxxxxxxQ", steps, ctypes.addressof(code))
    prctl(_SET_NO_NEW_PRIVS, 1)
    syscall(SECCOMP[here.column], _SET_MODE_FILTER, 0, program)
