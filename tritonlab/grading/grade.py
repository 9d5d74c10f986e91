"""Grades one exercise and records the result."""

import contextlib
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grader
from grader.engine.compiler import targets
from grader.report import CaseResult, Report, Step, Verdict
from grader.submission import source
from tritonlab import errors
from tritonlab.course.course import Course, HintGroup, Module
from tritonlab.errors import BadCourse, CannotGrade, NotSaved, TritonlabError, UnusableFile, brief
from tritonlab.grading import ahead
from tritonlab.progress import caches, certificate
from tritonlab.progress.journal import JournalReading
from tritonlab.workspace import kept_versions, passed_sources
from tritonlab.workspace.submission import Submission

if TYPE_CHECKING:
    from grader.judge.draws import Prepared
    from grader.judge.passed_runs import PassedRuns
    from grader.sandbox import Sandbox
    from grader.suite import Suite

GATE = "every launch compiles"  # how the name of the compile check begins
SEED = re.compile(r"[0-9a-f]{1,64}")

OnEvent = Callable[[CaseResult | str], None]


def find_target(name: str) -> targets.Target:
    """Returns a GPU to compile for, by name; raises TritonlabError if none has it."""
    try:
        return targets.find(name)
    except targets.UnknownTarget as error:
        raise TritonlabError(str(error), "Name one of these with --target.") from error


def grade(submission: Submission, *, public_only: bool = False, only: str | None = None,
          seed: str | None = None, target: str | None = None, gpu: bool = False,
          quick: bool = False, everything: bool = False, first: Sequence[str] = (),
          prepared: "Prepared | None" = None, passed: "PassedRuns | None" = None,
          on_event: OnEvent | None = None, sandbox: "Sandbox | None" = None,
          cancelled: threading.Event | None = None, course: Course | None = None) -> Report:
    """Runs the hidden tests, the public cases or one case on a submission.

    If the workspace's own exercise passes, ``workspace.passed_sources`` stores a copy. With
    ``course``, the report of a pass in its journal is returned again if nothing has changed since.

    ``gpu``: use the GPU of this machine, if there is one. ``quick``: leave it out where it has
    passed the same kernels. ``everything``: also run what cannot change the first failure, however
    long it takes; one case alone is always run so. ``first``, ``prepared``, ``passed``,
    ``cancelled``: see ``grader.grade``.

    Raises:
        grader.Cancelled: ``cancelled`` was set by another thread.
        TritonlabError: as of ``grader_for``; or ``seed`` is invalid, or no GPU is called
            ``target``.
    """
    from grader.gpu import detect  # both import slowly
    from tritonlab.grading import kept_reports

    if seed is not None and not SEED.fullmatch(seed := seed.lower()):
        raise invalid_seed(seed)
    compiled_for = find_target(target) if target else None
    content = passed_sources.snapshot(submission)
    subject = kept_reports.Subject.of(content, submission.module, target, gpu) \
        if submission.in_place else None
    if course and subject and not (public_only or only or seed or everything):
        reading = reading_of(course, submission)
        if report := kept_reports.find(subject, submission.module, reading):
            _keep_traces(submission, report, content)
            return report
    gpu_passed = kept_reports.gpu_passed(subject) if quick and subject else ""
    if gpu_passed:
        compiled_for = compiled_for or detect.default_target()
    # The sandbox warms up in its own process while the suite, and with it torch, is loaded here.
    with grader_for(submission.module, sandbox) as box:
        suite = suite_of(submission.module)
        if suite.public_only and not suite.all_cases:
            raise TritonlabError(f"{submission.module.id} has no public case, and this build for "
                                 "students has no other.", "Hand it in to have it graded.")
        if submission.workspace is not None:
            caches.save_case_names(submission.workspace.mark, submission.module.id,
                                   [case.name for case in suite.ordered()])
        report = grader.grade(submission.kernel, suite, public_only=public_only, only=only,
                              seed=seed, target=compiled_for,
                              gpu="found" if gpu and not gpu_passed else "never",
                              effort="whole" if everything or only else "early", first=first,
                              prepared=prepared, passed=passed, on_event=on_event, sandbox=box,
                              cancelled=cancelled, steps=steps_of(submission.module))
        report = replace(report, gpu_passed=gpu_passed)
    if subject:
        kept_reports.keep(subject, report, time.strftime("%Y-%m-%d %H:%M"))
    _keep_traces(submission, report, content)
    return report


