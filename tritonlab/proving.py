"""Proving: every check of every module, several at a time in processes that stay warm."""

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
from tritonlab import author, course, graded, mutated, written
from tritonlab.course import Module, Roots
from tritonlab.crew import Broken, Crew
from tritonlab.errors import TritonlabError, brief
from tritonlab.proof import Done, Killed, Outcome, Proof, Proved, Task
from tritonlab.written import KERNEL, Material

if TYPE_CHECKING:
    from grader.sandbox import Sandbox
    from grader.suite import Mutant

RUNS = 5  # of every mutant, each with fresh inputs
MOST_WORKERS = 8  # tasks that are done at a time
ROOM = 4  # tasks in one process, which holds torch and a warm sandbox: it takes 6 s to start both,
# about a gibibyte, and a seventh of the processor time of a grade, the rest being the sandbox's
LESSON_S = 120.0


# ---------------------------------------------------------------------------------------------
# All of it


def prove(modules: Sequence[Module], roots: Roots, strays: Sequence[str] = (), *, runs: int = RUNS,
          workers: int | None = None, on_event: Callable[[object], None] | None = None) -> Proved:
    """Check modules, several tasks at a time.

    Args:
        modules: to be checked.
        roots: where their course was read from; the workers read it again.
        strays: faults of the course as a whole.
        runs: of each mutant. One that fails in a case without random inputs, such as a question to
            host code, is run once: it would fail alike again.
        workers: tasks at a time; by default one for each core that we may use.
        on_event: is told each task as it begins, as a str, and what came of it.

    Raises:
        TritonlabError: there is no module to check.
    """
    if not modules:
        raise TritonlabError("There is no module to check.",
                             "`tritonlab new TRACK/SLUG` makes one.")
    started = time.monotonic()
    tell = on_event or (lambda event: None)
    proofs = {module.id: Proof(module.id, module.title) for module in modules}
    broken: dict[str, str] = {}  # the reason, and what was being done
    number = itertools.count()
    waiting = [(*Task(module.id, "text").rank, next(number), Task(module.id, "text"))
               for module in modules]
    size = workers or min(len(os.sched_getaffinity(0)), MOST_WORKERS)
    with Crew(size, _workshop, roots, room=ROOM) as crew:
        while crew.busy or (waiting and crew.free):
            while waiting and crew.free:
                task = heapq.heappop(waiting)[-1]
                tell(str(task))
                crew.give(task)
            for done in crew.results():
                tell(done)
                if isinstance(done, Broken):
                    broken.setdefault(done.reason, str(done.task))
                    continue
                _enter(proofs[done.task.module], done)
                for task in _following(done, runs):
                    heapq.heappush(waiting, (*task.rank, next(number), task))
    return Proved(tuple(proofs.values()), tuple(strays),
                  "\n".join(f"{task}: {reason}" for reason, task in broken.items()),
                  time.monotonic() - started)


def _following(done: Done, runs: int) -> Iterator[Task]:
    """What is left to do once the files of a module were read, or a mutant was run once."""
    if done.task.run == 1 < runs and done.killer and done.drawn:
        yield replace(done.task, run=2, runs=runs - 1, killer=done.killer)
    if done.task.what != "text" or not done.sound:
        return
    for what in ("solution", "exercise", "lesson", "self-test"):
        yield Task(done.task.module, what)
    for mutant in done.mutants:
        yield Task(done.task.module, "mutant", mutant.id, 1)


def _enter(proof: Proof, done: Done) -> None:
    """Put a result where it belongs."""
    proof.seconds += done.seconds
    if done.outcomes:
        proof.found[done.task.what] = done.outcomes
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
def _workshop(roots: Roots) -> Iterator[Callable[[Task], Done]]:
    """What a worker sets up: the course, and a sandbox that warms up beside."""
    os.environ["OMP_NUM_THREADS"] = "1"  # before torch is loaded: the workers share the cores
    with grader.Sandbox() as box:
        the_course = course.load(roots)
        starters = {track.folder: track.starter for track in the_course.tracks}

        def do(task: Task) -> Done:
            module = the_course.find(task.module)
            return perform(task, module, starters[module.track], box)

        yield do


# ---------------------------------------------------------------------------------------------
# The tasks


def perform(task: Task, module: Module, starter: str, box: Sandbox) -> Done:
    """Do one task. What the files of an author raise is a fault; what we raise is not caught."""
    started = time.monotonic()
    if task.what == "text":
        done = _text(task, module, starter)
    else:
        material = _material(module, starter)
        if task.what == "mutant":
            done = _mutant(task, material, box)
        else:
            done = Done(task, tuple(_timed(_TASKS[task.what](material, box))))
    return replace(done, seconds=time.monotonic() - started)


@cache
def _material(module: Module, starter: str) -> Material:
    return written.read(module, starter)


def _text(task: Task, module: Module, starter: str) -> Done:
    """All that is found out by reading; whether the rest can be done at all."""
    outcomes = [Outcome("files", tuple(written.files(module)))]
    try:
        material = _material(module, starter)
    except Exception as error:
        if outcomes[0].passed:
            outcomes.append(Outcome("the suite can be loaded", (_said(error),)))
        return Done(task, tuple(outcomes), sound=False)
    checks = ((name, check(material)) for name, check in author.READ.items())
    outcomes += _timed(checks)
    mutants = tuple(Killed(m.id, m.title, m.codes) for m in material.suite.mutants)
    return Done(task, tuple(outcomes), mutants=mutants)


