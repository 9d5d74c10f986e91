"""Grades saves in one thread on a warm sandbox; a newer save cancels the grade."""

import contextlib
import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

import grader
from grader.report import CaseResult, Report
from grader.sandbox import Sandbox, memory_trim
from grader.submission import source
from tritonlab import errors
from tritonlab.course.course import Course, Module
from tritonlab.errors import TritonlabError
from tritonlab.grading import grade as grading
from tritonlab.grading.grade import SaveResult
from tritonlab.workspace.submission import Submission

if TYPE_CHECKING:
    from grader.judge.draws import Prepared
    from grader.judge.passed_runs import PassedRuns

IDLE_S = 3.0  # after a grade, before memory is given back that the next one would use again
_RESTARTED = "The grader's helper process had ended; a new one was started."


@dataclass(frozen=True)
class GradeJob:
    """One grade. The cases ``first`` are judged before the others.

    ``draws``: the page of a trace follows. ``grades``: False where only the page is wanted.
    """

    number: int
    submission: Submission
    first: tuple[str, ...] = ()
    draws: bool = False
    grades: bool = True
    cancelled: threading.Event = field(default_factory=threading.Event)


@dataclass(frozen=True)
class GradeEvent:
    """The name of a case that begins, its result without a diagnosis, or how the grade ended:
    the report and whether it is recorded, or an error.
    """

    job: GradeJob
    event: str | CaseResult | tuple[Report, SaveResult] | TritonlabError


class GradeThread:
    """Grades in a thread until the block is left; ``target``, ``gpu``, ``quick`` as of ``grade``.

    Calls ``tell`` in that thread with events, and with sentences about the sandbox. It lives as
    long; if its process is lost, another one is started and the grade is repeated.
    """

    def __init__(self, course: Course, tell: Callable[[GradeEvent | str], None],
                 target: str | None = None, gpu: bool = True, quick: bool = False) -> None:
        self._course = course
        self._tell = tell
        self._target, self._gpu, self._quick = target, gpu, quick
        self._box: Sandbox | None = None
        self._prepared: tuple[str, Prepared] | None = None  # for the next grade of that module
        self._passed: PassedRuns | None = None  # of all grades, after the first
        self._jobs: queue.SimpleQueue[GradeJob | None] = queue.SimpleQueue()
        self._latest: GradeJob | None = None
        self._draws = False
        self._thread = threading.Thread(target=self._run, name="grades", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the running grade and waits; no event or record follows."""
        self.cancel()
        self._jobs.put(None)
        self._thread.join()

    def begin(self, submission: Submission, first: Sequence[str] = ()) -> GradeJob:
        """Grades the current files; cancels a running grade."""
        self.cancel()
        number = self._latest.number + 1 if self._latest else 1
        self._latest = GradeJob(number, submission, tuple(first), self._draws)
        self._jobs.put(self._latest)
        return self._latest

    def draw(self, submission: Submission) -> None:
        """Draws the page of a trace and opens it; later grades of the session renew it."""
        self._draws = True
        self._jobs.put(GradeJob(0, submission, draws=True, grades=False))

    def cancel(self) -> None:
        """Cancels the running grade."""
        if self._latest:
            self._latest.cancelled.set()

    def _next(self) -> GradeJob | None:
        """Waits for a job; None after ``close``."""
        try:
            return self._jobs.get(timeout=IDLE_S)
        except queue.Empty:
            memory_trim.give_back()  # meanwhile a job may arrive
            return self._jobs.get()

    def _run(self) -> None:
        try:
            for job in iter(self._next, None):
                if not job.cancelled.is_set():
                    self._do(job)
                    self._prepare(job.submission.module)
        finally:
            self._let_go()

    def _prepare(self, module: Module) -> None:
        """Prepares inputs for the next grade of this module, until a job arrives."""
        from grader.judge.draws import Prepared

        used = self._prepared
        self._prepared = None
        with contextlib.suppress(Exception):  # a grade reports faults of the suite
            prepared = Prepared(module.load_suite(),
                                used[1].sized_by if used and used[0] == module.id else {})
            self._prepared = (module.id, prepared)
            for _ in prepared.steps():
                if not self._jobs.empty():
                    return

    def _do(self, job: GradeJob) -> None:
        if job.grades:
            self._grade_and_save(job)
        if job.draws and not job.cancelled.is_set():
            self._draw(job)

    def _draw(self, job: GradeJob) -> None:
        from tritonlab.trace import browser, draw

        try:
            self._box = self._box or grading.start_sandbox()
            file = draw.page_beside(job.submission, sandbox=self._box)
        except TritonlabError as error:
            self._tell(f"The page of the trace was not drawn: {error}")
        except Exception as error:  # internal: the loop goes on
            place = job.submission.workspace
            self._tell(str(errors.unexpected(error, place.mark if place else None)))
        else:
            self._tell(f"{errors.shown(file)} shows this save." if job.grades else
                       browser.open_page(file)
                       or f"{errors.shown(file)} is open in a browser; each save renews it.")

    def _grade_and_save(self, job: GradeJob) -> None:
        try:
            report = self._grade(job)
            if report.reason and not job.cancelled.is_set():  # the grader's own process was lost
                self._let_go()
                self._tell(_RESTARTED)
                report = self._grade(job)
            result = grading.save(self._course, job.submission, report)
        except grader.Cancelled:
            return
        except TritonlabError as error:
            self._tell(GradeEvent(job, error))
        except Exception as error:  # internal: the loop goes on
            place = job.submission.workspace
            self._tell(GradeEvent(job, errors.unexpected(error, place.mark if place else None)))
        else:
            self._tell(GradeEvent(job, (report, result)))

    def _grade(self, job: GradeJob) -> Report:
        """Grades on the warm sandbox; reports if its zygote was replaced.

        Raises:
            grader.Cancelled: there is newer content.
            TritonlabError: it cannot be graded.
        """
        self._box = self._box or grading.start_sandbox()
        # It imports torch; meanwhile the sandbox starts.
        from grader.judge.passed_runs import PassedRuns

        self._passed = self._passed or PassedRuns()
        pid, (module, prepared) = self._box.pid, self._prepared or ("", None)
        try:
            return grading.grade(
                job.submission, target=self._target, gpu=self._gpu, quick=self._quick,
                first=job.first, cancelled=job.cancelled, sandbox=self._box, course=self._course,
                prepared=prepared if module == job.submission.module.id else None,
                passed=self._passed,
                on_event=lambda event: self._tell(GradeEvent(job, event)))
        finally:  # also of a cancelled grade
            if self._box.pid != pid:
                self._tell(_RESTARTED)

    def _let_go(self) -> None:
        if self._box is not None:
            self._box.close()
            self._box = None


def first_failure(submission: Submission, results: Sequence[CaseResult]) -> CaseResult:
    """Returns the first failure with its diagnosis from the results so far.

    Raises:
        StopIteration: nothing has failed.
        OSError: the file is gone meanwhile.
    """
    from grader.diagnosis.explain import explained

    suite = grading.suite_of(submission.module)
    files = source.read(submission.kernel, suite.files, suite.kernel_file)
    return next(r for r in explained(results, suite, files) if r.fails)
