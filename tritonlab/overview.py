"""The overview of a learner's way: modules, attempts over time, hints, evidence, benchmarks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from tritonlab import benches, certificate
from tritonlab.benches import Kept
from tritonlab.certificate import EVIDENCE, Certificate, Entry
from tritonlab.course import Course, Module, Track
from tritonlab.journal import Reading, Record
from tritonlab.workspace import Workspace

SCHEMA = 1


@dataclass(frozen=True)
class Attempt:
    """One grade. ``day`` is none where the record holds no date."""

    module: str
    day: date | None
    verdict: str
    evidence: str
    passed: int
    total: int
    source_sha256: str

    @property
    def is_pass(self) -> bool:
        return self.verdict == "PASSED"


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
        days = [attempt.day for attempt in self.attempts if attempt.day]
        return str(max(days)) if days else ""


@dataclass(frozen=True)
class Overview:
    """All of it. ``tracks`` pairs each track with its modules; ``benched`` are (module, bench)."""

    certificate: Certificate
    tracks: tuple[tuple[Track, tuple[Line, ...]], ...]
    benched: tuple[tuple[Module, Kept], ...]

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
                if attempt.day:
                    found.setdefault((attempt.day, place), []).append(attempt)
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
            "benches": [{"module": module.id, "date": kept.date, "device": kept.found.device,
                         "measured": kept.found.measured} for module, kept in self.benched],
        }


def build(course: Course, reading: Reading, place: Workspace) -> Overview:
    """What journal and kept benchmarks show."""
    by_module: dict[str, list[Attempt]] = {}
    for record in reading.records:
        if record.event == "graded":
            by_module.setdefault(record.module, []).append(_attempt(record))
    made = certificate.build(course, reading)

    def line(module: Module) -> Line:
        return Line(module, made.entry(module), tuple(by_module.get(module.id, ())),
                    reading.hints(module.id))

    tracks = tuple((track, tuple(map(line, track.modules))) for track in course.tracks)
    return Overview(made, tracks, tuple(_benched(course.modules, place)))


def _benched(modules: Iterable[Module], place: Workspace) -> list[tuple[Module, Kept]]:
    found = [(module, benches.kept(place, module)) for module in modules
             if benches.is_kept(place, module)]
    return [(module, kept) for module, kept in found if kept is not None]


def _attempt(record: Record) -> Attempt:
    cases = record["cases"] if isinstance(record["cases"], dict) else {}
    passed, total = (value if isinstance(value, int) else 0
                     for value in (cases.get("passed"), cases.get("total")))
    try:
        day = date.fromisoformat(record.date)
    except ValueError:
        day = None
    return Attempt(record.module, day, str(record["verdict"]), str(record["evidence"] or ""),
                   passed, total, str(record["source_sha256"] or ""))


def _day(day: date, attempts: Sequence[Attempt]) -> Day:
    passes = [attempt for attempt in attempts if attempt.is_pass]
    ranks = [EVIDENCE.index(one.evidence) for one in passes if one.evidence in EVIDENCE]
    return Day(attempts[0].module, day, len(attempts), len(passes),
               EVIDENCE[max(ranks, default=0)])
