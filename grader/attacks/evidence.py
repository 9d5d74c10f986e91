"""Evidence that an attack succeeded, gathered outside its process.

Its output counts only if it contains a secret that it was not given.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from grader.attacks.honeypots import BIG_FILE, BOMB, MANY_FILES, MEMORY, Scene
from grader.sandbox import processes
from grader.sandbox.limits import KIB

MOST_OUTPUT = 256 * KIB  # characters; a judge that keeps more can be drowned


@dataclass
class RunningAttack:
    """An attack under way: its process, and the output that was kept of it."""

    pid: int
    answered: bool  # it came to its end, and its process waits
    ended: str  # how it ended otherwise
    printed: Callable[[], str]
    stop: Callable[[], None]


Judgement = Callable[[Scene, RunningAttack], str]  # the evidence of success; empty without


def printed_secret(target: Scene, attempt: RunningAttack) -> str:
    return "the secret came back" if target.secret in attempt.printed() else ""


def listed(target: Scene, attempt: RunningAttack) -> str:
    return "the name of a hidden file came back" if target.hidden.name in _results(attempt) else ""


def _results(attempt: RunningAttack) -> str:
    """The output of an attack without refusals, whose reasons repeat names that it was given."""
    return "\n".join(line for line in attempt.printed().splitlines()
                     if not line.startswith("refused: "))


def forged(target: Scene, attempt: RunningAttack) -> str:
    untouched = f"# {target.secret}\n"
    return "" if target.certificate.read_text(encoding="utf-8") == untouched else \
        "the certificate was changed"


def deleted(target: Scene, attempt: RunningAttack) -> str:
    return "" if target.work.exists() else "the learner's file is gone"


def exists(name: str) -> Judgement:
    def look(target: Scene, attempt: RunningAttack) -> str:
        path: Path = getattr(target, name)
        return f"{path.parent} was written to" if path.exists() else ""

    return look


def killed(target: Scene, attempt: RunningAttack) -> str:
    judge = target.last_judge
    return "the judge was killed" if judge is not None and judge.poll() is not None else ""


def traced(target: Scene, attempt: RunningAttack) -> str:
    status = Path(f"/proc/{target.judge.pid}/status").read_text(encoding="ascii")
    return "" if "TracerPid:\t0\n" in status else "the judge was being traced"


def connected(target: Scene, attempt: RunningAttack) -> str:
    with contextlib.suppress(BlockingIOError):
        target.listener.accept()[0].close()
        return "a connection to this machine came in"
    return ""


def executed(target: Scene, attempt: RunningAttack) -> str:
    if attempt.ended == "closed its channel and went on":
        return "it became another program"  # which is when its end of the channel closes
    for pid in (attempt.pid, *processes.descendants(attempt.pid)):
        with contextlib.suppress(OSError):
            if Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip() == "sleep":
                return "another program was running"
    return ""


def bombed(target: Scene, attempt: RunningAttack) -> str:
    count = len(list(processes.descendants(attempt.pid)))
    return f"{count} processes were running" if count >= BOMB else ""


def survived(target: Scene, attempt: RunningAttack) -> str:
    daemons = [word for word in attempt.printed().split() if word.startswith("daemon=")]
    for word in daemons:
        pid = int(word.removeprefix("daemon="))
        if _lives(pid):
            processes.send(pid, signal.SIGKILL)
            return f"process {pid} was still running"
    return ""


def outlived(target: Scene, attempt: RunningAttack) -> str:
    if not _lives(attempt.pid):
        return ""
    processes.send(attempt.pid, signal.SIGKILL)
    return "the process was still running"


def _lives(pid: int) -> bool:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] not in ("Z", "X")


def verdict(target: Scene, attempt: RunningAttack) -> str:
    with contextlib.suppress(BlockingIOError):
        return "a verdict came in" if target.mark.encode() in os.read(target.verdict, 4096) else ""
    return ""


def stored(target: Scene, attempt: RunningAttack) -> str:
    sizes = [path.stat().st_size for path in target.writable.iterdir()]
    for path in target.writable.iterdir():
        path.unlink()
    if max(sizes, default=0) >= BIG_FILE:
        return f"a file of {max(sizes) / 1e6:.0f} MB was written"
    return f"{len(sizes)} files were written" if len(sizes) >= MANY_FILES else ""


def held(target: Scene, attempt: RunningAttack) -> str:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{attempt.pid}/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:") and int(line.split()[1]) * 1024 >= MEMORY:
                return f"{int(line.split()[1]) / 1e6:.1f} GB were held"
    return ""


def flooded(target: Scene, attempt: RunningAttack) -> str:
    kept = len(attempt.printed())
    return f"{kept / 1e6:.0f} MB of output were kept" if kept > MOST_OUTPUT else ""


def raised(target: Scene, attempt: RunningAttack) -> str:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{attempt.pid}/limits").read_text(encoding="ascii").splitlines():
            if line.startswith("Max core file size") and line.split()[4] != "0":
                return "a limit was raised"
    return ""


def threaded(target: Scene, attempt: RunningAttack) -> str:
    with contextlib.suppress(OSError):
        count = len(list(Path(f"/proc/{attempt.pid}/task").iterdir()))
        return f"{count} threads were running" if count > 1 else ""
    return ""
