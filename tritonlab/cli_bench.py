"""The verb of speed: bench."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tritonlab import benches, completion, course, grading, guard, outputs
from tritonlab.errors import shown
from tritonlab.verbs import CurrentOr, Json, OfModule, Plain, print_json, screen_on


def add_to(app: typer.Typer) -> None:
    """Make the verb known to the command."""
    app.command()(bench)


@guard.verb
def bench(
    what: CurrentOr = None,
    module_id: OfModule = None,
    function: Annotated[str, typer.Option(
        metavar="NAME", help="Only this function, where the module has several.")] = "",
    target: Annotated[str | None, typer.Option(
        metavar="GPU", autocompletion=completion.gpus,
        help="Predict for this GPU, such as a100, instead of measuring.")] = None,
    gpu: Annotated[bool, typer.Option(
        "--gpu/--no-gpu", help="Measure on this machine's GPU, if it has one; else predict.",
    )] = True,
    html: Annotated[Path | None, typer.Option(
        metavar="FILE", help="Write a page for a browser, with pictures and tables.")] = None,
    png: Annotated[Path | None, typer.Option(
        metavar="FILE", help="Write a picture: speed over size, and the roofline.")] = None,
    as_json: Json = False, plain: Plain = False,
) -> int:
    """How fast your kernels are beside PyTorch and the solution, over sizes.

    Right values come first: what is wrong is not timed. Without a GPU, times are predicted. The
    last benchmark of each module is kept for `tritonlab report`.
    """
    from grader import hardware  # it knows the sandbox, which takes long to import
    from tritonlab import bench as the_bench
    from tritonlab.render import bench as view
    from tritonlab.render.screen import Progress

    screen = screen_on(plain)
    the_target = grading.find_target(target) if target else None
    if the_target is None and not gpu:
        the_target = hardware.default_target()
    for path, kind in ((html, outputs.PAGE), (png, outputs.PICTURE)):
        if path is not None:
            outputs.check(path, kind)
    submission = grading.resolve(course.load(), what, module_id)
    with Progress(screen_on(plain or as_json, error=True)) as progress:
        found = the_bench.bench(submission, function=function, target=the_target,
                                on_event=progress)
        module = submission.module
        warning = ""
        if submission.in_place and submission.workspace is not None and not function:
            warning = benches.keep(submission.workspace, module, found)
        if html is not None or png is not None:
            progress.say("drawing")
        if html is not None:
            from tritonlab.render import page

            outputs.write(page.benchmark(module, found).encode(), html, outputs.PAGE)
        if png is not None:
            from tritonlab.render import picture

            outputs.write(picture.png(found, f"{module.id}: {module.title}"), png,
                          outputs.PICTURE)
    command, before = f"tritonlab grade {module.id}", "Next: "
    if not submission.in_place:
        command = submission.full_command
    if found.exit_code == 0 and submission.in_place:
        command = f"tritonlab inspect {module.id}"
    if as_json:
        print_json({"module": module.id, **found.to_dict(),
                    "page": str(html) if html else None,
                    "picture": str(png) if png else None, "next": command})
    else:
        written = [shown(path.absolute()) for path in (html, png) if path is not None]
        view.show(screen, module, found, command, before, written=written)
    guard.warn(warning)
    return found.exit_code
