"""Runs every check of every module, several at a time in warm processes."""

import bisect
import contextlib
import itertools
import os
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass, field, replace
from functools import cache, partial
from typing import Any

import grader
from grader.processes.cache import FOLDER
from grader.report import EXIT_FAILED, EXIT_GRADER_BROKE, EXIT_PASSED, Kind
from grader.sandbox import Sandbox
from grader.submission import source
from grader.suite.mistakes import SuiteMistake, raised_in_suite
from tritonlab.authoring import checks as author
from tritonlab.authoring import expectations, module_files, proofs
from tritonlab.authoring import mutants as mutated
from tritonlab.authoring.module_files import (
    KERNEL,
    MUTANTS_NEEDED,
    VARIANTS_NEEDED,
    Material,
)
from tritonlab.authoring.proofs import Fact
from tritonlab.authoring.worker_pool import WorkerPool
from tritonlab.course import course
from tritonlab.course.course import SHIPPED, Course, Module, Roots
from tritonlab.errors import BadCourse, TritonlabError, brief

RUNS = 5  # of every mutant, each with fresh inputs
MOST_WORKERS = 8  # processes, each with torch and a warm sandbox: about a gibibyte, 6 s to start
LESSON_S = 120.0
# Longest first, so that short tasks keep all workers busy to the end.
_ORDER = ("text", "solution", "exercise", "lesson", "self-test", "variants", "mutant")


@dataclass(frozen=True)
class Task:
    """A task of one worker. Runs of a mutant are counted from 1; ``run`` is the first.

    Further runs repeat ``killer``, the case that killed it, with fresh inputs.
    """

    module: str
    kind: str
    mutant: str = ""
    run: int = 0
    runs: int = 1
    killer: str = ""

    @property
    def rank(self) -> tuple[int, int]:
        return _ORDER.index(self.kind), self.run

    def __str__(self) -> str:
        if not self.mutant:
            return f"{self.module}: {self.kind}"
        last = self.run + self.runs - 1
        runs = f"runs {self.run} to {last}" if last > self.run else f"run {self.run}"
        return f"{self.module}: mutant {self.mutant}, {runs}"


@dataclass(frozen=True)
class CheckOutcome:
    """The result of one check: its faults as sentences. ``cached``: it was proved before."""

    name: str
    faults: tuple[str, ...] = ()
    seconds: float = 0.0
    cached: bool = False

    @property
    def passed(self) -> bool:
        return not self.faults


@dataclass(frozen=True)
class MutantResult:
    """A row of the kill matrix, with the ``faults`` of the runs that did not kill the mutant.

    ``case`` is the one that killed it in the first run. ``drawn``: it has random inputs, so that
    runs may differ. ``cached``: all runs were made before.
    """

    id: str
    title: str
    codes: tuple[str, ...]
    case: str = ""
    drawn: bool = True
    kills: int = 0
    runs: int = 0
    faults: tuple[str, ...] = ()
    seconds: float = 0.0
    cached: bool = False

    @property
    def passed(self) -> bool:
        return 0 < self.kills == self.runs


@dataclass(frozen=True)
class TaskResult:
    """The result of a task.

    ``sound``: the module can be graded at all. ``variants``: it has right ones to grade.
    """

    task: Task
    outcomes: tuple[CheckOutcome, ...] = ()
    mutants: tuple[MutantResult, ...] = ()  # all without a run, or one with the runs of this task
    sound: bool = True
    variants: bool = False
    seconds: float = 0.0


@dataclass
class Proof:
    """All results of one module."""

    module: str
    title: str
    by_task: dict[str, tuple[CheckOutcome, ...]] = field(default_factory=dict)
    mutants: list[MutantResult] = field(default_factory=list)
    seconds: float = 0.0  # of all workers
    variants: int = 0  # right solutions that differ from the module's

    @property
    def outcomes(self) -> list[CheckOutcome]:
        """The results in the order of the tasks."""
        return [outcome for kind in _ORDER for outcome in self.by_task.get(kind, ())]

    @property
    def lacks(self) -> bool:
        """Whether the module has fewer mutants or variants than it needs, which fails nothing."""
        return len(self.by_task) > 1 and (
            len(self.mutants) < MUTANTS_NEEDED or self.variants < VARIANTS_NEEDED)

    @property
    def passed(self) -> bool:
        return all(outcome.passed for outcome in self.outcomes) and \
            bool(self.mutants) and all(mutant.passed for mutant in self.mutants)


