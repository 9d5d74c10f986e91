"""What `watch` tells, for whoever shows it; and the way in which programs read it: JSON lines."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from grader.report import CaseResult, Report
from tritonlab.course import Module
from tritonlab.grading import Submission
from tritonlab.journal import Reading

if TYPE_CHECKING:
    from tritonlab.render.screen import Screen

SCHEMA = 1


@dataclass(frozen=True)
class Key:
    """A key, its name, and what it does, in a sentence."""

    key: str
    name: str
    does: str


class View(Protocol):
    """All that `watch` tells; ``tritonlab.render.watch.Watched`` says what each means."""

    def watching(self, submission: Submission, keys: Sequence[Key]) -> None: ...
    def keys(self, keys: Iterable[Key]) -> None: ...
    def resting(self, keys: Iterable[Key]) -> None: ...
    def began(self, number: int, at: str) -> None: ...
    def progress(self, right: int, what: str, failed: bool) -> None: ...
    def failing(self, module: Module, failure: CaseResult, reading: Reading) -> None: ...
    def graded(self, module: Module, report: Report, reading: Reading, known: CaseResult | None,
               complaint: str, onward: str) -> None: ...
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

    def watching(self, submission: Submission, keys: Sequence[Key]) -> None:
        self._tell("watching", module=submission.module.id, kernel=str(submission.kernel))

    def began(self, number: int, at: str) -> None:
        self._tell("began", grade=number, at=at)

    def progress(self, right: int, what: str, failed: bool) -> None:
        self._tell("progress", right=right, judging=what, failed=failed)

    def failing(self, module: Module, failure: CaseResult, reading: Reading) -> None:
        from dataclasses import asdict

        self._tell("failing", module=module.id, failure=asdict(failure))

    def graded(self, module: Module, report: Report, reading: Reading, known: CaseResult | None,
               complaint: str, onward: str) -> None:
        self._tell("graded", module=module.id, report=report.to_dict(), not_saved=complaint,
                   next=onward)

    def notice(self, text: str) -> None:
        self._tell("notice", text=text)

    def ended(self, code: int) -> None:
        self._tell("ended", exit_code=code)

    # There are no keys, and no last line to write over.

    def keys(self, keys: Iterable[Key]) -> None: ...
    def resting(self, keys: Iterable[Key]) -> None: ...
    def asks(self, question: str) -> None: ...
    def answered(self) -> None: ...
    def show(self, page: Callable[[Screen], None]) -> None: ...
    def make_room(self) -> None: ...
    def resized(self) -> None: ...

    def _tell(self, event: str, **fields: Any) -> None:
        self._write(json.dumps({"schema": SCHEMA, "event": event, **fields}) + "\n")
