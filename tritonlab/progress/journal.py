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
before it, every chain can be followed through, and this machine's chain is not touched
(docs/decisions/013-journal.md).

The chain shows accidents and naive edits. It proves nothing to a third party: the learner owns the
machine, and only grading again does.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from tritonlab.course.course import SHIPPED
from tritonlab.errors import not_saved, out_of_date, unreadable
from tritonlab.progress import safe_files

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
SCHEMA = 1
GENESIS = "0" * 64
_SHA256 = re.compile("[0-9a-f]{64}")
LONGEST_LINE = 1 << 16  # bytes; a record has about 1,000
_MOST_TRIES = 32  # at finding a record in a damaged line
_MOST_OLDER = 10_000  # records that are kept of the lines before the newest
_DECODER = json.JSONDecoder()


class Journal:
    """The record of one workspace, in its ``.tritonlab`` folder.

    ``view`` makes the content of ``certificate.json`` from a reading. Records are written for
    ``course`` in its ``version``, and readings hold the records of this course, in any version.
    """

    def __init__(self, folder: Path, view: Callable[[JournalReading], str],
                 course: str = SHIPPED, version: str = "") -> None:
        self.folder = folder
        self.course = course
        self.version = version
        self.saved = False  # something of this process is on the disk
        self._view = view

    def read(self) -> JournalReading:
        """Reads the journal; an absent one has no records. Raises NotSaved if it is unreadable."""
        try:
            with safe_files.reading(self.folder) as folder:
                reading = _read(folder)
                with contextlib.suppress(OSError):
                    heads = _heads(safe_files.read(folder, CERTIFICATE) or b"")
                    if heads and reading.lacks(heads):
                        reading = replace(reading, problems=(*reading.problems, LOST))
                return reading.of(self.course)
        except FileNotFoundError:
            return JournalReading(())
        except OSError as error:
            raise unreadable(error, self.folder) from error

    def append(self, event: str, module: str = "", **details: Any) -> str:
        """Appends one record, waits until it is on disk and renews the certificate.

        Returns:
            Why the certificate is out of date, or an empty string.

        Raises:
            NotSaved: the record could not be written. What was there before is untouched.
        """
        try:
            with safe_files.writing(self.folder) as folder:
                reading = _read(folder)
                record = _record(reading, event=event, module=module, course=self.course,
                                 course_version=self.version, **details)
                safe_files.append(folder, JOURNAL, canonical(record.data))
                self.saved = True
                return self._renew(folder, replace(
                    reading, records=_ordered((*reading.records, record))))
        except OSError as error:
            raise not_saved(_SUBJECTS[event], error, self.folder) from error

    def renew(self) -> str:
        """Rewrites ``certificate.json``; returns why that failed, or an empty string."""
        try:
            with safe_files.writing(self.folder) as folder:
                return self._renew(folder, _read(folder))
        except OSError as error:
            return out_of_date(error, self.folder)

    def absorb(self, *files: bytes) -> tuple[JournalReading, JournalReading, str]:
        """Adds the lines of other journals that are missing here, byte for byte.

        Damaged lines are added too, unless their records can be read elsewhere.

        Returns:
            The readings before and after, and why the certificate is out of date.

        Raises:
            NotSaved: nothing could be written.
        """
        try:
            with safe_files.writing(self.folder) as folder:
                own, merged = (safe_files.read(folder, name, MOST_MERGED) or b""
                               for name in (JOURNAL, MERGED))
                before = parse(own, merged)
                new = _new_lines(before, [*lines(own), *lines(merged)], files)
                if new:
                    whole = merged if merged.endswith(b"\n") or not merged else merged + b"\n"
                    added = b"".join(line.content + b"\n" for line in new)
                    safe_files.replace(folder, MERGED, whole + added)
                after = _read(folder)
                return (before.of(self.course), after.of(self.course),
                        self._renew(folder, after) if new else "")
        except OSError as error:
            raise not_saved("The merged record", error, self.folder) from error

    def _renew(self, folder: int, reading: JournalReading) -> str:
        warning = ""
        try:
            with contextlib.suppress(OSError):  # a link or a folder: the rename decides
                old = safe_files.read(folder, CERTIFICATE)
                heads = _heads(old) if old is not None else set()
                if heads is None or reading.lacks(heads):
                    aside = safe_files.set_aside(folder, CERTIFICATE, f"{date.today():%Y-%m-%d}")
                    if heads:
                        warning = ("The journal has lost its last records since certificate.json "
                                   f"was made from it; that certificate is kept as {aside}.")
            safe_files.replace(folder, CERTIFICATE, self._view(reading.of(self.course)).encode())
        except OSError as error:
            return out_of_date(error, self.folder)
        return warning


