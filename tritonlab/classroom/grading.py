"""Grades the submissions of a class: what is to be done, workers, results and events."""

import collections
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

import msgspec

from grader.engine.compiler import targets
from grader.report import Verdict, versions
from grader.sandbox import SandboxBroken
from grader.suite.override import overridden_sha256
from grader.text import plural
from tritonlab.authoring.worker_pool import WorkerPool
from tritonlab.classroom.book import Book, Graded, Handed, final
from tritonlab.classroom.grade_worker import (
    TIME_LIMIT,
    Effort,
    GradeOutcome,
    Job,
    suite_for,
    workshop,
)
from tritonlab.classroom.settings import ClassAssignment, ClassSettings
from tritonlab.classroom.store import Store
from tritonlab.course import course
from tritonlab.course.course import Course, Roots
from tritonlab.errors import CannotGrade, TritonlabError
from tritonlab.grading.points import counts, points_of
from tritonlab.version import __version__

MOST_TRIES = 3  # of a grade whose process is killed
FLUSH_S = 2.0  # between two writes of events; results are on disk at once
ENDED = "A process of the grader ended unexpectedly"
_OF_MACHINE = frozenset(("R02", "R03"))  # codes that a busy machine may cause
_UNDECIDED = frozenset((Verdict.ERROR, Verdict.INCONCLUSIVE))


@dataclass(frozen=True)
class GradeTask:
    """One grade to make: of a blob, for all students who handed it in."""

    key: str
    assignment: ClassAssignment
    module: str
    blob: str
    students: tuple[str, ...]
    effort: Effort = "whole"
    again: bool = False  # also if there is a result


@dataclass
class GradePlan:
    """The grades to make, and what is left out.

    ``stale`` counts submissions whose grade is by other tests, versions or settings than today's;
    ``noted`` are results on disk that no event names yet.
    """

    tasks: list[GradeTask] = field(default_factory=list)
    noted: list[GradeTask] = field(default_factory=list)
    done: int = 0
    stale: int = 0
    damaged: int = 0


@dataclass
class Summary:
    """The result of a run, by submission content."""

    graded: list[Graded] = field(default_factory=list)
    failed: list[tuple[GradeTask, str]] = field(default_factory=list)  # with why they have no grade
    elsewhere: list[GradeTask] = field(default_factory=list)  # another process grades them
    gained: int = 0
    lost: int = 0
    kept: int = 0  # would have lowered published points
    rediagnosed: int = 0
    cpu_s: float = 0.0
    seconds: float = 0.0


class Executor(Protocol):
    """Workers that perform jobs."""

    size: int

    def submit(self, job: Job | None) -> "Future[GradeOutcome]": ...


OnEvent = Callable[[str, Mapping[str, Any]], None]


def course_of(settings: ClassSettings, root: Path) -> tuple[Course, Roots]:
    """Loads the course of a class: a folder, relative to the class, or an installed course.

    Raises:
        TritonlabError: there is no such course.
    """
    if settings.course == course.SHIPPED:
        roots = course.shipped_roots()
    elif (root / settings.course).is_dir():
        roots = course.roots_in(root / settings.course)
    else:
        roots = course.roots_of_id(settings.course)
    the_course = course.load(roots)
    for assignment in settings.assignments.values():
        if not assignment.modules:
            raise TritonlabError(f"Assignment {assignment.name} has no modules.",
                                 "Name them in class.toml.")
        for module in assignment.modules:
            the_course.find(module)
    return the_course, roots


def check_target(settings: ClassSettings) -> None:
    """Raises TritonlabError if class.toml names a target that does not exist."""
    try:
        targets.find(settings.target)
    except targets.UnknownTarget as error:
        raise TritonlabError(str(error), "Name one of them as `target` in class.toml.") from error


def errors_of(settings: ClassSettings, root: Path, *, overrides: bool = False
              ) -> list[TritonlabError]:
    """Returns what class.toml names and does not exist: the target, the course, modules.

    ``overrides``: also cases that an override ignores, for which hidden tests are loaded.
    """
    errors = []
    try:
        check_target(settings)
    except TritonlabError as error:
        errors.append(error)
    try:
        the_course, _ = course_of(settings, root)
    except TritonlabError as error:
        return [*errors, error]
    for assignment in settings.assignments.values() if overrides else ():
        for module in assignment.override:
            try:
                suite_for(the_course, module, assignment.of(module))
            except TritonlabError as error:
                errors.append(error)
    return errors


