"""Reports of all students in the formats of one grade: Gradescope, Classroom 50 and JUnit."""

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from tritonlab.classroom.book import ModuleScore
from tritonlab.classroom.export.comment import SIGNATURE, Results, comment
from tritonlab.classroom.export.student_points import StudentPoints
from tritonlab.classroom.settings import ClassAssignment, ClassSettings
from tritonlab.formats import classroom50, gradescope, junit
from tritonlab.grading.points import apportioned, points

_NOTHING = "Nothing was handed in."


def to_gradescope(one: StudentPoints, assignment: ClassAssignment,
                  result_of: Results) -> str | None:
    """Returns a student's results.json; None for an excused student, who has none.

    The score has all deductions. A module without a submission is a failed test.
    """
    if one.points is None:
        return None
    parts = [(module, _gradescope_part(module, assignment, result_of))
             for module in one.score.modules]
    several = len(parts) > 1
    texts = [comment(one, "verdict", result_of).removeprefix(SIGNATURE)]
    data: dict[str, Any] = {
        "score": one.points, "execution_time": 0.0, "output": "", "output_format": "text",
        "visibility": "visible", "stdout_visibility": "hidden", "tests": [], "extra_data": {}}
    board = []
    for module, part in parts:
        data["execution_time"] = round(data["execution_time"] + part.get("execution_time", 0), 3)
        if "extra_data" in part:
            data["extra_data"][module.module] = part["extra_data"]
        for test in part["tests"]:
            if several:
                test["name"] = f"{module.module}: {test['name']}"
                test.pop("number", None)  # every module begins anew
            data["tests"].append(test)
        for entry in part.get("leaderboard", ()):
            board.append({**entry, "name": f"{module.module}: {entry['name']}"}
                         if several else entry)
    data["output"] = "\n".join(texts)
    if board:
        data["leaderboard"] = board
    return json.dumps(data, indent=2) + "\n"


def _gradescope_part(module: ModuleScore, assignment: ClassAssignment,
                     result_of: Results) -> dict[str, Any]:
    report = _report(module, result_of)
    if report is None:
        return {"tests": [{"name": module.module, "status": "failed", "output": _NOTHING,
                           "score": 0, "max_score": round(module.out_of, 4)}]}
    part: dict[str, Any] = json.loads(gradescope.render(
        report, module.module, points(report, assignment.weights, module.out_of),
        reveal=assignment.reveal))
    return part


def to_classroom50(one: StudentPoints, settings: ClassSettings, assignment: ClassAssignment,
                   result_of: Results, now: datetime) -> str | None:
    """Returns a student's result.json; None for excused students and those without a submission.

    Scores are integers and have all deductions. Addresses of commits are not known here; they
    are URNs of the submitted files.
    """
    handed = [module for module in one.score.modules if module.handed]
    if one.points is None or not handed:
        return None
    tests: list[Any] = []
    data: dict[str, Any] = {}
    for module, most in zip(one.score.modules, apportioned(
            [1] * len(one.score.modules), round(one.score.out_of)), strict=True):
        report = _report(module, result_of)
        if report is None or module.handed is None:
            tests.append({"test-name": module.module, "passed": False, "score": 0,
                          "max-score": most})
            continue
        at = module.handed.at or now
        blob = f"urn:sha256:{module.handed.blob}"
        commit = classroom50.GradedCommit(
            _slug(settings.name), assignment.name, one.student.github or one.student.id,
            f"submit/{at:%Y-%m-%dT%H-%M-%SZ}-{module.handed.blob[:7]}", at, blob, blob)
        part = json.loads(classroom50.render(
            report, module.module, points(report, assignment.weights, most), commit,
            graded_at=now, reveal=assignment.reveal))
        if len(one.score.modules) > 1:
            for test in part["tests"]:
                test["test-name"] = f"{module.module}: {test['test-name']}"
        tests += part["tests"]
        if not data or part["datetime"] > data["datetime"]:  # the newest names the submission
            data = part
    most = sum(test["max-score"] for test in tests)
    return json.dumps({**data, "score": min(round(one.points), most), "max-score": most,
                       "tests": tests}, indent=2) + "\n"


def to_junit(students: Sequence[StudentPoints], result_of: Results) -> bytes:
    """Returns a file with a test suite for each student and module.

    An excused student's suite is one skipped test; that of a student without a submission fails.
    """
    return junit.document(suite for one in students
                          for suite in _suites(one, result_of)).encode()


def _suites(one: StudentPoints, result_of: Results) -> Iterator[ET.Element]:
    several = len(one.score.modules) > 1
    for module in one.score.modules:
        name = f"{one.student.id} {module.module}" if several else one.student.id
        report = _report(module, result_of)
        if report is not None and one.points is not None:
            at = module.handed.at if module.handed else None
            yield junit.test_suite(report, module.module, name, at)
            continue
        tag, message = ("skipped", "Excused.") if one.points is None else ("failure", _NOTHING)
        suite = ET.Element("testsuite", {
            "name": name, "tests": "1", "failures": str(int(tag == "failure")), "errors": "0",
            "skipped": str(int(tag == "skipped")), "time": "0.000"})
        case = ET.SubElement(suite, "testcase", {
            "name": "a submission is handed in", "classname": module.module.replace("/", "."),
            "time": "0.000"})
        ET.SubElement(case, tag, {"message": message})
        yield suite


def _report(module: ModuleScore, result_of: Results) -> Mapping[str, Any] | None:
    result = result_of(module.graded.key) if module.graded else None
    return result["report"] if result else None


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.casefold()).strip("-") or "class"
