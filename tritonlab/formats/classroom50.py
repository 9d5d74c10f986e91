"""The result.json of a Classroom 50 autograder, schema ``classroom50/result/v1``.

https://github.com/foundation50/classroom50/wiki/Advanced-Autograding
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from grader.report import Verdict
from tritonlab.formats.annotations import clean, described, first_failure, weak_isolation
from tritonlab.formats.steps import steps
from tritonlab.grading.points import Points, apportioned, counted, kind_of

SCHEMA = "classroom50/result/v1"
_MOST_CHARS = 20_000


@dataclass(frozen=True)
class GradedCommit:
    """A submission as Classroom 50 names it.

    ``owner`` is the login of the repository's owner, ``submission`` the tag, such as
    ``submit/2026-06-01T14-32-05Z-a1b2c3d``, and ``submitted_at`` the date of the commit.
    ``commit``, ``release`` and ``review`` are addresses. Classroom 50 stamps owner, kind and times
    again by itself.
    """

    classroom: str
    assignment: str
    owner: str
    submission: str
    submitted_at: datetime
    commit: str
    release: str
    review: str = ""
    kind: str = "individual"


def render(report: Mapping[str, Any], module_id: str, points: Points, graded: GradedCommit, *,
           score: int | None = None, graded_at: datetime | None = None,
           reveal: str = "first-failure") -> str:
    """Returns the file of one grade: a test for each kind of check, with integer scores.

    A module may have more checks than points, so checks have no test of their own. While blanks
    are left, there is a test without points for each step.

    Args:
        report: from ``grader.report.Report.to_dict``, of a grade with effort "whole".
        points: of the report, by ``tritonlab.grading.points.points``.
        score: the score of the submission; by default the sum over its tests.
        graded_at: the time of the grade.
        reveal: the failures that are described: ``verdict``, ``first-failure`` or ``all``.
    """
    tests = _tests(report, module_id, points, reveal)
    if weak := weak_isolation(report["isolation"]):
        tests = [test | {"isolation": weak} for test in tests]
    most = sum(test["max-score"] for test in tests)
    data = {
        "schema": SCHEMA, "classroom": graded.classroom, "assignment": graded.assignment,
        "assignment_type": graded.kind, "owner": graded.owner, "submission": graded.submission,
        "commit": graded.commit, "release": graded.release,
        "review": graded.review or graded.commit, "datetime": _utc(graded.submitted_at),
        **({"graded_at": _utc(graded_at)} if graded_at else {}),
        "score": min(sum(test["score"] for test in tests) if score is None else score, most),
        "max-score": most, "tests": tests,
    }
    return json.dumps(data, indent=2) + "\n"


def _tests(report: Mapping[str, Any], module_id: str, points: Points,
           reveal: str) -> list[dict[str, Any]]:
    out_of, passes = round(points.out_of), report["verdict"] == Verdict.PASSED
    first = first_failure(report)
    if not points.groups:
        whole = _test(module_id, passes, out_of)
        if first and reveal != "verdict":
            whole |= _message(first)
        return [whole, *(_test(step.title, step.right, 0) for step in steps(report))]
    maxima = apportioned([group.out_of for group in points.groups], out_of)
    tests = []
    for group, most in zip(points.groups, maxima, strict=True):
        passed = group.passed == group.total
        test = _test(f"{group.kind} checks", passed, most)
        failed = [result for result in counted(report) if kind_of(result) == group.kind
                  and result["verdict"] != Verdict.PASSED]
        shown = [] if reveal == "verdict" else failed if reveal == "all" else \
            [result for result in failed if result is first]
        tests.append(test | {"score": most if passed else min(round(group.points), most)}
                     | _message(*shown))
    return tests


def _test(name: str, passed: bool, most: int) -> dict[str, Any]:
    return {"test-name": clean(name) or "check", "passed": passed,
            "score": most if passed else 0, "max-score": most}


def _message(*results: Mapping[str, Any]) -> dict[str, str]:
    texts = [f"{result['name']}\n" + (described(result["findings"][0]) if result["findings"]
                                      else result["reason"]) for result in results]
    return {"message": clean("\n\n".join(texts), _MOST_CHARS)} if texts else {}


def _utc(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
