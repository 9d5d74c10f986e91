"""The verb `inspect`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from grader.engine.compiler import targets
from tritonlab.cli import boundary, completion
from tritonlab.cli.options import CurrentOr, Json, OfModule, Plain, print_json, screen_on
from tritonlab.course import course
from tritonlab.errors import shown
from tritonlab.grading import grade as grading
from tritonlab.workspace import output_files
from tritonlab.workspace.submission import resolve


@boundary.verb
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
    from tritonlab.grading import inspect as inspection
    from tritonlab.render import inspect_text as view
    from tritonlab.render.screen import Progress

    screen = screen_on(plain)
    the_target = grading.find_target(target)
    if html is not None:
        output_files.check(html, output_files.PAGE)
    submission = resolve(course.load(), what, module_id)
    with Progress(screen_on(plain or as_json, error=True)) as progress:
        inspected = inspection.inspect(submission, the_target, case=case, on_event=progress,
                                       listings=ptx or sass or html is not None)
    command, before = submission.command, "Next: "
    if not inspected.clean:
        command = inspection.command(submission, the_target, case)
        before = f"Edit {submission.to_edit}, then type: "
    if html is not None:
        from tritonlab.render import pages

        output_files.write(pages.inspection(submission.module, inspected).encode(), html,
                           output_files.PAGE)
    if as_json:
        print_json({"module": submission.module.id, **inspected.to_dict(ptx=ptx, sass=sass),
                     "page": str(html) if html else None, "next": command})
    elif html is not None:
        view.show_page(screen, submission.module, inspected, shown(html.absolute()), command,
                       before)
    else:
        view.show(screen, submission.module, inspected, command, before, ptx=ptx, sass=sass)
    return inspected.exit_code
