"""A crew: worker processes that do several tasks at a time, and are gone afterwards."""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from queue import SimpleQueue
from typing import Any, Self

from grader.sandbox.processes import children, die_with_parent, stop_tree

LEAVE_S = 5.0  # for a worker to put its things away before it is killed

Workshop = Callable[..., AbstractContextManager[Callable[[Any], Any]]]


@dataclass(frozen=True)
class Broken:
    """Instead of a result: what a task raised, or that its worker died."""

    task: Any
    reason: str


class Crew:
    """Processes, each of which sets up its own workshop once and does some tasks at a time in it.

    ``workshop(*arguments)`` is a context manager that gives the function which does a task. It is
    called in the worker, so that it and its arguments, tasks and results have to be picklable.
    The function is called in several threads where there is ``room`` for more than one task in a
    process. What workers print goes nowhere. Leaving the block ends them, also in the middle of a
    task.
    """

    def __init__(self, size: int, workshop: Workshop, *arguments: Any, room: int = 1) -> None:
        """``size`` is how many tasks are done at a time, ``room`` how many of them by a process."""
        self._shares = [min(room, size - first) for first in range(0, size, room)]
        self._arguments = (workshop, arguments)
        self._number = itertools.count()  # of tasks
        self._workers: list[tuple[BaseProcess, Connection]] = []
        self._busy: dict[Connection, dict[int, Any]] = {}  # its tasks by number
        self._free: list[Connection] = []  # once for each further task that it has room for

    def __enter__(self) -> Self:
        context = multiprocessing.get_context("spawn")  # a fork of torch's threads may hang
        try:
            with _interrupts_blocked():  # the workers inherit it: Ctrl-C is for us to handle
                for share in self._shares:
                    ours, theirs = context.Pipe()
                    process = context.Process(target=_work, args=(theirs, share, *self._arguments))
                    process.start()
                    theirs.close()
                    self._workers.append((process, ours))
                    self._busy[ours] = {}
                    self._free += [ours] * share
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    @property
    def free(self) -> bool:
        """Whether a worker waits for a task."""
        return bool(self._free)

    @property
    def busy(self) -> bool:
        return any(self._busy.values())

    def give(self, task: Any) -> None:
        """Hand a task to a worker that is free."""
        worker, number = self._free.pop(), next(self._number)
        self._busy[worker][number] = task
        with contextlib.suppress(OSError):  # it died; `results` tells
            worker.send((number, task))

    def results(self) -> list[Any]:
        """Wait until a task is done: what came of it, and of others done meanwhile."""
        found = []
        for worker in wait([worker for worker, tasks in self._busy.items() if tasks]):
            assert isinstance(worker, Connection)
            try:
                number, result = worker.recv()
            except (EOFError, OSError):
                found += [Broken(task, "its worker process ended unexpectedly")
                          for task in self._busy.pop(worker).values()]
                self._free = [free for free in self._free if free is not worker]
            else:
                del self._busy[worker][number]
                self._free.append(worker)
                found.append(result)
        return found

    def _end(self) -> None:
        for process, connection in self._workers:
            connection.close()
            process.terminate()
        for process, _ in self._workers:
            process.join(LEAVE_S)
            if process.is_alive():
                process.kill()
                process.join()


@contextlib.contextmanager
def _interrupts_blocked() -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _work(tasks: Connection, room: int, workshop: Workshop, arguments: tuple[Any, ...]) -> None:
    """The life of a worker; SIGTERM lets it put its things away."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    die_with_parent(signal.SIGTERM)  # even if that is killed, and whatever a task waits for
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nowhere, standard)
    try:
        with contextlib.ExitStack() as stack:
            try:
                do = stack.enter_context(workshop(*arguments))
            except Exception:
                do = _unable(traceback.format_exc())
            given: SimpleQueue[tuple[int, Any]] = SimpleQueue()
            sending = threading.Lock()
            for _ in range(room):
                threading.Thread(target=_serve, args=(given, do, tasks, sending),
                                 daemon=True).start()
            with contextlib.suppress(EOFError, OSError):  # nobody is there any more
                while True:
                    given.put(tasks.recv())
            signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it is leaving already
    finally:
        for pid in children(os.getpid()):  # what a task had started
            stop_tree(pid)
        os._exit(0)  # its threads are in the middle of tasks


def _serve(given: SimpleQueue[tuple[int, Any]], do: Callable[[Any], Any], results: Connection,
           sending: threading.Lock) -> None:
    """Do one task after the other, beside other threads."""
    while True:
        number, task = given.get()
        done = _done(do, task)
        try:
            with sending:
                results.send((number, done))
        except OSError:  # nobody is there any more
            return
        except BaseException:  # it cannot be sent: whoever waits for it has to know
            os._exit(1)


def _unable(reason: str) -> Callable[[Any], Any]:
    """What a worker does without a workshop."""
    return lambda task: Broken(task, reason)


def _done(do: Callable[[Any], Any], task: Any) -> Any:
    try:
        return do(task)
    except Exception:
        return Broken(task, traceback.format_exc())
