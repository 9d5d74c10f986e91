"""Drops a child's privileges (user, Landlock, seccomp, rlimits) and reports what took effect."""

import contextlib
import os
import signal
import stat
import struct
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from grader.recording.codec import JsonObject
from grader.sandbox import landlock, limits, readable_paths, seccomp
from grader.sandbox.limits import ResourceLimits, Role
from grader.sandbox.linux import capset, prctl
from grader.sandbox.processes import die_with_parent

Measure = Literal["user", "landlock", "seccomp"]

NOBODY = 65534
_SET_DUMPABLE, _SET_KEEP_CAPABILITIES, _AMBIENT, _RAISE = 4, 8, 47, 2
_CAPABILITY_VERSION = 0x20080522
_READ_ANYTHING = 2  # CAP_DAC_READ_SEARCH
_REMEDIES = {
    "landlock": "Files can be read and written as far as permissions go. Linux 5.13 or later with "
                "landlock among its security modules (lsm=landlock,...) would close them; in a "
                "container, its system call profile must let landlock through.",
    "seccomp": "Processes can be started and signalled, and the network is open. A Linux kernel "
               "with seccomp filters, on x86-64 or aarch64, would close that.",
}


@dataclass(frozen=True)
class Isolation(JsonObject):
    """The measures that confine a child, as the child itself found them.

    ``landlock`` is the ABI version, 0 without. ``privileged``: the child runs as root. ``missing``
    holds a pair for each measure that is not in force: what is missing, and what would mend it.
    """

    landlock: int = 0
    seccomp: bool = False
    privileged: bool = False
    missing: tuple[tuple[str, str], ...] = ()

    @property
    def tier(self) -> int:
        """2 if files, system calls and user are confined, 1 if some are, 0 with limits only."""
        if self.landlock and self.seccomp and not self.privileged:
            return 2
        return 1 if self.landlock or self.seccomp else 0

    def describe(self) -> str:
        """A line for reports and certificates: ``tier 2: landlock ABI 7, seccomp, ...``."""
        if self.tier == 0:
            as_root = ", as root" if self.privileged else ""
            return f"tier 0: separate processes with limits only{as_root}"
        parts = [f"landlock ABI {self.landlock}"] if self.landlock else []
        parts += ["seccomp"] if self.seccomp else []
        parts.append("as root" if self.privileged else "unprivileged user")
        absent = [name for name in ("landlock", "seccomp") if not getattr(self, name)]
        without = f"; without {' and '.join(absent)}" if absent else ""
        return f"tier {self.tier}: {', '.join(parts)}{without}"

    def prove(self) -> None:
        """Tries forbidden operations, in a child that is confined so.

        Raises:
            RuntimeError: one of them succeeded.
        """
        tries: list[tuple[object, Callable[[], object]]] = [
            (self.landlock, lambda: os.listdir("/")),  # noqa: PTH208 - raises for want of a right
            (self.seccomp, lambda: os.fork() or os._exit(0))]
        for there, attempt in tries:
            with contextlib.suppress(PermissionError):
                if there:
                    attempt()
                    raise RuntimeError(f"what should be out of reach is not: {self.describe()}")


def confine(role: Role, most: ResourceLimits, kernel: Path, folder: Path, parent: int,
            without: Collection[Measure] = ()) -> Isolation:
    """Drops, in the child and for good, all that its role does not need.

    Args:
        role: the executor may start threads, as programs that wait for each other take turns. The
            compiler may run Triton's assembler and write to its own folder. The process before a
            GPU may do both, run a C compiler, use device files and their ioctl, listen within the
            machine, and read all that the system reports about itself. Only kernels run there, no
            host code of the learner; no seed, expected value, suite or solution is within reach.
        most: what the child may use; ``folder`` is its own.
        kernel: the learner's file, or the folder of all of them, which it may read.
        parent: the process that forked this one; if it is gone, so is the child.
        without: measures to leave out, as on a machine that lacks them.

    Raises:
        OSError: a measure that this machine has could not be taken. Nothing may run then.
    """
    version = 0 if "landlock" in without else landlock.abi()
    here = None if "seccomp" in without else seccomp.architecture()
    missing = [(name, _REMEDIES[name])
               for name, there in (("landlock", version), ("seccomp", here)) if not there]
    ruleset = landlock.ruleset(_files(role, kernel, folder)) if version else None

    if os.geteuid() == 0:
        if role in ("compiler", "gpu") and "user" not in without:
            os.chown(folder, NOBODY, NOBODY)
        reason = "it was left out" if "user" in without else _become_nobody(
            kernel, bool(version), inherited=role in ("compiler", "gpu"))
        if reason:
            missing.append(("an unprivileged user", reason))
        die_with_parent(signal.SIGKILL)  # a change of user clears it
        if os.getppid() != parent:
            os._exit(70)
    if role == "gpu":
        prctl(_SET_DUMPABLE, 1)  # its driver names threads, in files that would be root's
    limits.apply(most, processes=here is None and role != "gpu")
    if ruleset is not None:
        landlock.enforce(ruleset)
    if here is not None:
        seccomp.enforce(here, role, read_only=not version)
    return Isolation(version, here is not None, os.geteuid() == 0, tuple(missing))


