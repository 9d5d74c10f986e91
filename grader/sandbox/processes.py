"""Process trees: memory and CPU time from /proc, and how to kill them."""

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

from grader.sandbox.linux import prctl

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_TICKS = os.sysconf("SC_CLK_TCK")  # a second
_PASSES = 50  # a tree that still grows after so many rounds is forking faster than we can stop it


def die_with_parent(number: int) -> None:
    """Has the kernel send signal ``number`` when the thread that forked this process ends."""
    prctl(_PR_SET_PDEATHSIG, number)


def adopt_orphans() -> None:
    """Makes this process the parent of every descendant whose own parent ends."""
    prctl(_PR_SET_CHILD_SUBREAPER, 1)


def children(pid: int) -> list[int]:
    """The processes whose parent is ``pid``, zombies included."""
    pids: list[int] = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):
                pids += map(int, (task / "children").read_text(encoding="ascii").split())
    return pids


def descendants(pid: int) -> Iterator[int]:
    for child in children(pid):
        yield child
        yield from descendants(child)


def resident(pid: int, limit: int, inherited: int) -> int:
    """Bytes of memory that ``pid`` and its descendants allocated since it was forked.

    The quick sum counts shared pages once per process, and what was ``inherited`` too; only where
    it is over ``limit`` are they told apart, which takes some milliseconds. A page that several
    processes share counts in equal parts in each, so that of what was inherited, the family is
    shown its part of all that descend from the same parent.
    """
    family = [pid, *descendants(pid)]
    quick = sum(_resident(member) for member in family)
    if quick <= limit:
        return quick
    _, parent, *_ = _stat(pid) or ("", os.getpid())
    sharers = 1 + sum(1 for _ in descendants(int(parent)))
    shown = inherited * min(1.0, len(family) / sharers)
    return max(0, sum(_proportional(member) for member in family) - int(shown))


def state(pid: int) -> str:
    """The state of a process, such as R, S or Z for a zombie; empty if there is none."""
    return "".join(_stat(pid)[:1])


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the third on, the state; none if there is no process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return text.rpartition(")")[2].split()


def anonymous(pid: int) -> int:
    """Bytes of anonymous memory; a fresh fork shares them with its parent."""
    return _sizes(Path(f"/proc/{pid}/status"), ("RssAnon:",))


def _resident(pid: int) -> int:
    return _sizes(Path(f"/proc/{pid}/status"), ("VmRSS:",))


def _proportional(pid: int) -> int:
    """Bytes without pages of files; a page of n processes counts 1/n in each."""
    shares = _sizes(Path(f"/proc/{pid}/smaps_rollup"), ("Pss_Anon:", "Pss_Shmem:"))
    return shares or _resident(pid)  # kernels before 5.9 do not tell them apart


def _sizes(table: Path, names: tuple[str, ...]) -> int:
    try:
        lines = table.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(names))


def work(pid: int) -> tuple[float, bool]:
    """CPU seconds of ``pid`` and its descendants, and whether one of them is runnable now."""
    ticks, runnable = 0, False
    for member in (pid, *descendants(pid)):
        fields = _stat(member)
        runnable |= fields[:1] == ["R"]
        ticks += sum(map(int, fields[11:15]))  # its own, and of children that have ended
    return ticks / _TICKS, runnable


def stop_tree(pid: int) -> None:
    """Stops, then kills ``pid`` and all its descendants; a stopped process cannot fork."""
    stopped: set[int] = set()
    for _ in range(_PASSES):
        fresh = {pid, *descendants(pid)} - stopped
        if not fresh:
            break
        for member in fresh:
            send(member, signal.SIGSTOP)
        stopped |= fresh
    for member in stopped:
        send(member, signal.SIGKILL)


def end_marked(mark: str) -> None:
    """Kills all processes with ``mark`` in their environment, and waits for their end."""
    for _ in range(_PASSES):
        marked = False
        for pid in (int(name) for name in os.listdir("/proc") if name.isdigit()):  # noqa: PTH208
            with contextlib.suppress(OSError):
                started_with = Path(f"/proc/{pid}/environ").read_bytes()  # or its forebears did
                if pid != os.getpid() and mark.encode() in started_with:
                    marked = True
                    send(pid, signal.SIGKILL)
        if not marked:
            return
        time.sleep(0.02)


def send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)
