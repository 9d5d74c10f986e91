"""The main function of a forked child: it confines itself, then answers requests."""

import contextlib
import faulthandler
import fcntl
import json
import os
import signal
import socket
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, TextIO

from grader.sandbox import handlers, protocol
from grader.sandbox.confinement import Isolation, Measure, admit, confine, show_memory
from grader.sandbox.handlers import Handlers
from grader.sandbox.limits import ResourceLimits, Role
from grader.sandbox.processes import adopt_orphans, die_with_parent

_CHANNEL, _BLAME, _FIRST_UNUSED = 3, 4, 5
_LONGEST_ORDERS = 64 << 10
_NICE = 5  # a compiler works beside the cases, and makes way for them
_DESCRIPTORS = 1 << 16  # closed in the child, at most
_NO_MEMORY = ("can't allocate memory", "Cannot allocate memory", "std::bad_alloc")


# Answers a request of its role. The descriptors are closed afterwards.
Handle = Callable[[dict[str, Any], list[int]], dict[str, Any]]


def run(birth: socket.socket, folder: Path, zygote: int, without: tuple[Measure, ...],
        expected: Isolation, code: Handlers, ahead: bool = False) -> None:
    """Waits for orders, then answers requests until the judge closes the channel; never returns.

    Args:
        birth: where the zygote sends the orders: role, limits and the name of the child's folder,
            with the channel, the pipe for output and the pipe for blame.
        folder: of the sandbox; the child makes its own there, for work and temporary files.
        zygote: the process that forked this one; if it is gone, so is the child.
        without: measures to leave out.
        expected: how isolated the child must be once it is confined.
        code: of each role.
        ahead: it is forked ahead of its orders, and warms up until they come.
    """
    try:
        os.setsid()
        die_with_parent(signal.SIGKILL)
        if os.getppid() != zygote:
            os._exit(70)
        if ahead:
            handlers.call(code.warm)
        data, fds, _, _ = socket.recv_fds(birth, _LONGEST_ORDERS, 3)
        birth.close()
        if data:
            orders = json.loads(data)
            role: Role = orders["role"]
            home = folder / orders["name"]
            _cut_off(home, fds)

            def prepare(request: dict[str, Any]) -> Handle:
                """Makes the handler, then confines this process; only the grader's code ran so far.
                """
                # The learner's file, or the folder of all files of a submission that has several.
                kernel = Path(request.get("path", os.devnull))
                try:
                    handle: Handle = resolve_name(code.roles[role])().handle
                    if role == "compiler":
                        os.nice(_NICE)  # this process, and its session, which Linux schedules too
                        with contextlib.suppress(OSError):
                            Path("/proc/self/autogroup").write_text(str(_NICE))
                    admit(kernel, folder)
                    reached = confine(role, ResourceLimits.from_dict(orders["limits"]),
                                      Path(request.get("folder") or kernel), home, zygote, without)
                    if reached != expected:
                        raise RuntimeError(f"this child reached {reached.describe()!r}, others "
                                           f"{expected.describe()!r}")
                    return handle
                except BaseException:
                    broken = _broken()
                    return lambda request, fds: broken

            _serve(prepare)
    finally:
        os._exit(70)


def _cut_off(folder: Path, fds: list[int]) -> None:
    adopt_orphans()  # what the learner's code leaves behind stays within reach
    show_memory()
    _rewire(fds)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    folder.mkdir(mode=0o700)
    os.chdir(folder)
    for name in ("HOME", "TMPDIR", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR"):
        os.environ[name] = str(folder)
    tempfile.tempdir = None  # the zygote may have asked where that is
    sys.argv = ["kernel.py"]
    faulthandler.enable(_BLAME, all_threads=False)
    faulthandler.register(signal.SIGUSR1, _BLAME, all_threads=False)


def _rewire(fds: list[int]) -> None:
    """Makes descriptors 0 to 4 null, output, output, channel and blame; closes all others."""
    signal.set_wakeup_fd(-1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    # Duplicates above the numbers that are assigned here.
    channel, output, blame = (fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 64) for fd in fds)
    for source, target in ((nothing, 0), (output, 1), (output, 2), (channel, 3), (blame, 4)):
        os.dup2(source, target, inheritable=target < _CHANNEL)
    os.closerange(_FIRST_UNUSED, _DESCRIPTORS)
    sys.stdout, sys.stderr = _printer(1), _printer(2)


def _printer(fd: int) -> TextIO:
    """A line-buffered stream, so that output before a crash is not lost."""
    return open(fd, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)


def _broken() -> dict[str, Any]:
    return {"status": "broken", "traceback": traceback.format_exc()[-8000:]}


def _serve(prepare: Callable[[dict[str, Any]], Handle]) -> None:
    channel = socket.socket(fileno=_CHANNEL)
    handle: Handle | None = None
    while received := protocol.receive(channel):
        request, fds = received
        handle = handle or prepare(request)
        reply = _answer(handle, request, fds)
        for fd in fds:
            os.close(fd)
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):  # the learner's code may have closed it
                stream.flush()
        channel.sendall(protocol.encode(reply))
    os._exit(0)


def _answer(handle: Handle, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
    try:
        return handle(request, fds)
    except BaseException as error:
        if isinstance(error, MemoryError) or any(text in str(error) for text in _NO_MEMORY):
            types = ["MemoryError", "Exception", "BaseException"]
            message = str(error)[:2000] or "the limit on memory was reached"
            return {"status": "raised", "types": types, "message": message, "line": None,
                    "launches": 0, "findings": []}
        return _broken()
