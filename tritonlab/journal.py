"""The journal: an append-only record of every start, hint and grade, and the view made from it.

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

from tritonlab import durable
from tritonlab.errors import not_saved, out_of_date, unreadable
from tritonlab.records import (
    GENESIS,
    LONGEST_LINE,
    SCHEMA,
    SHIPPED,
    Line,
    Part,
    Reading,
    Record,
    canonical,
    from_data,
    lines,
    parse,
    problems_in,
    selection,
)

__all__ = ["CERTIFICATE", "JOURNAL", "MERGED", "Journal", "Reading", "Record", "Saved", "contents",
           "parse"]

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
class Saved:
    """A record that is on the disk. ``warning`` says why the certificate beside it is not fresh."""

    record: Record
    warning: str = ""


@dataclass(frozen=True)
class Absorbed:
    """What the journal said before and after other records came in."""

    before: Reading
    after: Reading
    warning: str = ""

    @property
    def added(self) -> int:
        """How many records came in."""
        return len(self.after.records) - len(self.before.records)


class Journal:
    """The record of one workspace, in its ``.tritonlab`` folder.

    ``view`` makes the content of ``certificate.json`` from a reading. Records are written for
    ``course``, and readings hold its records only.
    """

    def __init__(self, folder: Path, view: Callable[[Reading], str],
                 course: str = SHIPPED) -> None:
        self.folder = folder
        self.course = course
        self.saved = False  # something of this process is on the disk
        self._view = view

    def read(self) -> Reading:
        """What the journal says; an absent one says nothing.

        Raises:
            NotSaved: the file cannot be read at all.
        """
        try:
            with durable.opened(self.folder) as folder, _shared_lock(folder):
                reading = _read(folder)
                with contextlib.suppress(OSError):
                    if _knows_more(durable.read(folder, CERTIFICATE) or b"", reading):
                        reading = replace(reading, problems=(*reading.problems, LOST))
                return reading.of(self.course)
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
                reading = _read(folder)
                record = _record(reading, event, module, {"course": self.course, **details})
                durable.append(folder, JOURNAL, canonical(record.data))
                self.saved = True
                warning = self._renew(folder, reading.followed_by(record))
        except OSError as error:
            raise not_saved(_SUBJECTS[event], error, self.folder) from error
        return Saved(record, warning)

    def renew(self) -> str:
        """Make ``certificate.json`` anew; returns why it could not be, or nothing."""
        try:
            with (durable.uninterrupted(), durable.opened(self.folder) as folder,
                  durable.locked(folder)):
                durable.sweep(folder)
                return self._renew(folder, _read(folder))
        except OSError as error:
            return out_of_date(error, self.folder)

    def absorb(self, *files: bytes) -> Absorbed:
        """Keep what other journals hold and this one does not, as it was written there.

        Lines that are damaged are kept too, unless the records that they held are known.

        Raises:
            NotSaved: it cannot be written, and then nothing was.
        """
        try:
            with (durable.uninterrupted(), durable.opened(self.folder) as folder,
                  durable.locked(folder)):
                durable.sweep(folder)
                own, merged = (durable.read(folder, name, MOST_MERGED) or b""
                               for name in (JOURNAL, MERGED))
                before = parse(own, merged)
                new = _new_lines(before, [*lines(own), *lines(merged)], files)
                if new:
                    whole = merged if merged.endswith(b"\n") or not merged else merged + b"\n"
                    added = b"".join(line.content + b"\n" for line in new)
                    durable.replace(folder, MERGED, whole + added)
                after = _read(folder)
                return Absorbed(before.of(self.course), after.of(self.course),
                                self._renew(folder, after) if new else "")
        except OSError as error:
            raise not_saved("The merged record", error, self.folder) from error

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
            durable.replace(folder, CERTIFICATE, self._view(reading.of(self.course)).encode())
        except OSError as error:
            return out_of_date(error, self.folder)
        return warning


def contents(folder: Path, *names: str) -> list[bytes | None]:
    """Files of records as they are between two writes; None for one that is not there.

    Raises:
        OSError: the folder or one of them cannot be read.
    """
    with durable.opened(folder) as descriptor, _shared_lock(descriptor):
        return [durable.read(descriptor, name, MOST_MERGED) for name in names]


def _read(folder: int) -> Reading:
    return parse(*(_part(folder, name) for name in (JOURNAL, MERGED)))


def _part(folder: int, name: str) -> Part:
    """Reads a file of records of any length: its end whole, of the beginning a selection."""
    with durable.opened_file(folder, name) as file:
        if file is None:
            return Part()
        size = os.fstat(file.fileno()).st_size
        if size <= NEWEST:
            content = file.read(NEWEST)
            return Part(content, empty=not content.strip())
        older, skipped = selection(_blocks(file, size - NEWEST))
        return Part(file.read(NEWEST), older, skipped, whole=False)


def _blocks(file: BinaryIO, end: int) -> Iterator[bytes]:
    """Reads a file by whole lines, up to the line that passes ``end``; overlong lines are cut."""
    while (left := end - file.tell()) > 0:
        yield file.read(min(_BLOCK, left) - 1) + file.readline(LONGEST_LINE)


def _new_lines(before: Reading, there: list[Line], files: tuple[bytes, ...]) -> list[Line]:
    """The lines that bring a record that is not known yet, or hide one."""
    read = [lines(content) for content in files]
    here = {record.sha256 for record in before.records}
    known = here | {r.sha256 for file in read for line in file for r in line.records}
    contents = {line.content for line in there}
    new = []
    for number, file in enumerate(read):
        lost = {line.number for line in problems_in(file, known, name="merged" * bool(number))
                if line.damaged and not line.records}
        for line in file:
            brought = {record.sha256 for record in line.records} - here
            if line.content not in contents and (brought or line.number in lost):
                new.append(line)
                here |= brought
                contents.add(line.content)
    return new


def _record(reading: Reading, event: str, module: str, details: Mapping[str, Any]) -> Record:
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


def _knows_more(certificate: bytes, reading: Reading) -> bool:
    """Whether a certificate was made from a record that the journal no longer has."""
    try:
        told = json.loads(certificate)["journal"]
        heads = {told["head"], *told.get("heads", ())}
    except (ValueError, RecursionError, TypeError, KeyError, AttributeError):
        return False
    return bool(heads - {GENESIS} - {record.sha256 for record in reading.records})


@contextlib.contextmanager
def _shared_lock(folder: int) -> Iterator[None]:
    """Wait for a writer to end; where there is no lock to take, read as it is."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            stack.enter_context(durable.locked(folder, shared=True))
        yield
