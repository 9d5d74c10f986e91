"""The comment on a student's assignment, as far as ``reveal`` allows."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from grader.report import Verdict
from grader.text import plural
from tritonlab.classroom.book import ModuleScore, State
from tritonlab.classroom.export.student_points import StudentPoints
from tritonlab.grading.points import number

SIGNATURE = "tritonlab: "
_MOST_CHARS = 4_000
Results = Callable[[str], Mapping[str, Any] | None]


def comment(one: StudentPoints, reveal: str, result_of: Results) -> str:
    """Returns points, verdicts and the failures that may be shown, a line each.

    Args:
        reveal: ``verdict``, ``first-failure`` or ``all``.
        result_of: returns the stored result of a key, as ``Store.result``.
    """
    score = one.score
    if one.points is None:
        return f"{SIGNATURE}excused."
    lines = [f"{SIGNATURE}{number(one.points)} of {number(score.out_of)} points."]
    if score.by_hand:
        lines.append("The instructor set these points.")
    if score.state is State.MISSING:
        lines.append("Nothing was handed in.")
    else:
        for module in score.modules:
            lines += _of_module(module, reveal, result_of)
    text = "\n".join(lines)
    return text if len(text) <= _MOST_CHARS else f"{text[:_MOST_CHARS - 1]}…"


def _of_module(module: ModuleScore, reveal: str, result_of: Results) -> Iterator[str]:
    graded = module.graded
    if graded is None or module.handed is None:
        yield f"{module.module}: {module.state}."
        return
    yield f"{module.module}: {graded.verdict}, {number(module.points)} of " \
          f"{number(module.out_of)} points."
    if module.days:
        days = plural(module.days, "day")
        yield f"Handed in {days} late: {number(module.raw - module.points)} points deducted."
    result = None if reveal == "verdict" else result_of(graded.key)
    if result is not None:
        yield from _failures(result["report"], reveal)


def _failures(report: Mapping[str, Any], reveal: str) -> Iterator[str]:
    failures = [one for one in report["results"]
                if one["verdict"] == Verdict.FAILED and not one["advisory"]]
    for failure in failures if reveal == "all" else failures[:1]:
        yield f"{failure['name']}:"
        for finding in failure["findings"][:1]:
            line = f"Line {finding['line']}: " if finding["line"] else ""
            yield line + " ".join(filter(None, (
                finding[part] for part in ("seen", "means", "next_step"))))