def plan(settings: ClassSettings, the_course: Course, store: Store, book: Book,
         assignments: Iterable[ClassAssignment], *, students: frozenset[str] | None = None,
         stale: bool = False, again: bool = False, gpu: bool = False,
         effort: Effort = "whole") -> GradePlan:
    """Decides which submissions are graded: those without a grade, stale ones, or all.

    Args:
        effort: ``values`` makes drafts, of submissions that have no grade.
        students: only theirs.
        stale: also those whose grade is by other tests, versions or settings than today's.
        again: all of them, whatever is there.
        gpu: whether a GPU is used.

    Raises:
        BadCourse: hidden tests are missing, or an override does not fit them.
        TritonlabError: no GPU has the name of the target.
    """
    check_target(settings)
    result = GradePlan()
    for assignment in assignments:
        by_blob: dict[tuple[str, str], list[Handed]] = {}
        for handed in book.handed.get(assignment.name, ()):
            if handed.module in assignment.modules and (
                    students is None or handed.student in students):
                by_blob.setdefault((handed.module, handed.blob), []).append(handed)
        facts = {module: _decided_by(settings, the_course, store, assignment, module, gpu, effort)
                 for module in {module for module, _ in by_blob}}
        for (module, blob), submissions in by_blob.items():
            task = GradeTask(_key(blob, facts[module]), assignment, module, blob, tuple(
                dict.fromkeys(one.student for one in submissions)), effort, again)
            graded = book.grade_of(submissions[0])
            if effort == "whole":
                _sort(result, task, graded, store, book, stale)
            elif graded is None:
                _sort(result, task, book.draft_of(submissions[0]), store, book, stale)
            else:
                result.done += 1
    for task in {(task.assignment.name, task.module): task for task in result.tasks}.values():
        suite_for(the_course, task.module, task.assignment.of(task.module))
    return result


def _sort(result: GradePlan, task: GradeTask, graded: Graded | None, store: Store, book: Book,
          stale: bool) -> None:
    """Adds a task to the part of the plan that it belongs to."""
    grades = book.grades.get((task.assignment.name, task.module, task.blob), ())
    current = any(one.key == task.key for one in grades)
    if task.again or (graded is None and not store.has_result(task.key)):
        result.tasks.append(task)
    elif graded is None or (stale and not current and store.has_result(task.key)):
        if store.result(task.key) is None:
            result.damaged += 1
            result.tasks.append(task)
        else:
            result.noted.append(task)
    elif store.result(graded.key) is None:
        result.damaged += 1
        result.tasks.append(task)
    elif current:
        result.done += 1
    else:
        result.stale += 1
        if stale:
            result.tasks.append(task)
        else:
            result.done += 1


def _decided_by(settings: ClassSettings, the_course: Course, store: Store,
                assignment: ClassAssignment, module: str, gpu: bool, effort: Effort
                ) -> Mapping[str, Any]:
    """Returns all that decides a grade but the files."""
    return {
        "course": the_course.id, "module": module,
        "suite": overridden_sha256(the_course.find(module).suite_sha256,
                                   **asdict(assignment.of(module))),
        "grader": __version__, "versions": versions(), "target": settings.target, "gpu": gpu,
        "seed": _seed(settings, store, assignment, module) or "fresh",
        "limit_cpu_s": settings.limit_cpu_s, "limit_memory_mb": settings.limit_memory_mb,
        "effort": effort}


def _seed(settings: ClassSettings, store: Store, assignment: ClassAssignment, module: str) -> str:
    return store.seed(assignment.name, module) if settings.seed == "per-assignment" else ""


def _key(blob: str, decided_by: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps([blob, decided_by], sort_keys=True).encode()).hexdigest()


def in_shard(tasks: Sequence[GradeTask], index: int, count: int) -> list[GradeTask]:
    """Returns the tasks of shard ``index`` (from 1) of ``count``; a task is in exactly one."""
    return [task for task in tasks if int(task.key[:15], 16) % count == index - 1]


class LocalExecutor(WorkerPool):
    """Worker processes on this machine."""

    def __init__(self, size: int, roots: Roots) -> None:
        super().__init__(size, workshop, roots)
        self.size = size


