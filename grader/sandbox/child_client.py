"""The judge's end of one child: requests, deadlines, memory limit, output and exit status."""

import contextlib
import os
import re
import select
import socket
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

from grader.sandbox import cancellation, errors, processes, protocol
from grader.sandbox.limits import KIB, ResourceLimits

POLL_S = 0.05  # between two checks of the child's memory and CPU time
PATIENT = 3  # times the limit of a request that are added at most while no CPU was free
PAUSE_S = 1.0  # that a look at a child takes at most, unless the judge itself was stopped
GRACE_S = 0.5  # for a reply that may be there, or a child with a closed channel to end by itself
BLAME_S = 0.3  # for the stack dump of a child
_CHUNK = 1 << 18
_READ = select.POLLIN | select.POLLHUP | select.POLLERR


@dataclass(eq=False)
class _Exchange:
    """A request under way, and at its end the reply or the error."""

    rest: memoryview  # what has not been sent
    fds: Sequence[int]  # they go with the first bytes
    timeout_s: float
    patience: float
    deadline: float
    last_work: tuple[float, float] | None = None  # time of the check, CPU seconds then
    starved_s: float = 0.0  # in which the child could run, and no CPU was free for it
    granted_s: float = 0.0
    resumed: bool = False  # its time passed while nobody waited, and was given again
    reply: dict[str, Any] | None = None
    error: BaseException | None = None

    @property
    def open(self) -> bool:
        return self.reply is None and self.error is None


class Output:
    """The output of a child: head and tail of ``most`` bytes, and how many were dropped."""

    def __init__(self, most: int) -> None:
        self._half = most // 2
        self._head = self._tail = b""
        self._n_dropped = 0

    def add(self, data: bytes) -> None:
        room = self._half - len(self._head)
        self._head += data[:room]
        tail = self._tail + data[room:]
        self._tail = tail[-self._half:]
        self._n_dropped += len(tail) - len(self._tail)

    def text(self) -> str:
        dropped = f"\n[… {self._n_dropped} bytes were left out …]\n" if self._n_dropped else ""
        head, tail = (part.decode("utf-8", "replace") for part in (self._head, self._tail))
        return head + dropped + tail


