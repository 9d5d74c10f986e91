"""Programs that wait for each other, side by side: one goes on until it waits, then the next."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np

from grader.engine.interpreter.block_value import Array
from grader.engine.interpreter.errors import KernelError
from grader.engine.interpreter.memory import Memory
from grader.engine.interpreter.transaction import Attempt, Poll

_MOST = 512  # programs side by side; each has a thread of its own
_STACK_BYTES = 1 << 20


class _Abandoned(BaseException):
    """Nobody will hand over to this program again."""


class _Program(threading.Thread):
    """One program, which runs only between ``go_on`` and its next wait."""

    def __init__(self, body: Any, bound: Mapping[str, Any], attempt: Attempt) -> None:
        super().__init__(daemon=True)
        self.attempt = attempt
        self.error: BaseException | None = None
        self.poll: Poll | None = None
        self.done = self.for_ever = self._given_up = False
        self._body, self._bound = body, bound
        self._mine, self._yours = threading.Semaphore(0), threading.Semaphore(0)
        attempt.on_wait = self._wait

    def run(self) -> None:
        self._mine.acquire()
        try:
            with np.errstate(all="ignore"):
                if not self._given_up:
                    self._body(**self._bound)
        except _Abandoned:
            pass
        except BaseException as error:
            self.error = error
        self.done = True
        self._yours.release()

    def go_on(self) -> None:
        """Run until the program waits or ends."""
        self._mine.release()
        self._yours.acquire()

    def give_up(self) -> None:
        self._given_up = True
        if not self.done:
            self.go_on()

    def _wait(self, poll: Poll, for_ever: bool) -> None:
        self.poll, self.for_ever = poll, for_ever
        self._yours.release()
        self._mine.acquire()
        if self._given_up:
            raise _Abandoned


def take_turns(body: Any, bound: Mapping[str, Any], memory: Memory, programs: Array) -> None:
    """Run programs that wait for each other; nothing is undone.

    Raises:
        KernelError: all of them wait, and nothing changes any more.
        Exception: what a program raised.
    """
    if len(programs) > _MOST:
        raise KernelError(f"{len(programs)} programs wait for each other in different ways; "
                          f"{_MOST} can be run side by side here", code="R02")
    previous = threading.stack_size(_STACK_BYTES)
    try:
        threads = [_Program(body, bound, memory.try_with(np.array([program])))
                   for program in programs.tolist()]
        for thread in threads:
            thread.attempt.others = True
            thread.start()
    finally:
        threading.stack_size(previous)
    try:
        _rounds(memory, deque(threads))
    finally:
        for thread in threads:
            thread.give_up()


def _rounds(memory: Memory, queue: deque[_Program]) -> None:
    order, idle = memory.running.order, 0
    while queue:
        program = queue.popleft()
        before = order.changes
        memory.running.attempt = program.attempt
        program.go_on()
        if program.error is not None:
            raise program.error
        if program.done:
            memory.settle()
            idle = 0
            continue
        queue.append(program)
        idle = idle + 1 if program.for_ever and order.changes == before else 0
        if idle >= len(queue):
            _stuck(memory, queue)


def _stuck(memory: Memory, queue: deque[_Program]) -> None:
    for program in queue:
        program.attempt.commit(memory.running.ledger, memory.observed)
    first = min(queue, key=lambda program: int(program.attempt.programs[0]))
    poll = first.poll
    place = memory.running.place(int(first.attempt.programs[0]))
    if poll is None or not poll.what:
        raise KernelError(f"{place} did not end: a turn of its loop changes neither memory nor a "
                          "variable", code="R02", line=poll.line if poll else None)
    raise KernelError(f"{place} waits for ever: it reads {poll.what} again and again, and no "
                      "program changes it", code="R02", line=poll.line)
