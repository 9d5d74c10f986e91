"""Grading again and again: one thread, one warm sandbox, and only the newest content counts."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import grader
from grader.report import CaseResult, Report
from grader.sandbox import Sandbox, idle
from tritonlab import errors, grading
from tritonlab.course import Course, Module
from tritonlab.errors import TritonlabError
from tritonlab.grading import Result, Submission

if TYPE_CHECKING:
    from grader.prepared import Prepared

IDLE_S = 3.0  # after a grade, before memory is given back that the next one would use again
_RESTARTED = "The grader's helper process had ended; a new one was started."


@dataclass(frozen=True)
class Options:
    """What all grades of a session share."""

    target: str | None = None
    gpu: bool = True


AS_GRADE = Options()  # as `tritonlab grade` without any


@dataclass(frozen=True)
class Job:
    """One grade. ``first`` are the cases that are judged before the others."""

    number: int
    submission: Submission
    first: tuple[str, ...] = ()
    cancelled: threading.Event = field(default_factory=threading.Event)


@dataclass(frozen=True)
class Progressed:
    """The name of what begins, or a result before it is put in words."""

    job: Job
    event: CaseResult | str


@dataclass(frozen=True)
class Graded:
    """A grade that ran to its end, and whether it is on record."""

    job: Job
    report: Report
    result: Result


@dataclass(frozen=True)
class Broke:
    """A grade that could not be made."""

    job: Job
    error: TritonlabError


@dataclass(frozen=True)
class Notice:
    """A sentence about something that happened beside a grade."""

    text: str


Told = Progressed | Graded | Broke | Notice


class Regrader:
    """Grades in a thread of its own, until the block is left; ``tell`` is called in that thread.

    The sandbox lives as long: what a learner's code does to its processes costs one case, and where
    it is lost altogether, another takes its place and the grade is begun anew.
    """

    def __init__(self, course: Course, tell: Callable[[Told], None],
                 options: Options = AS_GRADE) -> None:
        self._course = course
        self._tell = tell
        self._options = options
        self._box: Sandbox | None = None
        self._prepared: tuple[str, Prepared] | None = None  # for the next grade of that module
        self._change = threading.Condition()
        self._wanted: Job | None = None
        self._running: Job | None = None
        self._number = 0
        self._over = False
        self._thread = threading.Thread(target=self._run, name="grades", daemon=True)

    def __enter__(self) -> Regrader:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End what is running, and wait until it has: nothing is told or recorded afterwards."""
        with self._change:
            self._over = True
            self._drop()
        self._thread.join()

    def begin(self, submission: Submission, first: Sequence[str] = ()) -> Job:
        """Grade what the files hold now; a grade that is running is cancelled."""
        with self._change:
            self._drop()
            self._number += 1
            self._wanted = Job(self._number, submission, tuple(first))
            self._change.notify()
            return self._wanted

    def cancel(self) -> None:
        """Nobody wants the grade any more that is running."""
        with self._change:
            self._drop()

    def _drop(self) -> None:
        self._wanted = None
        if self._running is not None:
            self._running.cancelled.set()
        self._change.notify()

    def _next(self) -> Job | None:
        """Wait for a job; None in the end."""
        with self._change:
            self._running = None
            called = self._change.wait_for(self._is_called, IDLE_S)
        if not called:
            idle.give_back()  # takes a moment, in which a job may be given
        with self._change:
            self._change.wait_for(self._is_called)
            self._running, self._wanted = self._wanted, None
            return None if self._over else self._running

    def _is_called(self) -> bool:
        return self._over or self._wanted is not None

    def _run(self) -> None:
        try:
            while (job := self._next()) is not None:
                self._do(job)
                self._prepare(job.submission.module)
        finally:
            self._let_go()

    def _prepare(self, module: Module) -> None:
        """Make inputs for the next grade of this module, until a grade is wanted."""
        from grader.prepared import Prepared

        used = self._prepared
        self._prepared = None
        with contextlib.suppress(Exception):  # what is wrong with a suite is told by a grade
            prepared = Prepared(grader.load_suite(module.suite),
                                used[1].sized_by if used and used[0] == module.id else {})
            self._prepared = (module.id, prepared)
            for _ in prepared.steps():
                if self._is_called():
                    return

    def _do(self, job: Job) -> None:
        try:
            report = self._grade(job)
            if report.reason and not job.cancelled.is_set():  # the grader's own process was lost
                self._let_go()
                self._tell(Notice(_RESTARTED))
                report = self._grade(job)
            result = grading.save(self._course, job.submission, report)
        except grader.Cancelled:
            return
        except TritonlabError as error:
            self._tell(Broke(job, error))
        except Exception as error:  # ours: the loop goes on, and the traceback is kept
            place = job.submission.workspace
            self._tell(Broke(job, errors.unexpected(error, place.mark if place else None)))
        else:
            self._tell(Graded(job, report, result))

    def _grade(self, job: Job) -> Report:
        """One grade on the warm sandbox; that it needed another zygote is told.

        Raises:
            grader.Cancelled: there is newer content.
            TritonlabError: it cannot be graded at all.
        """
        if self._box is None:
            self._box = grading.started()
        pid, made = self._box.pid, self._prepared
        try:
            return grading.grade(
                job.submission, target=self._options.target, gpu=self._options.gpu,
                first=job.first, cancelled=job.cancelled, sandbox=self._box,
                prepared=made[1] if made and made[0] == job.submission.module.id else None,
                on_event=lambda event: self._tell(Progressed(job, event)))
        finally:  # a grade that a newer save ends may have needed it too
            if self._box.pid != pid:
                self._tell(Notice(_RESTARTED))

    def _let_go(self) -> None:
        if self._box is not None:
            self._box.close()
            self._box = None


def first_in_words(submission: Submission, results: Sequence[CaseResult]) -> CaseResult:
    """The first failure by what is known so far: all cases may tell better what it means.

    Raises:
        StopIteration: nothing has failed.
        OSError: the file is gone meanwhile.
    """
    from grader import source
    from grader.diagnosis.explanation import explained

    suite = grader.load_suite(submission.module.suite, submission.module.folder)
    files = source.read(submission.kernel, suite.files, suite.kernel_file)
    return next(r for r in explained(results, suite, files) if r.fails)