@dataclass(frozen=True)
class CourseProof:
    """All results. ``strays`` are faults of the course, not of a module."""

    proofs: tuple[Proof, ...]
    strays: tuple[str, ...] = ()
    broken: str = ""  # the failure of the check itself
    seconds: float = 0.0

    @property
    def passed(self) -> bool:
        return bool(self.proofs) and not self.strays and not self.broken and \
            all(proof.passed for proof in self.proofs)

    @property
    def cached(self) -> dict[str, int]:
        """Counts the checks and mutants with a cached proof."""
        return {"checks": sum(one.cached for proof in self.proofs for one in proof.outcomes),
                "mutants": sum(one.cached for proof in self.proofs for one in proof.mutants)}

    @property
    def exit_code(self) -> int:
        if self.broken:
            return EXIT_GRADER_BROKE
        return EXIT_PASSED if self.passed else EXIT_FAILED

    def to_dict(self) -> dict[str, Any]:
        """Returns plain data of ``schema`` 1."""
        return {
            "schema": 1, "passed": self.passed, "exit_code": self.exit_code,
            "seconds": self.seconds, "cached": self.cached, "broken": self.broken,
            "strays": list(self.strays),
            "modules": [{
                "module": proof.module, "title": proof.title, "passed": proof.passed,
                "seconds": proof.seconds, "variants": proof.variants,
                "needs": {"mutants": MUTANTS_NEEDED, "variants": VARIANTS_NEEDED},
                "checks": [{"passed": o.passed, **asdict(o)} for o in proof.outcomes],
                "mutants": [{"passed": m.passed, **asdict(m)} for m in proof.mutants],
            } for proof in self.proofs],
        }


def prove(modules: Sequence[Module], roots: Roots, strays: Sequence[str] = (), *,
          runs: int = RUNS, anew: bool = False, workers: int | None = None,
          on_event: Callable[[object], None] | None = None) -> CourseProof:
    """Checks modules, several tasks at a time.

    Args:
        roots: the folders of their course, which workers read again.
        strays: faults of the course as a whole.
        runs: of each mutant. One that fails in a case without random inputs, such as a question to
            host code, is run once: it would fail alike again.
        anew: use no proof and no compiled code of an earlier check, and keep none.
        workers: tasks at a time; by default one for each available core.
        on_event: called with each task as a str when it begins, and with its future at the end.

    Raises:
        TritonlabError: there is no module to check.
    """
    if not modules:
        raise TritonlabError("There is no module to check.",
                             "`tritonlab new TRACK/SLUG` creates one.")
    started = time.monotonic()
    tell = on_event or (lambda event: None)
    proofs = {module.id: Proof(module.id, module.title, variants=len(module_files.variants(module)))
              for module in modules}
    broken: dict[str, str] = {}  # the task by reason
    waiting = [Task(module.id, "text") for module in modules]  # by rank
    begun: dict[Future[TaskResult], Task] = {}
    size = workers or min(len(os.sched_getaffinity(0)), MOST_WORKERS)
    with contextlib.ExitStack() as cleanup:
        own_cache = cleanup.enter_context(tempfile.TemporaryDirectory()) if anew else None
        pool = cleanup.enter_context(WorkerPool(size, _workshop, roots, own_cache))
        while begun or waiting:
            while waiting and len(begun) < size:
                task = waiting.pop(0)
                tell(str(task))
                begun[pool.submit(task)] = task
            for future in wait(begun, return_when=FIRST_COMPLETED).done:
                task = begun.pop(future)
                tell(future)
                try:
                    result = future.result()
                except BrokenProcessPool:
                    broken.setdefault("its worker process ended unexpectedly", str(task))
                except Exception as error:
                    broken.setdefault("".join(traceback.format_exception(error)), str(task))
                else:
                    _enter(proofs[task.module], result)
                    for following in _following(result, runs):
                        bisect.insort(waiting, following, key=lambda task: task.rank)
    return CourseProof(tuple(proofs.values()), tuple(strays),
                       "\n".join(f"{task}: {reason}" for reason, task in broken.items()),
                       time.monotonic() - started)


