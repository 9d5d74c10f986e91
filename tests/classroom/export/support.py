"""A class with points to export."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from tests.classroom import support
from tritonlab.classroom import book
from tritonlab.classroom.export import export
from tritonlab.classroom.export.student_points import Exported
from tritonlab.classroom.grading import summary_of
from tritonlab.classroom.roster import Roster

AFTER = datetime(2026, 11, 1, tzinfo=UTC)  # the due time of hw1
BEFORE = datetime(2026, 10, 1, tzinfo=UTC)
HEADER = "student,name,email,sis_id,login,section,github,group\n"
ROSTER = HEADER + (
    "alice,Alice Smith,alice@uni.edu,9001,asmith,1,gh-alice,\n"
    "bob,José O'Brien,bob@uni.edu,9002,bobrien,1,gh-bob,\n"
    "carol,Carol Jones,carol@uni.edu,9003,cjones,2,gh-carol,\n"
    "dave,Dave Miller,dave@uni.edu,9004,dmiller,2,gh-dave,\n"
    "erin,Erin Doe,erin@uni.edu,9005,edoe,2,gh-erin,\n")


class Class:
    """A class of five.

    Alice passed; Bob failed one of two cases, two days late; Carol handed in nothing; Dave is
    excused; Erin's submission has no grade.
    """

    def __init__(self, root: Path, roster: str = ROSTER, text: str = support.CLASS) -> None:
        self.root = root
        self.settings, self.store = support.write(root, text)
        self.roster = Roster.parse(roster)
        self.hw1 = self.settings.assignment("hw1")
        self.grade("alice", support.PASSED, at="2026-10-12T20:00:00-04:00")
        self.grade("bob", support.FAILED, at="2026-10-14T20:00:00-04:00")
        self.store.append({"event": "excused", "student": "dave", "assignment": "hw1",
                           "reason": "ill"})
        support.hand_in(self.store, "erin", "pass", at="2026-10-12T20:00:00-04:00")

    def grade(self, student: str, report: dict[str, Any], at: str) -> None:
        blob = support.hand_in(self.store, student, f"# {student} {at}", at=at)
        key = blob[:40]
        report = {**support.PASSED, "output": "", "seconds": 1.5, "engine": "test", "target": "",
                  "gpu": "", "grader_version": "1", "versions": {}, **report}
        results = [{"measured": None, **result} for result in report["results"]]
        data = {"key": key, "module": "track1/softmax", "blob": blob, "cpu_s": 1.0,
                "seconds": 1.0, "report": {**report, "results": results}}
        self.store.save_result(key, data)
        graded = summary_of("hw1", "track1/softmax", blob, data)
        self.store.append({"event": "graded", **msgspec.to_builtins(graded)})

    @property
    def book(self) -> book.Book:
        return book.read(self.settings, self.store.log())

    def make(self, to: str, content: bytes | None = None, now: datetime = AFTER,
             **more: Any) -> Exported:
        source = None
        if content is not None:
            source = self.root / "source.csv"
            source.write_bytes(content)
        return export.make(self.settings, self.roster, self.store, self.book, self.hw1, to,
                           source=source, now=now, **more)

    def save(self, to: str, result: Exported, place: str) -> list[Path]:
        return export.save(self.store, self.book, self.hw1, to, result, self.root / place)
