"""The verbs: resolve, call, render, exit code."""

from __future__ import annotations

import functools
import shutil
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grader.engine.compiler import targets
from grader.report import EXIT_GRADER_BROKE
from tritonlab import (
    __version__,
    certificate,
    cli_author,
    cli_bench,
    cli_certificate,
    cli_learn,
    cli_record,
    cli_watch,
    completion,
    course,
    errors,
    grading,
    guard,
    outputs,
    workspace,
)
from tritonlab.errors import Stopped, shown
from tritonlab.journal import Reading
from tritonlab.verbs import (
    CurrentOr,
    Json,
    OfModule,
    Plain,
    onward,
    print_json,
    reading_here,
    screen_on,
)

if TYPE_CHECKING:
    from grader.report import Report

NARROW = 52  # columns; in fewer, help would be wrapped at 50 columns all the same


def narrow_help(columns: int) -> dict[str, int]:
    """The width of help texts, as a setting, where typer's own would overflow the terminal."""
    return {"terminal_width": columns} if columns < NARROW else {}


app = typer.Typer(name="tritonlab", rich_markup_mode=None, pretty_exceptions_enable=False,
                  no_args_is_help=True, help="Learn to write GPU kernels in Triton.",
                  context_settings=narrow_help(shutil.get_terminal_size().columns))


def main() -> None:
    """The command `tritonlab`."""
    guard.never_fail_to_encode()
    try:
        sys.exit(app(prog_name="tritonlab", standalone_mode=False))
    except guard.WRONG_COMMAND_LINE as error:
        sys.exit(guard.show_usage(error))
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(guard.show_error(Stopped()))
    except BrokenPipeError:
        errors.silence_broken_pipe()
        sys.exit(0)


