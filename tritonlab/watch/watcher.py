"""The session of `watch`: grades at every save and handles keys meanwhile.

One thread handles all events in turn: saves, results, keys, signals. Two other threads only put
events into its inbox: one watches the files, one grades. A newer save cancels the running grade.
"""

import contextlib
import math
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from grader.report import CaseResult, Report, Verdict
from tritonlab import errors
from tritonlab.course.course import Course, Module
from tritonlab.errors import TritonlabError
from tritonlab.grading import grade as grading
from tritonlab.progress import certificate
from tritonlab.render.watch import Action, WatchView
from tritonlab.watch import grade_thread
from tritonlab.watch.file_events import Content, Saves
from tritonlab.watch.grade_thread import GradeEvent, GradeJob, GradeThread
from tritonlab.watch.terminal import Keyboard, Signals, TypedKeys
from tritonlab.workspace import watch_lock
from tritonlab.workspace.submission import Submission

PATIENCE_S = 0.05  # before a failure is shown: other cases may explain it better
REDRAW_S = 0.02  # between updates of the progress
IN_FRONT_S = 1.0  # between checks for the foreground

Act = Callable[["Watch"], None]


@dataclass
class Grade:
    """The state of a running grade."""

    job: GradeJob
    judging: str = ""
    results: list[CaseResult] = field(default_factory=list)
    due: float = math.inf  # the time when a failure is shown even if other cases are missing
    shown: CaseResult | None = None
    drawn: float = 0.0  # the time of the last update
    fresh: bool = False  # with progress to draw


