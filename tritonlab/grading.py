"""Grading one exercise: which file is meant, the grader's answer, and what goes on record."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grader
from grader.engine.compiler import targets
from grader.report import CaseResult, Report, Verdict
from tritonlab import case_names, certificate, kept, workspace
from tritonlab.course import Course, Module
from tritonlab.errors import (
    BadCourse,
    CannotGrade,
    NotSaved,
    NoWorkspace,
    Stopped,
    TritonlabError,
    UnknownModule,
    UnusableFile,
    brief,
    cannot_grade,
    shown,
)
from tritonlab.journal import Reading
from tritonlab.workspace import Workspace

if TYPE_CHECKING:
    from grader.engine.compiler.targets import Target
    from grader.prepared import Prepared
    from grader.sandbox import Sandbox

GATE = "every launch compiles"  # how the name of the compile check begins
SEED = re.compile(r"[0-9a-f]{1,64}")

OnEvent = Callable[[CaseResult | str], None]


@dataclass(frozen=True)
class Submission:
    """A file to grade as a module's exercise, and the workspace that records it (None: nowhere)."""

    module: Module
    kernel: Path
    workspace: Workspace | None
    inferred: bool = True  # the module was read off the path
    here: Module | None = None  # the one in whose folder the learner is

    @property
    def in_place(self) -> bool:
        """Whether the files are the workspace's exercise, links resolved; only that is recorded."""
        if self.workspace is None:
            return False
        given, own = self.kernel.parent, self.workspace.folder(self.module)
        pairs = [(self.kernel, self.workspace.kernel(self.module)),
                 *((given / name, own / name) for name in self.module.files)]
        return all(os.path.realpath(one) == os.path.realpath(other) for one, other in pairs)

    @property
    def to_edit(self) -> str:
        """What to change, as one would type it: the file, or the folders of the exercise's code."""
        folders = self.module.packages
        paths = [self.kernel.parent / name for name in folders] or [self.kernel]
        return " and ".join(shown(path) + "/" * bool(folders) for path in paths)

    @property
    def command(self) -> str:
        """What to type to grade it again, before another module is begun."""
        return "tritonlab grade" if self.in_place and self.here is None else self.full_command

    @property
    def full_command(self) -> str:
        """The same, whichever module was begun last."""
        return self.typed("grade")

    def typed(self, verb: str) -> str:
        """What to type to do something with it, whichever module was begun last."""
        if self.in_place:
            return f"tritonlab {verb}" + f" {self.module.id}" * (self.here != self.module)
        path = shown(self.kernel)
        named = f" --module {self.module.id}" if not self.inferred else ""
        return f"tritonlab {verb} {shlex.quote(path)}{named}"


def resolve(course: Course, name: str | None, module_id: str | None = None) -> Submission:
    """What ``tritonlab grade [ID or PATH] [--module ID]`` means.

    Raises:
        TritonlabError: an unknown id, no workspace, no module to infer, or an unusable file.
    """
    module = course.find(module_id) if module_id else None
    if name is None and module is None:
        place = workspace.require(course.example)
        return exercise(current(course, place), place, course)
    if name is None:
        assert module is not None
        return exercise(module, workspace.require(module.id), course)
    if module is None:
        try:
            found = course.find(name)
            return exercise(found, workspace.require(found.id), course)
        except UnknownModule:
            if not _looks_like_path(name):
                raise
    return submission_at(course, Path(name), module)


def submission_at(course: Course, path: Path, module: Module | None = None) -> Submission:
    """The submission that a path means; the module is read off the folders unless it is given.

    Raises:
        UnusableFile: the file cannot be graded, or belongs to no module.
    """
    path = path.expanduser().absolute()
    place = workspace.find(path.parent)
    inferred = module is None
    if module is None:
        module = (place.module_of(path, course) if place else None) or course.module_of(path)
    if place is not None:
        place.check_course(course.id)
    workspace.check_file(path, None)
    if module is None:
        raise UnusableFile(f"{shown(path)} lies in no module's folder.",
                           "Say which exercise it is with `--module ID`.")
    return Submission(module, path, place, inferred, place.module_here(course) if place else None)


def current(course: Course, place: Workspace) -> Module:
    """The module in whose folder the learner is, else the one that was last started or graded.

    Raises:
        NoWorkspace: nothing was started in this workspace.
    """
    if here := place.module_here(course):
        return here
    reading = place.journal(course).read()
    module = course.get(reading.current) if reading.current else None
    if module is None:
        raise NoWorkspace("No module has been started here.",
                          f"`tritonlab start {course.example}` starts the first.")
    return module


