"""The verbs `grade` and `watch`, and `python kernel.py`, which grades the public cases."""

import functools
import json
import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from grader.report import CaseResult, Report
from tritonlab import errors
from tritonlab.cli import boundary, options, output_formats
from tritonlab.cli.boundary import onward, progress_on, screen_on, show, verb, warn
from tritonlab.cli.options import CurrentOr, Gpu, Json, OfModule, Plain, Quick
from tritonlab.cli.output_formats import OutputFormat, OutputOptions
from tritonlab.course import course
from tritonlab.course.course import EXERCISE
from tritonlab.errors import Interrupted, TritonlabError, UnusableFile
from tritonlab.formats.annotations import weak_isolation
from tritonlab.formats.gradescope import Visibility
from tritonlab.grading import grade as grading
from tritonlab.workspace import course_choice, editor, output_files, workspace
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
    again: Annotated[bool, typer.Option(
        "--again", help="Draw new inputs also where no code has changed since a pass.")] = False,
    quick: Quick = False,
    pending: Annotated[bool, typer.Option(
        "--pending", help="Grade again, on a GPU, all that was passed without one.")] = False,
    verbose: Annotated[bool, typer.Option(
        "--verbose", "-v", help="List all checks too, with their figures beside the limits.",
    )] = False,
    no_record: Annotated[bool, typer.Option(
        "--no-record", help="Record nothing in the workspace.")] = False,
    output_format: Annotated[OutputFormat, typer.Option(
        "--format", metavar="NAME", help="Of the output: text, json, lines (for editors), github, "
        "sarif, junit, gradescope or classroom50.")] = OutputFormat.TEXT,
    out: Annotated[Path | None, typer.Option(
        "--out", metavar="FILE", help="Write the format to FILE, and show the report as text.",
    )] = None,
    points: Annotated[int, typer.Option(
        "--points", min=1, hidden=True, help="Points of a pass, for formats with points.")] = 100,
    visibility: Annotated[Visibility, typer.Option(
        "--visibility", hidden=True,
        help="When students of Gradescope see the checks that are not public.",
    )] = Visibility.VISIBLE,
    as_json: Json = False, plain: Plain = False,
) -> int:
    """Run the hidden tests on an exercise, show the verdict, and record it."""
    from tritonlab.grading import hints
    from tritonlab.render import report as view

    if pending:
        return _grade_pending(as_json, plain, not gpu or no_record, exercise, module_id, case,
                              seed, target, everything, again, quick, out,
                              output_format != OutputFormat.TEXT)
    output = _output_options(output_format, as_json, out, points, visibility, case)
    as_json = output.format is OutputFormat.JSON and out is None
    quiet = plain or as_json
    if output.format.gives_points:
        return _grade_for_points(output, exercise, module_id, seed, target, gpu, no_record, plain)
    with grading.start_sandbox() as sandbox:  # which takes longest, and warms up beside the rest
        the_course = course_choice.load()
        submission = resolve(the_course, exercise, module_id)
        module = submission.module
        with progress_on(quiet) as progress:
            report = grading.grade(submission.unrecorded if no_record else submission, only=case,
                                   seed=seed, target=target, gpu=gpu, quick=quick,
                                   everything=everything, on_event=progress, sandbox=sandbox,
                                   course=None if again or no_record else the_course)
    result = grading.SaveResult(grading.reading_of(the_course, submission)) if no_record else \
        grading.save(the_course, submission, report)
    try:
        command, before = _after_grade(the_course, submission, report, result)
        first = report.first_failure
        offer = hints.offer(module, first.findings[0], result.reading) \
            if first and first.findings else None
        data = report.to_dict()
        for shown_result, graded in zip(data["results"], report.results, strict=True):
            shown_result["replay"] = _replay(submission, graded)
        weak = weak_isolation(report.isolation)
        data |= {"module": module.id, "isolation_warning": weak, "saved": result.saved,
                 "not_saved": result.complaint, "hint": offer.to_dict() if offer else None}
        replay = _replay(submission, first)
        if _emit(output, data | {"next": command}, submission):
            show(as_json, plain, data, lambda screen: view.show(
                screen, module, report, _details(report, submission),
                replay if replay != command else "", result.reading, verbose=verbose,
                more=_after_pass(submission, report, result),
                picture=submission.typed("trace") if report.has_picture else ""), command, before)
        else:
            warn(weak)
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