def contents(folder: Path, *names: str) -> list[bytes | None]:
    """Reads files of records between two writes; None for an absent file.

    Raises:
        OSError: the folder or one of them cannot be read.
    """
    with safe_files.reading(folder) as descriptor:
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


def _record(reading: JournalReading, **details: Any) -> Record:
    data = {
        "schema": SCHEMA,
        "seq": reading.own[-1].seq + 1 if reading.own else 1,
        "date": f"{date.today():%Y-%m-%d}",  # a label, as is the time; the order is that of seq
        "time": time.strftime("%H:%M"),  # of the learner's day
        "prev": reading.head,
        **details,
    }
    data["sha256"] = hashlib.sha256(canonical(data)).hexdigest()
    return from_data(data)


def _heads(certificate: bytes) -> set[str] | None:
    """Returns the last records that a certificate was made from; None if it is damaged."""
    try:
        journal = json.loads(certificate).get("journal", {})
        return {journal.get("head", GENESIS), *journal.get("heads", ())} - {GENESIS}
    except (ValueError, RecursionError, TypeError, AttributeError):
        return None


# Records, and what they show


class Record(msgspec.Struct, frozen=True):
    """One line of a journal. ``data`` is all of it, ``seq`` and the hashes included."""

    seq: int
    event: str  # started, graded, hint, reset, solution or named
    module: str
    date: str
    sha256: str
    prev: str
    data: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.data.get(name)

    @property
    def course(self) -> str:
        """The id of the course that the module belongs to."""
        return str(self.data.get("course", SHIPPED))

    @property
    def passed(self) -> bool:
        """Whether it is a passed grade that names its hidden tests."""
        return self.event == "graded" and self["verdict"] == "PASSED" and \
            bool(_SHA256.fullmatch(str(self["suite_sha256"])))


@dataclass(frozen=True)
class JournalReading:
    """All intact records in order, and the damage as sentences.

    Records are ordered by day, then by number, and never stand before one that they follow in their
    chain. So the order is the same wherever the same records are read. ``merged`` holds the SHA-256
    of those that came from other machines, ``older`` those of a selection from a long file's
    beginning, whose followers may be left out.
    """

    records: tuple[Record, ...]
    problems: tuple[str, ...] = ()
    merged: frozenset[str] = frozenset()
    older: frozenset[str] = frozenset()

    @functools.cached_property
    def own(self) -> list[Record]:
        """The records of this machine, by number."""
        return sorted((r for r in self.records if r.sha256 not in self.merged),
                      key=lambda record: record.seq)

    @property
    def head(self) -> str:
        """The SHA-256 of the record that the next one of this machine follows."""
        return own[-1].sha256 if (own := self.own) else GENESIS

    @property
    def last(self) -> str:
        """The SHA-256 of the last record."""
        return self.records[-1].sha256 if self.records else GENESIS

    @property
    def heads(self) -> tuple[str, ...]:
        """The SHA-256 of the records of all machines that no other follows."""
        followed = {record.prev for record in self.records} | self.older
        return tuple(sorted(r.sha256 for r in self.records if r.sha256 not in followed))

    def lacks(self, heads: Set[str]) -> bool:
        """Whether one of these records was lost."""
        return bool(heads - {record.sha256 for record in self.records})

    def of(self, course: str) -> JournalReading:
        """Returns the reading with the records of one course."""
        return replace(self, records=tuple(r for r in self.records if r.course == course))

    @property
    def current(self) -> str:
        """The module last started, graded or reset on this machine; empty if there is none."""
        return next((r.module for r in reversed(self.own)
                     if r.event in ("started", "graded", "reset")), "")

    def hints(self, module: str, group: str | None = None, *, before_pass: bool = False) -> int:
        """Counts the distinct rungs shown for a module, or for one of its groups.

        Args:
            before_pass: without those shown after the module was passed.
        """
        passes = self.passes(module) if before_pass else []
        return len({(r["group"], r["rung"]) for r in self.records
                    if r.event == "hint" and r.module == module and group in (None, r["group"])
                    and not any(self._surely_before(one, r) for one in passes)})

    def passes(self, module: str) -> list[Record]:
        """The grades that passed a module."""
        return [r for r in self.records if r.module == module and r.passed]

    def saw_solution(self, module: str, source_sha256: str | None,
                     grade: Record | None = None) -> bool:
        """Whether the solution was shown before ``source_sha256`` was passed.

        Args:
            grade: of that source, if it is on record; what came surely after it does not count.
        """
        views = [r for r in self.records if r.event == "solution" and r.module == module
                 and not (grade and self._surely_before(grade, r))]
        earned = any(all(self._surely_before(record, r) for r in views) for record in self.records
                     if record.module == module and record.passed
                     and record["source_sha256"] == source_sha256)
        return bool(views) and not earned

    def _surely_before(self, one: Record, other: Record) -> bool:
        """Whether ``one`` precedes ``other``, by the day or in one chain of records."""
        if one.date != other.date:
            return one.date < other.date
        at: Record | None = other
        while at is not None and at.seq > one.seq:
            at = self._by_sha256.get(at.prev)
        return at is not None and at.sha256 == one.sha256

    @functools.cached_property
    def _by_sha256(self) -> Mapping[str, Record]:
        return {record.sha256: record for record in self.records}

    def last_grade(self, module: str) -> Record | None:
        return next((r for r in reversed(self.records)
                     if r.event == "graded" and r.module == module), None)