class Grader:
    """One run over a plan: hands out tasks, writes results, appends events."""

    def __init__(self, settings: ClassSettings, store: Store, book: Book, executor: Executor, *,
                 gpu: bool = False, lower: bool = False, on_event: OnEvent | None = None) -> None:
        self._settings = settings
        self._store = store
        self._book = book
        self._executor = executor
        self._gpu = gpu
        self._lower = lower
        self._tell = on_event or (lambda kind, data: None)
        self._summary = Summary()
        self._unwritten: list[dict[str, Any]] = []
        self._written_at = time.monotonic()
        self._tries: collections.Counter[str] = collections.Counter()

    def run(self, work: GradePlan) -> Summary:
        """Grades all tasks; a failing one costs only itself.

        Raises:
            CannotGrade: isolation is below what class.toml requires, or no worker starts.
            NotSaved: a result or an event cannot be written.
        """
        started = time.monotonic()
        try:
            for task in work.noted:
                data = self._store.result(task.key)
                if data is not None:
                    self._note(task, data)
            if work.tasks:
                self._check_isolation()
                self._tell("begin", {"tasks": len(work.tasks), "workers": self._executor.size})
                alone = self._perform(_longest_first(work.tasks, self._book),
                                      self._executor.size, last=False)
                while alone:
                    alone = self._perform(alone, 1, last=True)
        finally:
            self._flush()
            self._summary.seconds = time.monotonic() - started
        return self._summary

    def _check_isolation(self) -> None:
        tries = 1
        while True:
            try:
                tier = self._executor.submit(None).result().tier
                break
            except (BrokenProcessPool, SandboxBroken) as error:
                if tries == MOST_TRIES:
                    raise CannotGrade(f"{ENDED} {MOST_TRIES} times.") from error
                tries += 1
        if tier < self._settings.require_isolation:
            raise CannotGrade(
                f"class.toml requires isolation of tier {self._settings.require_isolation}, and "
                f"this machine reaches tier {tier}.",
                "`tritonlab doctor` shows what is missing; `require_isolation` in class.toml "
                "lowers the requirement.")

    def _perform(self, tasks: Sequence[GradeTask], at_once: int, *, last: bool) -> list[GradeTask]:
        """Grades tasks, ``at_once`` at a time; returns those to grade once more, alone."""
        waiting = collections.deque(tasks)
        alone: list[GradeTask] = []
        running: dict[Future[GradeOutcome], tuple[GradeTask, ExitStack]] = {}
        try:
            while waiting or running:
                while waiting and len(running) < at_once:
                    self._begin(waiting.popleft(), running)
                if not running:
                    continue
                done, _ = wait(running, timeout=FLUSH_S, return_when=FIRST_COMPLETED)
                for future in done:
                    task, claim = running.pop(future)
                    with claim:
                        if self._end(task, future, last or at_once == 1):
                            alone.append(task)
                if time.monotonic() - self._written_at > FLUSH_S:
                    self._flush()
        finally:
            for _, claim in running.values():
                claim.close()
        return alone

    def _begin(self, task: GradeTask,
               running: dict["Future[GradeOutcome]", tuple[GradeTask, ExitStack]]) -> None:
        claim = ExitStack()
        if not claim.enter_context(self._store.claimed(task.key)):
            claim.close()
            self._summary.elsewhere.append(task)
            return
        data = None if task.again else self._store.result(task.key)
        if data is not None:  # another process was faster
            with claim:
                self._note(task, data)
            return
        settings, assignment = self._settings, task.assignment
        try:
            job = Job(task.module, self._store.files(task.blob),
                      _seed(settings, self._store, assignment, task.module), settings.target,
                      self._gpu, settings.limit_cpu_s, assignment.of(task.module),
                      settings.limit_memory_mb, task.effort)
        except TritonlabError as error:
            with claim:
                self._fail(task, str(error))
            return
        running[self._executor.submit(job)] = (task, claim)

    def _end(self, task: GradeTask, future: "Future[GradeOutcome]", last: bool) -> bool:
        """Saves an outcome; returns whether the task is to be graded once more, alone."""
        self._tries[task.key] += 1
        try:
            outcome = future.result()
        except (BrokenProcessPool, SandboxBroken, CannotGrade) as error:
            if not last or self._tries[task.key] < MOST_TRIES:
                return True
            self._fail(task, str(error) if isinstance(error, CannotGrade) else
                       f"{ENDED} {MOST_TRIES} times.")
            return False
        except TritonlabError as error:
            self._fail(task, str(error))
            return False
        if not last and _is_of_machine(outcome.report):
            return True
        self._summary.cpu_s += outcome.cpu_s
        data = {"key": task.key, "module": task.module, "blob": task.blob, "cpu_s": outcome.cpu_s,
                "seconds": outcome.seconds, "effort": task.effort, "report": outcome.report}
        self._store.save_result(task.key, data)
        self._note(task, data)
        return False

    def _fail(self, task: GradeTask, why: str) -> None:
        self._summary.failed.append((task, why))
        self._tell("failed", {"students": task.students, "assignment": task.assignment.name,
                              "module": task.module, "reason": why})

    def _note(self, task: GradeTask, data: Mapping[str, Any]) -> None:
        """Queues the event of a grade, and compares it with the one before."""
        graded = summary_of(task.assignment.name, task.module, task.blob, data)
        grades = self._book.grades.setdefault((task.assignment.name, task.module, task.blob), [])
        before = final(grades)
        if before is not None and graded.is_final:
            graded = self._compared(task, graded, before)
        grades.append(graded)
        self._summary.graded.append(graded)
        self._unwritten.append({"event": "graded", **msgspec.to_builtins(graded)})
        self._tell("graded", {"students": task.students, "assignment": task.assignment.name,
                              "module": task.module, "verdict": graded.verdict,
                              "code": graded.code, "cpu_s": graded.cpu_s})

    def _compared(self, task: GradeTask, graded: Graded, before: Graded) -> Graded:
        new, old = (points_of(one.counts, one.verdict == Verdict.PASSED,
                              task.assignment.weights).total for one in (graded, before))
        self._summary.gained += new > old
        self._summary.rediagnosed += new == old and graded.code != before.code
        if new < old:
            if task.assignment.name in self._book.published and not self._lower:
                self._summary.kept += 1
                return msgspec.structs.replace(graded, lowered=True)
            self._summary.lost += 1
        return graded

    def _flush(self) -> None:
        self._written_at = time.monotonic()
        if self._unwritten:
            self._store.append(*self._unwritten)
            self._unwritten = []


