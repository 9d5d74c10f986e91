"""A warm process that forks: everything slow is imported once, and every child starts from there.

Its life hangs on the control socket: when that closes, all children are killed, the
folder of temporary files is removed and the process ends. It is single-threaded and holds nothing
that a child must not see.
"""

from __future__ import annotations

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
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from grader import visible
from grader.sandbox import child, confinement, folders, idle, processes
from grader.sandbox.confinement import Isolation, Measure, confine, hide_memory
from grader.sandbox.limits import Limits, keep_memory

MAX_MESSAGE = 64 << 10
SPARES = 3  # children forked ahead: a grade needs a worker, an executor and a compiler
IDLE_S = 0.05  # without a request and without work, before another one is forked
PAUSE_S = 0.2  # without a request, before something is done that is done once
_SAMPLE = Path(child.__file__)  # stands in for a learner's file


class Zygote:
    """Forks on request, and knows how each child ended."""

    def __init__(self, folder: Path, judge: int, control: int,
                 without: tuple[Measure, ...] = ()) -> None:
        self._folder = folder
        self._without = without
        self._isolation = Isolation()
        self._judge = judge
        self._control = socket.socket(fileno=control)
        self._wakeup, wakeup = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, _noted)
        processes.adopt_orphans()
        self._living: set[int] = set()
        self._ended: dict[int, str] = {}
        self._homes: dict[int, Path] = {}  # the folders of children that got their orders
        self._dismissed: set[int] = set()  # nobody asks how these end
        self._spares: dict[int, socket.socket] = {}  # they wait there for their orders
        # What was done here once is fast in children.
        self._ahead = deque((_warm_compiler, _import_more, _settle))
        self._expected: set[str] = set()  # what else is warm

    def serve(self) -> None:
        """Warm up, then answer until the judge is gone."""
        try:
            self._warm_up()
            while os.getppid() == self._judge and self._wait():
                pass
        finally:
            self._end_all()
            folders.remove(self._folder)

    def _warm_up(self) -> None:
        """Import what children need; there are none yet, so without a judge it ends at once."""
        signal.signal(signal.SIGTERM, _leave)
        if os.getppid() == self._judge:
            _preload()
            self._isolation = self._probe()
        signal.signal(signal.SIGTERM, _noted)

    def _wait(self) -> bool:
        control = self._control.fileno()
        ready, _, _ = select.select([control, self._wakeup], [], [], self._leisure_s())
        if not ready:
            self._make_ready()
        if self._wakeup in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self._wakeup, 4096)
            self._reap()
            self._forget_dismissed()
        return control not in ready or self._answer()

    def _leisure_s(self) -> float | None:
        """How long to wait for a request before something is made ready; None: for ever."""
        if self._ahead:
            return PAUSE_S
        # While a grade runs, the processors are for its children.
        return IDLE_S if len(self._spares) < SPARES and not self._homes else None

    def _make_ready(self) -> None:
        """Do one thing that a grade will need; who asks meanwhile waits for no more than that."""
        if self._ahead:
            self._ahead.popleft()()
        else:
            self._prepare(ahead=True)

    def _answer(self) -> bool:
        try:
            data, fds, _, _ = socket.recv_fds(
                self._control, MAX_MESSAGE, 8, socket.MSG_CMSG_CLOEXEC
            )
            if not data:
                return False
            request = json.loads(data)
            with _closing(fds):
                match request["op"]:
                    case "fork":
                        reply = self._fork(request, fds)
                    case "isolation":
                        reply = self._isolation.to_json()
                    case "spares":
                        reply = {"pids": list(self._spares)}
                    case "expect":
                        reply = self._expect(request["what"])
                    case _:
                        reply = self._about(request)
            if request["answered"]:
                self._control.sendall(json.dumps({**reply, "number": request["number"]}).encode())
        except ConnectionError:
            return False
        return True

    def _expect(self, what: str) -> dict[str, Any]:
        """Warm up for what few modules need: others are spared pytest, or torch's compiler."""
        if what not in self._expected:
            self._expected.add(what)
            if what == "tests":
                _warm_tests()
            else:
                _warm_graphs()
            _settle()
            for pid in list(self._spares):  # forked before
                self._kill(pid)
        return {}

    def _fork(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Give a child its orders, and the ends of its channel and pipes."""
        if not self._spares:
            self._prepare()
        pid, orders = self._spares.popitem()
        self._homes[pid] = self._folder / str(request["name"])
        with orders:
            socket.send_fds(orders, [json.dumps(request).encode()], fds)
        return {"pid": pid}

    def _prepare(self, *, ahead: bool = False) -> None:
        """Fork a child that waits for orders; ``ahead`` of them, it has the time to warm up."""
        zygote = os.getpid()
        orders, birth = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with birth:
            pid = os.fork()
            if pid == 0:
                self._control.detach()
                child.run(birth, self._folder, zygote, self._without, self._isolation,
                          _warm if ahead else None)
        self._living.add(pid)
        self._spares[pid] = orders

    def _probe(self) -> Isolation:
        """How isolated a child is: one is forked, confines itself, and tries whether it holds.

        Raises:
            RuntimeError: it could not be confined as far as this machine says that it can.
        """
        zygote = os.getpid()
        answers, answer = os.pipe2(os.O_CLOEXEC)
        pid = os.fork()
        if pid == 0:
            try:
                reached = confine("worker", Limits(), _SAMPLE, self._folder, zygote,
                                  self._without)
                reached.prove()
                os.write(answer, json.dumps(reached.to_json()).encode())
            except BaseException as error:
                os.write(answer, f"{type(error).__name__}: {error}"[:2000].encode())
            finally:
                os._exit(0)
        os.close(answer)
        with os.fdopen(answers, "rb") as reading:
            said = reading.read()
        os.waitpid(pid, 0)
        try:
            return Isolation.from_json(json.loads(said))
        except ValueError:
            raise RuntimeError(f"no child can be confined: {said.decode()}") from None

    def _about(self, request: dict[str, Any]) -> dict[str, Any]:
        """What the judge asks about one child.

        To "blame" it, to "end" it after ``grace`` seconds and say how it ended, or to "dismiss" it:
        then it is killed. The files of a child go when the system has taken it down.
        """
        pid = request["pid"]
        self._reap()
        if request["op"] == "blame":
            if pid in self._living:
                processes.send(pid, signal.SIGUSR1)
            return {}
        if request["op"] == "dismiss":
            self._dismissed.add(pid)
            if pid in self._living:
                processes.stop_tree(pid)
            self._forget_dismissed()
            return {}
        deadline = time.monotonic() + request["grace"]
        while pid in self._living and time.monotonic() < deadline:
            time.sleep(0.002)
            self._reap()
        killed = pid in self._living
        if killed:
            self._kill(pid)
        return {"how": self._ended.pop(pid, "ended"), "killed": killed}

    def _forget_dismissed(self) -> None:
        for pid in self._dismissed - self._living:
            self._dismissed.discard(pid)
            self._ended.pop(pid, None)

    def _kill(self, pid: int) -> None:
        processes.stop_tree(pid)
        while pid in self._living:
            self._reap(block=pid)
        self._sweep()

    def _reap(self, block: int | None = None) -> None:
        """Take note of every child that has ended; with ``block``, wait for that one."""
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
                    self._ended[pid] = how(status)
                    self._sweep()
                    if home := self._homes.pop(pid, None):
                        folders.remove(home)
                if pid == block:
                    return
        except ChildProcessError:
            if block is not None:
                self._living.discard(block)

    def _sweep(self) -> None:
        """Kill what was left to us: a live child keeps its descendants, a dead one's come here."""
        for _ in range(3):
            strays = set(processes.children(os.getpid())) - self._living
            for pid in strays:
                processes.stop_tree(pid)
            for pid in strays:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, 0)
            if not strays:
                return

    def _end_all(self) -> None:
        for pid in list(self._living):
            self._kill(pid)
        self._sweep()


