"""The overview of a learner's way: modules, attempts over time, hints, evidence, benchmarks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from tritonlab import benches, certificate, history
from tritonlab.benches import Kept
from tritonlab.certificate import EVIDENCE, Certificate, Entry
from tritonlab.course import Course, Module, Track
from tritonlab.history import Attempt
from tritonlab.journal import Reading
from tritonlab.workspace import Workspace

SCHEMA = 1


@dataclass(frozen=True)
class Day:
    """What was tried of one module on one day."""

    module: str
    day: date
    grades: int
    passes: int
    evidence: str  # the highest level of that day


@dataclass(frozen=True)
class Line:
    """One module of the course, and how far it has come."""

    module: Module
    entry: Entry
    attempts: tuple[Attempt, ...]
    hints: int

    @property
    def last(self) -> str:
        """The day of the last grade; empty where there is none."""
        return self.attempts[-1].date if self.attempts else ""


@dataclass(frozen=True)
class Benched:
    """A benchmark that was kept; ``current``: of the file that was graded last."""

    module: Module
    kept: Kept
    current: bool


@dataclass(frozen=True)
class Overview:
    """All of it. ``tracks`` pairs each track with its modules."""

    certificate: Certificate
    tracks: tuple[tuple[Track, tuple[Line, ...]], ...]
    benched: tuple[Benched, ...]

    @property
    def lines(self) -> tuple[Line, ...]:
        return tuple(line for _, lines in self.tracks for line in lines)

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        return tuple(attempt for line in self.lines for attempt in line.attempts)

    @property
    def days(self) -> tuple[Day, ...]:
        """The attempts by day, and by module in the order of the course."""
        found: dict[tuple[date, int], list[Attempt]] = {}
        for place, line in enumerate(self.lines):
            for attempt in line.attempts:
                if day := _date(attempt):
                    found.setdefault((day, place), []).append(attempt)
        return tuple(_day(day, found[day, place]) for day, place in sorted(found))

    @property
    def minutes_left(self) -> int:
        """The planned time of the core modules that are ready and not passed."""
        return sum(line.module.minutes for line in self.lines
                   if line.module.core and not line.entry.done)

    @property
    def levels(self) -> dict[str, int]:
        """How many passed modules hold each level of evidence, the highest first."""
        counted = Counter(line.entry.evidence for line in self.lines if line.entry.done)
        return {level: counted[level] for level in reversed(EVIDENCE[1:]) if counted[level]}

    def to_dict(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "name": self.certificate.name, "updated": self.certificate.updated,
            "totals": self.certificate.to_dict()["totals"],
            "evidence": self.levels, "minutes_left": self.minutes_left,
            "modules": [{
                "module": line.module.id, "title": line.module.title, "core": line.module.core,
                "state": str(line.entry.state), "evidence": line.entry.evidence,
                "cases": {"passed": line.entry.cases_passed, "skipped": line.entry.cases_skipped,
                          "total": line.entry.cases_total},
                "grades": len(line.attempts), "hints": line.hints,
                "minutes_planned": line.module.minutes, "last": line.last or None,
                "solution_seen": line.entry.solution_seen,
            } for line in self.lines],
            "days": [{"date": str(day.day), "module": day.module, "grades": day.grades,
                      "passes": day.passes, "evidence": day.evidence} for day in self.days],
            "benches": [{"module": one.module.id, "date": one.kept.date,
                         "device": one.kept.found.device, "measured": one.kept.found.measured,
                         "current": one.current} for one in self.benched],
        }


def build(course: Course, reading: Reading, place: Workspace) -> Overview:
    """What journal and kept benchmarks show."""
    by_module: dict[str, list[Attempt]] = {}
    for attempt in history.attempts(course, reading):
        by_module.setdefault(attempt.module, []).append(attempt)
    made = certificate.build(course, reading)

    def line(module: Module) -> Line:
        return Line(module, made.entry(module), tuple(by_module.get(module.id, ())),
                    reading.hints(module.id))

    tracks = tuple((track, tuple(map(line, track.modules))) for track in course.tracks)
    return Overview(made, tracks, tuple(_benched(course.modules, reading, place)))


def _benched(modules: Iterable[Module], reading: Reading, place: Workspace) -> Iterator[Benched]:
    for module in modules:
        if benches.is_kept(place, module) and (kept := benches.kept(place, module)):
            last = reading.last_grade(module.id)
            yield Benched(module, kept,
                          last is None or last["source_sha256"] == kept.found.source_sha256)


def _date(attempt: Attempt) -> date | None:
    """The day of an attempt; none where its record holds no date."""
    try:
        return date.fromisoformat(attempt.date)
    except ValueError:
        return None


def _day(day: date, attempts: Sequence[Attempt]) -> Day:
    passes = [attempt for attempt in attempts if attempt.verdict == "PASSED"]
    ranks = [EVIDENCE.index(one.evidence) for one in passes if one.evidence in EVIDENCE]
    return Day(attempts[0].module, day, len(attempts), len(passes),
               EVIDENCE[max(ranks, default=0)])