def exercise(module: Module, place: Workspace, course: Course) -> Submission:
    """The workspace's own exercise of a module.

    Raises:
        OtherCourse: the workspace belongs to another course.
        UnusableFile: the file is missing, or cannot be an exercise.
    """
    place.check_course(course.id)
    kernel = place.kernel(module)
    workspace.check_file(kernel, module)
    return Submission(module, kernel, place, here=place.module_here(course))


def _looks_like_path(name: str) -> bool:
    return name.endswith(".py") or name.startswith((".", "/", "~")) or Path(name).exists()


def find_target(name: str | None) -> Target:
    """The GPU for which kernels are compiled, by its name.

    Raises:
        TritonlabError: there is none of this name.
    """
    try:
        return targets.find(name or targets.DEFAULT)
    except targets.UnknownTarget as error:
        raise TritonlabError(str(error), "Name one of these with --target.") from error


def grade(submission: Submission, *, public_only: bool = False, only: str | None = None,
          seed: str | None = None, target: str | None = None, gpu: bool = False,
          first: Sequence[str] = (), prepared: Prepared | None = None,
          on_event: OnEvent | None = None, sandbox: Sandbox | None = None,
          cancelled: threading.Event | None = None) -> Report:
    """Run the hidden tests (or only the public cases, or only one case) on a submission.

    If the workspace's own exercise passes, it is kept there; see ``tritonlab.kept``.

    ``gpu``: use the GPU of this machine, if there is one. ``first``, ``prepared``, ``cancelled``:
    see ``grader.grade``.

    Raises:
        grader.Cancelled: ``cancelled`` was set by another thread.
        BadCourse: the module has no hidden tests.
        CannotGrade: the grader does not start.
        UnusableFile: the file is gone or no file any more.
        TritonlabError: ``seed`` is none, ``only`` does not mean one case, or no GPU is called
            ``target``.
    """
    if seed is not None and not SEED.fullmatch(seed := seed.lower()):
        raise TritonlabError(f"'{seed}' is no seed: it takes 1 to 64 hexadecimal digits.",
                             "Copy it from the line of the report that begins with Repeat.")
    named = find_target(target) if target else None
    content = kept.snapshot(submission)
    # The sandbox warms up in its own process while the suite, and with it torch, is loaded here.
    with contextlib.nullcontext(sandbox) if sandbox else started() as box:
        try:
            suite = grader.load_suite(submission.module.suite, submission.module.folder)
            if submission.workspace is not None:
                case_names.keep(submission.workspace.mark, submission.module.id,
                                [case.name for case in suite.ordered()])
            report = grader.grade(submission.kernel, suite, public_only=public_only, only=only,
                                  seed=seed, target=named, gpu="found" if gpu else "never",
                                  first=first, prepared=prepared, on_event=on_event, sandbox=box,
                                  cancelled=cancelled)
        except grader.UnknownCase as error:
            raise unknown_case(submission.module, error) from error
        except FileNotFoundError as error:
            raise BadCourse(f"{submission.module.id} has no hidden tests at "
                            f"{submission.module.suite}.", "Install tritonlab again.") from error
        except grader.UnreadableSubmission as error:  # it changed since it was checked
            raise UnusableFile(str(error), "Check the file, then repeat the command.") from error
    if submission.workspace and submission.in_place and not report.partial \
            and report.verdict is Verdict.PASSED:
        kept.keep(submission.workspace.mark, submission.module, content, report.source_sha256)
    return report


def unknown_case(module: Module, error: grader.UnknownCase) -> TritonlabError:
    """The error for words that mean no case, or several; it names the nearest."""
    if error.wanted.casefold().strip().startswith(GATE):
        return TritonlabError(f"'{error.wanted}' is no case of its own: it is asked of every case "
                              "that launches a kernel, together with the case's values.",
                              f"Name one of these, or grade all: `tritonlab grade {module.id}`.")
    names = "; ".join(f'"{name}"' for name in error.near)
    if error.several:
        more = "" if error.several == len(error.near) else "such as "
        return TritonlabError(f"{error.several} cases of {module.id} go by '{error.wanted}': "
                              f"{more}{names}.", "Type more of the name.")
    nearest = f" The nearest: {names}." if names else ""
    return TritonlabError(f"No case of {module.id} goes by '{error.wanted}'.{nearest}",
                          f"`tritonlab grade {module.id}` names all of them.")


