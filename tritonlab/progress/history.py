"""Every recorded grade, as a table."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tritonlab.course.course import Course, Module
from tritonlab.progress.journal import JournalReading, Record

_TIME = re.compile(r"[0-9]{2}:[0-9]{2}")


@dataclass(frozen=True)
class RecordedGrade:
    """One grade as recorded.

    ``time`` is the hour and minute, empty in records of earlier versions, which kept the day alone.
    ``code`` is that of what failed first, empty for a pass. ``device`` is the GPU it ran on, empty
    for none. ``today``: it was under the hidden tests of today. ``here``: on this machine.
    """

    module: str
    date: str
    time: str
    verdict: str
    evidence: str
    cases_passed: int
    cases_total: int
    code: str
    hints_used: int
    solution_seen: bool
    engine: str
    device: str
    today: bool
    here: bool


def attempts(course: Course, reading: JournalReading,
             module: Module | None = None) -> list[RecordedGrade]:
    """Returns all grades of a course, or of one module, in order."""
    tests = {m.id: m.suite_sha256 for m in ((module,) if module else course.modules)}
    return [_attempt(record, tests[record.module], reading) for record in reading.records
            if record.event == "graded" and record.module in tests]


def _attempt(record: Record, tests: str, reading: JournalReading) -> RecordedGrade:
    cases = record["cases"] if isinstance(record["cases"], dict) else {}
    code = record["code"] or next(iter(record["codes"] or ()), "")  # older records lack the first
    return RecordedGrade(
        record.module, record.date, _time(record), str(record["verdict"]),
        record["evidence"] or "", cases.get("passed", 0), cases.get("total", 0), code,
        record["hints_used"] or 0, bool(record["solution_seen"]), record["engine"] or "",
        record["device"] or "",
        record["suite_sha256"] == tests, record.sha256 not in reading.merged)


def _time(record: Record) -> str:
    time = str(record["time"])
    return time if _TIME.fullmatch(time) else ""
