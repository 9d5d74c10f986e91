"""Runs every check of every module, several at a time in warm processes."""

from __future__ import annotations

import contextlib
import heapq
import itertools
import os
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import grader
from grader.report import Kind, Verdict
from tritonlab.authoring import checks as author
from tritonlab.authoring import expectations, module_files
from tritonlab.authoring import mutants as mutated
from tritonlab.authoring.module_files import KERNEL, Material
from tritonlab.authoring.plan import (
    CheckOutcome,
    CourseProof,
    MutantResult,
    Proof,
    Task,
    TaskResult,
)
from tritonlab.authoring.worker_pool import BrokenTask, WorkerPool
from tritonlab.course import course
from tritonlab.course.course import Module, Roots
from tritonlab.errors import TritonlabError, brief

if TYPE_CHECKING:
    from grader.sandbox import Sandbox
    from grader.suite import Mutant

RUNS = 5  # of every mutant, each with fresh inputs
MOST_WORKERS = 8  # processes, each with torch and a warm sandbox: about a gibibyte, 6 s to start
LESSON_S = 120.0


# ---------------------------------------------------------------------------------------------
# All of it


def prove(modules: Sequence[Module], roots: Roots, strays: Sequence[str] = (), *,
          runs: int = RUNS, workers: int | None = None,
          on_event: Callable[[object], None] | None = None) -> CourseProof:
    """Checks modules, several tasks at a time.

    Args:
        modules: to be checked.
        roots: the folders of their course, which workers read again.
        strays: faults of the course as a whole.
        runs: of each mutant. One that fails in a case without random inputs, such as a question to
            host code, is run once: it would fail alike again.
        workers: tasks at a time; by default one for each available core.
        on_event: called with each task as a str when it begins, and with its result.

    Raises:
        TritonlabError: there is no module to check.
    """
    if not modules:
        raise TritonlabError("There is no module to check.",
                             "`tritonlab new TRACK/SLUG` makes one.")
    started = time.monotonic()
    tell = on_event or (lambda event: None)
    proofs = {module.id: Proof(module.id, module.title) for module in modules}
    broken: dict[str, str] = {}  # the task by reason
    number = itertools.count()
    waiting = [(*Task(module.id, "text").rank, next(number), Task(module.id, "text"))
               for module in modules]
    size = workers or min(len(os.sched_getaffinity(0)), MOST_WORKERS)
    with WorkerPool(size, _workshop, roots) as pool:
        while pool.busy or waiting:
            while waiting and pool.free:
                task = heapq.heappop(waiting)[-1]
                tell(str(task))
                pool.give(task)
            for done in pool.results():
                tell(done)
                if isinstance(done, BrokenTask):
                    broken.setdefault(done.reason, str(done.task))
                    continue
                _enter(proofs[done.task.module], done)
                for task in _following(done, runs):
                    heapq.heappush(waiting, (*task.rank, next(number), task))
    return CourseProof(tuple(proofs.values()), tuple(strays),
                       "\n".join(f"{task}: {reason}" for reason, task in broken.items()),
                       time.monotonic() - started)


def _following(done: TaskResult, runs: int) -> Iterator[Task]:
    """Yields the tasks that follow from a result."""
    if done.task.run == 1 < runs and done.killer and done.drawn:
        yield replace(done.task, run=2, runs=runs - 1, killer=done.killer)
    if done.task.what != "text" or not done.sound:
        return
    for kind in ("solution", "exercise", "lesson", "self-test"):
        yield Task(done.task.module, kind)
    for mutant in done.mutants:
        yield Task(done.task.module, "mutant", mutant.id, 1)


def _enter(proof: Proof, done: TaskResult) -> None:
    """Adds a result to its module."""
    proof.seconds += done.seconds
    if done.outcomes:
        proof.by_task[done.task.what] = done.outcomes
    proof.mutants += done.mutants
    for place, mutant in enumerate(proof.mutants):
        if done.task.what == "mutant" and mutant.id == done.task.mutant:
            proof.mutants[place] = replace(
                mutant, runs=mutant.runs + done.task.runs, kills=mutant.kills + done.kills,
                case=done.killer if done.task.run == 1 else mutant.case,
                drawn=done.drawn if done.task.run == 1 else mutant.drawn,
                faults=tuple(dict.fromkeys((*mutant.faults, *done.faults))),
                seconds=mutant.seconds + done.seconds)
            return


