"""Worker processes for tasks; one that dies costs the tasks in progress and is replaced."""

import contextlib
import functools
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager
from typing import Any, Self

from grader.sandbox.processes import children, die_with_parent, stop_tree

Workshop = Callable[..., AbstractContextManager[Callable[[Any], Any]]]


class WorkerPool:
    """Processes that each enter a workshop once and perform one task at a time in it.

    ``workshop(*arguments)`` is a context manager that returns the function to call with a task. It
    is entered in the worker, so that it, its arguments, tasks and results have to be picklable.
    The output of workers is discarded. Leaving the block ends them, also in the middle of a task.
    """

    def __init__(self, size: int, workshop: Workshop, *arguments: Any) -> None:
        self._size = size
        self._perform = functools.partial(_perform, workshop, arguments)
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")  # a fork of torch's threads may hang
        self._executor = ProcessPoolExecutor(self._size, context, _prepare_process)
        # ``submit`` wakes the thread that watches processes before it starts one, whose death would
        # go unnoticed until the next result: so all are started now, by tasks that end at once.
        with _interrupts_blocked():
            for _ in range(self._size):
                self._executor.submit(os.getpid)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in multiprocessing.active_children():
            process.terminate()
        self._executor.shutdown(cancel_futures=True)

    def submit(self, task: Any) -> Future[Any]:
        """Hands a task to a worker. If that dies, the future raises BrokenProcessPool."""
        with _interrupts_blocked():  # a process started here inherits it: Ctrl-C is ours to handle
            try:
                return self._executor.submit(self._perform, task)
            except BrokenProcessPool:
                self._start()
                return self._executor.submit(self._perform, task)


@contextlib.contextmanager
def _interrupts_blocked() -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# In the worker

_resources = contextlib.ExitStack()


@functools.cache
def _enter(workshop: Workshop, arguments: tuple[Any, ...]) -> Callable[[Any], Any]:
    return _resources.enter_context(workshop(*arguments))


def _perform(workshop: Workshop, arguments: tuple[Any, ...], task: Any) -> Any:
    return _enter(workshop, arguments)(task)


def _prepare_process() -> None:
    """Ends this process with its parent, even if that is killed, and discards its output."""
    signal.signal(signal.SIGTERM, _end_process)
    die_with_parent(signal.SIGTERM)
    parent = multiprocessing.parent_process()
    if parent is not None and os.getppid() != parent.pid:  # it ended before
        os._exit(1)
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)


def _end_process(*_: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        _resources.close()
    finally:
        for pid in children(os.getpid()):  # of the task in progress
            stop_tree(pid)
        os._exit(0)
