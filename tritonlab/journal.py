"""The journal: an append-only record of every start, hint and grade, and the view made from it.

``journal.jsonl`` is the truth. Each line is one record as canonical JSON (sorted keys, no spaces,
ASCII) with its number ``seq``, the SHA-256 of the record before it as ``prev``, and its own SHA-256
over everything else as ``sha256``. ``certificate.json`` beside it is a view that can be rebuilt at
any time. Records hold module ids, verdicts, hashes, versions and a date to the day; they hold no
user name, host name or path, and no name except the one that ``certificate --name`` sets.

The chain shows accidents and naive edits. It proves nothing to a third party: the learner owns the
machine, and only grading again does.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from tritonlab import durable
from tritonlab.errors import not_saved, out_of_date, unreadable

JOURNAL = "journal.jsonl"
CERTIFICATE = "certificate.json"
SCHEMA = 1
_GENESIS = "0" * 64
_LONGEST_LINE = 1 << 16  # bytes of a damaged line that are searched; a record has about 1 000
_DECODER = json.JSONDecoder()
_SUBJECTS = {"graded": "The result", "started": "The start", "hint": "The hint's use",
             "named": "The name"}


@dataclass(frozen=True)
class Record:
    """One line of the journal. ``data`` is all of it, ``seq`` and the hashes included."""

    seq: int
    event: str  # started, graded, hint or named
    module: str
    date: str
    sha256: str
    prev: str
    data: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.data.get(name)


@dataclass(frozen=True)
class Reading:
    """All intact records in the order of ``seq``, and what was found damaged, in words."""

    records: tuple[Record, ...]
    problems: tuple[str, ...] = ()

    @property
    def head(self) -> str:
        return self.records[-1].sha256 if self.records else _GENESIS

    @property
    def next_seq(self) -> int:
        return self.records[-1].seq + 1 if self.records else 1

    @property
    def current(self) -> str | None:
        """The module that was last started or graded."""
        return next((r.module for r in reversed(self.records)
                     if r.event in ("started", "graded")), None)

    def hints(self, module: str, group: str | None = None) -> int:
        """How many rungs were shown for a module, or for one of its groups."""
        return sum(r.event == "hint" and r.module == module and group in (None, r["group"])
                   for r in self.records)

    def last_grade(self, module: str) -> Record | None:
        return next((r for r in reversed(self.records)
                     if r.event == "graded" and r.module == module), None)


@dataclass(frozen=True)
class Saved:
    """A record that is on the disk. ``warning`` says why the certificate beside it is not fresh."""

    record: Record
    warning: str = ""


class Journal:
    """The record of one workspace, in its ``.tritonlab`` folder.

    ``view`` makes the content of ``certificate.json`` from a reading.
    """

    def __init__(self, folder: Path, view: Callable[[Reading], str]) -> None:
        self.folder = folder
        self.saved = False  # something of this process is on the disk
        self._view = view

    def read(self) -> Reading:
        """What the journal says; an absent one says nothing.

        Raises:
            NotSaved: the file cannot be read at all.
        """
        try:
            with durable.opened(self.folder) as folder, _shared_lock(folder):
                return parse(durable.read(folder, JOURNAL) or b"")
        except FileNotFoundError:
            return Reading(())
        except OSError as error:
            raise unreadable(error, self.folder) from error

    def append(self, event: str, module: str = "", **details: Any) -> Saved:
        """Add one record, wait until it is on the disk, and renew the certificate.

        Raises:
            NotSaved: the record could not be written. What was there before is untouched.
        """
        try:
            with (durable.uninterrupted(), durable.opened(self.folder) as folder,
                  durable.locked(folder)):
                durable.sweep(folder)
                reading = parse(durable.read(folder, JOURNAL) or b"")
                record = _record(reading, event, module, details)
                durable.append(folder, JOURNAL, _canonical(record.data))
                self.saved = True
                after = Reading((*reading.records, record), reading.problems)
                warning = self._renew(folder, after)
        except OSError as error:
            raise not_saved(_SUBJECTS[event], error, self.folder) from error
        return Saved(record, warning)

    def renew(self) -> str:
        """Make ``certificate.json`` anew; returns why it could not be, or nothing."""
        try:
            with (durable.uninterrupted(), durable.opened(self.folder) as folder,
                  durable.locked(folder)):
                durable.sweep(folder)
                return self._renew(folder, parse(durable.read(folder, JOURNAL) or b""))
        except OSError as error:
            return out_of_date(error, self.folder)

    def _renew(self, folder: int, reading: Reading) -> str:
        aside, warning = "", ""
        try:
            with contextlib.suppress(OSError):  # a link or a folder: the rename decides
                old = durable.read(folder, CERTIFICATE)
                cut_off = old is not None and _knows_more(old, reading)
                if old is not None and (cut_off or not _is_object(old)):
                    aside = durable.set_aside(folder, CERTIFICATE, f"{date.today():%Y-%m-%d}")
                if cut_off:
                    warning = ("The journal has lost its last records since certificate.json was "
                               f"made from it; that certificate is kept as {aside}.")
            durable.replace(folder, CERTIFICATE, self._view(reading).encode())
        except OSError as error:
            return out_of_date(error, self.folder)
        return warning


def parse(content: bytes) -> Reading:
    """Read a journal; a damaged line costs only itself and is reported."""
    records: dict[tuple[int, str], Record] = {}
    problems: list[str] = []
    before = _GENESIS
    gap_explained = False
    lines = content.split(b"\n")
    for number, line in enumerate(lines, start=1):
        if not line:
            continue
        record = _parse_line(line)
        if record is None:
            what = "was cut short" if number == len(lines) else "is damaged"
            saved = _salvage(line)
            records.update({(r.seq, r.sha256): r for r in saved})
            problems.append(f"Line {number} of the journal {what}; only that record is lost."
                            if not saved else f"Line {number} of the journal {what}; "
                            f"records read from it all the same: {len(saved)}.")
            gap_explained = True
            continue
        if record.prev != before and not gap_explained:
            problems.append(f"Before line {number} of the journal at least one record is missing.")
        records.setdefault((record.seq, record.sha256), record)
        before, gap_explained = record.sha256, False
    ordered = sorted(records.values(), key=lambda record: record.seq)
    return Reading(tuple(ordered), tuple(problems))


def _salvage(line: bytes) -> list[Record]:
    """The intact records in a line that lost its end to the next one, or begins with rubbish."""
    if len(line) > _LONGEST_LINE:
        return []
    text = line.decode("latin-1")  # records are ASCII; anything else is damage
    found = []
    start = text.find("{")
    while start >= 0:
        try:
            data, end = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            data, end = None, start + 1
        record = _checked(data)
        if record is not None:
            found.append(record)
        start = text.find("{", end if record is not None else start + 1)
    return found


def _parse_line(line: bytes) -> Record | None:
    try:
        return _checked(json.loads(line))
    except (ValueError, RecursionError):
        return None


def _checked(data: Any) -> Record | None:
    """The record that the data are, if they carry their own hash."""
    try:
        claimed = data.pop("sha256")
        if hashlib.sha256(_canonical(data)).hexdigest() != claimed or data["schema"] != SCHEMA:
            return None
        data["sha256"] = claimed
        return _from_data(data)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def _record(reading: Reading, event: str, module: str, details: Mapping[str, Any]) -> Record:
    data = {
        "schema": SCHEMA,
        "seq": reading.next_seq,
        "event": event,
        "module": module,
        "date": f"{date.today():%Y-%m-%d}",  # a label; the order is that of seq
        "prev": reading.head,
        **details,
    }
    data["sha256"] = hashlib.sha256(_canonical(data)).hexdigest()
    return _from_data(data)


def _from_data(data: Mapping[str, Any]) -> Record:
    seq = data["seq"]
    if not isinstance(seq, int):
        raise TypeError("seq is not a whole number")
    return Record(seq, str(data["event"]), str(data["module"]), str(data["date"]),
                  data["sha256"], data["prev"], data)



def _canonical(data: Mapping[str, Any]) -> bytes:
    return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def _is_object(content: bytes) -> bool:
    try:
        return isinstance(json.loads(content), dict)
    except (ValueError, RecursionError):
        return False


def _knows_more(certificate: bytes, reading: Reading) -> bool:
    """Whether a certificate was made from a record that the journal no longer has."""
    try:
        head = json.loads(certificate)["journal"]["head"]
    except (ValueError, RecursionError, TypeError, KeyError):
        return False
    return head != _GENESIS and head not in {record.sha256 for record in reading.records}


@contextlib.contextmanager
def _shared_lock(folder: int) -> Iterator[None]:
    """Wait for a writer to end; where there is no lock to take, read as it is."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            stack.enter_context(durable.locked(folder, shared=True))
        yield