# Lines: parsed, checked and ordered


@dataclass(frozen=True, slots=True)
class JournalLine:
    """One line of a file of records; a damaged one may still contain records."""

    number: int
    content: bytes
    records: tuple[Record, ...]
    damaged: bool
    torn: bool = False  # the last, without its end


def lines(content: bytes, first: int = 1) -> list[JournalLine]:
    """Parses the lines of a file of records, without empty ones.

    Args:
        first: the number of the first line.
    """
    contents = content.split(b"\n")
    result = []
    for number, line in enumerate(contents, start=first):
        if line:
            record = _parse_line(line)
            result.append(JournalLine(number, line, (record,) if record else tuple(_salvage(line)),
                                      record is None, number == first + len(contents) - 1))
    return result


@dataclass(frozen=True)
class JournalPart:
    """A file of records as read: its newest lines and a selection of older ones.

    ``skipped`` counts the lines before ``content``, of a file that is not read ``whole``; ``empty``
    files exist and hold no line.
    """

    content: bytes = b""
    older: tuple[Record, ...] = ()
    skipped: int = 0
    whole: bool = True
    empty: bool = False


def selection(older: Iterable[bytes]) -> tuple[tuple[Record, ...], int]:
    """Selects the older records that decide passes, and counts the lines.

    ``older`` are blocks of whole lines. Of equal passes, hints and other events the newest is kept,
    of solutions that were shown the oldest. Failures are left out. Memory grows with the records
    that are kept alone.
    """
    selected: dict[tuple[Any, ...], Record] = {}
    number = 0
    for block in older:
        number += block.count(b"\n")
        for line in block.split(b"\n") if b'"sha256"' in block else ():
            if b'"event":"graded"' in line and b'"verdict":"PASSED"' not in line:
                continue
            record = _parse_line(line)
            if record is None:
                continue
            key = (record.event, record.course, record.module, *(str(record[name]) for name in (
                "suite_sha256", "evidence", "cases", "solution_seen", "group", "rung")))
            if record.event != "solution" or key not in selected:
                selected.pop(key, None)
                selected[key] = record
                if len(selected) > _MOST_OLDER:
                    del selected[next(iter(selected))]
    return tuple(selected.values()), number


def parse(own: bytes | JournalPart, merged: bytes | JournalPart = b"") -> JournalReading:
    """Parses the records of this machine and merged ones.

    A damaged line costs only its own record, and is reported unless another file has it.
    """
    own, merged = (JournalPart(one) if isinstance(one, bytes) else one for one in (own, merged))
    mine, others = (lines(part.content, part.skipped + 1) for part in (own, merged))
    older = {r.sha256: r for part in (own, merged) for r in part.older}
    records = older | {r.sha256: r for line in (*mine, *others) for r in line.records}
    own_ones = {r.sha256 for r in own.older} | {r.sha256 for line in mine for r in line.records}
    problems: list[str] = []
    for part, read, name in ((own, mine, ""), (merged, others, "merged.jsonl")):
        problems += _in_words(part, problems_in(read, records, name, not part.whole), name)
    return JournalReading(_ordered(records.values()), tuple(problems),
                          frozenset(records.keys() - own_ones), frozenset(older))


