"""The judge's client of the zygote: starts it, forks children, and cleans up after both."""

import contextlib
import fcntl
import functools
import itertools
import json
import os
import secrets
import select
import socket
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from grader.sandbox import cancellation, processes, tempdirs
from grader.sandbox.child_client import Child
from grader.sandbox.confinement import Isolation, Measure, hide_memory
from grader.sandbox.errors import SandboxBroken
from grader.sandbox.handlers import Handlers
from grader.sandbox.limits import ResourceLimits, Role

START_S = 120.0  # importing torch from a slow disk; two seconds are usual
ANSWER_S = 30.0  # of a zygote that is warm: it forks, kills, and does one thing ahead, of a second
CLOSE_S = 5.0
_MAX_ANSWER = 64 << 10
_PIPE_BYTES = 1 << 20
# Where the driver and a compiler lie, and whether kernels are compiled with their assertions.
_PASSED_ON = ("LD_LIBRARY_PATH", "TRITON_LIBCUDA_PATH", "CC", "TRITON_DEBUG")


class Sandbox(contextlib.AbstractContextManager["Sandbox"]):
    """Forks confined children. Threads may share it; a lost zygote is replaced.

    Args:
        handlers: the code of the children.
        without: measures to leave out, as on a machine that lacks them; see ``isolation``.

    Raises:
        SandboxBroken: here and by every request, as the zygote does not start, or was lost.
        OSError: there is no place for temporary files.
    """

    def __init__(self, handlers: Handlers, without: Collection[Measure] = ()) -> None:
        hide_memory()  # it holds seeds and expected values
        self._handlers = handlers
        self._without = tuple(without)
        self._lock = threading.RLock()
        self._numbers = itertools.count(1)  # of requests and children
        self._children: weakref.WeakSet[Child] = weakref.WeakSet()
        self._closed = False
        self.most_resident: int | None = None  # bytes; of children that run a submission's code
        self._start()

    def fork(self, role: Role, limits: ResourceLimits | None = None) -> Child:
        """Forks a child, once the zygote is warm."""
        limits = limits or ResourceLimits()
        if self.most_resident is not None and role in ("worker", "executor"):
            limits = replace(limits, resident=min(limits.resident, self.most_resident))
        with self._lock:
            if self._closed:
                raise SandboxBroken("The sandbox is closed.")
            if self._zygote.poll() is not None:
                self._discard()
                self._start()
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
            output, output_end = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
            blame, blame_end = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
            os.set_blocking(output_end, True)
            with contextlib.suppress(OSError):  # the system may not allow as much
                fcntl.fcntl(output_end, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
            request = {"op": "fork", "role": role, "limits": limits.to_dict(),
                       "name": f"child-{next(self._numbers)}"}
            try:
                pid = self.request(request, (theirs.fileno(), output_end, blame_end))["pid"]
            except BaseException:  # the user's impatience too: then the child reads its end
                ours.close()
                os.close(output)
                os.close(blame)
                raise
            finally:
                theirs.close()
                os.close(output_end)
                os.close(blame_end)
            child = Child(pid, limits, ours, output, blame, self.request)
            self._children.add(child)
            return child

    def close(self) -> None:
        """Kills every child and the zygote, and removes their files."""
        with self._lock:
            if not self._closed:
                self._discard()
                self._closed = True

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """The zygote's process id."""
        return self._zygote.pid

    @property
    def spares(self) -> list[int]:
        """Process ids of children that were forked ahead and wait for a role."""
        return list(self.request({"op": "spares"})["pids"])

    def expect(self, key: str) -> None:
        """Warms what children forked from now on will need: a key of ``Handlers.expected``."""
        self.request({"op": "expect", "key": key})

    @functools.cached_property
    def isolation(self) -> Isolation:
        """The isolation of the children, as proved by one of them."""
        return Isolation.from_dict(self.request({"op": "isolation"})["isolation"])

    def _start(self) -> None:
        self._listens = False  # it does once it is warm
        # Of temporary files. The zygote makes the folder as well, and removes it even if the judge
        # is killed: were it there before the zygote is, it could be left behind.
        self.folder = Path(tempfile.gettempdir()) / f"tritonlab-{secrets.token_hex(8)}"
        self._log = os.memfd_create("tritonlab-zygote-log", os.MFD_CLOEXEC)
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            try:
                self._zygote = subprocess.Popen(
                    [sys.executable, "-I", "-B", "-m", "grader.sandbox.zygote", str(self.folder),
                     str(os.getpid()), str(theirs.fileno()),
                     msgspec.json.encode(self._handlers).decode(), *self._without],
                    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self._log,
                    pass_fds=(theirs.fileno(),), start_new_session=True, cwd="/",
                    env=_environment(self.folder))
            except OSError as error:
                self._control.close()
                os.close(self._log)
                self._closed = True
                raise SandboxBroken(f"The grader's helper process cannot start: {error}") from error
        try:
            self.folder.mkdir(mode=0o700, exist_ok=True)
        except OSError:
            self._zygote.kill()
            self.close()
            raise

    def _discard(self) -> None:
        for child in list(self._children):
            child.kill()
        self._control.close()
        if not self._listens:
            self._zygote.kill()
        try:
            self._zygote.wait(CLOSE_S)
        except subprocess.TimeoutExpired:
            self._zygote.kill()
            self._zygote.wait()
        os.close(self._log)
        processes.end_marked(f"HOME={self.folder}\0")  # strays, if the zygote was killed
        tempdirs.remove(self.folder)

    def request(self, request: dict[str, Any], fds: Sequence[int] = ()) -> dict[str, Any]:
        """Sends one request to the zygote and returns its answer."""
        with self._lock:
            number = next(self._numbers)
            # Who was cancelled does not wait until a zygote that is busy has killed a child.
            waits = request["op"] != "dismiss" or not cancellation.is_cancelled()
            message = json.dumps({**request, "number": number, "answered": waits}).encode()
            try:
                socket.send_fds(self._control, [message], fds)
                if not waits:
                    return {}
                answer = self._receive()
                while answer and answer["number"] != number:  # to one that was interrupted
                    answer = self._receive()
            except OSError:
                answer = {}
            if not answer:
                raise SandboxBroken(self._complaint())
            self._listens = True
            return answer

    def _receive(self) -> dict[str, Any]:
        """Receives the next answer; empty if none comes in time."""
        deadline = time.monotonic() + (ANSWER_S if self._listens else START_S)
        while not select.select([self._control], [], [], cancellation.LOOK_S)[0]:
            if time.monotonic() > deadline:
                return {}
            if not self._listens:
                cancellation.check()  # while it warms up, there is no child to end yet
        data = self._control.recv(_MAX_ANSWER)
        answer: dict[str, Any] = json.loads(data) if data else {}
        return answer

    def _complaint(self) -> str:
        """Says why the zygote is gone; one that hangs is killed, so that no answer comes late."""
        if self._closed:
            return "The sandbox is closed."
        try:
            status = self._zygote.wait(1.0)
        except subprocess.TimeoutExpired:
            self._zygote.kill()
            status = self._zygote.wait()
        log = os.pread(self._log, 8192, max(0, os.fstat(self._log).st_size - 8192))
        text = log.decode("utf-8", "replace").strip()
        return f"The grader's helper process ended with status {status}.\n{text}".strip()


def _environment(folder: Path) -> dict[str, str]:
    """The environment of the zygote. TRITON_INTERPRET is left out on purpose.

    GPUs are hidden until the GPU process gets CUDA_VISIBLE_DEVICES with its first request; torch
    counts them through NVML, as CUDA cannot be used after a fork.
    """
    given = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    return {
        **given,
        "CUDA_VISIBLE_DEVICES": "",
        "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
        "PATH": os.environ.get("PATH", os.defpath),
        "LANG": "C.UTF-8",
        "OMP_NUM_THREADS": "1",  # a fork of a process with threads hangs in its first matmul
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "TRITON_CACHE_DIR": str(folder),
        "TORCHINDUCTOR_CACHE_DIR": str(folder),  # which torch's compiler makes, if it is not there
        "HOME": str(folder),
        "TMPDIR": str(folder),
    }