class Watch:
    """One session: an exercise, its grades, and the keys that were pressed."""

    def __init__(self, course: Course, submission: Submission, view: WatchView, *,
                 actions: Sequence[Action] = (), target: str | None = None, gpu: bool = True,
                 quick: bool = False, keyboard: Keyboard | None = None, poll: bool = False,
                 clock: Callable[[], float] = time.monotonic) -> None:
        self.course = course
        self.submission = submission
        self.view = view
        self.report: Report | None = None  # the last verdict on this exercise
        self._poll = poll
        self._clock = clock
        self._code = 0
        self._grade: Grade | None = None
        self._failed: list[str] = []  # names of cases, of the last grade with failures
        self._question: Act | None = None
        self._over = False
        self._saves = contextlib.ExitStack()
        self._held = contextlib.ExitStack()  # the exercise
        self._keyboard = keyboard or Keyboard()
        self.inbox = self._keyboard.inbox
        self.actions = tuple(actions) if self._keyboard.there else ()
        self._regrader = GradeThread(course, self._hear, target, gpu, quick)
        self._signals = Signals(self.inbox, self._release)

    @property
    def module(self) -> Module:
        return self.submission.module

    @property
    def failure(self) -> CaseResult | None:
        """The first failure that was shown."""
        if self._grade and self._grade.shown:
            return self._grade.shown
        return self.report.first_failure if self.report else None

    def run(self) -> int:
        """Runs until it is ended; returns the exit code of the last verdict, 0 without one.

        Raises:
            TritonlabError: another process watches this exercise.
        """
        try:
            self._held = watch_lock.hold(self.submission)
            with self._held, self._regrader, self._keyboard, self._signals:
                self.view.resized()  # from here on by signals
                self._begin()
                try:
                    while not self._over and self._keyboard.wait(self._patience()):
                        for event in self.inbox.take():
                            self._handle(event)
                        self._be_punctual()
                finally:
                    self._saves.close()
                    self._wind_up()
                    self.view.ended(self._code)
        finally:
            self.inbox.close()
        return self._code

    # Actions of keys

    def quit(self) -> None:
        self._over = True

    def ask(self, question: str, act: Act) -> None:
        """Asks a question and acts if the next key is y."""
        self._question = act
        self.view.asks(question)

    def tell(self, sentence: str) -> None:
        """Shows a sentence unless it is empty."""
        if sentence:
            self.view.notice(sentence)
            if self._grade is None:
                self.view.resting(self.actions)

    def draw(self) -> None:
        """Draws the page of a trace, now and after each grade."""
        self._regrader.draw(self.submission)

    def turn_to(self, submission: Submission, held: contextlib.ExitStack) -> None:
        """Watches another exercise, whose lock is ``held`` (``workspace.watch_lock``)."""
        self._held.close()
        self._held.push(held)
        self._saves.close()
        self._regrader.cancel()
        self._grade = None
        self.submission, self.report, self._failed = submission, None, []
        self._begin()

    def run_aside(self, command: Sequence[str], *, reads: bool) -> int | None:
        """Runs a program (``Keyboard.run``); saves are graded meanwhile and shown afterwards."""
        self.view.make_room()
        code = self._keyboard.run(command, self._is_to_end, reads=reads)
        self._is_to_end()  # handles a Ctrl-C that ended the program
        self._signals.heard()
        self.view.resized()
        return code

    def _begin(self) -> None:
        self.view.watching(self.submission, self.actions)
        submission = self.submission
        self._saves.enter_context(Saves(
            submission, lambda content: self.inbox.put((submission, content)), poll=self._poll))

    def _wind_up(self) -> None:
        """Shows the outcome of a grade that was running, once it is certain."""
        if self._grade is None:
            return
        self._regrader.close()
        for event in self.inbox.take():
            if isinstance(event, GradeEvent) and isinstance(event.event, tuple):
                self._handle(event)  # it was being recorded
        if self._grade is not None:
            self.view.notice("The grade that was running was ended; nothing of it is recorded.")

    def _patience(self) -> float | None:
        """Returns the timeout of the wait for the next event, in seconds."""
        grade, now = self._grade, self._clock()
        if grade:  # its progress does not wake this thread
            return REDRAW_S if grade.shown else min(REDRAW_S, grade.due - now)
        return IN_FRONT_S if self._keyboard.there and not self._keyboard.held else None

    def _be_punctual(self) -> None:
        """Shows a failure or progress that is due."""
        if not self._keyboard.held:
            self._keyboard.hold()
        grade, now = self._grade, self._clock()
        if grade is None:
            return
        if not grade.shown and now >= grade.due:
            self._show_early(grade)
        if grade.fresh and now >= grade.drawn + REDRAW_S:
            grade.fresh, grade.drawn = False, now
            right = sum(r.verdict is Verdict.PASSED and not r.advisory for r in grade.results)
            self.view.progress(right, grade.judging, failed=grade.shown is not None)

    def _show_early(self, grade: Grade) -> None:
        """Shows the first failure while other cases are still judged."""
        try:
            grade.shown = grade_thread.first_failure(self.submission, grade.results)
        except OSError:  # the file is gone, which is the next event
            grade.due = math.inf
            return
        self.view.failing(self.module, grade.shown,
                          grading.reading_of(self.course, self.submission))
        grade.fresh, grade.drawn = True, 0.0

    def _hear(self, message: GradeEvent | str) -> None:
        """Receives events in the grading thread; progress does not wake this one."""
        event = message.event if isinstance(message, GradeEvent) else None
        progress = isinstance(event, str) or (isinstance(event, CaseResult) and not event.fails)
        self.inbox.put(message, wake=not progress)

    def _handle(self, event: Any) -> None:
        match event:
            case Submission() as submission, Content() as content:
                if submission is self.submission:
                    self._look_at(content)
            case GradeEvent(job, news) if self._grade is not None and self._grade.job is job:
                match news:
                    case str() | CaseResult():
                        self._note(self._grade, news)
                    case TritonlabError():
                        self._grade = None
                        self.tell(f"{news} The next save is graded again.")
                    case report, result:
                        self._show(self._grade.shown, report, result)
            case str():
                self.tell(event)
            case TypedKeys(keys):
                for key in keys:
                    self._press(key)
            case signal.Signals():
                self._heed(event)

    def _look_at(self, content: Content) -> None:
        """Grades a save, first the cases that failed last, whatever passed since."""
        if content.complaint:
            self._regrader.cancel()
            self._grade = None
            fresh = "x puts a fresh one there" if self.actions and self.submission.in_place else \
                f"`tritonlab start {self.module.id}` creates a fresh one"
            self.tell(f"{content.complaint} Put your exercise back there; it is graded then. "
                      f"Or {fresh}.")
            return
        job = self._regrader.begin(self.submission, self._failed)
        self._grade = Grade(job)
        self.view.began(job.number, time.strftime("%H:%M:%S"))

    def _note(self, grade: Grade, event: CaseResult | str) -> None:
        if isinstance(event, str):
            grade.judging, grade.fresh = event, True
        else:
            grade.results.append(event)
            if event.fails:
                grade.due = min(grade.due, self._clock() + PATIENCE_S)

    def _show(self, early: CaseResult | None, report: Report,
              result: grading.SaveResult) -> None:
        self._grade = None
        self.report, self._code = report, report.exit_code
        self._failed = [r.name for r in report.results
                        if r.verdict is Verdict.FAILED] or self._failed
        self.view.graded(self.module, report, result.reading, early, result.complaint,
                         self._onward(report, result))
        self.view.resting(self.actions)

    def _onward(self, report: Report, result: grading.SaveResult) -> str:
        """Returns the sentence about the next step."""
        keys = bool(self.actions)
        if report.exit_code == 1:
            hint = "h shows a hint" if keys else f"`tritonlab hint {self.module.id}` helps"
            picture = " t draws what your programs did." if keys and report.has_picture else ""
            return f"Edit {self.submission.to_edit} and save: it is graded again. {hint}.{picture}"
        if report.exit_code:
            return "Save once more to try again; `tritonlab doctor` checks this machine."
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
            self.tell(f"{key} is not a key of this list; press ? to see the keys.")

    def _do(self, act: Act) -> None:
        """Runs the function of a key; errors become sentences."""
        try:
            act(self)
        except TritonlabError as error:
            self.view.notice(str(error))
        except BrokenPipeError:
            self.quit()
        except Exception as error:  # internal: the session goes on
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
        """Whether a signal ends the session; SIGINT is for the program that has the terminal."""
        events = self.inbox.take()
        for event in events:
            if event != signal.SIGINT:
                self.inbox.put(event)
        return signal.SIGTERM in events or signal.SIGHUP in events

    def _release(self) -> None:
        """Restores the terminal for a shell."""
        self.view.make_room()
        self._keyboard.release()
