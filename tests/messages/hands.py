"""Hands: what somebody does while `watch` runs, each time that it has said something."""

from __future__ import annotations

import contextlib
import math
import shlex
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any
from unittest import mock

import grader
from tritonlab.grading import grade
from tritonlab.watch import terminal, watcher

if TYPE_CHECKING:
    from tests.messages.stage import Stage

WAIT_S = 120.0  # for what it has to say
CTRL_C = "\x03"

Deed = tuple[str, "str | Callable[[Stage], Any]"]  # what is waited for; keys, or anything else


class _Keys(terminal.Keyboard):
    """A keyboard whose keys are put into the inbox."""

    def __init__(self, wanted: bool = True) -> None:
        super().__init__(wanted=False)
        self.there = True

    def hold(self) -> None: ...


@contextlib.contextmanager
def on(set_up: Stage, script: Sequence[Deed], keys: bool) -> Iterator[None]:
    """While this holds, a `watch` is answered as the script says; it has a keyboard or none.

    A failure waits for all other cases, so that the same is said however fast they are. Other
    programs run in this process, and what they print is printed.
    """
    real = watcher.Watch.run

    def run(session: watcher.Watch) -> int:
        over = threading.Event()
        said = sys.stdout.buffer.getvalue  # of the stage: it keeps what is printed
        thread = threading.Thread(target=_play, args=(session, set_up, script, said, over))
        thread.start()
        try:
            return real(session)
        finally:
            over.set()
            thread.join()

    def run_aside(session: watcher.Watch, command: Sequence[str], *, reads: bool) -> int:
        told = set_up.type(f"tritonlab {shlex.join(command[3:])}")
        sys.stdout.write(told.out + told.err)
        sys.stdout.flush()
        return told.code

    with contextlib.ExitStack() as held:
        box = held.enter_context(grader.Sandbox())  # the stage's own, which stays open
        for where, name, instead in (
                (box, "close", lambda: None), (grade, "start_sandbox", lambda: box),
                (watcher, "PATIENCE_S", math.inf), (watcher.Watch, "run", run),
                (watcher.Watch, "run_aside", run_aside)):
            held.enter_context(mock.patch.object(where, name, instead))
        if keys:
            held.enter_context(mock.patch.object(terminal, "Keyboard", _Keys))
        yield


def _play(session: watcher.Watch, set_up: Stage, script: Sequence[Deed], said: Callable[[], bytes],
          over: threading.Event) -> None:
    """Do one thing after the other; where what is waited for does not come, end it."""
    at, deadline = 0, time.monotonic() + WAIT_S
    for awaited, deed in script:
        wanted = awaited.encode()
        while (found := said().find(wanted, at)) < 0:
            if over.wait(0.01) or time.monotonic() > deadline:
                session.inbox.put(signal.SIGTERM)
                return
        at = found + len(wanted)
        if not isinstance(deed, str):
            deed(set_up)
        elif deed == CTRL_C:
            session.inbox.put(signal.SIGINT)
        else:
            session.inbox.put(terminal.TypedKeys(deed))
