"""`watch` on a terminal: each save a short paragraph below the last, and one line that changes.

Nothing that was printed is ever cleared. A learner compares a failure with the one before it and
scrolls back to a hint; a screen that is wiped at every save, or an alternate one that is gone at
the end, takes that away, and a screen reader would read all of it anew. So only the last line,
which says what is going on and which keys there are, is written over.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from grader.report import CaseResult, Report, Verdict
from tritonlab.course import Module
from tritonlab.errors import brief
from tritonlab.grading import Submission
from tritonlab.journal import Reading
from tritonlab.render.report import (
    diagnosis,
    show_check,
    show_failure,
    show_output,
    show_parts,
    show_summary,
)
from tritonlab.render.screen import Screen, clean, word
from tritonlab.watch_view import Key

_MOST_NAMED = 5  # of the checks that failed besides the first
STILL_RUNNING = "FAILED, still running the other cases"
_HINT = re.compile(r"`tritonlab hint [^`]*`")
_GRADE_AGAIN = re.compile("run `tritonlab grade` again")
# The cursor rests before the last line, where a terminal that wraps lines anew keeps it: so all
# rows that a narrower window makes of that line are below it, and nothing else is.
_CLEAR = "\r\x1b[J"


class Watched:
    """Prints what `watch` has to tell. ``make_screen`` is asked again when the window changes."""

    def __init__(self, make_screen: Callable[[], Screen]) -> None:
        self._make_screen = make_screen
        self._screen = make_screen()
        self._status: Sequence[str] = ()  # parts of the last line, unless a question is open
        self._question = ""
        self._keys = False
        self._new = True  # this exercise was not graded yet

    def watching(self, submission: Submission, keys: Sequence[Key]) -> None:
        module = submission.module
        self._keys, self._new = bool(keys), True
        self._clear()
        self._screen.line((module.id, "strong"), "  ", (module.title, "dim"))
        self._screen.line(f"Every save of {submission.to_edit} is graded, until you press "
                          f"{'q or ' if keys else ''}Ctrl-C.")
        if not keys:
            self._screen.line("Keys are off: there is no terminal to read them from.")
        self.resting(keys)

    def keys(self, keys: Iterable[Key]) -> None:
        self._clear()
        for key in keys:
            self._screen.line(key.does, lead=("" if self._screen.plain else "  ",
                                              (key.key, "command"), "  "))
        self._show()

    def resting(self, keys: Iterable[Key]) -> None:
        """Nothing is going on: the last line names the keys."""
        self._put(*(f"{key.key} {key.name}" for key in keys))

    def began(self, number: int, at: str) -> None:
        self._clear()
        self._screen.blank()
        self._screen.line((f"{at}  ", "dim"), "As it is now" if self._new else "Saved")
        self._new = False
        self._put("grading …")

    def progress(self, right: int, what: str, failed: bool) -> None:
        """How many checks are right so far, and what is judged now."""
        head = STILL_RUNNING if failed else "grading"
        self._put(f"{head} · {right} right so far · {what} …")

    def failing(self, module: Module, failure: CaseResult, reading: Reading) -> None:
        """The first failure, while other cases are judged still."""
        self._clear()
        show_failure(self._screen, module, failure, reading, self._as_typed)
        if not self._screen.live:
            self._screen.line(f"{STILL_RUNNING}.")
        self._show()

    def graded(self, module: Module, report: Report, reading: Reading, known: CaseResult | None,
               complaint: str, onward: str) -> None:
        """The verdict.

        Args:
            module: that was graded.
            report: of the grade.
            reading: of the journal, which knows what hints were shown.
            known: the failure that ``failing`` has shown.
            complaint: why it is not on record.
            onward: what to do next.
        """
        self._clear()
        screen, failure = self._screen, report.first_failure
        if failure is not None:
            self._last_word(module, failure, reading, known)
            _others(screen, report, failure)
        show_output(screen, report.output)
        for result in report.results if failure is None else ():
            if result.verdict is not Verdict.PASSED:  # what is left open, and notes
                show_check(screen, result, "" if screen.plain else "  ")
        if report.reason:
            screen.line(f"The grader could not go on: {brief(report.reason)}",
                        lead=(word("ERROR"), " "))
        if report.verdict is Verdict.ERROR:
            screen.line("This is about the grader, not about your kernel.")
        show_summary(screen, report)
        if complaint:
            screen.line((complaint, "skip"))
        screen.line(onward)
        self._show()

    def notice(self, text: str) -> None:
        """A sentence about something that happened."""
        self._clear()
        self._screen.line(text)
        self._show()

    def asks(self, question: str) -> None:
        """The last line asks until the next key answers, whatever goes on meanwhile."""
        self._question = clean(f"  {question} y or n")
        if not self._screen.live:
            self._screen.line(self._question)
        elif len(self._question) >= self._screen.full_width:  # a question is never cut
            self._clear()
            self._screen.line(question)
            self._question = "  y or n"
        self._show()

    def answered(self) -> None:
        self._question = ""
        self._show()

    def show(self, page: Callable[[Screen], None]) -> None:
        """Something that another verb prints too."""
        self._clear()
        self._screen.blank()
        page(self._screen)
        self._show()

    def make_room(self) -> None:
        """Another program is about to print, or the shell."""
        self._clear()

    def resized(self) -> None:
        """The window has another width, or the terminal was away: show the last line again."""
        self._screen = self._make_screen()
        self._show()

    def ended(self, code: int) -> None:
        self._clear()

    def _last_word(self, module: Module, failure: CaseResult, reading: Reading,
                   known: CaseResult | None) -> None:
        """The first failure, or what else can be said of one that was shown."""
        screen = self._screen
        if known is None or not (known.findings and failure.findings) \
                or known.findings[0].code != failure.findings[0].code:
            show_failure(screen, module, failure, reading, self._as_typed)
            return
        before = [*diagnosis(module, known.findings[0], reading)]
        more = [part for part in diagnosis(module, failure.findings[0], reading)
                if part not in before]
        if more:
            screen.blank()
            what = "more can be said" if known.name == failure.name else \
                f"the first that fails so is another, {failure.name}"
            screen.line((f"With all cases known, {what}:", "dim"))
            show_parts(screen, more, self._as_typed)

    def _as_typed(self, step: str) -> str:
        """A next step as it is taken here: by a key or a save instead of a command."""
        step = _GRADE_AGAIN.sub("save", step)
        if not self._keys:
            return step
        return _HINT.sub(lambda found: "Key h" if found.start() == 0 or
                         step[:found.start()].endswith(". ") else "key h", step)

    def _put(self, *parts: str) -> None:
        self._status = [clean(part) for part in parts]
        self._show()

    def _show(self) -> None:
        if self._screen.live:
            room = self._screen.full_width - 1
            text = self._question or _fitting(self._status, room)
            self._screen.stream.write(_CLEAR + (text if len(text) <= room else
                                                text[: room - 1] + "…") + "\r")
            self._screen.stream.flush()

    def _clear(self) -> None:
        if self._screen.live:
            self._screen.stream.write(_CLEAR)
            self._screen.stream.flush()


def _fitting(parts: Sequence[str], room: int) -> str:
    """The parts on one line; where they are too many, those before the last two are left out."""
    many = len(parts)
    lines = (" · ".join([*parts[:first], *parts[-2:]] if first < many else parts)
             for first in (many, *range(many - 3, -1, -1)))
    fits = [f"  {line}" for line in lines if line]
    return next((line for line in fits if len(line) <= room), fits[-1] if fits else "")


def _others(screen: Screen, report: Report, failure: CaseResult) -> None:
    """The names of the other checks that failed."""
    names = [r.name for r in report.deciding if r.verdict is Verdict.FAILED and r is not failure]
    left = len(names) - _MOST_NAMED
    if left > 1:
        names[_MOST_NAMED:] = [f"and {left} others"]
    if names:
        indent = "" if screen.plain else "  "
        screen.line((" · ".join(names), "dim"), lead=(f"{indent}Failed too: ",))
