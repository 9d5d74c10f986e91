"""Targets of the attacks, and evidence that an attack succeeded, gathered outside its process.

Ordinary permissions leave all targets open, so that only the sandbox stands before them. The output
of an attack counts only if it contains a secret that it was not given.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from grader.sandbox import processes, tempdirs
from grader.sandbox.limits import KIB

BOMB, MANY_FILES = 100, 40  # processes and files that an attack makes, when it is let
BIG_FILE, MEMORY = 80_000_000, 1 << 30  # bytes that it takes
NAP_S = 60.0  # of what it leaves running
MOST_OUTPUT = 256 * KIB  # characters; a judge that keeps more can be drowned
REFUSED = "refused: "  # before the reason why an attack failed, in its output


class Scene:
    """Files, a process with a secret, a listening socket and an open descriptor."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.secret, self.mark = folder, secrets.token_hex(16), secrets.token_hex(8)
        self.hidden = self.folder / "hidden" / f"test_{self.mark}.py"
        self.certificate = self.folder / "certificate.json"
        self.work = self.folder / "home" / "kernel.py"
        self.writable = self.folder / "open"
        self.package = Path(sysconfig.get_path("purelib")) / f"tritonlab_decoy_{self.mark}.py"
        self.temporary = Path(tempfile.gettempdir()) / f"tritonlab-decoy-{self.mark}"
        self.shared = Path("/dev/shm") / f"tritonlab-decoy-{self.mark}"
        for path in (self.hidden, self.certificate, self.work, self.writable / "x"):
            path.parent.mkdir(mode=0o777, exist_ok=True)
            path.parent.chmod(0o777)
        self.folder.chmod(0o777)
        for path in (self.hidden, self.certificate, self.work):
            path.write_text(f"# {self.secret}\n", encoding="utf-8")
            path.chmod(0o666)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.setblocking(False)
        self.verdict, self.verdict_end = os.pipe2(os.O_NONBLOCK)
        os.set_inheritable(self.verdict_end, True)  # left open, as a careless grader might
        self.last_judge: subprocess.Popen[str] | None = None
        self.judge_address = 0

    @property
    def judge(self) -> subprocess.Popen[str]:
        """A process with the secret in its environment and memory; replaced if it died."""
        if self.last_judge is None or self.last_judge.poll() is not None:
            self._drop_judge()
            self.last_judge = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _JUDGE], stdin=subprocess.PIPE, text=True,
                stdout=subprocess.PIPE, env={"SECRET": self.secret, "LANG": "C.UTF-8"})
            assert self.last_judge.stdout is not None
            self.judge_address = int(self.last_judge.stdout.readline())
        return self.last_judge

    def words(self) -> dict[str, object]:
        """The names that an attack gets: where everything lies, but no secret."""
        judge = self.judge
        return {
            "HIDDEN": str(self.hidden), "TESTS": str(self.hidden.parent),
            "CERTIFICATE": str(self.certificate), "WORK": str(self.work),
            "PACKAGE": str(self.package), "WRITABLE": str(self.writable),
            "TEMPORARY": str(self.temporary), "SHARED": str(self.shared), "MARK": self.mark,
            "JUDGE": judge.pid, "ADDRESS": self.judge_address, "LENGTH": len(self.secret),
            "PORT": self.listener.getsockname()[1], "BOMB": BOMB, "FILES": MANY_FILES,
            "BIG": BIG_FILE, "MEMORY": MEMORY, "NAP": NAP_S,
        }

    def close(self) -> None:
        self._drop_judge()
        self.listener.close()
        os.close(self.verdict)
        os.close(self.verdict_end)
        for path in (self.package, self.temporary, self.shared):
            path.unlink(missing_ok=True)
        tempdirs.remove(self.folder)

    def _drop_judge(self) -> None:
        if self.last_judge is not None:
            self.last_judge.kill()
            self.last_judge.communicate()