def _following(done: TaskResult, runs: int) -> Iterator[Task]:
    """Yields the tasks that follow from a result."""
    task = done.task
    if task.kind == "text" and done.sound:
        yield from (Task(task.module, kind) for kind in _TASKS
                    if kind != "variants" or done.variants)
        yield from (Task(task.module, "mutant", mutant.id, 1) for mutant in done.mutants)
    elif task.run == 1 < runs and done.mutants[0].case and done.mutants[0].drawn:
        yield replace(task, run=2, runs=runs - 1, killer=done.mutants[0].case)


def _enter(proof: Proof, done: TaskResult) -> None:
    """Adds a result to its module."""
    proof.seconds += done.seconds
    if done.outcomes:
        proof.by_task[done.task.kind] = done.outcomes
    if done.task.kind == "text":
        proof.mutants += done.mutants
        return
    for new in done.mutants:
        place = [mutant.id for mutant in proof.mutants].index(new.id)
        old = proof.mutants[place]
        proof.mutants[place] = replace(
            new, runs=old.runs + new.runs, kills=old.kills + new.kills,
            faults=tuple(dict.fromkeys(old.faults + new.faults)),
            seconds=old.seconds + done.seconds, cached=new.cached and (old.cached or not old.runs))


@contextlib.contextmanager
def _workshop(roots: Roots, own_cache: str | None) -> Iterator[Callable[[Task], TaskResult]]:
    """Provides a worker with the course and a sandbox, which warms up meanwhile.

    Args:
        own_cache: the folder of a cache for this check alone.
    """
    os.environ["OMP_NUM_THREADS"] = "1"  # before the import of torch: workers share the cores
    if own_cache:
        os.environ[FOLDER] = own_cache
    with grader.Sandbox() as box:
        yield partial(_perform, course.load(roots), box)


# The tasks

_material = cache(module_files.read)


def _perform(the_course: Course, box: Sandbox, task: Task) -> TaskResult:
    """Performs one task. Errors of an author's files are faults; others are raised."""
    started = time.monotonic()
    module = the_course.find(task.module)
    starter = next(t.starter for t in the_course.tracks if t.folder == module.track)
    if task.kind == "text":
        done = _text(task, the_course, module, starter)
    elif task.kind == "mutant":
        done = TaskResult(task, mutants=(_mutant(task, _material(module, starter), box),))
    else:
        done = TaskResult(task, check(task.kind, _material(module, starter), box))
    return replace(done, seconds=time.monotonic() - started)


def _text(task: Task, the_course: Course, module: Module, starter: str) -> TaskResult:
    """Runs the checks that grade nothing, and decides whether the others can run."""
    from grader.judge import discrimination

    outcomes = [CheckOutcome("files", tuple(module_files.files(module))),
                CheckOutcome("prerequisites",
                             tuple(module_files.place_in_course(the_course, module)))]
    try:
        material = _material(module, starter)
    except Exception as error:
        if outcomes[0].passed:
            outcomes.append(CheckOutcome("the suite can be loaded", (_message(error),)))
        return TaskResult(task, tuple(outcomes), sound=False)
    for name, check_files in author.READ.items():
        started = time.monotonic()
        outcomes.append(CheckOutcome(name, tuple(check_files(material)),
                                     time.monotonic() - started))
    outcomes.append(CheckOutcome("reference, tolerance and cost answer",
                                 tuple(discrimination.answers(material.suite))))
    if not outcomes[-1].passed:  # every grade would end there
        return TaskResult(task, tuple(outcomes), sound=False)
    mutants = tuple(MutantResult(m.id, m.title, m.codes) for m in material.suite.mutants)
    return TaskResult(task, tuple(outcomes), mutants, variants=module.course != SHIPPED
                      and bool(module_files.variants(module)))


def _message(error: Exception) -> str:
    if isinstance(error, BadCourse):
        return str(error.__cause__ or error)
    if isinstance(error, SuiteMistake):
        return str(error)
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
            yield f"lesson.py did not finish within {LESSON_S:.0f} s"
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

    suite = material.suite
    try:
        submitted = source.read(material.module.folder / KERNEL, suite.files, suite.kernel_file)
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

    if all(case.kind is Kind.CALL for case in material.suite.all_cases):
        return
    try:
        yield from examine(material.suite).faults
    except Exception as error:  # of the suite's own functions
        yield str(raised_in_suite(error) or _message(error))


