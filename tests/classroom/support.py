"""Classes for tests: settings, submissions and an executor that obeys."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from tritonlab.classroom import grading, settings
from tritonlab.classroom.grade_worker import GradeOutcome, Job
from tritonlab.classroom.settings import ClassSettings
from tritonlab.classroom.store import Store
from tritonlab.progress.journal import GENESIS, canonical

CLASS = """
schema = 1
name = "CS 149"
course = "course"
timezone = "America/New_York"
require_isolation = 0

[assignments.hw1]
modules = ["track1/softmax"]
due = 2026-10-12T23:59:00
late = { percent_per_day = 10, days = 3 }
"""


def write(root: Path, text: str = CLASS) -> tuple[ClassSettings, Store]:
    """Writes a class and returns its settings and its store."""
    root.mkdir(parents=True, exist_ok=True)
    (root / settings.SETTINGS).write_text(text)
    store = Store(root)
    store.create()
    return settings.load(root), store


def hand_in(store: Store, student: str, source: str, *, assignment: str = "hw1",
            module: str = "track1/softmax", at: str | None = None, **more: object) -> str:
    """Stores a submission and logs its import; returns its digest."""
    blob = store.add({"kernel.py": source.encode()})
    store.append({"event": "imported", "student": student, "assignment": assignment,
                  "module": module, "blob": blob, "at": at, **more})
    return blob


def journal(*records: Mapping[str, Any]) -> bytes:
    """A learner's journal with these records, chained."""
    lines: list[bytes] = []
    before = GENESIS
    for number, one in enumerate(records, 1):
        data = {"schema": 1, "seq": number, "date": "2026-10-01", "time": "12:00", "prev": before,
                "module": "track1/softmax", **one}
        before = data["sha256"] = hashlib.sha256(canonical(data)).hexdigest()
        lines.append(canonical(data) + b"\n")
    return b"".join(lines)


def two_students(run: Callable[..., Any], home: Path, course_root: Path,
                 monkeypatch: pytest.MonkeyPatch) -> None:
    """Writes a class of three into the current folder; two have handed in, and graders obey."""
    write(home, CLASS.replace('course = "course"', f'course = "{course_root}"'))
    (home / "roster.csv").write_text(
        "student,name,section\nada,Ada Lovelace,A\nbob,Bob Byte,B\ncyd,Cyd Charisse,B\n")
    for student, source in (("ada", "a"), ("bob", "b")):
        (home / "in" / student).mkdir(parents=True)
        (home / "in" / student / "kernel.py").write_text(source)
    assert run("class", "import", "hw1", "in", "--at", "2026-10-10").code == 0
    monkeypatch.setattr(grading, "LocalExecutor",
                        lambda size, roots: Obedient({"a": PASSED, "b": FAILED}))


def report(verdict: str, *cases: tuple[str, str], code: str = "N01",
           reason: str = "") -> dict[str, Any]:
    """The report of a grade as plain data; ``cases`` are pairs of kind and verdict."""
    finding = {"code": code, "name": code, "seen": "2 of 4 are wrong", "line": 3, "means": "",
               "where": "", "next_step": "", "todos": [1], "function": ""}
    results = [{"name": f"case {n}", "kind": kind, "verdict": outcome, "advisory": False,
                "reason": reason, "facts": {}, "seconds": 0.1,
                "findings": [finding] if outcome == "FAILED" else []}
               for n, (kind, outcome) in enumerate(cases)]
    return {"schema": 1, "verdict": verdict, "results": results, "steps": [], "reason": "",
            "evidence": "correct" if verdict == "PASSED" else "", "isolation": "tier 2: test",
            "suite_sha256": "0" * 64, "seed": "ab", "source_sha256": "1" * 64}


PASSED = report("PASSED", ("correctness", "PASSED"), ("edge", "PASSED"))
FAILED = report("FAILED", ("correctness", "PASSED"), ("edge", "FAILED"))
TIMED_OUT = report("FAILED", ("correctness", "FAILED"), code="R02")


class Obedient:
    """An executor that answers each job by its source, at once."""

    def __init__(self, answers: Mapping[str, Any], size: int = 2, tier: int = 2) -> None:
        self.size = size
        self.tier = tier
        self.answers = answers
        self.graded: list[str] = []
        self.checks: list[Exception] = []  # that checks of the isolation raise first
        self.before: Callable[[Job], None] = lambda job: None

    def __enter__(self) -> Obedient:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def submit(self, job: Job | None) -> Future[GradeOutcome]:
        future: Future[GradeOutcome] = Future()
        if job is None and self.checks:
            future.set_exception(self.checks.pop(0))
            return future
        if job is None:
            future.set_result(GradeOutcome({}, tier=self.tier))
            return future
        self.before(job)
        source = job.files["kernel.py"].decode()
        self.graded.append(source)
        answer = self.answers[source]
        if isinstance(answer, list):  # one for each try
            answer = answer.pop(0)
        if isinstance(answer, BaseException):
            future.set_exception(answer)
        else:
            future.set_result(GradeOutcome(answer, cpu_s=1.5, seconds=1.0))
        return future