def _said(error: Exception) -> str:
    return brief("".join(traceback.format_exception_only(error)))


def lesson_runs(material: Material) -> Iterator[str]:
    """``lesson.py`` runs in an empty folder, ends with 0 and prints something."""
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
    """The exercise can be imported where it is graded, whatever is blank in it."""
    from grader import source
    from grader.outcome import Stopped
    from grader.session import Session

    suite = material.suite
    try:
        submitted = source.read(material.module.folder / KERNEL, suite.files,
                                suite.kernel_file)
    except grader.UnreadableSubmission as error:
        yield _said(error)
        return
    if suite.compiles_graphs:
        box.expect("graphs")
    with Session(submitted, suite.entry, box) as session:
        try:
            session.ready()
        except Stopped as stop:
            yield f"the exercise cannot be imported: {brief(stop.finding.seen)}"


def self_test(material: Material) -> Iterator[str]:
    """The suite tells wrong answers from right ones, where tensors are compared at all."""
    from grader.selftest import examine

    if all(case.kind is Kind.CALL for case in material.cases):
        return
    try:
        yield from examine(material.suite).faults
    except Exception as error:  # of the suite's own functions
        yield _said(error)


def exercise_fails(material: Material, box: Sandbox) -> Iterator[str]:
    """The exercise that nobody has touched, graded.

    One that only has to become faster has to compile; of others, nothing has to that fails anyway.
    """
    try:
        report = grader.grade(material.module.folder / KERNEL, material.suite, sandbox=box,
                              effort="whole" if material.starter == "slow" else "values")
    except grader.UnreadableSubmission as error:
        yield _said(error)
        return
    yield from graded.exercise_as_promised(material, report)


def solution_passes(material: Material, box: Sandbox) -> Iterator[str]:
    """The solution, graded whole."""
    report = grader.grade(material.module.solution, material.suite, sandbox=box)
    yield from graded.solution_passes(report)


def kill(material: Material, mutant_id: str, box: Sandbox) -> tuple[str, list[str]]:
    """Grade a mutant: the case that killed it, and why that is not as its author says.

    After the case that kills it, only those are run that tell known mistakes apart: no other one
    has a part in the diagnosis. Where that finds fault, all are run, as they may hold further
    codes. What is the solution in all respects is left to the solution's own grade.
    """
    with _mutated(material, mutant_id) as (mutant, kernel):
        suite = mutated.concerned(material, mutant)
        report = grader.grade(kernel, suite, sandbox=box, effort="diagnosis")
        if any(graded.survives(mutant, report)):
            report = grader.grade(kernel, suite, sandbox=box, effort="values")
    killer = report.first_failure.name if report.first_failure else ""
    return killer, list(graded.survives(mutant, report))


def kill_again(material: Material, mutant_id: str, killer: str, runs: int,
               box: Sandbox) -> list[list[str]]:
    """Run the case that killed a mutant several times, each with fresh inputs.

    Where it passes with these, another case may fail: then all are run, as in any grade. What the
    compiler made of a launch is asked until a case has failed, so that one of those is run in a
    grade of its own each time. So is what a grade skips, as where no file can be imported.

    Returns:
        For each run, why it was not killed.
    """
    most = runs if mutated.is_of_values(material.suite, killer) else 1
    found: list[list[str]] = []
    with _mutated(material, mutant_id) as (mutant, kernel):
        while len(found) < runs:
            suite, names = mutated.repeated(material.suite, killer, min(most, runs - len(found)))
            report = grader.grade(kernel, suite, sandbox=box, effort="values")
            said = {result.name: result.verdict for result in report.results}
            tried = [name for name in names if said.get(name) is not Verdict.SKIPPED] or names
            for name in tried:
                faults = list(graded.survives(mutant, report, case=name))
                if said.get(name) is Verdict.PASSED:
                    whole = grader.grade(kernel, mutated.concerned(material, mutant), sandbox=box,
                                         effort="first")
                    faults = list(graded.survives(mutant, whole, whole=False))
                found.append(faults)
    return found


@contextlib.contextmanager
def _mutated(material: Material, mutant_id: str) -> Iterator[tuple[Mutant, Path]]:
    """A mutant, and its kernel.py in a folder with all its files.

    Raises:
        ValueError: it cannot be applied.
    """
    mutant = next(m for m in material.suite.mutants if m.id == mutant_id)
    with tempfile.TemporaryDirectory() as folder:
        write(mutant.apply_to(material.solution), Path(folder))
        yield mutant, Path(folder) / KERNEL


def write(texts: Mapping[str, str], folder: Path) -> None:
    """Write files by their paths below a folder."""
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _mutant(task: Task, material: Material, box: Sandbox) -> Done:
    if task.killer:
        found = kill_again(material, task.mutant, task.killer, task.runs, box)
        return Done(task, killer=task.killer, kills=found.count([]),
                    faults=tuple(itertools.chain(*found)))
    try:
        killer, faults = kill(material, task.mutant, box)
    except ValueError as error:  # it cannot be applied
        return Done(task, faults=(str(error),), drawn=False)
    return Done(task, killer=killer, kills=not faults, faults=tuple(faults),
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


def _timed(checks: Iterable[tuple[str, Iterable[str]]]) -> list[Outcome]:
    outcomes = []
    for name, faults in checks:
        started = time.monotonic()
        found = tuple(faults)
        outcomes.append(Outcome(name, found, time.monotonic() - started))
    return outcomes