def _keep_traces(submission: Submission, report: Report, content: Mapping[str, bytes]) -> None:
    """Stores what failed, and of the workspace's own exercise its files."""
    if submission.workspace is None:
        return
    mark, module = submission.workspace.mark, submission.module
    _save_failures(mark, module, report)
    if submission.in_place:
        kept_versions.keep(mark, module, content)
        if not (report.partial or report.shown_again) and report.verdict is Verdict.PASSED:
            passed_sources.keep(mark, module, content, report.source_sha256)


def _save_failures(mark: Path, module: Module, report: Report) -> None:
    """Stores what failed; a part of a module that passes leaves the other failures."""
    failures = caches.Failures(report.seed, [r.name for r in report.results if r.fails])
    if report.partial and not failures.cases:
        passed = {r.name for r in report.results if r.verdict is Verdict.PASSED}
        before = caches.load_failures(mark, module.id)
        failures = replace(before, cases=[one for one in before.cases if one not in passed])
    caches.save_failures(mark, module.id, failures)


def invalid_seed(seed: str) -> TritonlabError:
    """Returns the error for a text that is not a seed."""
    return TritonlabError(f"'{seed}' is not a seed: a seed has 1 to 64 hexadecimal digits.",
                          "Copy it from the line of the report that begins with Repeat.")


def suite_of(module: Module) -> "Suite":
    """Loads the hidden tests of a module, with its exercise and its solution.

    Raises:
        FileNotFoundError: there are none.
    """
    return module.load_suite(whole=True)


def public_cases(module: Module) -> frozenset[str]:
    """Returns the names of the cases that ``python kernel.py`` runs."""
    return frozenset(case.name for case in suite_of(module).ordered(public_only=True))


def steps_of(module: Module) -> tuple[Step, ...]:
    """Returns the steps of an exercise: its groups of hints, in order.

    Further groups for the same functions belong to the step of the first one.
    """
    firsts: dict[tuple[int | str, ...], HintGroup] = {}
    for group in () if module.files else module.hints:
        firsts.setdefault(group.todos or group.functions, group)
    return tuple(Step(group.group, group.title, group.todos, group.functions)
                 for group in firsts.values())


@contextlib.contextmanager
def grader_for(module: Module, sandbox: "Sandbox | None") -> Iterator["Sandbox"]:
    """Provides the grader's processes and translates its errors for users.

    Raises:
        BadCourse: the module has no hidden tests.
        CannotGrade: the grader does not start, or a process of it ended.
        UnusableFile: the submission changed or disappeared since it was found.
        TritonlabError: the name of a case does not mean one case.
    """
    from grader.sandbox import SandboxBroken

    with contextlib.nullcontext(sandbox) if sandbox else start_sandbox() as box:
        try:
            yield box
        except grader.UnknownCase as error:
            raise _unknown_case(module, error) from error
        except FileNotFoundError as error:
            raise BadCourse(f"{module.id} has no hidden tests at {module.suite}.") from error
        except grader.UnreadableSubmission as error:
            raise UnusableFile(str(error), "Check the file, then repeat the command.") from error
        except SandboxBroken as error:
            raise CannotGrade("A process of the grader ended unexpectedly: "
                              f"{brief(str(error))}") from error


def _unknown_case(module: Module, error: "grader.UnknownCase") -> TritonlabError:
    """Returns the error for a name of no case, or of several, with the nearest names."""
    if error.wanted.casefold().strip().startswith(GATE):
        return TritonlabError(f"'{error.wanted}' is not a separate case: it applies to every case "
                              "that launches a kernel, together with the case's values.",
                              f"Name one of these, or grade all: `tritonlab grade {module.id}`.")
    names = "; ".join(f'"{name}"' for name in error.near)
    if error.several:
        more = "" if error.several == len(error.near) else "such as "
        return TritonlabError(f"{error.several} cases of {module.id} match '{error.wanted}': "
                              f"{more}{names}.", "Type more of the name.")
    nearest = f" The nearest: {names}." if names else ""
    return TritonlabError(f"No case of {module.id} is called '{error.wanted}'.{nearest}",
                          f"`tritonlab grade {module.id} --verbose` lists all of them.")