class Child(contextlib.AbstractContextManager["Child"]):
    """A forked child. It is killed if it exceeds a limit, and at the latest by ``kill``."""

    def __init__(self, pid: int, limits: ResourceLimits, channel: socket.socket, output: int,
                 blame: int, zygote: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        self.pid = pid
        self._limits = limits
        self._zygote = zygote
        self._channel = channel
        self._channel.setblocking(False)
        self._output, self._dump = Output(limits.output), Output(64 * KIB)
        self._blame = blame
        self._pipes = {output: self._output, blame: self._dump}  # those whose other end is open
        self._inherited = processes.anonymous(pid)
        self._path = ""
        self._queue: deque[_Exchange] = deque()  # open ones, in the order of their requests
        self._received = bytearray()
        self._next_look = time.monotonic() + POLL_S  # at its memory
        self._alive = True
        self.starved_s = 0.0  # in which it could run, was waited for, and no CPU was free

    @property
    def alive(self) -> bool:
        """Whether it still takes requests."""
        return self._alive

    def ask(self, request: Mapping[str, Any], fds: Sequence[int] = (),
            timeout_s: float = 10.0) -> dict[str, Any]:
        """Sends a request and waits for its reply.

        Raises:
            ChildTimedOut, ChildDied, ChildOutOfMemory, MalformedReply: the child is gone then.
            SandboxBroken: the zygote is gone, and the child with it.
        """
        return self.begin(request, fds, timeout_s)()

    def begin(self, request: Mapping[str, Any], fds: Sequence[int] = (), timeout_s: float = 10.0,
              patience: float = PATIENT) -> Callable[[], dict[str, Any]]:
        """Sends a request and returns a function that waits for its reply, as ``ask`` does.

        The descriptors may be closed once this returns. Requests are answered in order; the time
        limit of each starts when the one before it is answered. Time in which the child waited for
        a CPU is added to the limit, up to ``patience`` times the limit.

        Raises:
            NotStarted: there, if the child is gone because of an earlier request.
        """
        if not self._alive:
            raise errors.ChildDied("ended before this request")
        self._path = str(request.get("path", self._path))
        message = protocol.encode(request)
        if len(message) > protocol.MAX_REQUEST:
            raise ValueError(f"a request of {len(message)} bytes")
        exchange = _Exchange(memoryview(message), fds, timeout_s, patience,
                             time.monotonic() + timeout_s)
        self._resume()
        self._queue.append(exchange)
        self._guarded(self._send)
        while exchange.fds and exchange.open:  # they may be closed once this returns
            self._guarded(self._step)
        return partial(self._finish, exchange)

    def output(self) -> str:
        """The output of the child: all of it, or head and tail."""
        self._drain()
        return self._output.text()

    def kill(self, *, wait: bool = True) -> None:
        """Kills the child and its descendants, and may ``wait`` for their end; keeps its output."""
        if self._alive:
            with contextlib.suppress(errors.SandboxBroken):  # then the child went with the zygote
                self._end("end" if wait else "dismiss")
        for left in self._queue:
            left.error = errors.NotStarted()
        self._queue.clear()

    def __exit__(self, *_: object) -> None:
        self.kill()

    def _finish(self, exchange: _Exchange) -> dict[str, Any]:
        self._resume()
        while exchange.open:
            self._guarded(self._step)
        if exchange.error is not None:
            raise exchange.error
        assert exchange.reply is not None
        return exchange.reply

    def _resume(self) -> None:
        """Gives the oldest request its time again if it passed while nobody waited for it.

        The reply may be there. Otherwise no CPU may have been free, which nobody saw; but that is
        assumed only once.
        """
        now = time.monotonic()
        if self._queue and now >= (head := self._queue[0]).deadline:
            head.deadline = now + (GRACE_S if head.resumed else head.timeout_s)
            head.resumed = True

    def _guarded(self, step: Callable[[], None]) -> None:
        """Takes a step; an error ends the child, and is kept for the caller that waits for it."""
        try:
            step()
        except (errors.ChildError, errors.SandboxBroken) as error:
            self._queue.popleft().error = error
            self.kill()
        except errors.Cancelled:
            self.kill(wait=False)
            raise
        except BaseException:
            self.kill()
            raise

    def _step(self) -> None:
        """Waits a moment for the oldest open request."""
        cancellation.check()
        exchange, now = self._queue[0], time.monotonic()
        if now >= self._next_look:
            limit = self._limits.resident
            if (held := processes.resident(self.pid, limit, self._inherited)) > limit:
                raise errors.ChildOutOfMemory(held, limit, self._where(ask=True))
            self._look_at_work(exchange)
            self._next_look = time.monotonic() + POLL_S
        if now >= exchange.deadline:
            held = processes.anonymous(self.pid) - self._inherited
            raise errors.ChildTimedOut(exchange.timeout_s, self._where(ask=True), held)
        events = self._wait(min(exchange.deadline - now, cancellation.LOOK_S),
                            sending=bool(self._queue[-1].rest))
        if events & select.POLLOUT:
            self._send()
        exchange.deadline += max(0.0, time.monotonic() - now - PAUSE_S)  # the machine stood still
        if events & _READ:
            self._receive()

    def _wait(self, seconds: float, sending: bool) -> int:
        """Waits for the channel, emptying the pipes meanwhile, and returns its events."""
        poll = select.poll()
        poll.register(self._channel, select.POLLIN | (select.POLLOUT if sending else 0))
        for pipe in self._pipes:
            poll.register(pipe, select.POLLIN)
        events = 0
        for fd, event in poll.poll(max(seconds, 0.001) * 1000):
            if fd == self._channel.fileno():
                events = event
            else:
                self._read(fd)
        return events

    def _send(self) -> None:
        """Sends as much of the requests as the channel takes now."""
        try:
            for exchange in self._queue:
                while exchange.rest:
                    n_sent = socket.send_fds(self._channel, [exchange.rest], exchange.fds)
                    exchange.rest, exchange.fds = exchange.rest[n_sent:], ()
        except BlockingIOError:
            pass
        except OSError:
            self._raise_death()

    def _receive(self) -> None:
        """Receives bytes, and takes the replies that are complete."""
        try:
            data = self._channel.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._raise_death()
        self._received += data
        while self._received:
            exchange = self._queue[0]
            if exchange.rest:
                raise errors.MalformedReply("it came before the request")
            size = int.from_bytes(self._received[: protocol.HEADER], "big")
            end = protocol.HEADER + size
            if len(self._received) < protocol.HEADER:
                return
            if size > protocol.MAX_REPLY:
                raise errors.MalformedReply(f"{size} bytes, at most {protocol.MAX_REPLY} are taken")
            if len(self._received) < end:
                return
            reply = bytes(self._received[protocol.HEADER : end])
            del self._received[:end]
            if len(self._queue) == 1 and self._received:
                raise errors.MalformedReply("more than one reply to a request")
            exchange.reply = protocol.decode(reply)
            self._queue.popleft()
            if self._queue:
                self._queue[0].deadline = time.monotonic() + self._queue[0].timeout_s

    def _raise_death(self) -> NoReturn:
        ended = self._end(grace=GRACE_S)
        how = "closed its channel and went on" if ended["killed"] else ended["how"]
        raise errors.ChildDied(how, self._where())

    def _look_at_work(self, exchange: _Exchange) -> None:
        """Extends the deadline by the time that the child waited for a CPU."""
        (used, runnable), now = processes.work(self.pid), time.monotonic()
        if runnable and exchange.last_work is not None:
            at, before = exchange.last_work
            starved_s = (now - at) - (used - before)
            self.starved_s += starved_s
            exchange.starved_s += starved_s
            most = exchange.patience * exchange.timeout_s
            due = min(exchange.starved_s, most) - exchange.granted_s
            if due > 0:
                exchange.granted_s += due
                exchange.deadline += due
        exchange.last_work = now, used

    def _end(self, op: str = "end", grace: float = 0.0) -> dict[str, Any]:
        self._alive = False
        request = {"op": op, "pid": self.pid, "grace": grace}
        try:
            return self._zygote(request)
        except KeyboardInterrupt:  # whether the zygote heard of it is not known
            self._zygote(request)
            raise
        finally:
            self._drain()
            self._channel.close()
            for pipe in self._pipes:
                os.close(pipe)
            self._pipes.clear()

    def _drain(self) -> None:
        for pipe in tuple(self._pipes):
            for _ in range(64):  # a child that prints without end is not listened to without end
                if not self._read(pipe):
                    break

    def _read(self, pipe: int) -> bool:
        try:
            data = os.read(pipe, _CHUNK)
        except BlockingIOError:
            return False
        if not data:
            del self._pipes[pipe]
            os.close(pipe)
            return False
        self._pipes[pipe].add(data)
        return True

    def _where(self, ask: bool = False) -> int | None:
        """The line of the learner's file that the child is in, or was in when it crashed."""
        if ask:
            self._zygote({"op": "blame", "pid": self.pid})
        deadline = time.monotonic() + BLAME_S
        while ask and self._blame in self._pipes and time.monotonic() < deadline:
            cancellation.check()
            dumped = self._dump.text()
            select.select([self._blame], [], [], cancellation.LOOK_S)
            self._read(self._blame)
            if dumped and dumped == self._dump.text():
                break
        return line_in(self._path, self._dump.text())


def line_in(path: str, dump: str) -> int | None:
    """The innermost line of the file ``path`` in faulthandler's last stack dump."""
    last = dump.rpartition("most recent call first")[2]
    shown = re.escape(path.encode("ascii", "backslashreplace").decode("ascii"))
    match = re.search(rf'File "{shown}", line (\d+) in ', last) if path else None
    return int(match[1]) if match else None
