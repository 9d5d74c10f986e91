"""The verbs about this machine: doctor and tour."""

import sys
from typing import Annotated

import typer

from grader.report import EXIT_GRADER_BROKE
from tritonlab.cli.boundary import progress_on, screen_on, show, verb
from tritonlab.cli.options import Json, Plain
from tritonlab.workspace import course_choice


@verb
def tour(as_json: Json = False, plain: Plain = False) -> int:
    """Show in a minute how it works: start, fail, pass, certificate. Leaves no files."""
    from tritonlab.doctor import tour as the_tour
    from tritonlab.render import doctor as view

    screen = screen_on(plain)
    the_course = course_choice.load()
    module = the_course.find(the_tour.MODULE)
    taken = []
    with progress_on(plain or as_json) as progress:
        for number, step in enumerate(the_tour.steps(the_course, progress), start=1):
            taken.append(step)
            progress.clear()
            if not as_json:
                view.show_step(screen, number, step, module)
    ok = all(step.ok for step in taken)
    command = f"tritonlab start {the_course.example}" if ok else "tritonlab tour --json"
    show(as_json, plain, {"schema": 1, "ok": ok, "steps": [step.to_dict() for step in taken]},
         lambda screen: None, command)
    return 0 if ok else EXIT_GRADER_BROKE


@verb
def doctor(
    attack: Annotated[bool, typer.Option(
        "--attack", help="Run 26 attacks on the sandbox, against decoys.")] = False,
    as_json: Json = False, plain: Plain = False,
) -> int:
    """Check this machine: versions, isolation, GPU, and the verdicts it can give."""
    from tritonlab.doctor import doctor as the_doctor
    from tritonlab.doctor import environment_checks
    from tritonlab.render import doctor as view

    screen = screen_on(plain)
    with progress_on(plain or as_json) as progress:
        diagnosis = the_doctor.examine(environment_checks.display(
            screen.is_terminal, screen.color, screen.full_width, sys.stdout.encoding or ""),
            attack=attack, tell=progress)
    command = "tritonlab doctor" if diagnosis.exit_code == EXIT_GRADER_BROKE else \
        "tritonlab list" if attack else "tritonlab doctor --attack"
    show(as_json, plain, diagnosis.to_dict(), lambda screen: view.show(screen, diagnosis), command)
    return diagnosis.exit_code