def start_sandbox() -> "Sandbox":
    """Starts the grader's processes; raises CannotGrade if this machine cannot."""
    from grader.sandbox import SandboxBroken

    try:
        return ahead.take() or grader.Sandbox()
    except OSError as error:
        raise errors.cannot_grade(error) from error
    except SandboxBroken as error:
        raise CannotGrade(brief(str(error))) from error


@dataclass(frozen=True)
class SaveResult:
    """The journal after a grade, whether it holds the grade, and why not."""

    reading: JournalReading
    saved: bool = False
    complaint: str = ""
    error: NotSaved | None = None


def save(course: Course, submission: Submission, report: Report) -> SaveResult:
    """Records a grade of the workspace's own exercise.

    Partial grades are not recorded, and one that is shown again is on record. For other files, and
    if the record cannot be written, the result contains the reason.
    """
    before = reading_of(course, submission)
    if report.partial or report.shown_again:
        return SaveResult(before, bool(report.shown_again))
    if submission.workspace is None:
        return SaveResult(before, complaint="The result was not saved: there is no workspace here. "
                          f"`tritonlab start {submission.module.id}` creates one.")
    if not submission.in_place:
        own = submission.workspace.kernel(submission.module)
        complaint = (f"The result was not recorded: {errors.shown(submission.kernel)} is not the "
                     f"exercise of this workspace. Only {errors.shown(own)} counts for "
                     f"{submission.module.id}; copy your work there and grade it again.")
        return SaveResult(before, complaint=complaint)
    journal = submission.workspace.journal(course)
    try:
        details = record(submission, report, before)
        warning = journal.append("graded", submission.module.id, **details)
        reading = journal.read()
    except NotSaved as error:
        return SaveResult(before, journal.saved, str(error), error)
    except KeyboardInterrupt:
        raise errors.Interrupted(recorded=journal.saved) from None
    not_kept = ""
    if report.verdict is Verdict.PASSED and report.suite_sha256:
        mark, module, sha256 = submission.workspace.mark, submission.module, report.source_sha256
        if passed_sources.find(mark, module, sha256) is None:
            content = passed_sources.snapshot(submission)
            not_kept = passed_sources.keep(mark, module, content, sha256)
        claimed = certificate.build(course, reading).entry(module).source_sha256
        passed_sources.prune(mark, module, (claimed,))
    complaint = " ".join(filter(None, (warning, not_kept, *reading.problems)))
    return SaveResult(reading, True, complaint)


def reading_of(course: Course, submission: Submission) -> JournalReading:
    """Returns the journal of a submission; empty if it cannot be read."""
    with contextlib.suppress(NotSaved):
        if submission.workspace is not None:
            return submission.workspace.journal(course).read()
    return JournalReading(())


def record(submission: Submission, report: Report, reading: JournalReading) -> Mapping[str, Any]:
    """Returns the fields of a grade for the journal, without paths or names."""
    failure = report.first_failure
    first = failure.findings[0] if failure and failure.findings else None
    failed = (r for r in report.deciding if r.verdict is Verdict.FAILED)
    return {
        "verdict": str(report.verdict),
        "cases": {"total": len(report.deciding),
                  **{str(v).lower(): report.count(v) for v in Verdict if report.count(v)}},
        "codes": sorted({finding.code for result in failed for finding in result.findings}),
        "code": first.code if first else "",
        "todos": list(first.todos) if first else [],
        "function": first.function if first else "",
        **{name: getattr(report, name) for name in (
            "evidence", "source_sha256", "suite_sha256", "grader_version", "engine", "isolation",
            "seed")},
        "versions": dict(report.versions), "ceilings": dict(report.ceilings),
        "target": report.target or None, "device": report.gpu or None,
        "hints_used": reading.hints(submission.module.id, before_pass=True),
        "solution_seen": is_solution(submission.module, report.source_sha256)
        or reading.saw_solution(submission.module.id, report.source_sha256),
    }


def is_solution(module: Module, source_sha256: str) -> bool:
    """Whether the graded source is the reference solution."""
    try:
        return source.read(module.solution, module.files).sha256 == source_sha256
    except OSError:
        return False