_JUDGE = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
libc.prctl(0x59616d61, ctypes.c_ulong(-1), 0, 0, 0)
kept = ctypes.create_string_buffer(os.environ["SECRET"].encode())
print(ctypes.addressof(kept), flush=True)
sys.stdin.read()
"""


def scene() -> contextlib.closing[Scene]:
    """Makes the decoys in a folder that every user can reach. Enter it before a sandbox starts."""
    return contextlib.closing(Scene(Path(tempfile.mkdtemp(prefix="tritonlab-decoys-"))))


@dataclass
class RunningAttack:
    """An attack under way: its process, and the output that was kept of it."""

    pid: int
    ended: str  # how its process ended; empty if that waits at the end of the attack
    printed: Callable[[], str]
    stop: Callable[[], None]


Judgement = Callable[[Scene, RunningAttack], str]  # the evidence of success; empty without


def printed_secret(target: Scene, attempt: RunningAttack) -> str:
    return "the secret came back" if target.secret in attempt.printed() else ""


def listed(target: Scene, attempt: RunningAttack) -> str:
    lines = [line for line in attempt.printed().splitlines()
             if not line.startswith(REFUSED)]  # whose reasons repeat names that it was given
    return "the name of a hidden file came back" if target.hidden.name in "\n".join(lines) else ""


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
    untraced = "TracerPid:\t0" in _proc(target.judge.pid, "status")
    return "" if untraced else "the judge was being traced"


def connected(target: Scene, attempt: RunningAttack) -> str:
    with contextlib.suppress(BlockingIOError):
        target.listener.accept()[0].close()
        return "a connection to this machine came in"
    return ""


def executed(target: Scene, attempt: RunningAttack) -> str:
    if attempt.ended == "closed its channel and went on":
        return "it became another program"  # which is when its end of the channel closes
    running = any(_proc(pid, "comm") == ["sleep"]
                  for pid in (attempt.pid, *processes.descendants(attempt.pid)))
    return "another program was running" if running else ""


def bombed(target: Scene, attempt: RunningAttack) -> str:
    count = len(list(processes.descendants(attempt.pid)))
    return f"{count} processes were running" if count >= BOMB else ""


def survived(target: Scene, attempt: RunningAttack) -> str:
    daemons = [int(word.removeprefix("daemon=")) for word in attempt.printed().split()
               if word.startswith("daemon=")]
    return next((f"process {pid} was still running" for pid in daemons if _killed(pid)), "")


def outlived(target: Scene, attempt: RunningAttack) -> str:
    return "the process was still running" if _killed(attempt.pid) else ""


def _killed(pid: int) -> bool:
    """Kills a process; returns whether it lived."""
    alive = processes.state(pid) not in ("", "Z", "X")
    if alive:
        processes.send(pid, signal.SIGKILL)
    return alive


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
    most = sum(int(line.split()[1]) for line in _proc(attempt.pid, "status")
               if line.startswith("VmHWM:"))  # KiB
    return f"{most / 1e6:.1f} GB were held" if most * 1024 >= MEMORY else ""


def flooded(target: Scene, attempt: RunningAttack) -> str:
    kept = len(attempt.printed())
    return f"{kept / 1e6:.0f} MB of output were kept" if kept > MOST_OUTPUT else ""


def raised(target: Scene, attempt: RunningAttack) -> str:
    core = [line.split()[4] for line in _proc(attempt.pid, "limits")
            if line.startswith("Max core file size")]
    return "a limit was raised" if core not in ([], ["0"]) else ""


def threaded(target: Scene, attempt: RunningAttack) -> str:
    [count] = [int(line.split()[1]) for line in _proc(attempt.pid, "status")
               if line.startswith("Threads:")] or [0]
    return f"{count} threads were running" if count > 1 else ""


def _proc(pid: int, name: str) -> list[str]:
    """Lines of a file about a process; none if that has ended."""
    try:
        return Path(f"/proc/{pid}/{name}").read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
