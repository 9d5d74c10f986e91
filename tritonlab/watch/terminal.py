"""The terminal of `watch`: single keys and signals as events; restored afterwards.

Only ICANON and ECHO are switched off, so that Ctrl-C, Ctrl-Z and output work as usual. Only after a
kill does the shell need `stty sane`.
"""

import contextlib
import os
import select
import signal
import subprocess
import sys
import termios
import threading
import tty
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any, Self

_LOOK_S = 0.1  # between polls of a program that has the terminal
_HANDLED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGWINCH, signal.SIGCONT,
            signal.SIGTSTP)


@dataclass(frozen=True)
class TypedKeys:
    """Keys as an event."""

    keys: str


class Inbox:
    """A queue of events for one thread, which can be polled as a file descriptor."""

    def __init__(self) -> None:
        self._events: deque[Any] = deque()
        self._reading, self.writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

    def put(self, event: Any, *, wake: bool = True) -> None:
        """Adds an event; without ``wake`` the thread reads it at its next occasion."""
        self._events.append(event)
        if wake:
            with contextlib.suppress(BlockingIOError):  # full, so that it wakes anyway
                os.write(self.writing, b".")

    def take(self) -> list[Any]:
        """Returns all events so far, in order."""
        with contextlib.suppress(BlockingIOError):
            os.read(self._reading, 1 << 16)
        return [self._events.popleft() for _ in range(len(self._events))]

    def fileno(self) -> int:
        return self._reading

    def close(self) -> None:
        os.close(self._reading)
        os.close(self.writing)


class Signals:
    """Puts signals into an inbox as their numbers until the block is left.

    SIGTSTP calls ``release`` and stops the process; SIGCONT is an event again. A second SIGINT
    raises KeyboardInterrupt wherever the program is.
    """

    def __init__(self, inbox: Inbox, release: Callable[[], None]) -> None:
        self._inbox = inbox
        self._release = release
        self._before: dict[int, Any] = {}
        self._interrupted = False

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._wakeup = signal.set_wakeup_fd(self._inbox.writing, warn_on_full_buffer=False)
            for number in _HANDLED:
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if self._before:
            signal.set_wakeup_fd(self._wakeup)

    def heard(self) -> None:
        """Marks the interrupt as handled; the next one is the first again."""
        self._interrupted = False

    def _note(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGTSTP:
            self._release()
            signal.signal(signal.SIGTSTP, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGTSTP)
            signal.signal(signal.SIGTSTP, self._note)  # here again once it is continued
            return
        if number == signal.SIGINT and self._interrupted:
            raise KeyboardInterrupt
        self._interrupted |= number == signal.SIGINT
        self._inbox.put(signal.Signals(number))


class Keyboard:
    """Waits for events, single keys where there is a terminal, and the end of the output's reader.

    ``there``: there are keys; ``held``: they are read one by one.
    """

    def __init__(self, wanted: bool = True) -> None:
        self.inbox = Inbox()
        self.there = wanted and os.isatty(0) and os.isatty(1)
        self.held = False
        self._before: list[Any] | None = None
        # A duplicate, as standard output is redirected once its reader has left.
        self._output = os.dup(sys.__stdout__.fileno()) if sys.__stdout__ else None

    def __enter__(self) -> Self:
        self.hold()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
        if self._output is not None:
            os.close(self._output)

    def hold(self) -> None:
        """Switches to single keys if this process is in the foreground."""
        if self.there and not self.held and self._in_front():
            try:
                self._before = self._before or termios.tcgetattr(0)
                tty.setcbreak(0, termios.TCSADRAIN)
                self.held = True
            except termios.error:
                self.there = False

    def release(self) -> None:
        """Restores the terminal."""
        if self.held and self._before is not None:
            self.held = False
            if self._in_front():
                with contextlib.suppress(termios.error):  # it is gone
                    termios.tcsetattr(0, termios.TCSADRAIN, self._before)

    def wait(self, seconds: float | None) -> bool:
        """Waits for an event or the timeout; False if output or terminal is gone."""
        poll = select.poll()
        poll.register(self.inbox, select.POLLIN)
        if self._output is not None:
            poll.register(self._output, 0)  # poll always reports errors
        if self.held:
            poll.register(0, select.POLLIN)
        ready = dict(poll.poll(None if seconds is None else max(0.0, seconds) * 1000))
        if 0 in ready:
            typed = self._read()
            if typed is None:
                return False
            self.inbox.put(typed)
        return self._output not in ready

    def run(self, command: Sequence[str], stop: Callable[[], bool], *,
            reads: bool) -> int | None:
        """Runs a program until it ends or ``stop``, which is polled, returns True.

        If it ``reads``, it gets the keyboard; otherwise it gets no input, key q interrupts it, and
        `watch` handles other keys afterwards.

        Returns:
            Its exit code; None if it cannot be started.
        """
        if reads:
            self.release()
        keys = select.poll()
        if self.held:
            keys.register(0, select.POLLIN)
        try:
            program = subprocess.Popen(command, stdin=None if reads else subprocess.DEVNULL)
            while program.poll() is None:
                typed = self._read() if keys.poll(_LOOK_S * 1000) else TypedKeys("")
                if typed is None or stop():
                    program.terminate()
                    program.wait()
                elif "q" in typed.keys.lower():
                    program.send_signal(signal.SIGINT)  # as Ctrl-C
                elif typed.keys:
                    self.inbox.put(typed)
        except OSError:
            return None
        finally:
            self.hold()
            with contextlib.suppress(termios.error, OSError):
                if reads and self.held:
                    termios.tcflush(0, termios.TCIFLUSH)
        return program.returncode

    def _read(self) -> TypedKeys | None:
        """Reads keys without escape sequences; None if the terminal is gone."""
        typed = b""
        with contextlib.suppress(OSError):
            typed = os.read(0, 1024)
        if not typed:
            self.there = self.held = False
            return None
        return TypedKeys(typed.partition(b"\x1b")[0].decode("utf-8", "replace"))

    def _in_front(self) -> bool:
        try:
            return os.tcgetpgrp(0) == os.getpgrp()
        except OSError:
            return False
