"""The events of `watch` as JSON lines, or on a terminal: a paragraph a save, and a status line.

On a terminal nothing that was printed is ever cleared. A learner compares a failure with the one
before it and scrolls back to a hint; a screen that is wiped at every save, or an alternate one that
is gone at the end, takes that away, and a screen reader would read all of it anew. So only the last
line, with what is going on and the keys, is written over.
"""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from grader.report import CaseResult, Report
from tritonlab.course.course import Module
from tritonlab.progress.journal import JournalReading
from tritonlab.render import report as reports
from tritonlab.render.screen import Screen, clean, cropped
from tritonlab.workspace.submission import Submission

STILL_RUNNING = "FAILED, still running the other cases"
_HINT = re.compile(r"`tritonlab hint [^`]*`")
_KEYS = (("b", reports.BENCH_SHOWS), ("s", reports.SOLUTION_SHOWS))
_GRADE_AGAIN = re.compile("run `tritonlab grade` again")
# The cursor rests before the last line, where a terminal that wraps lines anew keeps it: so all
# rows that a narrower window makes of that line are below it, and nothing else is.
_CLEAR = "\r\x1b[J"


@dataclass(frozen=True)
class Action:
    """A key, its name, a sentence about its effect, and the function that acts on a `Watch`."""

    key: str
    name: str
    does: str
    act: Callable[[Any], None]


class Lines:
    """Prints one JSON object a line. Each has ``schema`` and ``event``, and further fields::

        watching   module, kernel
        began      grade (from 1), at (hours, minutes, seconds)
        progress   right (checks so far), judging (the case that begins), failed
        failing    module, failure (a result as in a report)
        graded     module, report (as of `tritonlab grade --json`), not_saved, next
        notice     text
        ended      exit_code

    A grade that a newer save cancels has no ``graded``.
    """

    def watching(self, submission: Submission, keys: Sequence[Action]) -> None:
        self._put("watching", module=submission.module.id, kernel=str(submission.kernel))

    def began(self, number: int, at: str) -> None:
        self._put("began", grade=number, at=at)

    def progress(self, right: int, case: str, failed: bool) -> None:
        self._put("progress", right=right, judging=case, failed=failed)

    def failing(self, module: Module, failure: CaseResult, reading: JournalReading) -> None:
        self._put("failing", module=module.id, failure=failure.to_dict())

    def graded(self, module: Module, report: Report, reading: JournalReading,
               earlier: CaseResult | None, complaint: str, onward: str) -> None:
        self._put("graded", module=module.id, report=report.to_dict(), not_saved=complaint,
                  next=onward)

    def notice(self, text: str) -> None:
        self._put("notice", text=text)

    def ended(self, code: int) -> None:
        self._put("ended", exit_code=code)

    def keys(self, *_: object) -> None:
        """Prints nothing: JSON has neither keys nor a status line."""

    resting = asks = answered = show = make_room = resized = keys

    def _put(self, event: str, **fields: Any) -> None:
        print(json.dumps({"schema": 1, "event": event, **fields}), flush=True)


