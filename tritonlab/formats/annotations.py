"""Annotations of a grade: what to show at which line of the learner's file."""

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from grader.report import WEAK_ISOLATION, Verdict

MOST_CHARS = 4_000  # of one text; GitHub cuts longer annotations, and editors show one line
_MOST_NAME_CHARS = 200
# Characters that XML 1.0 cannot hold, surrogates of file names that are not UTF-8 included; the
# control characters among them would also act on a terminal.
_UNSAFE = re.compile(r"[^\t\n\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class Annotation:
    """One remark about a submission.

    ``level`` is ``error``, ``warning`` or ``note``. ``check`` names the check that failed. ``code``
    and ``name`` are those of the finding, ``summary`` is one line of it and ``text`` all of it.
    ``line`` counts from 1 and is 0 if none is known; ``file`` is empty if the remark is not about
    the submission.
    """

    level: str
    summary: str
    text: str
    check: str = ""
    code: str = ""
    name: str = ""
    file: str = ""
    line: int = 0
    function: str = ""
    todos: tuple[int, ...] = ()


def clean(text: str, most: int = MOST_CHARS) -> str:
    """Returns a text of at most ``most`` characters that every format can hold."""
    text = _UNSAFE.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n").replace("\r", "\n"))
    return text if len(text) <= most else f"{text[:most - 1]}…"


def one_line(text: str, most: int = MOST_CHARS) -> str:
    """Returns the first line of a text, which code that it quotes may follow."""
    return clean(text.strip().partition("\n")[0], most).replace("\t", " ").strip()


def is_failure(result: Mapping[str, Any]) -> bool:
    """Whether a result fails the grade."""
    return result["verdict"] == Verdict.FAILED and not result["advisory"]


def first_failure(report: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Returns the result that a report shows first."""
    return next(filter(is_failure, report["results"]), None)


def weak_isolation(isolation: str) -> str:
    """Returns a sentence about the machine's sandbox if it lacks a measure, else nothing.

    Args:
        isolation: what a report says of it, such as ``tier 1: seccomp; without landlock``.
    """
    if not isolation.startswith(WEAK_ISOLATION):
        return ""
    return (f"The sandbox of this machine reaches {isolation.replace(':', ' of 2:', 1)}. "
            "Grade only code that you trust here; `tritonlab doctor` names what would close it.")


def undecided(report: Mapping[str, Any]) -> str:
    """Returns why a grade decides nothing about the submission; empty if it does.

    A grader that broke, and checks that this machine skipped, are no fault of the submission.
    """
    if report["verdict"] not in (Verdict.ERROR, Verdict.SKIPPED):
        return ""
    reasons = (report["reason"], *(result["reason"] for result in report["results"]))
    return one_line(next(filter(None, reasons), "nothing could be run"))


def parts_of(finding: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Returns what a report shows of a finding, each part with its label."""
    labels = {"seen": "Seen", "means": "Likely", "where": "Where", "next_step": "Hint"}
    return [(label, finding[key]) for key, label in labels.items() if finding[key]]


def described(finding: Mapping[str, Any]) -> str:
    """Returns what a report shows of a finding, a paragraph for each part."""
    return clean("\n".join(f"{label}: {text}" for label, text in parts_of(finding)))


def annotations(report: Mapping[str, Any], file: str) -> list[Annotation]:
    """Returns the remarks of a report, the first failure first.

    Checks that fail alike share one annotation.

    Args:
        report: from ``grader.report.Report.to_dict``.
        file: the path of ``kernel.py``, with slashes.
    """
    folder = posixpath.dirname(file)
    unique: dict[tuple[object, ...], Annotation] = {}
    for level, result in _worth_a_remark(report):
        check = one_line(result["name"], _MOST_NAME_CHARS)
        if not result["findings"]:
            text = clean(result["reason"] or "failed")
            unique.setdefault((level, text), Annotation(
                level, one_line(text), text, check, file=file))
            continue
        finding = result["findings"][0]
        todos = tuple(finding["todos"])
        summary = " ".join(filter(None, map(one_line, (finding["seen"], finding["means"]))))
        name = finding.get("file") or posixpath.basename(file)
        key = (level, finding["code"], finding["function"], finding["means"], todos)
        unique.setdefault(key, Annotation(
            level, clean(summary), described(finding), check, finding["code"], finding["name"],
            posixpath.join(folder, name),
            finding["line"] or 0, finding["function"], todos))
    remarks = list(unique.values())
    if reason := undecided(report):
        remarks.append(_of_tool("error", f"The grader could not go on: {reason}"))
    elif report["verdict"] == Verdict.INCONCLUSIVE:
        remarks.append(_of_tool("warning", "The grade is not conclusive; grade once more."))
    if weak := weak_isolation(report["isolation"]):
        remarks.append(_of_tool("warning", weak))
    return remarks


def _worth_a_remark(report: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for result in report["results"]:
        if result["verdict"] == Verdict.FAILED:
            yield "note" if result["advisory"] else "error", result


def _of_tool(level: str, sentence: str) -> Annotation:
    return Annotation(level, clean(sentence), clean(sentence))
