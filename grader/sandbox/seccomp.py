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
from typing import NamedTuple

from grader.sandbox.limits import Role
from grader.sandbox.linux import prctl, syscall

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


_STEP = struct.Struct("=HBBI")


@dataclass(frozen=True)
class Architecture:
    """``audit``: the kernel's constant for it; ``column``: its place in ``NUMBERS``."""

    name: str
    audit: int
    column: int


class FilterStep(NamedTuple):
    """One BPF instruction; ``if_true`` and ``if_false`` are how many a jump skips, at most 255."""

    code: int
    value: int
    if_true: int = 0
    if_false: int = 0


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
    steps = assemble(here, rules(role=role, read_only=read_only))
    return b"".join(_STEP.pack(code, yes, no, value) for code, value, yes, no in steps)


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
    actions |= dict.fromkeys(("kill", "tkill", "tgkill"), _if_in(0, [pid], allowed, refused))
    actions |= {
        "clone3": refuse(errno.ENOSYS),  # its flags lie in memory; the C library then calls clone
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


@functools.cache
def architecture() -> Architecture | None:
    """The architecture of this process; None where there are no filters, or no numbers for them."""
    here = ARCHITECTURES.get(platform.machine()) if struct.calcsize("P") == 8 else None
    if here is not None:
        try:
            syscall(SECCOMP[here.column], _SET_MODE_FILTER, 0, None)
        except OSError as error:
            if error.errno == errno.EFAULT:  # of the missing filter: the kernel would take one
                return here
    return None


def enforce(here: Architecture, role: Role, *, read_only: bool) -> None:
    """Filters every later system call of this process; see ``rules``."""
    packed = template(here, role, read_only=read_only)
    packed = packed.replace(struct.pack("=I", ITSELF), struct.pack("=I", os.getpid()))
    code = ctypes.create_string_buffer(packed, len(packed))
    program = struct.pack("=HxxxxxxQ", len(packed) // _STEP.size, ctypes.addressof(code))
    prctl(_SET_NO_NEW_PRIVS, 1)
    syscall(SECCOMP[here.column], _SET_MODE_FILTER, 0, program)


# -- the numbers of system calls, on x86-64 and aarch64 -----------------------------------------


# AUDIT_ARCH_* of <linux/audit.h>: the ELF machine, with bits for little-endian and 64 bits wide.
ARCHITECTURES = {
    "x86_64": Architecture("x86_64", 0xC000003E, 0),
    "aarch64": Architecture("aarch64", 0xC00000B7, 1),
}
SECCOMP = (317, 277)
X32 = 0x40000000  # set in the number of a call by x86-64's third numbering
LAST = 462  # mseal of Linux 6.10; from 424 on, numbers are the same everywhere

# name: (x86-64, aarch64), None where there is no such call
NUMBERS: dict[str, tuple[int | None, int | None]] = {
    # Other processes: to start them, to signal them, to look into them.
    "execve": (59, 221), "execveat": (322, 281), "fork": (57, None), "vfork": (58, None),
    "clone": (56, 220), "clone3": (435, 435),
    "kill": (62, 129), "tkill": (200, 130), "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240),
    "pidfd_open": (434, 434), "pidfd_send_signal": (424, 424), "pidfd_getfd": (438, 438),
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "process_madvise": (440, 440), "process_mrelease": (448, 448), "kcmp": (312, 272),
    "setpriority": (141, 140), "ioprio_set": (251, 30), "sched_setaffinity": (203, 122),
    "sched_setscheduler": (144, 119), "sched_setparam": (142, 118), "sched_setattr": (314, 274),
    "migrate_pages": (256, 238), "move_pages": (279, 239),
    # Talking to anybody but the judge.
    "socket": (41, 198), "socketpair": (53, 199), "connect": (42, 203), "bind": (49, 200),
    "listen": (50, 201), "accept": (43, 202), "accept4": (288, 242),
    # What outlives a process, or is memory that no limit counts.
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "semget": (64, 190),
    "semop": (65, 193), "semtimedop": (220, 192), "semctl": (66, 191), "msgget": (68, 186),
    "msgsnd": (69, 189), "msgrcv": (70, 188), "msgctl": (71, 187), "mq_open": (240, 180),
    "mq_unlink": (241, 181), "mq_notify": (244, 184),
    "memfd_create": (319, 279), "memfd_secret": (447, 447),
    # What a process may do: limits, user, privileges.
    "setrlimit": (160, 164), "prlimit64": (302, 261), "prctl": (157, 167), "seccomp": (317, 277),
    "capset": (126, 91), "personality": (135, 92), "setuid": (105, 146), "setgid": (106, 144),
    "setreuid": (113, 145), "setregid": (114, 143), "setresuid": (117, 147),
    "setresgid": (119, 149), "setgroups": (116, 159), "setfsuid": (122, 151),
    "setfsgid": (123, 152),
    # The system itself.
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51),
    "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433),
    "mount_setattr": (442, 442), "statmount": (457, 457), "listmount": (458, 458),
    "setns": (308, 268), "unshare": (272, 97),
    "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106),
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "reboot": (169, 142),
    "swapon": (167, 224), "swapoff": (168, 225), "acct": (163, 89), "syslog": (103, 116),
    "vhangup": (153, 58), "iopl": (172, None), "ioperm": (173, None), "modify_ldt": (154, None),
    "quotactl": (179, 60), "quotactl_fd": (443, 443), "sethostname": (170, 161),
    "setdomainname": (171, 162), "settimeofday": (164, 170), "clock_settime": (227, 112),
    "sync": (162, 81), "syncfs": (306, 267), "lsm_set_self_attr": (460, 460),
    "clock_adjtime": (305, 266), "adjtimex": (159, 171), "lookup_dcookie": (212, 18),
    # Parts of the kernel that are large, seldom needed and often broken.
    "bpf": (321, 280), "io_uring_setup": (425, 425), "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427), "io_setup": (206, 0), "userfaultfd": (323, 282),
    "perf_event_open": (298, 241), "add_key": (248, 217), "request_key": (249, 218),
    "keyctl": (250, 219), "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262), "fanotify_mark": (301, 263), "inotify_init": (253, None),
    "inotify_init1": (294, 26), "inotify_add_watch": (254, 27),
    # Changes to files by their name, or to what is written about them.
    "creat": (85, None), "truncate": (76, 45), "mkdir": (83, None), "mkdirat": (258, 34),
    "rmdir": (84, None), "unlink": (87, None), "unlinkat": (263, 35), "rename": (82, None),
    "renameat": (264, 38), "renameat2": (316, 276), "link": (86, None), "linkat": (265, 37),
    "symlink": (88, None), "symlinkat": (266, 36), "mknod": (133, None), "mknodat": (259, 33),
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452),
    "chown": (92, None), "lchown": (94, None), "fchown": (93, 55), "fchownat": (260, 54),
    "utime": (132, None), "utimes": (235, None), "futimesat": (261, None),
    "utimensat": (280, 88), "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7),
    "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16),
    # Needed, but not with every argument.
    "open": (2, None), "openat": (257, 56), "openat2": (437, 437), "fcntl": (72, 25),
    "ioctl": (16, 29),
}