def problems_in(read: Sequence[JournalLine], hashes: Container[str], name: str = "",
                older: bool = False) -> list[JournalLine]:
    """Returns damaged lines, and intact ones before which records are missing.

    Args:
        hashes: SHA-256 of all records that can be read anywhere.
        name: of the file, which holds several chains; the journal holds one.
        older: lines before these are left out.
    """
    problems: list[JournalLine] = []
    before, gap = GENESIS, int(older)
    for line in read:
        if line.damaged:
            problems.append(line)
            gap += 1
            continue
        [record] = line.records
        elsewhere = record.prev != before and (record.prev in hashes or
                                               (bool(name) and record.prev == GENESIS))
        if gap == 1 and elsewhere and record.prev != GENESIS and problems and problems[-1].damaged \
                and not problems[-1].records:
            problems.pop()  # the lost record is the one before this, and another file holds it
        elif not gap and record.prev != before and not elsewhere:
            problems.append(line)
        before, gap = record.sha256, 0
    return problems


def _in_words(part: JournalPart, problems: Sequence[JournalLine], name: str) -> Iterator[str]:
    """Describes the damage of a file: a sentence for one line, one sentence for several."""
    where, subject = name or "the journal", name or "The journal"
    if part.empty:
        yield f"{subject} is empty. If it held records, they are lost."
    if not part.whole:
        size = f"{len(part.content) / 1e6:.0f} MB"
        yield (f"{subject} has more than {size}: before its last {size}, only passes, hints and "
               "starts are read.")
    if len(problems) > 1:
        saved = sum(len(line.records) for line in problems if line.damaged)
        yield (f"{subject} is damaged in {len(problems):,} places, first at line "
               f"{problems[0].number:,}; all other records count" +
               (f", and {saved:,} read from damaged lines." if saved else "."))
        return
    for line in problems:
        if not line.damaged:
            yield f"Before line {line.number} of {where} at least one record is missing."
            continue
        damage = "was cut short" if line.torn else "is damaged"
        yield f"Line {line.number} of {where} {damage}; " + (
            f"records read from it all the same: {len(line.records)}." if line.records
            else "only that record is lost.")


def _ordered(records: Iterable[Record]) -> tuple[Record, ...]:
    records = sorted(records, key=lambda record: record.seq)  # followers come later
    day: dict[str, str] = {}  # a clock that went back changes no order within a chain
    for record in records:
        day[record.sha256] = max(record.date, day.get(record.prev, ""))
    return tuple(sorted(records, key=lambda r: (day[r.sha256], r.seq, r.sha256)))


def _salvage(line: bytes) -> list[Record]:
    """Returns the intact records inside a damaged line."""
    if len(line) > LONGEST_LINE or b'"sha256"' not in line:
        return []
    text = line.decode("latin-1")  # records are ASCII; anything else is damage
    records = []
    start, tries = text.find("{"), 0
    while start >= 0 and tries < _MOST_TRIES:
        tries += 1
        try:
            data, end = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            data, end = None, start + 1
        record = _checked(data)
        if record is not None:
            records.append(record)
        start = text.find("{", end if record is not None else start + 1)
    return records


def _parse_line(line: bytes) -> Record | None:
    if len(line) > LONGEST_LINE or b'"sha256"' not in line:
        return None
    try:
        return _checked(json.loads(line), line)
    except (ValueError, RecursionError):
        return None


def _checked(data: Any, line: bytes = b"") -> Record | None:
    """Returns the record of parsed data if its hash is right.

    Args:
        line: the bytes of the data, which are hashed without serializing them again.
    """
    try:
        claimed = data.pop("sha256")
        hashed = line.replace(b'"sha256":"%b",' % claimed.encode(), b"", 1)
        if data["schema"] != SCHEMA or (
                hashlib.sha256(hashed).hexdigest() != claimed
                and hashlib.sha256(canonical(data)).hexdigest() != claimed):
            return None
        data["sha256"] = claimed
        return from_data(data)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def from_data(data: Mapping[str, Any]) -> Record:
    """Builds a record without checking its hashes."""
    return msgspec.convert({**data, "data": data}, Record)


def canonical(data: Mapping[str, Any]) -> bytes:
    """Serializes data in the only form that is written and hashed."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
