"""The worker of a class: when its sandbox is replaced, limits, and what hostile code can reach."""

import json
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import grader
from grader.attacks.attacks import _TRY, ATTACKS
from grader.report import CaseResult, Finding, Kind, Report, Verdict
from tests.benchmarks.class_grading import untimed
from tests.classroom import support
from tests.fidelity import cheats, class_kills
from tritonlab.authoring import module_files
from tritonlab.classroom import book, grade_worker, settings
from tritonlab.classroom.grade_worker import TIME_LIMIT, GradeWorker, Job
from tritonlab.classroom.store import Store
from tritonlab.course import course

PASSED = Report("s", "", "", "", {}, "", "", "", (
    CaseResult("one", Kind.CORRECTNESS, Verdict.PASSED),))


class Box:
    """A sandbox that does nothing."""

    def __init__(self) -> None:
        self.closed = False
        self.most_resident: int | None = None

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def worker(toy_course, monkeypatch):
    """A worker of the toy course whose sandboxes are in ``worker.boxes``."""
    result = GradeWorker(toy_course)
    result.boxes = []
    result.reports = []
    result.calls = []

    def start():
        result.boxes.append(Box())
        return result.boxes[-1]

    def grade(*arguments, **options):
        result.calls.append(options)
        return result.reports.pop(0)

    monkeypatch.setattr(grade_worker, "start_sandbox", start)
    monkeypatch.setattr(grader, "grade", grade)
    return result


@pytest.mark.parametrize(("code", "sandboxes"), [
    ("R02", 2), ("R03", 2), ("R04", 2), ("N01", 1), ("R01", 1)])
def test_a_submission_whose_process_was_killed_leaves_its_sandbox_to_nobody(
        worker, code, sandboxes):
    failed = replace(PASSED, results=(CaseResult(
        "one", Kind.CORRECTNESS, Verdict.FAILED, (Finding(code, "seen"),)),))
    worker.reports = [failed, PASSED]

    for _ in range(2):
        worker(Job("track1/softmax", {"kernel.py": b""}, target="h100"))

    assert len(worker.boxes) == sandboxes
    assert [box.closed for box in worker.boxes] == [True] * (sandboxes - 1) + [False]


def test_limits_and_effort_of_a_class_reach_the_grader(worker):
    worker.reports = [PASSED, PASSED]

    worker(Job("track1/softmax", {"kernel.py": b""}, target="h100", limit_memory_mb=500,
               effort="values"))
    worker(Job("track1/softmax", {"kernel.py": b""}, target="h100"))

    assert worker.boxes[0].most_resident == 4_000_000_000
    assert [call["effort"] for call in worker.calls] == ["uncompiled", "whole"]


def _grade(root: Path, sources: Mapping[str, bytes], more: str = "", secret: bytes = b""
           ) -> dict[str, Any]:
    """Grades a class of these submissions; returns the results by student, without times."""
    _, store = support.write(root, class_kills.CLASS.replace(
        "require_isolation = 0", f"require_isolation = 0\n{more}"))
    if secret:
        (store.folder / "secret").write_bytes(secret)
    store.append(*({"event": "imported", "student": student, "assignment": "hw1",
                    "module": class_kills.MODULE, "blob": store.add({"kernel.py": source})}
                   for student, source in sources.items()))
    done = subprocess.run(class_kills.COMMAND, cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    store = Store(root)
    the_book = book.read(settings.load(root), store.log())
    assert the_book.problems == ()
    results = {}
    for student in sources:
        graded = the_book.grade_of(the_book.of(student, "hw1")[-1])
        results[student] = untimed(store.result(graded.key))["report"]
    return results


def _honest() -> dict[str, bytes]:
    material = module_files.read(course.load().find(class_kills.MODULE), "blanks")
    right = material.solution["kernel.py"]
    return {"right": right.encode(), "wrong": material.suite.mutants[0].apply(right).encode(),
            "unfinished": material.exercise["kernel.py"].encode(), "no Python": b"def f(:\n"}


@pytest.mark.course
def test_hostile_submissions_change_no_result_of_others(tmp_path):
    """Those that end processes, take all there is, or reach for what is not theirs."""
    honest = _honest()
    attacks = {attack.name: attack.source for attack in ATTACKS}
    base = honest["wrong"].decode()
    hostile = {name: "\n".join((
        base, "BOMB, NAP, MEMORY, MARK, FILES, BIG, TEMPORARY = 100, 60.0, 1 << 30, 'm', 40, "
        f"80_000_000, '{tmp_path / 'reached'}'", _TRY, attacks[name])).encode()
        for name in ("fork without end", "leave a process behind", "take 1 GiB of memory",
                     "write a verdict to an open descriptor", "write into /tmp",
                     "compute for ever, ignoring signals")}
    hostile |= {cheat.name: cheat.source.encode() for cheat in cheats.cheats()
                if cheat.name in ("leaves_with_zero", "plants_modules", "prints_a_verdict",
                                  "answers_in_the_protocol", "at_exit")}
    assert len(hostile) == 11
    everyone = {}
    for number, (name, source) in enumerate(hostile.items()):  # an honest one after each third
        everyone[name] = source
        if number % 3 == 2:
            student = [*honest][number // 3]
            everyone[student] = honest[student]
    everyone |= honest

    alone = _grade(tmp_path / "alone", honest, secret=b"s")
    together = _grade(tmp_path / "together", everyone, secret=b"s")

    for student in honest:
        assert json.dumps(together[student]) == json.dumps(alone[student]), student
    assert [together[name]["verdict"] for name in hostile] == ["FAILED"] * len(hostile)
    assert [alone[name]["verdict"] for name in honest] == ["PASSED", *["FAILED"] * 3]
    assert not (tmp_path / "reached").exists()


@pytest.mark.course
def test_memory_above_the_limit_of_a_class_is_a_failure(tmp_path):
    source = _honest()["right"] + b"\nkept = bytearray(600_000_000)\nkept[::4096] = bytes(146485)\n"

    limited = _grade(tmp_path / "limited", {"ada": source}, "limit_memory_mb = 300")
    usual = _grade(tmp_path / "usual", {"ada": source})

    first = next(result for result in limited["ada"]["results"] if result["findings"])
    assert first["findings"][0]["code"] == "R04"
    assert usual["ada"]["verdict"] == "PASSED"


@pytest.mark.course
def test_cpu_time_above_the_limit_of_a_class_decides_nothing(tmp_path):
    limited = _grade(tmp_path / "limited", {
        "ada": _honest()["right"] + b"\nsum(range(200_000_000))\n"}, "limit_cpu_s = 1")

    assert limited["ada"]["verdict"] == "INCONCLUSIVE"
    assert [result["name"] for result in limited["ada"]["results"]] == [TIME_LIMIT]
