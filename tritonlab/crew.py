"""A crew: worker processes that take one task after the other, and are gone afterwards."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Self

from grader.sandbox.processes import die_with_parent

LEAVE_S = 5.0  # for a worker to put its things away before it is killed

Workshop = Callable[..., AbstractContextManager[Callable[[Any], Any]]]


@dataclass(frozen=True)
class Broken:
    """Instead of a result: what a task raised, or that its worker died."""

    task: Any
    reason: str


class Crew:
    """So many processes, each of which sets up its own workshop once.

    ``workshop(*arguments)`` is a context manager that gives the function which does a task. It is
    called in the worker, so that it and its arguments, tasks and results have to be picklable.
    What workers print goes nowhere. Leaving the block ends them, also in the middle of a task.
    """

    def __init__(self, size: int, workshop: Workshop, *arguments: Any) -> None:
        self._size = size
        self._arguments = (workshop, arguments)
        self._workers: list[tuple[BaseProcess, Connection]] = []
        self._busy: dict[Connection, Any] = {}
        self._free: list[Connection] = []

    def __enter__(self) -> Self:
        context = multiprocessing.get_context("spawn")  # a fork of torch's threads may hang
        try:
            with _interrupts_blocked():  # the workers inherit it: Ctrl-C is for us to handle
                for _ in range(self._size):
                    ours, theirs = context.Pipe()
                    process = context.Process(target=_work, args=(theirs, *self._arguments))
                    process.start()
                    theirs.close()
                    self._workers.append((process, ours))
                    self._free.append(ours)
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
        return bool(self._busy)

    def give(self, task: Any) -> None:
        """Hand a task to a worker that is free."""
        worker = self._free.pop()
        self._busy[worker] = task
        with contextlib.suppress(OSError):  # it died; `results` tells
            worker.send(task)

    def results(self) -> list[Any]:
        """Wait until a task is done: what came of it, and of others done meanwhile."""
        found = []
        for worker in wait(list(self._busy)):
            assert isinstance(worker, Connection)
            task = self._busy.pop(worker)
            try:
                found.append(worker.recv())
            except (EOFError, OSError):
                found.append(Broken(task, "its worker process ended unexpectedly"))
            else:
                self._free.append(worker)
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


def _work(tasks: Connection, workshop: Workshop, arguments: tuple[Any, ...]) -> None:
    """The life of a worker; SIGTERM lets it put its things away."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    die_with_parent(signal.SIGTERM)  # even if that is killed, and whatever a task waits for
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nowhere, standard)
    with contextlib.ExitStack() as stack:
        try:
            do = stack.enter_context(workshop(*arguments))
        except Exception:
            do = _unable(traceback.format_exc())
        with contextlib.suppress(EOFError, OSError):  # nobody is there any more
            while True:
                task = tasks.recv()
                tasks.send(_done(do, task))


def _unable(reason: str) -> Callable[[Any], Any]:
    """What a worker does without a workshop."""
    return lambda task: Broken(task, reason)


def _done(do: Callable[[Any], Any], task: Any) -> Any:
    try:
        return do(task)
    except Exception:
        return Broken(task, traceback.format_exc())