def run(settings: ClassSettings, store: Store, book: Book, roots: Roots, work: GradePlan, *,
        jobs: int | None = None, executor: AbstractContextManager[Executor] | None = None,
        gpu: bool = False, lower: bool = False, on_event: OnEvent | None = None) -> Summary:
    """Grades a plan with local workers, or those of ``executor``."""
    size = min(jobs or os.cpu_count() or 1, max(len(work.tasks), 1))
    if not work.tasks:
        return Grader(settings, store, book, _NoWorkers(), lower=lower,
                      on_event=on_event).run(work)
    with executor or LocalExecutor(size, roots) as workers:
        return Grader(settings, store, book, workers, gpu=gpu, lower=lower,
                      on_event=on_event).run(work)


class _NoWorkers:
    """Stands where there is nothing to grade."""

    size = 0

    def submit(self, job: Job | None) -> "Future[GradeOutcome]":
        raise AssertionError("there is nothing to grade")


def summary_of(assignment: str, module: str, blob: str, data: Mapping[str, Any]) -> Graded:
    """Summarizes a result for the log of events."""
    report = data["report"]
    failing = [result for result in report["results"]
               if result["verdict"] == Verdict.FAILED and not result["advisory"]]
    finding: Mapping[str, Any] = next((f for result in failing for f in result["findings"]), {})
    undecided = report["verdict"] in _UNDECIDED
    reason = report["reason"] or next(
        (result["reason"] for result in report["results"] if result["reason"]), "")
    return Graded(
        assignment=assignment, module=module, blob=blob, key=data["key"],
        verdict=report["verdict"], evidence=report["evidence"], counts=counts(report),
        code=finding.get("code", ""), todos=tuple(finding.get("todos", ())),
        line=finding.get("line"), failing=tuple(result["name"] for result in failing),
        reason=reason if undecided else "", isolation=report["isolation"],
        suite_sha256=report["suite_sha256"], cpu_s=data["cpu_s"],
        effort=data.get("effort", "whole"))


def _is_of_machine(report: Mapping[str, Any]) -> bool:
    """Whether a busy machine may have caused the outcome; CPU time does not depend on it."""
    if any(result["name"] == TIME_LIMIT for result in report["results"]):
        return False
    codes = {finding["code"] for result in report["results"] for finding in result["findings"]}
    return report["verdict"] in _UNDECIDED or bool(codes & _OF_MACHINE)


def _longest_first(tasks: Sequence[GradeTask], book: Book) -> list[GradeTask]:
    """Orders tasks by the CPU time that grades of their modules took; unknown ones first."""
    times: dict[str, list[float]] = {}
    for (_, module, _), grades in book.grades.items():
        times.setdefault(module, []).extend(one.cpu_s for one in grades)
    mean = {module: sum(all_times) / len(all_times) for module, all_times in times.items()
            if all_times}
    return sorted(tasks, key=lambda task: -mean.get(task.module, float("inf")))


def stale_reasons(work: GradePlan) -> Iterator[str]:
    """Sentences about what a plan leaves out."""
    if work.damaged:
        yield (f"{plural(work.damaged, 'stored result')} cannot be read; the submissions are "
               "graded again.")
    if work.stale:
        yield (f"{plural(work.stale, 'grade')} used other hidden tests, versions or settings than "
               "today's; `--stale` grades such submissions again.")
