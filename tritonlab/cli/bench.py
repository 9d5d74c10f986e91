"""The verb `bench`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tritonlab.cli import boundary, completion
from tritonlab.cli.options import CurrentOr, Json, OfModule, Plain, print_json, screen_on
from tritonlab.course import course
from tritonlab.errors import shown
from tritonlab.grading import grade
from tritonlab.progress import bench_cache
from tritonlab.workspace import output_files
from tritonlab.workspace.submission import resolve


@boundary.verb
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
    from grader.gpu import detect  # it knows the sandbox, which takes long to import
    from tritonlab.grading import bench as the_bench
    from tritonlab.render import bench_text as view
    from tritonlab.render.screen import Progress

    screen = screen_on(plain)
    the_target = grade.find_target(target) if target else None
    if the_target is None and not gpu:
        the_target = detect.default_target()
    for path, kind in ((html, output_files.PAGE), (png, output_files.PICTURE)):
        if path is not None:
            output_files.check(path, kind)
    submission = resolve(course.load(), what, module_id)
    with Progress(screen_on(plain or as_json, error=True)) as progress:
        benchmark = the_bench.bench(submission, function=function, target=the_target,
                                    on_event=progress)
        module = submission.module
        warning = ""
        if submission.in_place and submission.workspace is not None and not function:
            warning = bench_cache.keep(submission.workspace.mark, module, benchmark)
        if html is not None or png is not None:
            progress.say("drawing")
        if html is not None:
            from tritonlab.render import pages

            output_files.write(pages.benchmark(module, benchmark).encode(), html,
                               output_files.PAGE)
        if png is not None:
            from tritonlab.render import charts

            picture = charts.benchmark_png(benchmark, f"{module.id}: {module.title}")
            output_files.write(picture, png, output_files.PICTURE)
    command, before = f"tritonlab grade {module.id}", "Next: "
    if not submission.in_place:
        command = submission.full_command
    if benchmark.exit_code == 0 and submission.in_place:
        command = f"tritonlab inspect {module.id}"
    if as_json:
        print_json({"module": module.id, **benchmark.to_dict(),
                    "page": str(html) if html else None,
                    "picture": str(png) if png else None, "next": command})
    else:
        written = [shown(path.absolute()) for path in (html, png) if path is not None]
        view.show(screen, module, benchmark, command, before, written=written)
    boundary.warn(warning)
    return benchmark.exit_code