@contextlib.contextmanager
def _workshop(roots: Roots) -> Iterator[Callable[[Task], TaskResult]]:
    """Provides a worker with the course and a sandbox, which warms up meanwhile."""
    os.environ["OMP_NUM_THREADS"] = "1"  # before the import of torch: workers share the cores
    with grader.Sandbox() as box:
        the_course = course.load(roots)
        starters = {track.folder: track.starter for track in the_course.tracks}

        def do(task: Task) -> TaskResult:
            module = the_course.find(task.module)
            return perform(task, module, starters[module.track], box)

        yield do


# ---------------------------------------------------------------------------------------------
# The tasks


def perform(task: Task, module: Module, starter: str, box: Sandbox) -> TaskResult:
    """Performs one task. Errors of an author's files are faults; others are raised."""
    started = time.monotonic()
    if task.what == "text":
        done = _text(task, module, starter)
    else:
        material = _material(module, starter)
        if task.what == "mutant":
            done = _mutant(task, material, box)
        else:
            done = TaskResult(task, tuple(_timed(_TASKS[task.what](material, box))))
    return replace(done, seconds=time.monotonic() - started)


@cache
def _material(module: Module, starter: str) -> Material:
    return module_files.read(module, starter)


def _text(task: Task, module: Module, starter: str) -> TaskResult:
    """Runs the checks that read files, and decides whether the others can run."""
    outcomes = [CheckOutcome("files", tuple(module_files.files(module)))]
    try:
        material = _material(module, starter)
    except Exception as error:
        if outcomes[0].passed:
            outcomes.append(CheckOutcome("the suite can be loaded", (_message(error),)))
        return TaskResult(task, tuple(outcomes), sound=False)
    checks = ((name, check(material)) for name, check in author.READ.items())
    outcomes += _timed(checks)
    mutants = tuple(MutantResult(m.id, m.title, m.codes) for m in material.suite.mutants)
    return TaskResult(task, tuple(outcomes), mutants=mutants)


def _message(error: Exception) -> str:
    return brief("".join(traceback.format_exception_only(error)))


def lesson_runs(material: Material) -> Iterator[str]:
    """Checks that ``lesson.py`` runs in an empty folder and prints something."""
    lesson = str(material.module.folder / "lesson.py")
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    with tempfile.TemporaryDirectory() as folder:
        try:
            ran = subprocess.run([sys.executable, lesson], cwd=folder, env=environment,
                                 stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                 errors="replace", timeout=LESSON_S)
        except subprocess.TimeoutExpired:
            yield f"lesson.py did not end within {LESSON_S:.0f} s"
            return
    if ran.returncode:
        last = ran.stderr.strip().rpartition("\n")[2]
        yield f"lesson.py ended with exit code {ran.returncode}: {brief(last)}"
    elif not ran.stdout.strip():
        yield "lesson.py prints nothing"


def exercise_imports(material: Material, box: Sandbox) -> Iterator[str]:
    """Checks that the exercise with its blanks can be imported in the sandbox."""
    from grader.processes.replies import Stopped
    from grader.processes.session import Session
    from grader.submission import source

    suite = material.suite
    try:
        submitted = source.read(material.module.folder / KERNEL, suite.files,
                                suite.kernel_file)
    except grader.UnreadableSubmission as error:
        yield _message(error)
        return
    if suite.compiles_graphs:
        box.expect("graphs")
    with Session(submitted, suite.entry, box) as session:
        try:
            session.ready()
        except Stopped as stop:
            yield f"the exercise cannot be imported: {brief(stop.finding.seen)}"


def self_test(material: Material) -> Iterator[str]:
    """Checks that the suite tells wrong answers from right ones, if it compares tensors."""
    from grader.judge.discrimination import examine

    if all(case.kind is Kind.CALL for case in material.cases):
        return
    try:
        yield from examine(material.suite).faults
    except Exception as error:  # of the suite's own functions
        yield _message(error)


def exercise_fails(material: Material, box: Sandbox) -> Iterator[str]:
    """Grades the untouched exercise; only slow ones have to compile."""
    try:
        report = grader.grade(material.module.folder / KERNEL, material.suite, sandbox=box,
                              effort="whole" if material.starter == "slow" else "values")
    except grader.UnreadableSubmission as error:
        yield _message(error)
        return
    yield from expectations.exercise_as_promised(material, report)


