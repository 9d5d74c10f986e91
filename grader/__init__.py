"""Grades Triton kernels: records host code, executes its launches, judges the results.

The public door: `grade`, `Suite`, `Case`, `Report`, `Verdict`. Never imports `tritonlab`.
"""

from __future__ import annotations

from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from grader.report import CaseResult, Finding, Kind, Report, Verdict

if TYPE_CHECKING:
    from grader.judge.grade import grade
    from grader.processes.sandbox import GradingSandbox as Sandbox
    from grader.sandbox import Cancelled
    from grader.submission.source import UnreadableSubmission
    from grader.suite import Suite
    from grader.suite import load as load_suite
    from grader.suite.case_selection import UnknownCase

__all__ = [
    "Cancelled", "CaseResult", "Finding", "Kind", "Report", "Sandbox", "Suite", "UnknownCase",
    "UnreadableSubmission", "Verdict", "grade", "load_suite"]

_LAZY = {  # the judge loads torch, and a course is listed without it
    "grade": "grader.judge.grade:grade",
    "load_suite": "grader.suite.spec:load",
    "Cancelled": "grader.sandbox:Cancelled",
    "Sandbox": "grader.processes.sandbox:GradingSandbox",
    "Suite": "grader.suite.spec:Suite",
    "UnknownCase": "grader.suite.case_selection:UnknownCase",
    "UnreadableSubmission": "grader.submission.source:UnreadableSubmission",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return resolve_name(_LAZY[name])