@app.callback(invoke_without_command=True)
def options(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        typer.echo(f"tritonlab {__version__}")
        raise typer.Exit


@app.command("list")
@guard.verb
def list_(as_json: Json = False, plain: Plain = False) -> int:
    """All tracks and modules, and how far you have come."""
    from tritonlab.render import course as view

    the_course = course.load()
    reading = reading_here(the_course)
    shown_certificate = certificate.build(the_course, reading)
    if as_json:
        return print_json(view.list_to_dict(the_course, shown_certificate))
    view.show_list(screen_on(plain), the_course, shown_certificate, onward(the_course, reading))
    return 0


cli_learn.add_to(app)


@app.command()
@guard.verb
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
    submission = grading.resolve(the_course, what, module_id)
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
        raise Stopped(recorded=result.saved) from None
    except OSError as error:  # the grade is done: that nobody reads it changes neither it
        guard.nobody_reads(error)  # nor the exit code
    if result.error is not None:
        return guard.show_error(result.error)
    guard.warn(result.complaint)
    return report.exit_code


def _grade_pending(as_json: bool, plain: bool, *others: object) -> int:
    """Grade on the GPU what was passed without one.

    Raises:
        TritonlabError: there is no workspace or no GPU, or another option was given too.
    """
    from tritonlab import pending
    from tritonlab.render import pending as view
    from tritonlab.render.screen import Progress

    if any(others):
        raise errors.TritonlabError("--pending takes no module, case, seed or GPU.",
                                    "Type `tritonlab grade --pending` alone.")
    the_course = course.load()
    place = workspace.require(the_course.example)
    pending.require_gpu()
    with Progress(screen_on(plain or as_json, error=True)) as progress:
        which = pending.modules(the_course, place)
        upgrades = list(pending.grade(the_course, place, which, progress)) if which else []
    slow = next((u.module.id for u in upgrades if u.exit_code), None)
    command = f"tritonlab grade {slow}" if slow else "tritonlab certificate"
    if as_json:
        print_json({"schema": pending.SCHEMA, "modules": [u.to_dict() for u in upgrades],
                    "next": command})
    else:
        view.show(screen_on(plain), upgrades, command)
    return pending.exit_code(upgrades)


@app.command()
@guard.verb
def inspect(
    what: CurrentOr = None,
    module_id: OfModule = None,
    target: Annotated[str, typer.Option(
        metavar="GPU", autocompletion=completion.gpus,
        help="The GPU that it is compiled for.")] = targets.DEFAULT,
    case: Annotated[str | None, typer.Option(
        metavar="NAME", autocompletion=completion.cases,
        help="The case that is looked at; by default those of performance.")] = None,
    ptx: Annotated[bool, typer.Option("--ptx", help="Print the PTX too, by source line.")] = False,
    sass: Annotated[bool, typer.Option(
        "--sass", help="Print the machine code too, by source line.")] = False,
    html: Annotated[Path | None, typer.Option(
        metavar="FILE", help="Write a page for a browser instead.")] = None,
    as_json: Json = False, plain: Plain = False,
) -> int:
    """What the compiler makes of your kernels for a GPU, line by line. Needs no GPU."""
    from tritonlab import inspection
    from tritonlab.render import inspect as view
    from tritonlab.render.screen import Progress

    screen = screen_on(plain)
    the_target = grading.find_target(target)
    if html is not None:
        outputs.check(html, outputs.PAGE)
    submission = grading.resolve(course.load(), what, module_id)
    with Progress(screen_on(plain or as_json, error=True)) as progress:
        found = inspection.inspect(submission, the_target, case=case, on_event=progress,
                                   listings=ptx or sass or html is not None)
    command, before = submission.command, "Next: "
    if not found.clean:
        command = inspection.command(submission, the_target, case)
        before = f"Edit {submission.to_edit}, then type: "
    if html is not None:
        from tritonlab.render import page

        outputs.write(page.inspection(submission.module, found).encode(), html, outputs.PAGE)
    if as_json:
        print_json({"module": submission.module.id, **found.to_dict(ptx=ptx, sass=sass),
                     "page": str(html) if html else None, "next": command})
    elif html is not None:
        view.show_page(screen, submission.module, found, shown(html.absolute()), command, before)
    else:
        view.show(screen, submission.module, found, command, before, ptx=ptx, sass=sass)
    return found.exit_code


cli_record.add_to(app)
cli_certificate.add_to(app)


@app.command()
@guard.verb
def tour(as_json: Json = False, plain: Plain = False) -> int:
    """See in a minute how it works: start, fail, pass, certificate. Leaves nothing behind."""
    from tritonlab import tour as the_tour
    from tritonlab.render import steps as view
    from tritonlab.render.screen import Progress

    screen = screen_on(plain)
    the_course = course.load()
    module = the_course.find(the_tour.MODULE)
    taken = []
    with Progress(screen_on(plain or as_json, error=True)) as progress:
        for number, step in enumerate(the_tour.steps(the_course, progress), start=1):
            taken.append(step)
            progress.clear()
            if not as_json:
                view.show_step(screen, number, step, module)
    ok = all(step.ok for step in taken)
    command = f"tritonlab start {the_course.example}" if ok else "tritonlab tour --json"
    if as_json:
        print_json({"schema": 1, "ok": ok, "steps": [step.to_dict() for step in taken],
                     "next": command})
    else:
        screen.next(command)
    return 0 if ok else EXIT_GRADER_BROKE


@app.command()
@guard.verb
def doctor(
    attack: Annotated[bool, typer.Option(
        "--attack", help="Try to break out of the sandbox, on decoys, in 26 ways.")] = False,
    as_json: Json = False, plain: Plain = False,
) -> int:
    """What is installed, how far strangers' code is kept apart, what can be decided here."""
    from tritonlab import checkup
    from tritonlab import doctor as the_doctor
    from tritonlab.render import doctor as view
    from tritonlab.render.screen import Progress

    screen = screen_on(plain)
    with Progress(screen_on(plain or as_json, error=True)) as progress:
        found = the_doctor.examine(attack=attack, on_event=progress, terminal=checkup.Terminal(
            screen.is_terminal, screen.colour, screen.full_width, sys.stdout.encoding or ""))
    command = "tritonlab doctor" if found.exit_code == EXIT_GRADER_BROKE else \
        "tritonlab list" if attack else "tritonlab doctor --attack"
    if as_json:
        print_json({**found.to_dict(), "next": command})
    else:
        view.show(screen, found, command)
    return found.exit_code


cli_bench.add_to(app)
cli_watch.add_to(app)
cli_author.add_to(app)


def run_exercise(path: str) -> int:
    """Grade the public cases of the exercise at ``path``; returns the exit code."""
    guard.never_fail_to_encode()
    return guard.run(functools.partial(_run_exercise, path))


def _run_exercise(path: str) -> int:
    from tritonlab.render import report as view
    from tritonlab.render.screen import Progress

    screen = screen_on(plain=False)
    the_course = course.load()
    submission = grading.submission_at(the_course, Path(path))
    with Progress(screen_on(plain=False, error=True)) as progress:
        report = grading.grade(submission, public_only=True, on_event=progress)
    before = "Then the hidden tests too: " if report.exit_code == 0 else \
        "Edit it, then repeat, or type: "
    view.show(screen, submission.module, report, submission.command, before,
              _details(report, submission), _replay(submission, report),
              grading.reading_of(the_course, submission))
    return report.exit_code


def _after_grade(the_course: course.Course, submission: grading.Submission, report: Report,
                 result: grading.Result) -> tuple[str, str]:
    """The next command after a grade, and the words before it."""
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


def _replay(submission: grading.Submission, report: Report) -> str:
    """The command that repeats the failure that is shown."""
    failure = report.first_failure
    return grading.replay(submission, failure) if failure else ""


def _hint_for(module: course.Module, report: Report, reading: Reading) -> dict[str, Any] | None:
    """The hint that helps with the failure that is shown, as data."""
    from tritonlab import hints

    failure = report.first_failure
    offer = hints.offer(module, failure.findings[0], reading) \
        if failure and failure.findings else None
    return asdict(offer) if offer else None


def _details(report: Report, submission: grading.Submission) -> str:
    """Keep what the grader says about its own failure, where that is too long to show."""
    reasons = [r for r in (report.reason, *(case.reason for case in report.results))
               if r != errors.brief(r)]
    place = submission.workspace
    return errors.keep("\n".join(reasons), place.mark if place else None) if reasons else ""
