"""The main function of a forked child: it confines itself, then answers requests."""

from __future__ import annotations

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
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TextIO

from grader.sandbox import protocol
from grader.sandbox.confinement import Isolation, Measure, admit, confine, show_memory
from grader.sandbox.handlers import Handlers, resolve
from grader.sandbox.limits import ResourceLimits, Role
from grader.sandbox.processes import adopt_orphans, die_with_parent

_CHANNEL, _BLAME, _FIRST_UNUSED = 3, 4, 5
_LONGEST_ORDERS = 64 << 10
_NICE = 5  # a compiler works beside the cases, and makes way for them
_DESCRIPTORS = 1 << 16  # closed in the child, at most
_NO_MEMORY = ("can't allocate memory", "Cannot allocate memory", "std::bad_alloc")


class Handler(Protocol):
    """Answers the requests of one role. Descriptors are closed after each request."""

    def handle(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Orders:
    """The role and limits of a child, and the isolation that it must reach."""

    role: Role
    handler: str  # its name, see ``Handlers``
    limits: ResourceLimits
    folder: Path  # made by the child: its working directory, and its place for temporary files
    zygote: int
    without: tuple[Measure, ...]
    expected: Isolation


def run(birth: socket.socket, folder: Path, zygote: int, without: tuple[Measure, ...],
        expected: Isolation, handlers: Handlers, warm: Callable[[], None] | None = None) -> None:
    """Waits for orders, then answers requests until the judge closes the channel; never returns.

    Args:
        birth: where the zygote sends the orders, with the channel, the pipe for output and the
            pipe for blame.
        folder: of the sandbox; the child makes its own there.
        zygote: the process that forked this one; if it is gone, so is the child.
        without: measures to leave out.
        expected: how isolated the child must be once it is confined.
        handlers: the code of each role, by name.
        warm: called before that, in a child that is forked ahead.
    """
    try:
        _live_and_die_with(zygote)
        if warm is not None:
            warm()
        data, fds, _, _ = socket.recv_fds(birth, _LONGEST_ORDERS, 3)
        birth.close()
        if data:
            given = json.loads(data)
            orders = Orders(given["role"], handlers.roles[given["role"]],
                            ResourceLimits.from_dict(given["limits"]), folder / str(given["name"]),
                            zygote, without, expected)
            channel, output, blame = fds
            _cut_off(orders.folder, (channel, output, blame))
            _serve(orders)
    finally:
        os._exit(70)


def _live_and_die_with(zygote: int) -> None:
    os.setsid()
    die_with_parent(signal.SIGKILL)
    if os.getppid() != zygote:
        os._exit(70)


def _cut_off(folder: Path, fds: tuple[int, int, int]) -> None:
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


def _rewire(fds: tuple[int, int, int]) -> None:
    """Makes descriptors 0 to 4 null, output, output, channel and blame; closes all others."""
    signal.set_wakeup_fd(-1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    channel, output, blame = (_above(fd) for fd in fds)
    for source, target in ((nothing, 0), (output, 1), (output, 2), (channel, 3), (blame, 4)):
        os.dup2(source, target, inheritable=target < _CHANNEL)
    os.closerange(_FIRST_UNUSED, _DESCRIPTORS)
    sys.stdout, sys.stderr = _printer(1), _printer(2)


def _printer(fd: int) -> TextIO:
    """A line-buffered stream, so that output before a crash is not lost."""
    return open(fd, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)


def _above(fd: int) -> int:
    """Duplicates a descriptor to a number above those that ``_rewire`` assigns."""
    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 64)


class _Broken:
    """Answers every request with the error that kept a handler from being made."""

    def __init__(self) -> None:
        self._reply = _broken()

    def handle(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        return self._reply


def _prepared(orders: Orders, kernel: Path, folder: Path | None) -> Handler:
    """Makes the handler, then confines this process; only the grader's own code has run so far.

    Args:
        kernel: the learner's file, named by the first request.
        folder: the folder of all files of a submission that has several.
    """
    try:
        handler: Handler = resolve(orders.handler)()
        if orders.role == "compiler":
            _make_way()
        admit(kernel, orders.folder.parent)
        reached = confine(orders.role, orders.limits, folder or kernel, orders.folder,
                          orders.zygote, orders.without)
        if reached != orders.expected:
            raise RuntimeError(f"this child reached {reached.describe()!r}, others "
                               f"{orders.expected.describe()!r}")
        return handler
    except BaseException:
        return _Broken()


def _make_way() -> None:
    """Lowers the priority of this process, and of its session, which Linux schedules too."""
    os.nice(_NICE)
    with contextlib.suppress(OSError):
        Path("/proc/self/autogroup").write_text(str(_NICE))


def _broken() -> dict[str, Any]:
    return {"status": "broken", "traceback": traceback.format_exc()[-8000:]}


def _serve(orders: Orders) -> None:
    channel = socket.socket(fileno=_CHANNEL)
    handler: Handler | None = None
    while received := protocol.receive(channel):
        request, fds = received
        if handler is None:
            folder = request.get("folder")
            handler = _prepared(orders, Path(str(request.get("path", os.devnull))),
                                Path(str(folder)) if folder else None)
        reply = _answer(handler, request, fds)
        for fd in fds:
            os.close(fd)
        _flush()
        channel.sendall(protocol.encode(reply))
    os._exit(0)


def _answer(handler: Handler, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
    try:
        return handler.handle(request, fds)
    except BaseException as error:
        if isinstance(error, MemoryError) or any(text in str(error) for text in _NO_MEMORY):
            types = ["MemoryError", "Exception", "BaseException"]
            message = str(error)[:2000] or "the limit on memory was reached"
            return {"status": "raised", "types": types, "message": message, "line": None,
                    "launches": 0, "findings": []}
        return _broken()


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # the learner's code may have closed it
            stream.flush()
