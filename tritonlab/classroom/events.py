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


@dataclass(frozen=True)
class Log:
    """All intact events in order, and sentences about the damage."""

    events: tuple[Mapping[str, Any], ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def head(self) -> str:
        return str(self.events[-1]["sha256"]) if self.events else GENESIS


def read(folder: Path) -> Log:
    """Reads the log; an absent one has no events.

    Raises:
        NotSaved: it cannot be read.
    """
    try:
        with safe_files.reading(folder) as descriptor:
            return parse(safe_files.read(descriptor, EVENTS) or b"")
    except FileNotFoundError:
        return Log()
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
            safe_files.append(descriptor, EVENTS, b"\n".join(map(canonical, new)))
            return Log((*log.events, *new), log.problems)
    except OSError as error:
        raise not_saved("The event", error, folder) from error


def parse(content: bytes) -> Log:
    """Parses a log; a damaged line costs its own event, and is reported."""
    events: list[Mapping[str, Any]] = []
    problems = []
    before = GENESIS
    for number, line in enumerate(content.split(b"\n"), 1):
        if not line:
            continue
        event = _parse_line(line)
        if event is None:
            problems.append(f"Line {number} of {EVENTS} is damaged; only that event is lost.")
            before = ""
            continue
        if before and event["prev"] != before:
            problems.append(f"Before line {number} of {EVENTS} at least one event is missing.")
        events.append(event)
        before = str(event["sha256"])
    return Log(tuple(events), tuple(problems))


def _parse_line(line: bytes) -> Mapping[str, Any] | None:
    if len(line) > LONGEST_LINE:
        return None
    try:
        event: dict[str, Any] = msgspec.json.decode(line, type=dict[str, Any])
        claimed = str(event["sha256"])
        hashed = line.replace(b'"sha256":"%b",' % claimed.encode(), b"", 1)
        intact = hashlib.sha256(hashed).hexdigest() == claimed
        return event if intact and event["schema"] == SCHEMA and event["prev"] else None
    except (msgspec.DecodeError, KeyError, RecursionError, UnicodeEncodeError):
        return None


def _chained(log: Log, events: Iterable[Mapping[str, Any]]) -> Iterable[dict[str, Any]]:
    number, before = int(log.events[-1]["seq"]) if log.events else 0, log.head
    now = datetime.now().astimezone().isoformat(timespec="seconds")
    for event in events:
        number += 1
        data = {"schema": SCHEMA, "seq": number, "time": now, "prev": before, **event}
        before = data["sha256"] = hashlib.sha256(canonical(data)).hexdigest()
        yield data