def warm() -> None:
    """Fills the caches that are the same for all children, before any is forked."""
    landlock.abi()
    readable_paths.readable()
    readable_paths.keep_listings()
    if here := seccomp.architecture():
        for role in get_args(Role):
            for read_only in (False, True):
                seccomp.template(here, role, read_only=read_only)


def _files(role: Role, kernel: Path, folder: Path) -> list[tuple[int, Iterable[Path]]]:
    """Rights and files of a role. Compiler and GPU process alone may write, to their own folder.

    The GPU's driver also writes to device files, /dev/shm and /proc/self.
    """
    proc = Path(f"/proc/{os.getpid()}")
    readable, programs = readable_paths.readable(), readable_paths.programs()
    allowed: list[tuple[int, Iterable[Path]]] = [
        (landlock.READ, (*readable, kernel, proc)), (landlock.WRITE, readable_paths.WRITABLE)]
    if role == "compiler":
        allowed += [(landlock.OWN, (folder,)), (landlock.EXECUTE, programs)]
    elif role == "gpu":
        allowed += [(landlock.OWN, (folder, proc, Path("/dev/shm"))),
                    (landlock.EXECUTE, (*readable, *readable_paths.of_a_gpu(), *programs)),
                    # of NVIDIA's driver, and the one of WSL
                    (landlock.DEVICES, (*Path("/dev").glob("nvidia*"), Path("/dev/dxg")))]
    return allowed


def _become_nobody(kernel: Path, bounded: bool, *, inherited: bool) -> str:
    """Becomes the user nobody; returns the reason if that is not possible.

    Where Python lies in a folder that only root may enter, the child keeps the privilege to read
    any file. That is safe only if something else, landlock, bounds which files those are.
    ``inherited``: programs that the child starts get it too, bounded as it is.
    """
    needed = (*readable_paths.of_python(), kernel)
    try:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, 0)  # the way back stays open for one more moment
    except OSError as error:
        return f"This root may not become another user ({error.strerror}). Run it as one."
    unreadable = [path for path in needed if not os.access(path, os.R_OK)]
    os.setresuid(0, 0, 0)
    if unreadable and not bounded:
        os.setresgid(0, 0, 0)
        return (f"User {NOBODY} cannot read {unreadable[0]}, so the child stays root. Install "
                "Python where every user can read it, or run as an ordinary user.")
    prctl(_SET_KEEP_CAPABILITIES, 1 if unreadable else 0)
    os.setresuid(NOBODY, NOBODY, NOBODY)
    if unreadable:
        bit = 1 << _READ_ANYTHING
        capset(struct.pack("=Ii", _CAPABILITY_VERSION, 0),
               struct.pack("=6I", bit, bit, bit if inherited else 0, 0, 0, 0))
        if inherited:
            prctl(_AMBIENT, _RAISE, _READ_ANYTHING)
    return ""


def admit(kernel: Path, folder: Path) -> None:
    """Lets every user pass the sandbox's folder and read the learner's file in it.

    Only a copy that lies there is touched, and only as root. There may be no file: the process
    before a GPU is also asked what it is without one, and has a folder of its own to write to.
    """
    if os.geteuid() != 0:
        return
    permissions = {folder: stat.S_IXGRP | stat.S_IXOTH}
    if kernel.is_relative_to(folder) and kernel.is_file():
        permissions |= {parent: stat.S_IXGRP | stat.S_IXOTH for parent in kernel.parents
                        if parent.is_relative_to(folder)}
        permissions[kernel] = stat.S_IRGRP | stat.S_IROTH
    for path, bits in permissions.items():
        with contextlib.suppress(OSError):
            path.chmod(stat.S_IMODE(path.lstat().st_mode) | bits)


def hide_memory() -> None:
    """Keeps other processes of this user from reading this one's memory and environment."""
    prctl(_SET_DUMPABLE, 0)


def show_memory() -> None:
    """Lets the judge, as the same user, read how much memory this process takes."""
    if os.geteuid() != 0:
        prctl(_SET_DUMPABLE, 1)
