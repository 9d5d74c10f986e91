"""Grades submissions of a class in a worker process, on one warm sandbox."""

import contextlib
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import grader
from grader.report import CaseResult, Kind, Report, Verdict, versions
from grader.sandbox import SandboxBroken
from grader.sandbox.processes import work
from grader.suite.override import overridden
from tritonlab.course import course
from tritonlab.course.course import EXERCISE, Course, Roots
from tritonlab.course.override import Override
from tritonlab.errors import BadCourse
from tritonlab.grading.grade import find_target, start_sandbox, suite_of
from tritonlab.version import __version__

if TYPE_CHECKING:
    from grader.sandbox import Sandbox
    from grader.suite import Suite

Effort = Literal["whole", "values"]  # values: a draft, which compiles nothing
LOOK_S = 0.2  # between two looks at the CPU time of a grade
TIME_LIMIT = "CPU time"  # the case of a grade that was ended
_SPOILED = frozenset(("R02", "R03", "R04"))  # a process had to be killed


@dataclass(frozen=True)
class Job:
    """One grade: files and all that decides the result. ``seed``: empty for fresh inputs."""

    module: str
    files: Mapping[str, bytes]
    seed: str = ""
    target: str = ""
    gpu: bool = False
    limit_cpu_s: float = 300
    override: Override = field(default_factory=Override)
    limit_memory_mb: float = 4000
    effort: Effort = "whole"


@dataclass(frozen=True)
class GradeOutcome:
    """A report as plain data and its cost, or the tier of isolation where no job was given."""

    report: Mapping[str, Any]
    cpu_s: float = 0.0
    seconds: float = 0.0
    tier: int = 0


class GradeWorker:
    """A warm sandbox and the suites of a course."""

    def __init__(self, the_course: Course) -> None:
        self._course = the_course
        self._box: Sandbox | None = None

    def __call__(self, job: Job | None) -> GradeOutcome:
        """Grades one submission; without a job, returns the isolation of the sandbox.

        Raises:
            BadCourse: the module, its hidden tests or an ignored case are missing.
            CannotGrade: the sandbox does not start.
        """
        if job is None:
            return GradeOutcome({}, tier=self._sandbox().isolation.tier)
        suite = suite_for(self._course, job.module, job.override)
        with tempfile.TemporaryDirectory(prefix="tritonlab-class-") as folder:
            for name, content in job.files.items():
                path = Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            return self._graded(Path(folder, EXERCISE), suite, job)

    def _graded(self, kernel: Path, suite: "Suite", job: Job) -> GradeOutcome:
        box = self._sandbox()
        box.most_resident = int(job.limit_memory_mb * 1e6)
        started, before = time.monotonic(), work(os.getpid())[0]
        over = threading.Event()
        try:
            with _limited(before + job.limit_cpu_s, over):
                report = grader.grade(
                    kernel, suite, seed=job.seed or None, target=find_target(job.target),
                    gpu="found" if job.gpu else "never", sandbox=box, cancelled=over,
                    effort="uncompiled" if job.effort == "values" else "whole")
        except grader.UnreadableSubmission as error:
            report = _undecided(suite, Verdict.FAILED, str(error))
        except SandboxBroken:
            self.close()
            raise
        except grader.Cancelled:
            report = _undecided(suite, Verdict.INCONCLUSIVE, "The grade was ended after "
                                f"{job.limit_cpu_s:g} s of CPU time, the limit in class.toml.")
        # The students do not know the seed, so a repeated one takes nothing from the evidence.
        report = replace(report, repeated=False)
        cpu_s = work(os.getpid())[0] - before
        if report.reason or over.is_set() or any(f.code in _SPOILED for f in report.findings()):
            self.close()
        return GradeOutcome(report.to_dict(), round(cpu_s, 2), round(time.monotonic() - started, 2))

    def _sandbox(self) -> "Sandbox":
        if self._box is None:
            self._box = start_sandbox()
        return self._box

    def close(self) -> None:
        """Ends the sandbox; the next grade starts a new one."""
        if self._box is not None:
            self._box.close()
            self._box = None


@contextlib.contextmanager
def workshop(roots: Roots) -> Iterator[Callable[[Job | None], GradeOutcome]]:
    """Provides a worker for the course in these folders."""
    worker = GradeWorker(course.load(roots))
    try:
        yield worker
    finally:
        worker.close()


def suite_for(the_course: Course, module_id: str, override: Override) -> "Suite":
    """Loads the hidden tests of a module, changed as a class asks.

    Raises:
        BadCourse: there are none, or the override does not fit them.
    """
    module = the_course.find(module_id)
    try:
        return overridden(suite_of(module), **asdict(override))
    except FileNotFoundError as error:
        raise BadCourse(f"{module_id} has no hidden tests at {module.suite}.") from error
    except ValueError as error:
        raise BadCourse(f"The override of {module_id} in class.toml cannot be applied: {error}.",
                        "Edit it, then repeat the command.") from error


def _undecided(suite: "Suite", verdict: Verdict, reason: str) -> Report:
    """Returns the report of a grade that has no results."""
    return Report(
        suite=suite.name, source_sha256="", suite_sha256=suite.sha256, grader_version=__version__,
        versions=versions(), engine="", isolation="", seed="",
        results=(CaseResult(TIME_LIMIT, Kind.CORRECTNESS, verdict, reason=reason),))


@contextlib.contextmanager
def _limited(most_cpu_s: float, over: threading.Event) -> Iterator[None]:
    """Sets ``over`` once this process and its descendants have used that much CPU time."""
    done = threading.Event()

    def look() -> None:
        while not done.wait(LOOK_S):
            if work(os.getpid())[0] > most_cpu_s:
                over.set()
                return

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
