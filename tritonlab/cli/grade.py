"""The verbs `grade` and `watch`, and `python kernel.py`, which grades the public cases."""

import functools
import os
import shlex
from pathlib import Path
from typing import Annotated

import typer

from grader.report import CaseResult, Report
from tritonlab import errors
from tritonlab.cli import boundary, options
from tritonlab.cli.boundary import onward, progress_on, screen_on, show, verb, warn
from tritonlab.cli.options import CurrentOr, Gpu, Json, OfModule, Plain
from tritonlab.course import course
from tritonlab.errors import Interrupted, TritonlabError
from tritonlab.grading import grade as grading
from tritonlab.workspace import editor, workspace
from tritonlab.workspace.submission import Submission, resolve, submission_at


@verb
def grade(
    exercise: CurrentOr = None,
    module_id: OfModule = None,
    case: Annotated[str | None, typer.Option(
        "--case", metavar="NAME", autocompletion=options.cases,
        help="Only this case, in detail; nothing is recorded.")] = None,
    seed: Annotated[str | None, typer.Option(
        "--seed", metavar="HEX", help="The inputs of an earlier grade; nothing is recorded.",
    )] = None,
    target: Annotated[str | None, typer.Option(
        "--target", metavar="GPU", autocompletion=options.gpus,
        help="Compile for this GPU, such as a100. If left out, for this machine's, or else for an "
             "h100.")] = None,
    gpu: Gpu = True,
    everything: Annotated[bool, typer.Option(
        "--all", help="Run what cannot change the first failure too, however long it takes.",
    )] = False,
    pending: Annotated[bool, typer.Option(
        "--pending", help="Grade again, on a GPU, all that was passed without one.")] = False,
    verbose: Annotated[bool, typer.Option(
        "--verbose", "-v", help="List all checks too, with their figures beside the limits.",
    )] = False,
    as_json: Json = False, plain: Plain = False,
) -> int:
    """Run the hidden tests on an exercise, show the verdict, and record it."""
    from tritonlab.grading import hints
    from tritonlab.render import report as view

    if pending:
        return _grade_pending(as_json, plain, not gpu, exercise, module_id, case, seed, target,
                              everything)
    with grading.start_sandbox() as sandbox:  # which takes longest, and warms up beside the rest
        the_course = course.load()
        submission = resolve(the_course, exercise, module_id)
        module = submission.module
        with progress_on(plain or as_json) as progress:
            report = grading.grade(submission, only=case, seed=seed, target=target, gpu=gpu,
                                   everything=everything, on_event=progress, sandbox=sandbox)
    result = grading.save(the_course, submission, report)
    try:
        command, before = _after_grade(the_course, submission, report, result)
        first = report.first_failure
        offer = hints.offer(module, first.findings[0], result.reading) \
            if first and first.findings else None
        data = report.to_dict()
        for shown_result, graded in zip(data["results"], report.results, strict=True):
            shown_result["replay"] = _replay(submission, graded)
        data |= {"saved": result.saved, "not_saved": result.complaint,
                 "hint": offer.to_dict() if offer else None}
        replay = _replay(submission, first)
        show(as_json, plain, {"module": module.id, **data}, lambda screen: view.show(
            screen, module, report, _details(report, submission),
            replay if replay != command else "", result.reading, verbose=verbose,
            more=_after_pass(submission, report, result),
            picture=submission.typed("trace") if report.has_picture else ""), command, before)
    except KeyboardInterrupt:
        raise Interrupted(recorded=result.saved) from None
    except OSError as error:  # output failed; grade and exit code stand
        errors.silence_broken_pipe()
        if not isinstance(error, BrokenPipeError):
            warn(f"The report could not be printed: {errors.reason_of(error)}.")
    if result.error is not None:
        return boundary.show_error(result.error)
    warn(result.complaint)
    return report.exit_code


def _grade_pending(as_json: bool, plain: bool, *others: object) -> int:
    """Grades modules on the GPU that were passed without one.

    Raises:
        TritonlabError: there is no workspace or no GPU, or another option was given too.
    """
    from tritonlab.grading import gpu_upgrade
    from tritonlab.render import report as view

    if any(others):
        raise TritonlabError("--pending takes no module, case, seed or GPU.",
                             "Type `tritonlab grade --pending` alone.")
    the_course = course.load()
    place = workspace.require(the_course.example)
    gpu_upgrade.require_gpu()
    with progress_on(plain or as_json) as progress:
        upgrades = list(gpu_upgrade.grade(the_course, place, progress))
    slow = next((u.module.id for u in upgrades if u.exit_code), None)
    command = f"tritonlab grade {slow}" if slow else "tritonlab certificate"
    show(as_json, plain,
         {"schema": gpu_upgrade.SCHEMA, "modules": [u.to_dict() for u in upgrades]},
         lambda screen: view.show_upgrades(screen, upgrades), command)
    return gpu_upgrade.exit_code(upgrades)


def run_exercise(path: str) -> int:
    """Grades the public cases of the exercise at ``path``; returns the exit code."""
    boundary.never_fail_to_encode()
    return boundary.run(functools.partial(_run_exercise, path))