def replay(submission: Submission, result: CaseResult) -> str:
    """The command that grades a failed case alone, with the same inputs; empty where none can."""
    return f"{submission.full_command} {result.replay}" if result.replay else ""


def alone(submission: Submission, report: Report) -> str:
    """The command that repeats the grade of one case, where what failed is no case's own."""
    return f"{submission.full_command} --case {shlex.quote(report.only)} --seed {report.seed}"


def started() -> Sandbox:
    """The grader's processes, starting.

    Raises:
        CannotGrade: they do not start on this machine.
    """
    from grader.sandbox import SandboxBroken

    try:
        return grader.Sandbox()
    except OSError as error:
        raise cannot_grade(error) from error
    except SandboxBroken as error:
        raise CannotGrade(brief(str(error)), "`tritonlab doctor` looks for the cause.") from error


@dataclass(frozen=True)
class Result:
    """Whether a grade is on record, why not, and what the journal says now."""

    saved: bool
    complaint: str
    error: NotSaved | None
    reading: Reading


def save(course: Course, submission: Submission, report: Report) -> Result:
    """Put a grade on record; that it cannot be written is part of the result.

    A partial grade is not recorded, without a complaint. The grade of a file other than the
    workspace's own exercise is not recorded either; the complaint gives this reason.
    """
    if report.partial:
        return Result(False, "", None, reading_of(course, submission))
    if submission.workspace is None:
        advice = f"`tritonlab start {submission.module.id}` makes one."
        return Result(False, f"The result was not saved: there is no workspace here. {advice}",
                      None, Reading(()))
    before = reading_of(course, submission)
    if not submission.in_place:
        own = submission.workspace.kernel(submission.module)
        return Result(False, f"The result was not recorded: {shown(submission.kernel)} is not the "
                      f"exercise of this workspace. Only {shown(own)} counts for "
                      f"{submission.module.id}; copy your work there and grade it again.",
                      None, before)
    journal = submission.workspace.journal(course)
    try:
        details = record(submission, report, before)
        saved = journal.append("graded", submission.module.id, **details)
        reading = journal.read()
    except NotSaved as error:
        return Result(journal.saved, str(error), error, before)
    except KeyboardInterrupt:
        raise Stopped(recorded=journal.saved) from None
    not_kept = ""
    if saved.record.passed:
        mark, module = submission.workspace.mark, submission.module
        if kept.find(mark, module, report.source_sha256) is None:
            not_kept = kept.keep(mark, module, kept.snapshot(submission), report.source_sha256)
        claimed = certificate.build(course, reading).entry(module).source_sha256
        kept.prune(mark, module, (claimed,))
    complaint = " ".join(filter(None, (saved.warning, not_kept, *reading.problems)))
    return Result(True, complaint, None, reading)


def reading_of(course: Course, submission: Submission) -> Reading:
    """What the journal says; nothing where it cannot be read, as then it cannot be written."""
    with contextlib.suppress(NotSaved):
        if submission.workspace is not None:
            return submission.workspace.journal(course).read()
    return Reading(())


def record(submission: Submission, report: Report, reading: Reading) -> Mapping[str, Any]:
    """What the journal keeps of a grade: no path and no name."""
    failure = report.first_failure
    first = failure.findings[0] if failure and failure.findings else None
    failed = (r for r in report.deciding if r.verdict is Verdict.FAILED)
    return {
        "verdict": str(report.verdict),
        "evidence": report.evidence,
        "cases": {
            "total": len(report.deciding),
            **{str(v).lower(): report.count(v) for v in Verdict if report.count(v)},
        },
        "codes": sorted({finding.code for result in failed for finding in result.findings}),
        "code": first.code if first else "",
        "todos": list(first.todos) if first else [],
        "function": first.function if first else "",
        "source_sha256": report.source_sha256,
        "suite_sha256": report.suite_sha256,
        "grader_version": report.grader_version,
        "versions": dict(report.versions),
        "engine": report.engine,
        "target": report.target or None,
        "device": report.gpu or None,
        "ceilings": dict(report.ceilings),
        "isolation": report.isolation,
        "seed": report.seed,
        "hints_used": reading.hints_before_pass(submission.module.id),
        "solution_seen": is_solution(submission.module, report.source_sha256)
        or reading.saw_solution(submission.module.id, report.source_sha256),
    }


def is_solution(module: Module, source_sha256: str) -> bool:
    """Whether what was graded is the reference solution as it stands."""
    try:
        return grader.source.read(module.solution, module.files).sha256 == source_sha256
    except OSError:
        return False
