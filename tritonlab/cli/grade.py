"""The verb `grade`, and `python kernel.py`, which grades the public cases."""

from __future__ import annotations

import functools
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tritonlab import errors
from tritonlab.cli import boundary, completion
from tritonlab.cli.options import CurrentOr, Json, OfModule, Plain, onward, print_json, screen_on
from tritonlab.course import course
from tritonlab.errors import Interrupted
from tritonlab.grading import grade as grading
from tritonlab.progress.journal import JournalReading
from tritonlab.workspace import workspace
from tritonlab.workspace.submission import Submission, resolve, submission_at

if TYPE_CHECKING:
    from grader.report import Report


@boundary.verb
def grade(
    what: CurrentOr = None,
    module_id: OfModule = None,
    case: Annotated[str | None, typer.Option(
        "--case", metavar="NAME", autocompletion=completion.cases,
        help="Only this case, in detail; nothing is recorded.")] = None,
    seed: Annotated[str | None, typer.Option(
        "--seed", metavar="HEX", help="The inputs of an earlier grade; nothing is recorded.",
    )] = None,
    target: Annotated[str | None, typer.Option(
        "--target", metavar="GPU", autocompletion=completion.gpus,
        help="Compile for this GPU, such as a100. If left out, for this machine's, or else for an "
             "h100.")] = None,
    gpu: Annotated[bool, typer.Option(
        "--gpu/--no-gpu", help="Run and time the kernels on this machine's GPU too, if it has one.",
    )] = True,
    pending: Annotated[bool, typer.Option(
        "--pending", help="Grade again, on a GPU, all that was passed without one.")] = False,
    verbose: Annotated[bool, typer.Option(
        "--verbose", "-v", help="Name every check, also where all are passed.")] = False,
    as_json: Json = False, plain: Plain = False,
) -> int:
    """Run the hidden tests on an exercise, show the verdict, and record it."""
    from tritonlab.render import report as view
    from tritonlab.render.screen import Progress

    if pending:
        return _grade_pending(as_json, plain, not gpu, what, module_id, case, seed, target)
    screen = screen_on(plain)
    the_course = course.load()
    submission = resolve(the_course, what, module_id)
    module = submission.module
    with Progress(screen_on(plain or as_json, error=True)) as progress:
        report = grading.grade(submission, only=case, seed=seed, target=target, gpu=gpu,
                               on_event=progress)
    result = grading.save(the_course, submission, report)
    try:
        command, before = _after_grade(the_course, submission, report, result)
        replays = [grading.replay(submission, r) for r in report.results]
        if as_json:
            data = report.to_dict()
            for shown_result, replay in zip(data["results"], replays, strict=True):
                shown_result["replay"] = replay
            print_json({"module": module.id, **data, "saved": result.saved,
                         "not_saved": result.complaint,
                         "hint": _hint_for(module, report, result.reading), "next": command})
        else:
            view.show(screen, module, report, command, before, _details(report, submission),
                      _replay(submission, report), result.reading, verbose=verbose)
    except KeyboardInterrupt:
        raise Interrupted(recorded=result.saved) from None
    except OSError as error:  # output failed; grade and exit code stand
        boundary.nobody_reads(error)
    if result.error is not None:
        return boundary.show_error(result.error)
    boundary.warn(result.complaint)
    return report.exit_code


def _grade_pending(as_json: bool, plain: bool, *others: object) -> int:
    """Grades modules on the GPU that were passed without one.

    Raises:
        TritonlabError: there is no workspace or no GPU, or another option was given too.
    """
    from tritonlab.grading import gpu_upgrade
    from tritonlab.render import report as view
    from tritonlab.render.screen import Progress

    if any(others):
        raise errors.TritonlabError("--pending takes no module, case, seed or GPU.",
                                    "Type `tritonlab grade --pending` alone.")
    the_course = course.load()
    place = workspace.require(the_course.example)
    gpu_upgrade.require_gpu()
    with Progress(screen_on(plain or as_json, error=True)) as progress:
        which = gpu_upgrade.modules(the_course, place)
        upgrades = list(gpu_upgrade.grade(the_course, place, which, progress)) if which else []
    slow = next((u.module.id for u in upgrades if u.exit_code), None)
    command = f"tritonlab grade {slow}" if slow else "tritonlab certificate"
    if as_json:
        print_json({"schema": gpu_upgrade.SCHEMA, "modules": [u.to_dict() for u in upgrades],
                    "next": command})
    else:
        view.show_upgrades(screen_on(plain), upgrades, command)
    return gpu_upgrade.exit_code(upgrades)


def run_exercise(path: str) -> int:
    """Grades the public cases of the exercise at ``path``; returns the exit code."""
    boundary.never_fail_to_encode()
    return boundary.run(functools.partial(_run_exercise, path))


def _run_exercise(path: str) -> int:
    from tritonlab.render import report as view
    from tritonlab.render.screen import Progress

    screen = screen_on(plain=False)
    the_course = course.load()
    submission = submission_at(the_course, Path(path))
    with Progress(screen_on(plain=False, error=True)) as progress:
        report = grading.grade(submission, public_only=True, on_event=progress)
    before = "Then the hidden tests too: " if report.exit_code == 0 else \
        "Edit it, then repeat, or type: "
    view.show(screen, submission.module, report, submission.command, before,
              _details(report, submission), _replay(submission, report),
              grading.reading_of(the_course, submission))
    return report.exit_code


def _after_grade(the_course: course.Course, submission: Submission, report: Report,
                 result: grading.SaveResult) -> tuple[str, str]:
    """Returns the next command after a grade, and the words before it."""
    command = submission.full_command if report.partial else submission.command
    edit = f"Edit {submission.to_edit}, then type: "
    if report.exit_code == 0 and report.partial:
        return command, "Then all cases, with new inputs: "
    if report.exit_code == 0:
        return onward(the_course, result.reading, submission.module), "Next: "
    if report.exit_code == 1:
        again = _replay(submission, report) or grading.alone(submission, report)
        return again if report.only else command, edit
    return command, "Try once more: "


def _replay(submission: Submission, report: Report) -> str:
    """Returns the command that repeats the shown failure."""
    failure = report.first_failure
    return grading.replay(submission, failure) if failure else ""


def _hint_for(module: course.Module, report: Report,
              reading: JournalReading) -> dict[str, Any] | None:
    """Returns the hint for the shown failure as data."""
    from tritonlab.grading import hints

    failure = report.first_failure
    offer = hints.offer(module, failure.findings[0], reading) \
        if failure and failure.findings else None
    return asdict(offer) if offer else None


def _details(report: Report, submission: Submission) -> str:
    """Writes reasons that are too long to show to a file; returns a sentence about it."""
    reasons = [r for r in (report.reason, *(case.reason for case in report.results))
               if r != errors.brief(r)]
    place = submission.workspace
    return errors.keep("\n".join(reasons), place.mark if place else None) if reasons else ""