def _run_exercise(path: str) -> int:
    from tritonlab.render import report as view

    the_course = course.load()
    submission = submission_at(the_course, Path(path))
    with progress_on(plain=False) as progress:
        report = grading.grade(submission, public_only=True, on_event=progress)
    before = "Then the hidden tests too: " if report.exit_code == 0 else \
        "Edit it, then repeat, or type: "
    screen = screen_on(plain=False)
    view.show(screen, submission.module, report, _details(report, submission),
              _replay(submission, report.first_failure),
              grading.reading_of(the_course, submission))
    screen.next(submission.command, before)
    return report.exit_code


def _after_grade(the_course: course.Course, submission: Submission, report: Report,
                 result: grading.SaveResult) -> tuple[str, str]:
    """Returns the next command after a grade, and the words before it."""
    from grader.report import Verdict

    command = submission.typed("grade") if report.partial else submission.command
    if report.exit_code == 0 and report.partial:
        return command, "Then all cases, with new inputs: "
    if report.exit_code == 0:
        return onward(the_course, result.reading, submission.module), "Next: "
    if report.exit_code != 1:
        return command, "Try once more: "
    if report.verdict is Verdict.INCONCLUSIVE and report.out_of_time:
        return f"{command} --all", "Without a limit of time: "
    if report.only:  # a failure without a case has no replay
        command = _replay(submission, report.first_failure) or \
            f"{submission.typed('grade')} --case {shlex.quote(report.only)} --seed {report.seed}"
    return command, f"Edit {submission.to_edit}, then type: "


def _after_pass(submission: Submission, report: Report,
                result: grading.SaveResult) -> list[tuple[str, str]]:
    """Returns the commands that a pass makes worth typing, each with what it shows."""
    from grader.report import Kind
    from tritonlab.render.report import BENCH_SHOWS, SOLUTION_SHOWS

    module = submission.module
    whose = "" if submission.here in (None, module) else f" {module.id}"
    timed = any(case.kind is Kind.PERFORMANCE for case in report.results)
    commands = [
        *[("bench", BENCH_SHOWS)] * timed,
        *[("read --answers", "the answers to the lesson's questions")] * module.has_answers,
        ("solution", SOLUTION_SHOWS)]
    return [(f"tritonlab {verb}{whose}", shows) for verb, shows in commands] if result.saved else []


def _replay(submission: Submission, result: CaseResult | None) -> str:
    """Returns the command that repeats a failed case with the same inputs, if any."""
    return f"{submission.typed('grade')} {result.replay}" if result and result.replay else ""


def _details(report: Report, submission: Submission) -> str:
    """Writes reasons that are too long to show to a file; returns a sentence about it."""
    reasons = [r for r in (report.reason, *(case.reason for case in report.results))
               if r != errors.brief(r)]
    place = submission.workspace
    return errors.keep("\n".join(reasons), place.mark if place else None) if reasons else ""


@verb
def watch(
    exercise: CurrentOr = None,
    module_id: OfModule = None,
    edit: Annotated[bool, typer.Option(
        "--edit", help="Open the exercise in your editor first.")] = False,
    target: Annotated[str | None, typer.Option(
        "--target", metavar="GPU", autocompletion=options.gpus,
        help="Compile for this GPU, such as a100.")] = None,
    gpu: Gpu = True,
    poll: Annotated[bool, typer.Option(
        "--poll", help="Look at the files five times a second, where saves are noticed late.",
    )] = False,
    as_json: Json = False, plain: Plain = False,
) -> int:
    """Grade at every save, and answer keys: h hint, s solution, x reset, n next, q quit.

    Ends with the exit code of the last verdict, also after Ctrl-C; with 0 where there was none.
    """
    from tritonlab.render import screen
    from tritonlab.render.watch import Lines, Watched, WatchView
    from tritonlab.watch.key_actions import ACTIONS
    from tritonlab.watch.terminal import Keyboard
    from tritonlab.watch.watcher import Watch

    if screen.in_notebook() and not as_json:
        raise TritonlabError("`tritonlab watch` needs a terminal: in a cell of a notebook no key "
                             "can be typed, and the cell would never end.",
                             "Open a terminal, or run `tritonlab grade` in a cell.")
    if not (as_json or screen_on(plain).plain) and not any(map(os.isatty, (0, 1, 2))):
        raise TritonlabError("`tritonlab watch` needs a terminal, and there is none here.",
                             "Open a terminal; or add --plain, to have every save graded and "
                             "printed until Ctrl-C.")
    if target is not None:
        grading.find_target(target)
    the_course = course.load()
    submission = resolve(the_course, exercise, module_id)
    if edit:  # one that needs the terminal is opened by a key
        warn(editor.open_in_editor(submission.kernel))
    view: WatchView = Lines() if as_json else Watched(lambda: screen_on(plain))
    session = Watch(the_course, submission, view, actions=ACTIONS,
                    keyboard=Keyboard(wanted=not as_json), target=target, gpu=gpu, poll=poll)
    return session.run()
