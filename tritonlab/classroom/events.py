"""The event log of a class: append-only JSON lines, chained by hash."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from tritonlab.errors import not_saved, unreadable
from tritonlab.progress import safe_files
from tritonlab.progress.journal import GENESIS, canonical

EVENTS = "events.jsonl"
SCHEMA = 1
LONGEST_LINE = 1 << 20  # bytes


class _Head(msgspec.Struct, gc=False):
    """The fields that every event has."""

    schema: int
    seq: int
    prev: str
    sha256: str
    event: str = ""


_HEAD = msgspec.json.Decoder(_Head)


@dataclass(frozen=True)
class Log:
    """The kinds and lines of all intact events in order, and sentences about the damage.

    ``number`` and ``head`` are the number and the hash of the last event.
    """

    lines: tuple[tuple[str, bytes], ...] = ()
    problems: tuple[str, ...] = ()
    number: int = 0
    head: str = GENESIS

    @property
    def events(self) -> list[dict[str, Any]]:
        return [msgspec.json.decode(line, type=dict[str, Any]) for _, line in self.lines]


def read(folder: Path) -> Log:
    """Reads the log; an absent one has no events.

    Raises:
        NotSaved: it cannot be read.
    """
    return parse(content(folder))


def content(folder: Path) -> bytes:
    """Returns the bytes of the log; raises NotSaved if it cannot be read."""
    try:
        with safe_files.reading(folder) as descriptor:
            return safe_files.read(descriptor, EVENTS) or b""
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise unreadable(error, folder, "The log of events") from error


def append(folder: Path, events: Sequence[Mapping[str, Any]]) -> Log:
    """Appends events in one write, and returns the log with them.

    Each event has an ``event`` and its own fields; a number, the time and hashes are added.

    Raises:
        NotSaved: nothing was written.
    """
    try:
        with safe_files.writing(folder) as descriptor:
            log = parse(safe_files.read(descriptor, EVENTS) or b"")
            if not events:
                return log
            new = list(_chained(log, events))
            lines = [canonical(event) for event in new]
            safe_files.append(descriptor, EVENTS, b"\n".join(lines))
            return Log((*log.lines, *((str(event["event"]), line)
                                      for event, line in zip(new, lines, strict=True))),
                       log.problems, new[-1]["seq"], new[-1]["sha256"])
    except OSError as error:
        raise not_saved("The event", error, folder) from error


def parse(content: bytes, before: Log | None = None) -> Log:
    """Parses a log, or its end after ``before``.

    A damaged line costs its own event, and is reported.
    """
    before = before or Log()
    lines: list[tuple[str, bytes]] = []
    problems = []
    number, head = before.number, before.head
    expected = head
    for place, line in enumerate(content.split(b"\n"), 1):
        if not line:
            continue
        event = _intact(line)
        if event is None:
            problems.append(f"Line {place} of {EVENTS} is damaged; only that event is lost.")
            expected = ""
            continue
        if expected and event.prev != expected:
            problems.append(f"Before line {place} of {EVENTS} at least one event is missing.")
        lines.append((event.event, line))
        number, head = event.seq, event.sha256
        expected = head
    return Log(tuple(lines), tuple(problems), number, head)


def _intact(line: bytes) -> _Head | None:
    """The head of an event whose hash is that of its line; None if it is damaged."""
    if len(line) > LONGEST_LINE:
        return None
    try:
        head = _HEAD.decode(line)
        hashed = line.replace(b'"sha256":"%b",' % head.sha256.encode(), b"", 1)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return None
    intact = hashlib.sha256(hashed).hexdigest() == head.sha256
    return head if intact and head.schema == SCHEMA and head.prev else None


def _chained(log: Log, events: Iterable[Mapping[str, Any]]) -> Iterable[dict[str, Any]]:
    number, before = log.number, log.head
    now = datetime.now().astimezone().isoformat(timespec="seconds")
    for event in events:
        number += 1
        data = {"schema": SCHEMA, "seq": number, "time": now, "prev": before, **event}
        before = data["sha256"] = hashlib.sha256(canonical(data)).hexdigest()
        yield data
