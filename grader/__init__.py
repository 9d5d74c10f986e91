"""Decides whether a kernel is right; knows nothing of tracks, workspaces or terminals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grader.report import CaseResult, Finding, Kind, Report, Verdict

if TYPE_CHECKING:
    from grader.judge import grade
    from grader.sandbox import Cancelled, Sandbox
    from grader.selection import UnknownCase
    from grader.source import UnreadableSubmission
    from grader.suite import Suite
    from grader.suite import load as load_suite

__all__ = [
    "Cancelled",
    "CaseResult",
    "Finding",
    "Kind",
    "Report",
    "Sandbox",
    "Suite",
    "UnknownCase",
    "UnreadableSubmission",
    "Verdict",
    "grade",
    "load_suite",
]

_LAZY = {  # name -> (module, attribute): the judge loads torch, and a course is listed without it
    "grade": ("grader.judge", "grade"),
    "load_suite": ("grader.suite", "load"),
    "Cancelled": ("grader.sandbox", "Cancelled"),
    "Sandbox": ("grader.sandbox", "Sandbox"),
    "Suite": ("grader.suite", "Suite"),
    "UnknownCase": ("grader.selection", "UnknownCase"),
    "UnreadableSubmission": ("grader.source", "UnreadableSubmission"),
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module, attribute = _LAZY[name]
    return getattr(import_module(module), attribute)
