"""The certificate: the state of each module and track by the journal, as versioned JSON.

Schema 2 (``Certificate.to_dict`` writes it, ``CertificateEntry`` lists the fields of an entry)::

    {
      "schema": 2,
      "course": "tritonlab",            the id of the course; without it, the shipped one
      "course_version": "0.1.0",        "" where the course names none
      "name": "Ada" or null,            only what `tritonlab certificate --name` set
      "tritonlab": "0.1.0",             the version that wrote this view
      "updated": "2025-11-21" or null,  day of the last record
      "journal": {"records": 12, "head": SHA-256 of the last record, "problems": [sentences],
                  "heads": [SHA-256 of every record that none came after, of all machines]},
      "totals": {                       "earlier": those of "passed" that are ``outdated``
        "tracks": {"track1": {"title": ..., "passed": 1, "total": 5, "earlier": 0}, ...},
        "core": {"passed": 1, "total": 19, "earlier": 0},
        "electives": {"passed": 0, "total": 7, "earlier": 0}      never part of "core"
      },
      "modules": [ENTRY, ...]           in the order of the course
    }

What is passed stays passed. A module is ``passed`` when a grade under the hidden tests of today is
a pass. When only one under other tests is, it is ``outdated`` and counts all the same: no change of
ours takes a learner's work away, nor does a later attempt that fails, as after any other pass. Its
entry claims no more than what was shown: evidence, tests, versions and date are those of then, and
``regraded`` is the best verdict under today's tests, if there is any.

Schema 1 had neither "heads" nor "earlier" nor ``regraded``, and did not count what is ``outdated``.
The same journal and course always give the same certificate, and so do the journals of two machines
that were merged either way, but for the sentences about damage, which name lines of files.
"""

import enum
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from tritonlab.course.course import SHIPPED, Course, Module
from tritonlab.progress.journal import JournalReading, Record
from tritonlab.version import __version__

SCHEMA = 2
EVIDENCE = ("", "correct", "efficient", "fast")  # the least first
FAST = EVIDENCE[-1]


class ModuleState(enum.StrEnum):
    """The progress of a module."""

    WAITING = "waiting"    # never started
    STARTED = "started"
    TRIED = "tried"        # graded, not passed yet
    OUTDATED = "outdated"  # passed, but under other hidden tests than today's
    PASSED = "passed"


@dataclass(frozen=True)
class CertificateEntry:
    """One module of the certificate; from ``evidence`` on, the facts of its best grade.

    The best is a pass under today's tests, else one under others, else the best failure under
    today's; of equals the latest, so that an exercise that was edited and passed again is on it.
    ``evidence`` is ``correct`` (interpreted), ``efficient`` (traffic and compiled code) or ``fast``
    (right and timed on a GPU). ``cases_total`` counts the checks that decide. ``target`` is the GPU
    that code was compiled for and ``device`` the one that it ran on, null where it ran on none;
    ``ceilings`` is how fast that one copies and multiplies, and when that was measured.
    ``solution_seen``: the solution was shown before this source was passed, or is this source.
    ``regraded``, of outdated modules: the best verdict under today's tests, null for none.
    """

    module: str
    title: str
    core: bool
    state: ModuleState
    grades: int = 0
    evidence: str = ""
    cases_passed: int = 0
    cases_skipped: int = 0
    cases_total: int = 0
    source_sha256: str | None = None
    suite_sha256: str | None = None
    grader_version: str | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    engine: str | None = None
    isolation: str | None = None
    seed: str | None = None
    target: str | None = None
    device: str | None = None
    ceilings: Mapping[str, Any] = field(default_factory=dict)
    hints_used: int = 0
    solution_seen: bool = False
    date: str | None = None
    regraded: str | None = None

    @property
    def done(self) -> bool:
        """Whether it is passed, under today's tests or earlier ones."""
        return self.state in (ModuleState.PASSED, ModuleState.OUTDATED)

    @property
    def is_open(self) -> bool:
        """Whether it is started and not passed."""
        return self.state in (ModuleState.STARTED, ModuleState.TRIED)


@dataclass(frozen=True)
class Total:
    """Counts of passed modules, of all, and of those passed under earlier tests."""

    passed: int
    total: int
    earlier: int = 0

    def __str__(self) -> str:
        return f"{self.passed}/{self.total}"


@dataclass(frozen=True)
class Certificate:
    """The state of all modules of a course. ``to_dict`` returns the published form."""

    name: str | None
    updated: str | None
    records: int
    head: str
    heads: tuple[str, ...]
    problems: tuple[str, ...]
    tracks: Mapping[str, Total]
    titles: Mapping[str, str]
    core: Total
    electives: Total
    entries: tuple[CertificateEntry, ...]
    course: str = SHIPPED
    course_version: str = ""
    course_title: str = ""

    def entry(self, module: Module) -> CertificateEntry:
        return next(entry for entry in self.entries if entry.module == module.id)

    @property
    def levels(self) -> dict[str, int]:
        """The number of passed modules by level of evidence, the highest first."""
        counted = Counter(entry.evidence for entry in self.entries if entry.done)
        return {level: counted[level] for level in reversed(EVIDENCE[1:]) if counted[level]}

    def to_dict(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA, "course": self.course, "course_version": self.course_version,
            "name": self.name,
            "tritonlab": __version__, "updated": self.updated,
            "journal": {"records": self.records, "head": self.head,
                        "problems": list(self.problems), "heads": list(self.heads)},
            "totals": {
                "tracks": {track: {"title": self.titles[track], **asdict(total)}
                           for track, total in self.tracks.items()},
                "core": asdict(self.core),
                "electives": asdict(self.electives),
            },
            "modules": [asdict(entry) for entry in self.entries],
        }

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2) + "\n"


