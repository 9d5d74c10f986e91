"""Watch: grade an exercise at every save, and answer keys meanwhile.

Everything happens in one thread, one event at a time: saves, what the grader tells, keys, signals.
Two other threads only put events into its inbox: one looks at the files, one grades. A newer save
cancels the grade of the one before, so that what is shown is about what the files hold now.
"""

from __future__ import annotations

import contextlib
import math
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from grader.report import CaseResult, Report, Verdict
from tritonlab import certificate, errors, grading, regrade, sole
from tritonlab.course import Course, Module
from tritonlab.errors import TritonlabError
from tritonlab.grading import Submission
from tritonlab.journal import Reading
from tritonlab.regrade import (
    AS_GRADE,
    Broke,
    Graded,
    Job,
    Notice,
    Options,
    Progressed,
    Regrader,
    Told,
)
from tritonlab.saves import Content, Saves
from tritonlab.terminal import Attention, Inbox, Keyboard, Signals, Typed
from tritonlab.watch_view import Key, View

PATIENCE_S = 0.05  # for the other cases, which may explain a failure better, before it is shown
REDRAW_S = 0.02  # between two looks at how far a grade is
IN_FRONT_S = 1.0  # between looks whether the terminal is ours again

Act = Callable[["Watch"], None]


@dataclass(frozen=True)
class Action(Key):
    """A key with what it makes `watch` do."""

    act: Act


@dataclass(frozen=True)
class Saved:
    """New content of the files of a submission."""

    submission: Submission
    content: Content


@dataclass
class Grade:
    """What is known of a grade that is running."""

    job: Job
    judging: str = ""
    results: list[CaseResult] = field(default_factory=list)
    failed: bool = False
    due: float = 0.0  # when the failure is shown, whether all cases are known or not
    shown: CaseResult | None = None
    drawn: float = 0.0  # when its progress was
    fresh: bool = False  # there is progress that was not drawn

    @property
    def right(self) -> int:
        return sum(r.verdict is Verdict.PASSED and not r.advisory for r in self.results)


