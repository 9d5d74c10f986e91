"""Every recorded grade, and the progress report with hints, evidence and benchmarks."""

import contextlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

from tritonlab.course.course import Course, Module, Track
from tritonlab.progress import caches, certificate
from tritonlab.progress.caches import StoredBenchmark
from tritonlab.progress.certificate import EVIDENCE, Certificate, CertificateEntry
from tritonlab.progress.journal import JournalReading, Record

SCHEMA = 1
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
    time = str(record["time"])
    return RecordedGrade(
        record.module, record.date, time if _TIME.fullmatch(time) else "", str(record["verdict"]),
        record["evidence"] or "", cases.get("passed", 0), cases.get("total", 0), code,
        record["hints_used"] or 0, bool(record["solution_seen"]), record["engine"] or "",
        record["device"] or "",
        record["suite_sha256"] == tests, record.sha256 not in reading.merged)


@dataclass(frozen=True)
class Day:
    """The attempts at one module on one day."""

    module: str
    day: date
    grades: int
    passes: int
    evidence: str  # the highest level of that day


@dataclass(frozen=True)
class ModuleProgress:
    """One module with its state, attempts and number of hints."""

    module: Module
    entry: CertificateEntry
    attempts: tuple[RecordedGrade, ...]
    hints: int

    @property
    def last(self) -> str:
        """The day of the last grade; empty if there is none."""
        return self.attempts[-1].date if self.attempts else ""


class ModuleBenchmark(NamedTuple):
    """A stored benchmark; ``current``: of the file that was graded last."""

    module: Module
    stored: StoredBenchmark
    current: bool


@dataclass(frozen=True)
class Overview:
    """The whole report. ``tracks`` pairs each track with its modules."""

    certificate: Certificate
    tracks: tuple[tuple[Track, tuple[ModuleProgress, ...]], ...]
    benched: tuple[ModuleBenchmark, ...]

    @property
    def lines(self) -> tuple[ModuleProgress, ...]:
        return tuple(line for _, lines in self.tracks for line in lines)

    @property
    def attempts(self) -> tuple[RecordedGrade, ...]:
        return tuple(attempt for line in self.lines for attempt in line.attempts)

    @property
    def days(self) -> tuple[Day, ...]:
        """The attempts by day and, within a day, by module."""
        by_day: dict[tuple[date, int], list[RecordedGrade]] = {}
        for place, line in enumerate(self.lines):
            for attempt in line.attempts:
                with contextlib.suppress(ValueError):  # its record has no valid date
                    day = date.fromisoformat(attempt.date)
                    by_day.setdefault((day, place), []).append(attempt)
        return tuple(_day(day, by_day[day, place]) for day, place in sorted(by_day))

    @property
    def minutes_left(self) -> int:
        """The planned minutes of the core modules that are not passed."""
        return sum(line.module.minutes for line in self.lines
                   if line.module.core and not line.entry.done)

    def to_dict(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA, "name": self.certificate.name,
            "updated": self.certificate.updated, "totals": self.certificate.to_dict()["totals"],
            "evidence": self.certificate.levels, "minutes_left": self.minutes_left,
            "modules": [{
                "module": line.module.id, "title": line.module.title, "core": line.module.core,
                "state": str(line.entry.state), "evidence": line.entry.evidence,
                "cases": {name: getattr(line.entry, f"cases_{name}")
                          for name in ("passed", "skipped", "total")},
                "grades": len(line.attempts), "hints": line.hints,
                "minutes_planned": line.module.minutes, "last": line.last or None,
                "solution_seen": line.entry.solution_seen,
            } for line in self.lines],
            "days": [{"date": str(day.day), "module": day.module, "grades": day.grades,
                      "passes": day.passes, "evidence": day.evidence} for day in self.days],
            "benches": [{"module": one.module.id, "date": one.stored.date,
                         "device": one.stored.benchmark.device,
                         "measured": one.stored.benchmark.measured, "current": one.current}
                        for one in self.benched],
        }


def build(course: Course, reading: JournalReading, mark: Path) -> Overview:
    """Builds the report from the journal and the stored benchmarks."""
    current = certificate.build(course, reading)

    def line(module: Module) -> ModuleProgress:
        return ModuleProgress(module, current.entry(module),
                              tuple(attempts(course, reading, module)),
                              reading.hints(module.id, before_pass=True))

    def is_current(module: Module, stored: StoredBenchmark) -> bool:
        last = reading.last_grade(module.id)
        return last is None or last["source_sha256"] == stored.benchmark.source_sha256

    tracks = tuple((track, tuple(map(line, track.modules))) for track in course.tracks)
    benched = tuple(ModuleBenchmark(module, stored, is_current(module, stored))
                    for module in course.modules
                    if (stored := caches.load_benchmark(mark, module)))
    return Overview(current, tracks, benched)


def _day(day: date, attempts: Sequence[RecordedGrade]) -> Day:
    passes = [attempt for attempt in attempts if attempt.verdict == "PASSED"]
    ranks = [EVIDENCE.index(one.evidence) for one in passes if one.evidence in EVIDENCE]
    return Day(attempts[0].module, day, len(attempts), len(passes), EVIDENCE[max(ranks, default=0)])
