"""The results.json of a Gradescope autograder.

https://gradescope-autograders.readthedocs.io/en/latest/specs/
"""

import enum
import json
import re
from collections.abc import Collection, Mapping
from typing import Any

from grader.report import Verdict
from tritonlab.formats.annotations import (
    clean,
    first_failure,
    is_failure,
    parts_of,
    undecided,
    weak_isolation,
)
from tritonlab.formats.steps import StepOutcome, steps
from tritonlab.grading.points import Points, apportioned, counted, kind_of

REVEALS = ("verdict", "first-failure", "all")  # how much of the failures is described
_MOST_OUTPUT_CHARS = 10_000
_EXTRA = ("verdict", "evidence", "isolation", "engine", "target", "gpu", "source_sha256",
          "suite_sha256", "grader_version", "versions", "seed")


class Visibility(enum.StrEnum):
    """When students see a test; if any is hidden, they do not see their score either."""

    VISIBLE = "visible"
    AFTER_DUE_DATE = "after_due_date"
    AFTER_PUBLISHED = "after_published"
    HIDDEN = "hidden"


def render(report: Mapping[str, Any], module_id: str, points: Points, *,
           score: float | None = None, public: Collection[str] = (),
           visibility: Visibility = Visibility.VISIBLE, reveal: str = "first-failure",
           name: str = "") -> str:
    """Returns the file of one grade: a test for each check, or for each step with blanks left.

    Tests are numbered by the first TODO of the step, otherwise by kind and check. Their scores have
    two decimals, and the maxima add up to ``points.out_of``; the score of the submission is exact.
    Checks without points have no test: those that were skipped or too noisy to tell, and those that
    never decide.

    Args:
        report: from ``grader.report.Report.to_dict``, of a grade with effort "whole".
        points: of the report, by ``tritonlab.grading.points.points``.
        score: the score of the submission; by default the total of the points.
        public: names of the cases that students may run, which they always see.
        visibility: when students see all other tests.
        reveal: the failures that are described; one of ``REVEALS``.
        name: of the student, for the extra data, if it is to be there.
    """
    tests = [_step(step, visibility) for step in steps(report)]
    first = first_failure(report)
    if tests and first:
        tests.append(_test(first, first, reveal, _seen_when(first, public, visibility)) |
                     {"status": "failed"})
    tests += _checks(report, points, first, public, visibility, reveal)
    data = {
        "score": round(points.total if score is None else score, 4),
        "execution_time": round(report["seconds"], 3),
        "output": _output(report, module_id),
        "output_format": "md",
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "tests": tests,
        "extra_data": {"module": module_id, **({"name": clean(name)} if name else {}),
                       **{key: report[key] for key in _EXTRA if report.get(key)}},
    }
    if board := _leaderboard(report):
        data["leaderboard"] = board
    return json.dumps(data, indent=2) + "\n"


def _step(step: StepOutcome, visibility: str) -> dict[str, Any]:
    number = {"number": str(step.todos[0])} if step.todos else {}
    return {"name": step.title, **number, "status": "passed" if step.right else "failed",
            "output": step.sentence, "output_format": "md", "visibility": visibility,
            "tags": [f"TODO {todo}" for todo in step.todos],
            "extra_data": {"task_id": step.todos[0] if step.todos else None,
                           "state": step.state}}


def _checks(report: Mapping[str, Any], points: Points, first: Mapping[str, Any] | None,
            public: Collection[str], visibility: str, reveal: str) -> list[dict[str, Any]]:
    results = counted(report)
    numbers = {group.kind: number for number, group in enumerate(points.groups, 1)}
    shares = {group.kind: group.out_of / group.total for group in points.groups}
    hundredths = apportioned([shares[kind_of(result)] for result in results],
                             round(100 * points.out_of)) if shares else [0] * len(results)
    of_kind: dict[str, int] = {}
    tests = []
    for result, most in zip(results, hundredths, strict=True):
        kind, passed = kind_of(result), result["verdict"] == Verdict.PASSED
        of_kind[kind] = of_kind.get(kind, 0) + 1
        test = _test(result, first, reveal, _seen_when(result, public, visibility))
        if shares:
            test |= {"score": most / 100 if passed else 0, "max_score": most / 100,
                     "number": f"{numbers[kind]}.{of_kind[kind]}"}
        tests.append(test | {"status": "passed" if passed else "failed"})
    return tests


def _test(result: Mapping[str, Any], first: Mapping[str, Any] | None, reveal: str,
          visibility: str) -> dict[str, Any]:
    finding = result["findings"][0] if is_failure(result) and result["findings"] else None
    if reveal == "verdict" or (reveal == "first-failure" and result is not first):
        finding, output = None, ""
    else:
        output = _finding(finding) if finding else _markdown(result["reason"])
    todos = finding["todos"] if finding else ()
    code = {"code": finding["code"], "finding": finding["name"]} if finding else {}
    return {"name": clean(result["name"]), "visibility": visibility,
            **({"output": output, "output_format": "md"} if output else {}),
            "tags": [result["kind"], *(f"TODO {todo}" for todo in todos)],
            "extra_data": code}


def _seen_when(result: Mapping[str, Any], public: Collection[str], visibility: str) -> str:
    """A file that cannot be run is refused before any hidden case."""
    refused = any(finding["code"].startswith("P") for finding in result["findings"])
    return "visible" if refused or result["name"] in public else visibility


def _output(report: Mapping[str, Any], module_id: str) -> str:
    verdict = f"**{report['verdict']}** {_markdown(module_id)}"
    skipped = [f"Skipped: {_markdown(result['name'])}: {_markdown(result['reason'])}"
               for result in report["results"]
               if result["verdict"] in (Verdict.SKIPPED, Verdict.INCONCLUSIVE)
               and not result["advisory"]]
    printed = clean(report["output"], _MOST_OUTPUT_CHARS).strip("\n")
    reason = _markdown(undecided(report))
    parts = (
        verdict, reason and f"The grader could not go on: {reason}",
        "The grade is not conclusive; grade once more."
        if report["verdict"] == Verdict.INCONCLUSIVE else "",
        *skipped, _markdown(weak_isolation(report["isolation"])),
        printed and f"Printed by your code:\n\n{_fenced(printed)}")
    return "\n\n".join(filter(None, parts))


def _finding(finding: Mapping[str, Any]) -> str:
    """Returns the parts of a finding, with the code that they quote below them."""
    parts = []
    for label, text in parts_of(finding):
        sentence, _, code = clean(text).partition("\n")
        parts.append(f"**{label}:** {_markdown(sentence)}")
        if code:
            parts.append(_fenced(code))
    return "\n\n".join(parts)


def _fenced(text: str) -> str:
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}\n{text}\n{fence}"


def _markdown(text: str) -> str:
    """Escapes what Markdown or HTML would interpret, but for code in backticks."""
    parts = re.split(r"(`[^`\n]+`)", clean(text))
    parts[::2] = [re.sub(r"([\\`*_\[\]<>#~|&])", r"\\\1", part) for part in parts[::2]]
    return "".join(parts)


def _leaderboard(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns times that a clock measured, of a kernel that is right."""
    if report["verdict"] != Verdict.PASSED:
        return []
    return [{"name": f"{clean(result['name'])} (ms)", "value": round(result["measured"]["ms"], 6),
             "order": "asc"} for result in report["results"] if result["measured"]]
