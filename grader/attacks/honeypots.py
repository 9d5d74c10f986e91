"""Targets of the attacks: files, a process, a socket and a descriptor.

Ordinary permissions leave all of them open, so that only the sandbox stands before them.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from grader.sandbox import tempdirs

BOMB, MANY_FILES = 100, 40  # processes and files that an attack makes, when it is let
BIG_FILE, MEMORY = 80_000_000, 1 << 30  # bytes that it takes
NAP_S = 60.0  # of what it leaves running


@dataclass
class Scene:
    """Files, a process with a secret, a listening socket and an open descriptor."""

    folder: Path
    secret: str = field(default_factory=lambda: secrets.token_hex(16))
    mark: str = field(default_factory=lambda: secrets.token_hex(8))

    def __post_init__(self) -> None:
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

    def __enter__(self) -> Scene:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
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


@contextlib.contextmanager
def scene() -> Iterator[Scene]:
    """Makes the decoys in a folder that every user can reach. Enter it before a sandbox starts."""
    with Scene(Path(tempfile.mkdtemp(prefix="tritonlab-decoys-"))) as decoys:
        yield decoys