class Watch:
    """One session: an exercise, its grades, and the keys that were pressed."""

    def __init__(self, course: Course, submission: Submission, view: View, *,
                 actions: Sequence[Action] = (), options: Options = AS_GRADE,
                 keyboard: Keyboard | None = None, poll: bool = False,
                 clock: Callable[[], float] = time.monotonic) -> None:
        self.course = course
        self.submission = submission
        self.view = view
        self.report: Report | None = None  # the last verdict on this exercise
        self._options = options
        self._poll = poll
        self._clock = clock
        self._code = 0
        self._grade: Grade | None = None
        self._question: Act | None = None
        self._over = False
        self._saves: Saves | None = None
        self._held = contextlib.ExitStack()  # the exercise
        self.inbox = Inbox()
        self._keyboard = keyboard or Keyboard()
        self.actions = tuple(actions) if self._keyboard.there else ()
        self._regrader = Regrader(course, self._hear, options)
        self._signals = Signals(self.inbox, self._release)

    @property
    def module(self) -> Module:
        return self.submission.module

    @property
    def failure(self) -> CaseResult | None:
        """What failed first, as far as it was shown."""
        if self._grade and self._grade.shown:
            return self._grade.shown
        return self.report.first_failure if self.report else None

    def run(self) -> int:
        """Until it is ended: the exit code of the last verdict, 0 where there was none.

        Raises:
            TritonlabError: another process watches this exercise.
        """
        try:
            self._held = sole.hold(self.submission)
            with (self._held, self._regrader, self._keyboard, self._signals,
                  Attention(self.inbox, self._keyboard) as self._attention):
                self.view.resized()  # from here on it is told
                self._begin()
                try:
                    while not self._over and self._attention.wait(self._patience()):
                        for event in self.inbox.take():
                            self._handle(event)
                        self._be_punctual()
                finally:
                    self._stop_looking()
                    self._wind_up()
                    self.view.ended(self._code)
        finally:
            self.inbox.close()
        return self._code

    # ---------------------------------------------------------------------------------------------
    # What keys do

    def quit(self) -> None:
        self._over = True

    def ask(self, question: str, act: Act) -> None:
        """Do something if the next key is y."""
        self._question = act
        self.view.asks(question)

    def tell(self, sentence: str) -> None:
        """Say something; nothing, where it is empty."""
        if sentence:
            self.view.notice(sentence)
            if self._grade is None:
                self.view.resting(self.actions)

    def turn_to(self, submission: Submission, held: contextlib.ExitStack) -> None:
        """Watch another exercise from now on, which is ``held`` as ``tritonlab.sole`` does."""
        self._held.close()
        self._held.push(held)
        self._stop_looking()
        self._regrader.cancel()
        self._grade = None
        self.submission, self.report = submission, None
        self._begin()

    def run_aside(self, command: Sequence[str], *, reads: bool) -> int | None:
        """Let a program print; saves are graded meanwhile, and shown afterwards.

        Args:
            command: what is run.
            reads: it gets the keyboard too; else q ends it, and other keys are answered afterwards.

        Returns its exit code, None where it cannot be started.
        """
        self.view.make_room()
        run = self._attention.give if reads else self._attention.lend
        code = run(command, self._is_to_end)
        self._is_to_end()  # a Ctrl-C that has ended the program is answered
        self._signals.heard()
        self.view.resized()
        return code

    # ---------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        self.view.watching(self.submission, self.actions)
        submission = self.submission
        self._saves = Saves(submission, lambda content: self.inbox.put(Saved(submission, content)),
                            poll=self._poll)
        self._saves.__enter__()

    def _stop_looking(self) -> None:
        if self._saves is not None:
            self._saves.__exit__()
            self._saves = None

    def _wind_up(self) -> None:
        """Say what became of a grade that was running, once that is certain."""
        if self._grade is None:
            return
        self._regrader.close()
        for event in self.inbox.take():
            if isinstance(event, Graded):  # it was on its way to the record
                self._handle(event)
        if self._grade is not None:
            self.view.notice("The grade that was running was ended; nothing of it is recorded.")

    def _patience(self) -> float | None:
        """How long the next event may be waited for, in seconds."""
        grade, due = self._grade, []
        if grade and grade.failed and not grade.shown:
            due.append(min(grade.due - self._clock(), IN_FRONT_S))
        if grade:  # what it tells meanwhile wakes nobody
            due.append(REDRAW_S)
        if self._keyboard.there and not self._keyboard.held:
            due.append(IN_FRONT_S)
        return min(due, default=None)

    def _be_punctual(self) -> None:
        """Show what has come due."""
        if not self._keyboard.held:
            self._keyboard.hold()
        grade, now = self._grade, self._clock()
        if grade is None:
            return
        if grade.failed and not grade.shown and now >= grade.due:
            self._show_early(grade)
        if grade.fresh and now >= grade.drawn + REDRAW_S:
            grade.fresh, grade.drawn = False, now
            self.view.progress(grade.right, grade.judging, failed=grade.shown is not None)

    def _show_early(self, grade: Grade) -> None:
        """The first failure, while other cases are judged still."""
        try:
            grade.shown = regrade.first_in_words(self.submission, grade.results)
        except OSError:  # the file is gone; the next event will say so
            grade.due = math.inf
            return
        self.view.failing(self.module, grade.shown, self._reading())
        grade.fresh, grade.drawn = True, 0.0

    def _hear(self, told: Told) -> None:
        """Called in the thread that grades, which this one is not to hold up at every case."""
        failed = isinstance(told, Progressed) and isinstance(told.event, CaseResult) \
            and told.event.fails
        self.inbox.put(told, wake=failed or not isinstance(told, Progressed))

    def _handle(self, event: Any) -> None:
        match event:
            case Saved(submission, content) if submission is self.submission:
                self._look_at(content)
            case Progressed(job, what) if self._is_on(job):
                self._note(what)
            case Graded(job, report, result) if self._is_on(job):
                self._show(report, result)
            case Broke(job, error) if self._is_on(job):
                self._grade = None
                self.tell(f"{error} The next save is graded again.")
            case Notice(text):
                self.tell(text)
            case Typed(keys):
                for key in keys:
                    self._press(key)
            case signal.Signals():
                self._heed(event)

    def _look_at(self, content: Content) -> None:
        """Grade what was saved, beginning with what failed last."""
        if content.complaint:
            self._regrader.cancel()
            self._grade = None
            fresh = "x puts a fresh one there" if self.actions and self.submission.in_place else \
                f"`tritonlab start {self.module.id}` makes a fresh one"
            self.tell(f"{content.complaint} Put your exercise back there; it is graded then. "
                      f"Or {fresh}.")
            return
        failed = [r.name for r in self.report.results if r.verdict is Verdict.FAILED] \
            if self.report else []
        job = self._regrader.begin(self.submission, failed)
        self._grade = Grade(job)
        self.view.began(job.number, time.strftime("%H:%M:%S"))

    def _is_on(self, job: Job) -> bool:
        return self._grade is not None and self._grade.job is job

    def _note(self, what: CaseResult | str) -> None:
        assert self._grade is not None
        grade = self._grade
        if isinstance(what, str):
            grade.judging, grade.fresh = what, True
        else:
            grade.results.append(what)
            if what.fails and not grade.failed:
                grade.failed, grade.due = True, self._clock() + PATIENCE_S

    def _show(self, report: Report, result: grading.Result) -> None:
        assert self._grade is not None
        shown, self._grade = self._grade.shown, None
        self.report, self._code = report, report.exit_code
        self.view.graded(self.module, report, result.reading, shown, result.complaint,
                         self._onward(report, result))
        self.view.resting(self.actions)

    def _onward(self, report: Report, result: grading.Result) -> str:
        """What to do next."""
        keys = bool(self.actions)
        if report.exit_code == 1:
            hint = "h shows a hint" if keys else f"`tritonlab hint {self.module.id}` helps"
            return f"Edit {self.submission.to_edit} and save: it is graded again. {hint}."
        if report.exit_code:
            return "Save once more to try again; `tritonlab doctor` looks at this machine."
        following = certificate.next_module(self.course, result.reading, self.module)
        if following is None:
            return "All modules are passed: `tritonlab certificate` shows what you hold."
        return f"Press n for the next module, {following.id}." if keys else \
            f"Next: tritonlab start {following.id}"

    def _press(self, key: str) -> None:
        if key == "\x04":  # Ctrl-D
            self.quit()
        elif self._question is not None:
            act, self._question = self._question, None
            self.view.answered()
            self._do(act if key in "yY" else lambda watch: watch.view.notice("Nothing was done."))
        elif action := next((a for a in self.actions if a.key == key.lower()), None):
            self._do(action.act)
        elif key.isprintable() and not key.isspace():
            self.tell(f"{key} is no key of this list; ? says what there is.")

    def _do(self, act: Act) -> None:
        """Do what a key stands for; whatever goes wrong is a sentence, and the loop goes on."""
        try:
            act(self)
        except TritonlabError as error:
            self.view.notice(str(error))
        except BrokenPipeError:
            self.quit()
        except Exception as error:  # ours: keep the traceback, and the session
            place = self.submission.workspace
            self.view.notice(str(errors.unexpected(error, place.mark if place else None)))
        if self._grade is None and not self._over:
            self.view.resting(self.actions)

    def _heed(self, number: signal.Signals) -> None:
        if number in (signal.SIGWINCH, signal.SIGCONT):
            self._keyboard.hold()
            self.view.resized()
        elif number == signal.SIGINT:
            self.quit()
        else:
            self._over, self._code = True, 128 + number

    def _is_to_end(self) -> bool:
        """Whether a signal says so while another program has the terminal.

        Ctrl-C is for that program alone.
        """
        events = self.inbox.take()
        for event in events:
            if event != signal.SIGINT:
                self.inbox.put(event)
        return signal.SIGTERM in events or signal.SIGHUP in events

    def _release(self) -> None:
        """Leave the terminal as a shell wants it."""
        self.view.make_room()
        self._keyboard.release()

    def _reading(self) -> Reading:
        return grading.reading_of(self.course, self.submission)