def build(course: Course, reading: JournalReading) -> Certificate:
    """Derives the certificate of a course from a journal."""
    by_module: dict[str, list[Record]] = {}
    for record in reading.records:
        by_module.setdefault(record.module, []).append(record)
    entries = {m.id: _entry(m, by_module.get(m.id, ()), reading) for m in course.modules}

    def count(modules: Iterable[Module], core: bool) -> Total:
        counted = [entries[m.id] for m in modules if m.core is core]
        return Total(sum(entry.done for entry in counted), len(counted),
                     sum(entry.state is ModuleState.OUTDATED for entry in counted))

    tracks = {track.id: count(track.modules, True) for track in course.tracks}
    names = [record["name"] for record in reading.records if record.event == "named"]
    return Certificate(
        name=(names[-1] or None) if names else None,
        updated=reading.records[-1].date if reading.records else None,
        records=len(reading.records), head=reading.last, heads=reading.heads,
        problems=reading.problems, tracks=tracks,
        titles={track.id: track.title for track in course.tracks},
        core=count(course.modules, True), electives=count(course.modules, False),
        entries=tuple(entries.values()), course=course.id, course_version=course.version,
        course_title=course.title)


def next_module(course: Course, reading: JournalReading,
                after: Module | None = None) -> Module | None:
    """Returns the next module that is not passed; None if there is none.

    Core modules come first, and the warm-ups of those that are not passed. The search starts behind
    ``after`` and wraps around, so that every module is reached.
    """
    certificate = build(course, reading)
    modules = list(course.modules)
    start = modules.index(after) + 1 if after in modules else 0
    rest = [m for m in (*modules[start:], *modules[:start])
            if not certificate.entry(m).done and m != after]
    due = {m.id for m in rest if m.core}
    return next((m for m in rest if due & {m.id, m.before}), rest[0] if rest else None)


def warm_ups(course: Course, reading: JournalReading, module: Module) -> list[Module]:
    """Returns the warm-ups of a module that are not passed; none if the module is passed."""
    certificate = build(course, reading)
    return [] if certificate.entry(module).done else [
        m for m in course.modules if m.before == module.id and not certificate.entry(m).done]


def missing(course: Course, reading: JournalReading, module: Module) -> list[str]:
    """Returns the prerequisites of a module that are in the course and not passed."""
    entries = {entry.module: entry for entry in build(course, reading).entries}
    return [name for name in module.prerequisites if name in entries and not entries[name].done]


def below_fast(course: Course, certificate: Certificate) -> list[Module]:
    """Returns the modules that are passed without the evidence ``fast``."""
    return [module for module in course.modules
            if (entry := certificate.entry(module)).done and entry.evidence != FAST]


def _entry(module: Module, records: Sequence[Record], reading: JournalReading) -> CertificateEntry:
    grades = [record for record in records if record.event == "graded"]
    tests = module.suite_sha256 if grades else ""
    today = [grade for grade in grades if grade["suite_sha256"] == tests]
    earlier = [grade for grade in grades if grade.passed and grade["suite_sha256"] != tests]
    best = _best(today)
    regraded = None
    if best is not None and best.passed:
        state = ModuleState.PASSED
    elif earlier:
        state = ModuleState.OUTDATED
        regraded = str(best["verdict"]) if best is not None else None
        best = _best(earlier)
    elif grades:
        state = ModuleState.TRIED
    else:
        state = ModuleState.STARTED if records else ModuleState.WAITING
    if best is None:
        return CertificateEntry(module.id, module.title, module.core, state, len(grades))
    cases = best["cases"] or {}
    return CertificateEntry(
        module.id, module.title, module.core, state, len(grades),
        evidence=best["evidence"] or "", ceilings=best["ceilings"] or {}, regraded=regraded,
        solution_seen=bool(best["solution_seen"])
        or reading.saw_solution(module.id, best["source_sha256"], best),
        **{f"cases_{name}": cases.get(name, 0) for name in ("passed", "skipped", "total")},
        **{name: best[name] for name in ("source_sha256", "suite_sha256", "grader_version",
                                         "versions", "engine", "isolation", "seed", "target",
                                         "device", "hints_used", "date")},
    )


def _best(grades: Sequence[Record]) -> Record | None:
    """Returns the best grade; of equals the latest, whose source most likely still exists."""
    def worth(grade: Record) -> tuple[bool, int, int, bool]:
        evidence = grade["evidence"] or ""
        rank = EVIDENCE.index(evidence) if evidence in EVIDENCE else 0
        return (grade["verdict"] == "PASSED", rank, (grade["cases"] or {}).get("passed", 0),
                not grade["solution_seen"])

    return max(reversed(grades), key=worth, default=None)
