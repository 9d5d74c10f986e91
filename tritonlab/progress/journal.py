"""The journal: an append-only record of starts, hints and grades, and the view made from it.

``journal.jsonl`` is the truth. Each line is one record as canonical JSON (sorted keys, no spaces,
ASCII) with its number ``seq``, the SHA-256 of the record before it as ``prev``, and its own SHA-256
over everything else as ``sha256``. ``certificate.json`` beside it is a view that can be rebuilt at
any time. Records hold the ids of course and module, verdicts, hashes, versions, a date and the time
of day to the minute, which no certificate repeats; they hold no user name, host name or path, and
no name except the one that ``certificate --name`` sets. Older records hold no course: they belong
to the shipped one.

``merged.jsonl`` beside it holds the lines that ``tritonlab merge`` read from other machines' files,
byte for byte as they were written there, and it is read along. A record is known by its SHA-256, so
it counts once however often and from wherever it came, and the same records give the same reading
in the same order on every machine. No record is written anew: each keeps its own hash and the one
before it, every chain can be followed through, and this machine's chain is not touched. Wrapping
foreign records in new ones of this chain would have made each merge a thing to be merged back, and
appending them to ``journal.jsonl`` would have left open which chain the next record goes on with.

The chain shows accidents and naive edits. It proves nothing to a third party: the learner owns the
machine, and only grading again does.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any, BinaryIO

from tritonlab.course.course import SHIPPED
from tritonlab.errors import not_saved, out_of_date, unreadable
from tritonlab.progress import safe_files
from tritonlab.progress.journal_format import (
    GENESIS,
    LONGEST_LINE,
    SCHEMA,
    JournalLine,
    JournalPart,
    JournalReading,
    Record,
    canonical,
    from_data,
    lines,
    parse,
    problems_in,
    selection,
)

__all__ = ["CERTIFICATE", "JOURNAL", "MARK", "MERGED", "Journal", "JournalReading", "Record",
           "SavedRecord", "contents", "parse"]

MARK = ".tritonlab"  # the folder of a workspace that holds its records
JOURNAL = "journal.jsonl"
MERGED = "merged.jsonl"
CERTIFICATE = "certificate.json"
NEWEST = 16_000_000  # bytes of a file of records that are read whole, about 16,000 records
_BLOCK = 1 << 20  # bytes that are looked at together
MOST_MERGED = 64_000_000  # bytes of such a file that is merged
LOST = ("The journal has lost its last records since certificate.json was made from it. "
        "`tritonlab verify` of this workspace grades what certificate.json claims; `tritonlab "
        "merge` adds the records of a backup.")
_SUBJECTS = {"graded": "The result", "started": "The start", "hint": "The hint's use",
             "named": "The name", "reset": "The record of the reset",
             "solution": "That you look at the solution"}


@dataclass(frozen=True)
class SavedRecord:
    """A record on disk. ``warning``: why the certificate beside it is out of date."""

    record: Record
    warning: str = ""


@dataclass(frozen=True)
class MergedRecords:
    """The journal before and after a merge."""

    before: JournalReading
    after: JournalReading
    warning: str = ""

    @property
    def added(self) -> int:
        """The number of new records."""
        return len(self.after.records) - len(self.before.records)


class Journal:
    """The record of one workspace, in its ``.tritonlab`` folder.

    ``view`` makes the content of ``certificate.json`` from a reading. Records are written for
    ``course``, and readings hold its records only.
    """

    def __init__(self, folder: Path, view: Callable[[JournalReading], str],
                 course: str = SHIPPED) -> None:
        self.folder = folder
        self.course = course
        self.saved = False  # something of this process is on the disk
        self._view = view

    def read(self) -> JournalReading:
        """Reads the journal; an absent one has no records.

        Raises:
            NotSaved: the file cannot be read at all.
        """
        try:
            with safe_files.opened(self.folder) as folder, _shared_lock(folder):
                reading = _read(folder)
                with contextlib.suppress(OSError):
                    if _knows_more(safe_files.read(folder, CERTIFICATE) or b"", reading):
                        reading = replace(reading, problems=(*reading.problems, LOST))
                return reading.of(self.course)
        except FileNotFoundError:
            return JournalReading(())
        except OSError as error:
            raise unreadable(error, self.folder) from error

    def append(self, event: str, module: str = "", **details: Any) -> SavedRecord:
        """Appends one record, waits until it is on disk and renews the certificate.

        Raises:
            NotSaved: the record could not be written. What was there before is untouched.
        """
        try:
            with (safe_files.uninterrupted(), safe_files.opened(self.folder) as folder,
                  safe_files.locked(folder)):
                safe_files.sweep(folder)
                reading = _read(folder)
                record = _record(reading, event, module, {"course": self.course, **details})
                safe_files.append(folder, JOURNAL, canonical(record.data))
                self.saved = True
                warning = self._renew(folder, reading.followed_by(record))
        except OSError as error:
            raise not_saved(_SUBJECTS[event], error, self.folder) from error
        return SavedRecord(record, warning)

    def renew(self) -> str:
        """Rewrites ``certificate.json``; returns why that failed, or an empty string."""
        try:
            with (safe_files.uninterrupted(), safe_files.opened(self.folder) as folder,
                  safe_files.locked(folder)):
                safe_files.sweep(folder)
                return self._renew(folder, _read(folder))
        except OSError as error:
            return out_of_date(error, self.folder)

    def absorb(self, *files: bytes) -> MergedRecords:
        """Adds the lines of other journals that are missing here, byte for byte.

        Damaged lines are added too, unless their records can be read elsewhere.

        Raises:
            NotSaved: nothing could be written.
        """
        try:
            with (safe_files.uninterrupted(), safe_files.opened(self.folder) as folder,
                  safe_files.locked(folder)):
                safe_files.sweep(folder)
                own, merged = (safe_files.read(folder, name, MOST_MERGED) or b""
                               for name in (JOURNAL, MERGED))
                before = parse(own, merged)
                new = _new_lines(before, [*lines(own), *lines(merged)], files)
                if new:
                    whole = merged if merged.endswith(b"\n") or not merged else merged + b"\n"
                    added = b"".join(line.content + b"\n" for line in new)
                    safe_files.replace(folder, MERGED, whole + added)
                after = _read(folder)
                return MergedRecords(before.of(self.course), after.of(self.course),
                                     self._renew(folder, after) if new else "")
        except OSError as error:
            raise not_saved("The merged record", error, self.folder) from error

    def _renew(self, folder: int, reading: JournalReading) -> str:
        aside, warning = "", ""
        try:
            with contextlib.suppress(OSError):  # a link or a folder: the rename decides
                old = safe_files.read(folder, CERTIFICATE)
                cut_off = old is not None and _knows_more(old, reading)
                if old is not None and (cut_off or not _is_object(old)):
                    aside = safe_files.set_aside(folder, CERTIFICATE, f"{date.today():%Y-%m-%d}")
                if cut_off:
                    warning = ("The journal has lost its last records since certificate.json was "
                               f"made from it; that certificate is kept as {aside}.")
            safe_files.replace(folder, CERTIFICATE, self._view(reading.of(self.course)).encode())
        except OSError as error:
            return out_of_date(error, self.folder)
        return warning


def contents(folder: Path, *names: str) -> list[bytes | None]:
    """Reads files of records between two writes; None for an absent file.

    Raises:
        OSError: the folder or one of them cannot be read.
    """
    with safe_files.opened(folder) as descriptor, _shared_lock(descriptor):
        return [safe_files.read(descriptor, name, MOST_MERGED) for name in names]


def _read(folder: int) -> JournalReading:
    return parse(*(_part(folder, name) for name in (JOURNAL, MERGED)))


def _part(folder: int, name: str) -> JournalPart:
    """Reads a file of records of any length: its end whole, of the beginning a selection."""
    with safe_files.opened_file(folder, name) as file:
        if file is None:
            return JournalPart()
        size = os.fstat(file.fileno()).st_size
        if size <= NEWEST:
            content = file.read(NEWEST)
            return JournalPart(content, empty=not content.strip())
        older, skipped = selection(_blocks(file, size - NEWEST))
        return JournalPart(file.read(NEWEST), older, skipped, whole=False)


def _blocks(file: BinaryIO, end: int) -> Iterator[bytes]:
    """Reads a file by whole lines, up to the line that passes ``end``; overlong lines are cut."""
    while (left := end - file.tell()) > 0:
        yield file.read(min(_BLOCK, left) - 1) + file.readline(LONGEST_LINE)


def _new_lines(before: JournalReading, there: list[JournalLine],
               files: tuple[bytes, ...]) -> list[JournalLine]:
    """Returns the lines that hold a new record, or a damaged one that is lost otherwise."""
    read = [lines(content) for content in files]
    here = {record.sha256 for record in before.records}
    readable = here | {r.sha256 for file in read for line in file for r in line.records}
    contents = {line.content for line in there}
    new = []
    for number, file in enumerate(read):
        lost = {line.number for line in problems_in(file, readable, name="merged" * bool(number))
                if line.damaged and not line.records}
        for line in file:
            brought = {record.sha256 for record in line.records} - here
            if line.content not in contents and (brought or line.number in lost):
                new.append(line)
                here |= brought
                contents.add(line.content)
    return new


def _record(reading: JournalReading, event: str, module: str, details: Mapping[str, Any]) -> Record:
    data = {
        "schema": SCHEMA,
        "seq": reading.next_seq,
        "event": event,
        "module": module,
        "date": f"{date.today():%Y-%m-%d}",  # a label, as is the time; the order is that of seq
        "time": time.strftime("%H:%M"),  # of the learner's day
        "prev": reading.head,
        **details,
    }
    data["sha256"] = hashlib.sha256(canonical(data)).hexdigest()
    return from_data(data)


def _is_object(content: bytes) -> bool:
    try:
        return isinstance(json.loads(content), dict)
    except (ValueError, RecursionError):
        return False


def _knows_more(certificate: bytes, reading: JournalReading) -> bool:
    """Whether a certificate was made from a record that the journal lacks now."""
    try:
        journal = json.loads(certificate)["journal"]
        heads = {journal["head"], *journal.get("heads", ())}
    except (ValueError, RecursionError, TypeError, KeyError, AttributeError):
        return False
    return bool(heads - {GENESIS} - {record.sha256 for record in reading.records})


@contextlib.contextmanager
def _shared_lock(folder: int) -> Iterator[None]:
    """Waits for a writer to end; without a lock file the read goes on."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            stack.enter_context(safe_files.locked(folder, shared=True))
        yield
