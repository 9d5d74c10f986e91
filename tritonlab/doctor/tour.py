"""The tour: a newcomer's first minute, from an untouched exercise to a certificate."""

import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import grader
from grader.report import Finding, Report, Verdict
from grader.suite import Mutant
from tritonlab.course.course import Course, Module
from tritonlab.errors import BadCourse, TritonlabError
from tritonlab.grading import grade as grading
from tritonlab.grading.grade import OnEvent
from tritonlab.progress import certificate
from tritonlab.workspace import workspace
from tritonlab.workspace.submission import Submission

MODULE = "track1/softmax"
MUTANT = "b"


@dataclass(frozen=True)
class TourStep:
    """One step: its purpose, its outcome, and whether that is the expected one."""

    title: str
    why: str
    said: str
    expected: str
    ok: bool
    finding: Finding | None = None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"finding": self.finding.to_dict() if self.finding else None}


def steps(course: Course, on_event: OnEvent) -> Iterator[TourStep]:
    """Runs start, three grades and the certificate in a temporary folder.

    Raises:
        BadCourse: the module of the tour, its solution or its typical mistake is missing.
        CannotGrade: the grader does not start.
        TritonlabError: the course is a build for students, without solutions.
    """
    if any(one.public_only for one in course.modules):
        raise TritonlabError("The tour shows a solution, and this build for students has none.",
                             f"`tritonlab start {course.example}` begins.")
    module = course.find(MODULE)
    solution, wrong, mutant = _versions(module)
    with (tempfile.TemporaryDirectory(prefix="tritonlab-tour-") as folder,
          grading.start_sandbox() as sandbox):
        place, _ = workspace.start(module, Path(folder) / workspace.DEFAULT, course.version)
        journal = place.journal(course)
        journal.append("started", module.id)
        kernel = place.kernel(module)
        yield TourStep("Start a module", f"`tritonlab start {module.id}` copies the exercise, its "
                       "lesson and a worked example into your workspace.",
                       f"Copied to {workspace.DEFAULT}/{module.id}.", "the exercise is there",
                       kernel.is_file())
        submission = Submission(module, kernel, place)

        def grade() -> Report:
            report = grading.grade(submission, on_event=on_event, sandbox=sandbox)
            details = grading.record(submission, report, journal.read())
            journal.append("graded", module.id, **details)
            return report

        yield _failing("Grade it untouched", "The grader lists the blanks, and runs nothing until "
                       "they are filled in.", grade(), "P01")
        kernel.write_text(wrong, encoding="utf-8")
        yield _failing(f"Make a typical mistake: {mutant.title}",
                       "The hidden tests find it, and the diagnosis explains it.",
                       grade(), mutant.codes[0])
        kernel.write_text(solution, encoding="utf-8")
        report = grade()
        yield TourStep("Get it right", "A pass states what was verified.", _outcome(report),
                       "every check passes", report.verdict is Verdict.PASSED, _first(report))
        earned = certificate.build(course, journal.read())
        entry = earned.entry(module)
        total = earned.tracks[module.id.partition("/")[0]]
        yield TourStep("Look at the certificate", "Every grade is recorded; the certificate "
                       "summarizes the record, and all of it can be graded again.",
                       f"{module.id} is {entry.state}, evidence: {entry.evidence or 'none'}. "
                       f"Track 1 stands at {total}, the course at {earned.core}.",
                       "the module counts as passed", entry.state is certificate.ModuleState.PASSED)


def _versions(module: Module) -> tuple[str, str, Mutant]:
    """Returns the solution, the solution with the tour's typical mistake, and that mistake."""
    try:
        solution = module.solution.read_text(encoding="utf-8")
        suite = grader.load_suite(module.suite)
        mutant = next(m for m in suite.mutants if m.id == MUTANT)
        return solution, mutant.apply(solution), mutant
    except (OSError, StopIteration, ValueError) as error:
        raise BadCourse(f"The tour needs the solution of {module.id} and its mutant "
                        f"{MUTANT!r}: {error}") from error


def _failing(title: str, why: str, report: Report, code: str) -> TourStep:
    finding = _first(report)
    ok = report.verdict is Verdict.FAILED and finding is not None and finding.code == code
    return TourStep(title, why, _outcome(report), f"the grade fails with {code}", ok, finding)


def _first(report: Report) -> Finding | None:
    failure = report.first_failure
    return failure.findings[0] if failure and failure.findings else None


def _outcome(report: Report) -> str:
    passed, total = report.count(Verdict.PASSED), len(report.deciding)
    why = f" {report.reason}" if report.reason else ""
    return f"{report.verdict}: {passed} of {total} checks passed in {report.seconds:.1f} s.{why}"
