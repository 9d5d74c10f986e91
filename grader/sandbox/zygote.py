"""The zygote: a process that has imported everything slow, and forks the children.

When the control socket closes, it kills all children, removes the folder of temporary files and
ends. It is single-threaded and holds nothing that a child must not read.
"""

import contextlib
import gc
import json
import os
import select
import signal
import socket
import sys
import tempfile
import time
import traceback
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from grader.sandbox import child_main, confinement, handlers, memory_trim, processes, tempdirs
from grader.sandbox.confinement import Isolation, Measure, confine, hide_memory
from grader.sandbox.handlers import Handlers
from grader.sandbox.limits import ResourceLimits, keep_memory

MAX_MESSAGE = 64 << 10
SPARES = 3  # children forked ahead: worker, executor and compiler of a grade
IDLE_S = 0.05  # without a request and without work, before another one is forked
PAUSE_S = 0.2  # without a request, before something is done that is done once
_SAMPLE = Path(child_main.__file__)  # stands in for a learner's file


class Zygote:
    """Forks on request, and keeps how each child ended."""

    def __init__(self, folder: Path, judge: int, control: int, code: Handlers,
                 without: tuple[Measure, ...] = ()) -> None:
        self._folder = folder
        self._code = code
        self._without = without
        self._isolation = Isolation()
        self._judge = judge
        self._control = socket.socket(fileno=control)
        self._wakeup, wakeup = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, _wake)
        processes.adopt_orphans()
        self._living: set[int] = set()
        self._ended: dict[int, str] = {}  # how, by process id
        self._homes: dict[int, Path] = {}  # the folders of children that got their orders
        self._dismissed: set[int] = set()  # how these end is not asked for
        self._spares: dict[int, socket.socket] = {}  # they wait there for their orders
        # What was done here once is fast in children.
        self._idle: deque[Callable[[], None]] = deque(
            (*(partial(_warm_idle, name) for name in code.idle), _settle))
        self._expected: set[str] = set()  # keys of what else is warm
        self._served = False  # a child with orders has ended

    def serve(self) -> None:
        """Warms up, then answers until the judge is gone."""
        try:
            self._warm_up()
            while os.getppid() == self._judge and self._wait():
                pass
        finally:
            for pid in list(self._living):
                self._kill(pid)
            self._sweep()
            tempdirs.remove(self._folder)

    def _warm_up(self) -> None:
        """Imports and tries out all that a grade needs, so that children start warm.

        There are no children yet, so SIGTERM may end it at once.
        """
        signal.signal(signal.SIGTERM, lambda *_: sys.exit())
        gc.disable()  # hardly anything that imports make is garbage
        if os.getppid() == self._judge:
            keep_memory()
            # What children run first: one that runs it once more has copies of the pages.
            handlers.call((*self._code.first, *self._code.warm))
            confinement.warm()
            gc.freeze()  # no collector run in a child touches, and so copies, these pages
            gc.enable()
            self._isolation = self._probe()
        signal.signal(signal.SIGTERM, _wake)

    def _wait(self) -> bool:
        control = self._control.fileno()
        ready, _, _ = select.select([control, self._wakeup], [], [], self._leisure_s())
        if not ready:  # prepare one thing; requests wait for no more than that
            if self._idle:
                self._idle.popleft()()
            else:
                self._prepare(ahead=True)
        if self._wakeup in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self._wakeup, 4096)
            self._reap()
        return control not in ready or self._answer()

    def _leisure_s(self) -> float | None:
        """Seconds to wait for a request before something is prepared; None: no limit."""
        # While a grade runs, the CPUs are for its children. The first one may be the only one.
        if self._idle and (self._served or not self._homes):
            return PAUSE_S
        return IDLE_S if len(self._spares) < SPARES and not self._homes else None

    def _answer(self) -> bool:
        try:
            data, fds, _, _ = socket.recv_fds(
                self._control, MAX_MESSAGE, 8, socket.MSG_CMSG_CLOEXEC)
            if not data:
                return False
            request = json.loads(data)
            with contextlib.ExitStack() as received:
                for fd in fds:
                    received.callback(os.close, fd)
                match request["op"]:
                    case "fork":
                        reply = self._fork(request, fds)
                    case "isolation":
                        reply = {"isolation": self._isolation.to_dict()}
                    case "spares":
                        reply = {"pids": list(self._spares)}
                    case "expect":
                        reply = self._expect(request["key"])
                    case _:
                        reply = self._about(request)
            if request["answered"]:
                self._control.sendall(json.dumps({**reply, "number": request["number"]}).encode())
        except ConnectionError:
            return False
        return True

    def _expect(self, key: str) -> dict[str, Any]:
        """Warms what only some grades need."""
        if key not in self._expected:
            self._expected.add(key)
            with contextlib.suppress(Exception):
                handlers.call(self._code.expected[key])
            _settle()
            for pid in list(self._spares):  # forked before
                self._kill(pid)
        return {}

    def _fork(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Sends a child its orders, and the ends of its channel and pipes."""
        if not self._spares:
            self._prepare()
        pid, orders = self._spares.popitem()
        self._homes[pid] = self._folder / str(request["name"])
        with orders:
            socket.send_fds(orders, [json.dumps(request).encode()], fds)
        return {"pid": pid}

    def _prepare(self, *, ahead: bool = False) -> None:
        """Forks a child that waits for orders; if ``ahead`` of them, it warms up."""
        zygote = os.getpid()
        orders, birth = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with birth:
            pid = os.fork()
            if pid == 0:
                self._control.detach()
                child_main.run(birth, self._folder, zygote, self._without, self._isolation,
                               self._code, ahead)
        self._living.add(pid)
        self._spares[pid] = orders

    def _probe(self) -> Isolation:
        """Finds the isolation of children by a fork that confines itself and proves it.

        Raises:
            RuntimeError: it could not be confined as far as this machine says that it can.
        """
        zygote = os.getpid()
        answers, answer = os.pipe2(os.O_CLOEXEC)
        pid = os.fork()
        if pid == 0:
            try:
                reached = confine("worker", ResourceLimits(), _SAMPLE, self._folder, zygote,
                                  self._without)
                reached.prove()
                os.write(answer, json.dumps(reached.to_dict()).encode())
            except BaseException as error:
                os.write(answer, f"{type(error).__name__}: {error}"[:2000].encode())
            finally:
                os._exit(0)
        os.close(answer)
        with os.fdopen(answers, "rb") as reading:
            answered = reading.read()
        os.waitpid(pid, 0)
        try:
            return Isolation.from_dict(json.loads(answered))
        except ValueError:
            raise RuntimeError(f"no child can be confined: {answered.decode()}") from None

    def _about(self, request: dict[str, Any]) -> dict[str, Any]:
        """Answers a request about one child.

        "blame" has it dump its stack, "end" kills it after ``grace`` seconds and returns how it
        ended, "dismiss" kills it. The files of a child are removed when it is reaped.
        """
        pid = request["pid"]
        self._reap()
        if request["op"] == "blame" and pid in self._living:
            processes.send(pid, signal.SIGUSR1)
        if request["op"] == "dismiss":
            self._ended.pop(pid, None)
            if pid in self._living:
                self._dismissed.add(pid)
                processes.stop_tree(pid)
        if request["op"] != "end":
            return {}
        deadline = time.monotonic() + request["grace"]
        while pid in self._living and time.monotonic() < deadline:
            time.sleep(0.002)
            self._reap()
        killed = pid in self._living
        if killed:
            self._kill(pid)
        return {"how": self._ended.pop(pid, "ended"), "killed": killed}

    def _kill(self, pid: int) -> None:
        processes.stop_tree(pid)
        while pid in self._living:
            self._reap(block=pid)
        self._sweep()

    def _reap(self, block: int | None = None) -> None:
        """Reaps every child that has ended; with ``block``, waits for that one."""
        try:
            while True:
                pid, status = os.waitpid(-1 if block is None else block,
                                         os.WNOHANG if block is None else 0)
                if pid == 0:
                    return
                if pid in self._living:
                    self._living.discard(pid)
                    if spare := self._spares.pop(pid, None):
                        spare.close()
                    if pid not in self._dismissed:
                        self._ended[pid] = how(status)
                    self._dismissed.discard(pid)
                    self._sweep()
                    if home := self._homes.pop(pid, None):
                        self._served = True
                        tempdirs.remove(home)
                if pid == block:
                    return
        except ChildProcessError:
            if block is not None:
                self._living.discard(block)

    def _sweep(self) -> None:
        """Kills the orphans of dead children, which this process has adopted."""
        for _ in range(3):
            strays = set(processes.children(os.getpid())) - self._living
            for pid in strays:
                processes.stop_tree(pid)
            for pid in strays:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, 0)
            if not strays:
                return


def how(status: int) -> str:
    """Describes a wait status."""
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return f"exited with status {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"


def _wake(number: int, frame: object) -> None:
    """Does nothing: the signal wakes the loop, which checks whether the judge lives."""


def _warm_idle(name: str) -> None:
    """Warms one thing; what it compiles goes to a folder that is removed."""
    home = os.environ["TRITON_CACHE_DIR"]
    with tempfile.TemporaryDirectory(dir=home) as folder, contextlib.suppress(Exception):
        os.environ["TRITON_CACHE_DIR"] = folder
        handlers.call((name,))
    os.environ["TRITON_CACHE_DIR"] = home


def _settle() -> None:
    memory_trim.give_back()  # children fault in the code that they need, whatever their parent has
    gc.freeze()


def main(folder: Path, judge: int, control: int, code: Handlers, *without: Measure) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    hide_memory()
    with contextlib.suppress(OSError):  # the judge tries as well, and says what is wrong
        folder.mkdir(mode=0o700, exist_ok=True)
    zygote = Zygote(folder, judge, control, code, without)
    processes.die_with_parent(signal.SIGTERM)
    try:
        zygote.serve()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)  # taking torch down in order takes longer than anybody waits


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]),
         msgspec.json.decode(sys.argv[4], type=Handlers), *sys.argv[5:])  # type: ignore[arg-type]