def exercise_fails(material: Material, box: Sandbox) -> Iterator[str]:
    """Grades the untouched exercise: slow ones with all cases, others up to the first failure."""
    try:
        report = grader.grade(material.module.folder / KERNEL, material.suite, sandbox=box,
                              effort="whole" if material.starter == "slow" else "diagnosis")
    except grader.UnreadableSubmission as error:
        yield _message(error)
        return
    yield from expectations.exercise_as_promised(material, report)


def variants_pass(material: Material, box: Sandbox) -> Iterator[str]:
    """Grades right solutions of an own course; the suite has to pass each."""
    for path in module_files.variants(material.module):
        if path.suffix == ".py":
            report = grader.grade(path, material.suite, sandbox=box, effort="uncompiled")
            yield from (f"variants/…/{path.name}: {fault}. Correct it, or the suite"
                        for fault in expectations.variant_passes(report))


def solution_passes(material: Material, box: Sandbox) -> Iterator[str]:
    """Grades the solution with all cases."""
    report = grader.grade(material.module.solution, material.suite, sandbox=box)
    yield from expectations.solution_passes(report)


def _mutant(task: Task, material: Material, box: Sandbox) -> MutantResult:
    if not task.killer:
        return kill(material, task.mutant, box)
    mutant = next(m for m in material.suite.mutants if m.id == task.mutant)
    result = MutantResult(mutant.id, mutant.title, mutant.codes, task.killer, runs=task.runs)
    fact = Fact(f"mutant {task.mutant} is killed by '{task.killer}' in {task.runs} more runs",
                material, ("solutions", "suites"))
    if proofs.recall(fact) is not None:
        return replace(result, kills=task.runs, cached=True)
    faults_by_run = mutated.kill_again(material, mutant.id, task.killer, task.runs, box)
    if not any(faults_by_run):
        proofs.keep(fact)
    return replace(result, kills=faults_by_run.count([]),
                   faults=tuple(itertools.chain(*faults_by_run)))


def kill(material: Material, mutant_id: str, box: Sandbox) -> MutantResult:
    """Runs a mutant for the first time, unless the proof that it is killed was kept."""
    mutant = next(m for m in material.suite.mutants if m.id == mutant_id)
    result = MutantResult(mutant.id, mutant.title, mutant.codes, runs=1)
    fact = Fact(f"mutant {mutant_id} is killed with its diagnosis", material,
                ("solutions", "suites"))
    if killer := proofs.recall(fact):
        return replace(result, case=killer, kills=1, cached=True,
                       drawn=mutated.draws(material.suite, killer))
    try:
        killer, faults = mutated.kill(material, mutant.id, box)
    except ValueError as error:  # it cannot be applied
        return replace(result, faults=(str(error),), drawn=False)
    if not faults:
        proofs.keep(fact, killer)
    return replace(result, case=killer, kills=int(not faults), faults=tuple(faults),
                   drawn=mutated.draws(material.suite, killer))


_TASKS: Mapping[str, Mapping[str, Callable[[Material, Sandbox], Iterator[str]]]] = {
    "solution": {"the solution passes everything": solution_passes},
    "exercise": {"the exercise can be imported": exercise_imports,
                 "the exercise fails as a track of '{starter}' says": exercise_fails},
    "lesson": {"lesson.py runs": lambda material, box: lesson_runs(material)},
    "self-test": {
        "the suite tells wrong answers from right ones": lambda material, box: self_test(material)},
    "variants": {"right variants pass": variants_pass},
}
_FOLDERS = {"solution": ("solutions", "suites"), "exercise": ("tracks", "suites"),
            "lesson": ("tracks",), "self-test": ("suites",),
            "variants": ("suites", "variants")}  # whose files decide


def check(kind: str, material: Material, box: Sandbox) -> tuple[CheckOutcome, ...]:
    """Runs the checks of one kind of task that were not proved before."""
    outcomes = []
    for fact, prove in zip(facts(kind, material), _TASKS[kind].values(), strict=True):
        started = time.monotonic()
        faults, cached = proofs.faults(fact, partial(prove, material, box))
        outcomes.append(CheckOutcome(fact.statement, faults, time.monotonic() - started, cached))
    return tuple(outcomes)


def facts(kind: str, material: Material) -> list[Fact]:
    """Returns what the checks of one kind of task prove."""
    return [Fact(name.format(starter=material.starter), material, _FOLDERS[kind])
            for name in _TASKS[kind]]