def solution_passes(material: Material, box: Sandbox) -> Iterator[str]:
    """Grades the solution with all cases."""
    report = grader.grade(material.module.solution, material.suite, sandbox=box)
    yield from expectations.solution_passes(report)


def kill(material: Material, mutant_id: str, box: Sandbox) -> tuple[str, list[str]]:
    """Grades a mutant; returns the case that killed it and the faults.

    After the killing case, only cases that tell known mistakes apart are run, as no other affects
    the diagnosis. If that has faults, all cases are run, as they may yield further codes.
    """
    with _mutated(material, mutant_id) as (mutant, kernel):
        suite = mutated.concerned(material, mutant)
        report = grader.grade(kernel, suite, sandbox=box, effort="diagnosis")
        if any(expectations.survives(mutant, report)):
            report = grader.grade(kernel, suite, sandbox=box, effort="values")
    killer = report.first_failure.name if report.first_failure else ""
    return killer, list(expectations.survives(mutant, report))


def kill_again(material: Material, mutant_id: str, killer: str, runs: int,
               box: Sandbox) -> list[list[str]]:
    """Repeats the case that killed a mutant, each time with fresh inputs.

    If it passes with these, all cases are run, as another one may fail. A case with limits, or one
    that a grade skips, is repeated in grades of its own, as checks of compiled code end with the
    first failure.

    Returns:
        For each run, why the mutant was not killed.
    """
    most = runs if mutated.is_of_values(material.suite, killer) else 1
    faults_by_run: list[list[str]] = []
    with _mutated(material, mutant_id) as (mutant, kernel):
        while left := runs - len(faults_by_run):
            suite, names = mutated.repeated(material.suite, killer, min(most, left))
            report = grader.grade(kernel, suite, sandbox=box, effort="values")
            verdicts = {result.name: result.verdict for result in report.results}
            judged = [name for name in names if verdicts.get(name) is not Verdict.SKIPPED] or names
            for name in judged:
                faults = list(expectations.survives(mutant, report, case=name))
                if verdicts.get(name) is Verdict.PASSED:
                    whole = grader.grade(kernel, mutated.concerned(material, mutant), sandbox=box,
                                         effort="first")
                    faults = list(expectations.survives(mutant, whole, whole=False))
                faults_by_run.append(faults)
    return faults_by_run


@contextlib.contextmanager
def _mutated(material: Material, mutant_id: str) -> Iterator[tuple[Mutant, Path]]:
    """Yields a mutant and its kernel.py in a temporary folder with all its files.

    Raises:
        ValueError: it cannot be applied.
    """
    mutant = next(m for m in material.suite.mutants if m.id == mutant_id)
    with tempfile.TemporaryDirectory() as folder:
        write(mutant.apply_to(material.solution), Path(folder))
        yield mutant, Path(folder) / KERNEL


def write(texts: Mapping[str, str], folder: Path) -> None:
    """Writes texts by their paths below a folder."""
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _mutant(task: Task, material: Material, box: Sandbox) -> TaskResult:
    if task.killer:
        faults_by_run = kill_again(material, task.mutant, task.killer, task.runs, box)
        return TaskResult(task, killer=task.killer, kills=faults_by_run.count([]),
                          faults=tuple(itertools.chain(*faults_by_run)))
    try:
        killer, faults = kill(material, task.mutant, box)
    except ValueError as error:  # it cannot be applied
        return TaskResult(task, faults=(str(error),), drawn=False)
    return TaskResult(task, killer=killer, kills=not faults, faults=tuple(faults),
                      drawn=mutated.draws(material.suite, killer))


Named = tuple[str, Iterator[str]]

_TASKS: dict[str, Callable[[Material, Sandbox], Sequence[Named]]] = {
    "solution": lambda material, box: [
        ("the solution passes everything", solution_passes(material, box))],
    "exercise": lambda material, box: [
        ("the exercise can be imported", exercise_imports(material, box)),
        (f"the exercise fails as a track of '{material.starter}' says",
         exercise_fails(material, box))],
    "lesson": lambda material, box: [("lesson.py runs", lesson_runs(material))],
    "self-test": lambda material, box: [
        ("the suite tells wrong answers from right ones", self_test(material))],
}


def _timed(checks: Iterable[tuple[str, Iterable[str]]]) -> list[CheckOutcome]:
    outcomes = []
    for name, faults in checks:
        started = time.monotonic()
        outcomes.append(CheckOutcome(name, tuple(faults), time.monotonic() - started))
    return outcomes