def _output_options(output_format: OutputFormat, as_json: bool, out: Path | None, points: int,
                    visibility: Visibility, case: str | None) -> OutputOptions:
    """Returns the options of the output.

    Raises:
        TritonlabError: they contradict each other, or no file can be written to ``out``.
    """
    if as_json and output_format not in (OutputFormat.TEXT, OutputFormat.JSON):
        raise TritonlabError(f"--json and --format {output_format} are two formats.",
                             "Type one of them.")
    output_format = OutputFormat.JSON if as_json else output_format
    if output_format is OutputFormat.TEXT and out is not None:
        raise TritonlabError("The text of a report is for the screen, not for --out.",
                             "Name another format with --format.")
    if output_format.gives_points and case is not None:
        raise TritonlabError(f"--format {output_format} gives points, and a single case has none.",
                             "Leave out --case.")
    output_files.check(out, output_format.kind)
    commit = output_formats.graded_commit() if output_format is OutputFormat.CLASSROOM50 else None
    return OutputOptions(output_format, out, points, visibility, commit)


def _emit(output: OutputOptions, data: Mapping[str, Any], submission: Submission,
          public: frozenset[str] = frozenset()) -> bool:
    """Writes a format to its file or prints it; returns whether the report is still to be shown."""
    if output.format is OutputFormat.TEXT or (output.format is OutputFormat.JSON
                                              and output.out is None):
        return True
    text = f"{json.dumps(data, indent=2)}\n" if output.format is OutputFormat.JSON else \
        output.render(data, submission.module, submission.kernel, public)
    if output.out is None:
        print(text, end="", flush=True)
        return False
    output_files.write(text, output.out, output.format.kind)
    return True


def _grade_for_points(output: OutputOptions, exercise: str | None, module_id: str | None,
                      seed: str | None, target: str | None, gpu: bool, no_record: bool,
                      plain: bool) -> int:
    """Grades all cases for a format that carries points; returns 0 unless the grader broke.

    A file that cannot be graded gets no points: the student has to act, not the instructor.

    Raises:
        TritonlabError: nothing was decided about the submission, so nothing is written.
    """
    from tritonlab.render import report as view

    the_course = course_choice.load()
    complaint = ""
    public: frozenset[str] = frozenset()
    try:
        submission = resolve(the_course, exercise, module_id)
        with progress_on(plain) as progress:
            report = grading.grade(submission.unrecorded if no_record else submission, seed=seed,
                                   target=target, gpu=gpu, everything=True, on_event=progress)
        public = grading.public_cases(submission.module)
        if not no_record:
            complaint = grading.save(the_course, submission, report).complaint
    except UnusableFile as error:
        if module_id is None:
            raise
        module = the_course.find(module_id)
        submission = Submission(module, Path(exercise or EXERCISE), None)
        report = output_formats.refusal(module, error)
    data = report.to_dict()
    output_formats.check_decided(data)
    if _emit(output, data, submission, public):
        screen = screen_on(plain)
        view.show(screen, submission.module, report, _details(report, submission), "",
                  grading.reading_of(the_course, submission))
    else:
        warn(weak_isolation(report.isolation))
    return warn(complaint)


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
    the_course = course_choice.load()
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

    the_course = course_choice.load()
    submission = submission_at(the_course, Path(path))
    with progress_on(plain=False) as progress:
        report = grading.grade(submission, public_only=True, on_event=progress)
    before = "Edit it, then repeat, or type: " if report.exit_code else \
        "The same: " if submission.module.public_only else "Then the hidden tests too: "
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
    if report.exit_code == 0 and report.partial and not submission.module.public_only:
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
    gpu: Gpu = True, quick: Quick = False,
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
    the_course = course_choice.load()
    submission = resolve(the_course, exercise, module_id)
    if edit:  # one that needs the terminal is opened by a key
        warn(editor.open_in_editor(submission.kernel))
    view: WatchView = Lines() if as_json else Watched(lambda: screen_on(plain))
    session = Watch(the_course, submission, view, actions=ACTIONS,
                    keyboard=Keyboard(wanted=not as_json), target=target, gpu=gpu, quick=quick,
                    poll=poll)
    return session.run()
