"""The view of `watch` as a protocol, and its form for programs: JSON lines."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from grader.report import CaseResult, Report
from tritonlab.course.course import Module
from tritonlab.progress.journal import JournalReading
from tritonlab.render.screen import Screen
from tritonlab.render.watch import KeyBinding
from tritonlab.workspace.submission import Submission

SCHEMA = 1


class WatchView(Protocol):
    """The events that `watch` shows; ``tritonlab.render.watch.Watched`` documents each."""

    def watching(self, submission: Submission, keys: Sequence[KeyBinding]) -> None: ...
    def keys(self, keys: Iterable[KeyBinding]) -> None: ...
    def resting(self, keys: Iterable[KeyBinding]) -> None: ...
    def began(self, number: int, at: str) -> None: ...
    def progress(self, right: int, what: str, failed: bool) -> None: ...
    def failing(self, module: Module, failure: CaseResult, reading: JournalReading) -> None: ...
    def graded(self, module: Module, report: Report, reading: JournalReading,
               known: CaseResult | None, complaint: str, onward: str) -> None: ...
    def notice(self, text: str) -> None: ...
    def asks(self, question: str) -> None: ...
    def answered(self) -> None: ...
    def show(self, page: Callable[[Screen], None]) -> None: ...
    def make_room(self) -> None: ...
    def resized(self) -> None: ...
    def ended(self, code: int) -> None: ...


class Lines:
    """One JSON object a line. Each has ``schema`` and ``event``, and further fields::

        watching   module, kernel
        began      grade (from 1), at (hours, minutes, seconds)
        progress   right (checks so far), judging (the case that begins), failed
        failing    module, failure (a result as in a report)
        graded     module, report (as of `tritonlab grade --json`), not_saved, next
        notice     text
        ended      exit_code

    A grade that a newer save cancels has no ``graded``.
    """

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write

    def watching(self, submission: Submission, keys: Sequence[KeyBinding]) -> None:
        self._tell("watching", module=submission.module.id, kernel=str(submission.kernel))

    def began(self, number: int, at: str) -> None:
        self._tell("began", grade=number, at=at)

    def progress(self, right: int, what: str, failed: bool) -> None:
        self._tell("progress", right=right, judging=what, failed=failed)

    def failing(self, module: Module, failure: CaseResult, reading: JournalReading) -> None:
        self._tell("failing", module=module.id, failure=failure.to_dict())

    def graded(self, module: Module, report: Report, reading: JournalReading,
               known: CaseResult | None, complaint: str, onward: str) -> None:
        self._tell("graded", module=module.id, report=report.to_dict(), not_saved=complaint,
                   next=onward)

    def notice(self, text: str) -> None:
        self._tell("notice", text=text)

    def ended(self, code: int) -> None:
        self._tell("ended", exit_code=code)

    # JSON has neither keys nor a status line.

    def keys(self, keys: Iterable[KeyBinding]) -> None: ...
    def resting(self, keys: Iterable[KeyBinding]) -> None: ...
    def asks(self, question: str) -> None: ...
    def answered(self) -> None: ...
    def show(self, page: Callable[[Screen], None]) -> None: ...
    def make_room(self) -> None: ...
    def resized(self) -> None: ...

    def _tell(self, event: str, **fields: Any) -> None:
        self._write(json.dumps({"schema": SCHEMA, "event": event, **fields}) + "\n")