class Watched:
    """Prints the events of `watch`; a resized window gets a new screen."""

    def __init__(self, make_screen: Callable[[], Screen]) -> None:
        self._make_screen = make_screen
        self._screen = make_screen()
        self._status: Sequence[str] = ()  # parts of the last line, unless a question is open
        self._question = ""
        self._keys = False
        self._new = True  # this exercise was not graded yet

    def watching(self, submission: Submission, keys: Sequence[Action]) -> None:
        module = submission.module
        self._keys, self._new = bool(keys), True
        self.make_room()
        self._screen.line((module.id, "strong"), "  ", (module.title, "dim"))
        self._screen.line(f"Every save of {submission.to_edit} is graded, until you press "
                          f"{'q or ' if keys else ''}Ctrl-C.")
        if not keys:
            self._screen.line("Keys are off: there is no terminal to read them from.")
        self.resting(keys)

    def keys(self, keys: Iterable[Action]) -> None:
        self.make_room()
        for key in keys:
            self._screen.line(key.does, lead=("  ", (key.key, "command"), "  "))
        self._show()

    def resting(self, keys: Iterable[Action]) -> None:
        """Shows the keys in the status line."""
        self._put(*(f"{key.key} {key.name}" for key in keys))

    def began(self, number: int, at: str) -> None:
        self.make_room()
        self._screen.blank()
        self._screen.line((f"{at}  ", "dim"), "As it is now" if self._new else "Saved")
        self._new = False
        self._put("grading …")

    def progress(self, right: int, case: str, failed: bool) -> None:
        """Shows the number of passed checks and the current case."""
        head = STILL_RUNNING if failed else "grading"
        self._put(f"{head} · {right} right so far · {case} …")

    def failing(self, module: Module, failure: CaseResult, reading: JournalReading) -> None:
        """Prints the first failure while other cases still run."""
        self.make_room()
        reports.show_failure(self._screen, module, failure, reading, self._as_typed)
        if not self._screen.live:
            self._screen.line(f"{STILL_RUNNING}.")
        self._show()

    def graded(self, module: Module, report: Report, reading: JournalReading,
               earlier: CaseResult | None, complaint: str, onward: str) -> None:
        """Prints the verdict.

        ``earlier`` is the failure that ``failing`` has shown; ``complaint``: why the grade is not
        on record; ``onward``: what to do next.
        """
        self.make_room()
        screen = self._screen
        more = _KEYS if self._keys else ()
        reports.show_outcome(screen, module, report, reading, self._as_typed, earlier=earlier,
                             more=more)
        if complaint:
            screen.line((complaint, "skip"))
        screen.line(onward)
        self._show()

    def notice(self, text: str) -> None:
        """Prints a sentence about an event."""
        self.make_room()
        self._screen.line(text)
        self._show()

    def asks(self, question: str) -> None:
        """Asks in the status line until a key answers."""
        self._question = clean(f"  {question} y or n")
        if not self._screen.live:
            self._screen.line(self._question)
        elif len(self._question) >= self._screen.full_width:  # a question is never cut
            self.make_room()
            self._screen.line(question)
            self._question = "  y or n"
        self._show()

    def answered(self) -> None:
        self._question = ""
        self._show()

    def show(self, page: Callable[[Screen], None]) -> None:
        """Prints a view of another verb."""
        self.make_room()
        self._screen.blank()
        page(self._screen)
        self._show()

    def make_room(self) -> None:
        """Erases the status line before another program prints."""
        self._screen.status(_CLEAR)

    def resized(self) -> None:
        """Redraws the status line at the new width."""
        self._screen = self._make_screen()
        self._show()

    def ended(self, code: int) -> None:
        self.make_room()

    def _as_typed(self, step: str) -> str:
        """Rewrites a next step for keys and saves."""
        step = _GRADE_AGAIN.sub("save", step)
        if not self._keys:
            return step
        return _HINT.sub(lambda match: "Key h" if match.start() == 0 or
                         step[:match.start()].endswith(". ") else "key h", step)

    def _put(self, *parts: str) -> None:
        self._status = [clean(part) for part in parts]
        self._show()

    def _show(self) -> None:
        room = self._screen.full_width - 1
        text = self._question or _fitting(self._status, room)
        self._screen.status(_CLEAR + cropped(text, room) + "\r")


WatchView = Watched | Lines


def _fitting(parts: Sequence[str], room: int) -> str:
    """Joins parts on one line; if too long, parts before the last two are left out."""
    many = len(parts)
    lines = (" · ".join([*parts[:first], *parts[-2:]] if first < many else parts)
             for first in (many, *range(many - 3, -1, -1)))
    fits = [f"  {line}" for line in lines if line]
    return next((line for line in fits if len(line) <= room), fits[-1] if fits else "")