def how(status: int) -> str:
    """A wait status in words."""
    if not os.WIFSIGNALED(status):
        return f"exited with status {os.WEXITSTATUS(status)}"
    number = os.WTERMSIG(status)
    try:
        return f"killed by {signal.Signals(number).name}"
    except ValueError:
        return f"killed by signal {number}"


def _noted(number: int, frame: object) -> None:
    """Signals only wake the loop; it then looks whether the judge still lives."""


def _leave(number: int, frame: object) -> None:
    raise SystemExit


@contextlib.contextmanager
def _closing(fds: list[int]) -> Iterator[None]:
    try:
        yield
    finally:
        for fd in fds:
            os.close(fd)


def _preload() -> None:
    """Import and try out all that a grade needs, so that children start warm."""
    keep_memory()
    visible.note_plain_imports()
    from grader.engine.interpreter import proof

    proof.check()
    _warm()
    confinement.warm()
    gc.collect()
    gc.freeze()  # no collector run in a child touches, and so copies, these pages


def _warm() -> None:
    """Do what children do first; a child that does so once more has its own copies of the pages."""
    import grader.executor.main
    import grader.worker.main

    grader.worker.main.warm()
    grader.executor.main.warm()


def _warm_compiler() -> None:
    """Compile a kernel: the first time takes a second, and a child that must wait for it too."""
    import grader.executor.compiling

    home = os.environ["TRITON_CACHE_DIR"]
    with tempfile.TemporaryDirectory(dir=home) as folder:
        os.environ["TRITON_CACHE_DIR"] = folder
        with contextlib.suppress(Exception):  # a child that has to compile will say what is wrong
            grader.executor.compiling.warm()
        os.environ["TRITON_CACHE_DIR"] = home


def _import_more() -> None:
    """What is before a GPU."""
    import grader.executor.gpu  # noqa: F401 - for the children


def _warm_tests() -> None:
    """Run a test: it imports as much again as pytest itself."""
    import grader.worker.testing

    with contextlib.suppress(Exception):
        grader.worker.testing.warm()


def _warm_graphs() -> None:
    """Make a graph: that imports torch's compiler, which takes as long as torch itself."""
    import grader.worker.graphs

    with contextlib.suppress(Exception):
        grader.worker.graphs.warm()


def _settle() -> None:
    idle.give_back()  # children fault in the code that they need, whatever their parent has
    gc.freeze()


def main(folder: Path, judge: int, control: int, *without: Measure) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    hide_memory()
    with contextlib.suppress(OSError):  # the judge tries as well, and says what is wrong
        folders.make(folder)
    zygote = Zygote(folder, judge, control, without)
    processes.die_with_parent(signal.SIGTERM)
    try:
        zygote.serve()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)  # taking torch down in order takes longer than anybody waits


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:])  # type: ignore[arg-type]
