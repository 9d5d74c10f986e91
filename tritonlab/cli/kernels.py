"""The verbs that look into kernels: inspect, trace and bench."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from grader.engine.compiler import targets
from tritonlab.cli import options
from tritonlab.cli.boundary import progress_on, show, verb, warn
from tritonlab.cli.options import CurrentOr, Json, OfModule, Plain
from tritonlab.errors import TritonlabError
from tritonlab.grading import grade as grading
from tritonlab.progress import caches
from tritonlab.workspace import course_choice, output_files
from tritonlab.workspace.submission import resolve

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from grader.submission.launch_parameters import Value
    from tritonlab.render.screen import Screen
    from tritonlab.workspace.submission import Submission


@verb
def inspect(
    exercise: CurrentOr = None,
    module_id: OfModule = None,
    target: Annotated[str, typer.Option(
        metavar="GPU", autocompletion=options.gpus,
        help="GPU to compile for.")] = targets.DEFAULT,
    case: Annotated[str | None, typer.Option(
        metavar="NAME", autocompletion=options.cases,
        help="Case to inspect. Default: the performance cases.")] = None,
    ptx: Annotated[bool, typer.Option("--ptx", help="Also print the PTX, by source line.")] = False,
    sass: Annotated[bool, typer.Option(
        "--sass", help="Also print the machine code (SASS), by source line.")] = False,
    set_: Annotated[list[str] | None, typer.Option(
        "--set", metavar="NAME=VALUE",
        help="Value of a constant or launch parameter, such as BLOCK_N=128 or num_warps=8. With "
             "several values, such as 64,128, a table compares them.")] = None,
    against: Annotated[str | None, typer.Option(
        metavar="FILE or last",
        help="Compare with another version: a file, or the last one that was graded or "
             "inspected.")] = None,
    html: Annotated[Path | None, typer.Option(
        metavar="FILE", help="Write an HTML page instead.")] = None,
    as_json: Json = False, plain: Plain = False,
) -> int:
    """Show the compiled code of your kernels, line by line. Needs no GPU."""
    from tritonlab.grading import kernels
    from tritonlab.render import inspect_text as view

    the_target = grading.find_target(target)
    settings = kernels.settings_of(set_ or ())
    several = any(len(values) > 1 for values in settings.values())
    if (several or against is not None) and (html is not None or ptx or sass):
        raise TritonlabError("A table of several versions has no page and no listings.",
                             "Leave out --html, --ptx and --sass.")
    if several and against is not None:
        raise TritonlabError("--against compares with one version of yours.",
                             "Give each parameter of --set one value.")
    output_files.check(html)
    submission = resolve(course_choice.load(), exercise, module_id)
    if several:
        return _sweep(submission, the_target, settings, case, as_json=as_json, plain=plain)
    values = {name: value for name, (value,) in settings.items()}
    if against is not None:
        return _compare(submission, the_target, against, case, values, as_json=as_json, plain=plain)
    with progress_on(plain or as_json) as progress:
        inspected = kernels.inspect(submission, the_target, case=case, values=values,
                                    on_event=progress, listings=True)
    command, before = submission.command, "Next: "
    if not inspected.clean:
        command = submission.typed("inspect")
        command += f" --target {the_target.name}" * (the_target.name != targets.DEFAULT)
        command += f" --case {shlex.quote(case)}" if case is not None else ""
        before = f"Edit {submission.to_edit}, then type: "
    if html is not None:
        from tritonlab.render import pages

        output_files.write(pages.inspection(submission.module, inspected), html)
    show(as_json, plain,
         {"module": submission.module.id, **inspected.to_dict(ptx=ptx, sass=sass),
          "page": str(html) if html else None},
         lambda screen: view.show(screen, submission.module, inspected, html, ptx=ptx, sass=sass),
         command, before)
    return inspected.exit_code


def _compare(submission: "Submission", target: targets.Target, against: str, case: str | None,
             values: "Mapping[str, Value]", *, as_json: bool, plain: bool) -> int:
    from tritonlab.grading import kernels
    from tritonlab.render import comparison_text as view

    with progress_on(plain or as_json) as progress:
        compared = kernels.compare(submission, target, against, case=case, values=values,
                                   on_event=progress)
    show(as_json, plain, {"module": submission.module.id, **compared.to_dict()},
         lambda screen: view.show(screen, submission.module, compared),
         submission.typed("inspect") + f" --against {shlex.quote(against)}",
         f"Edit {submission.to_edit}, then type: ")
    return compared.exit_code


def _sweep(submission: "Submission", target: targets.Target,
           settings: "Mapping[str, Sequence[Value]]", case: str | None, *, as_json: bool,
           plain: bool) -> int:
    from tritonlab.grading import kernels
    from tritonlab.render import sweep_text as view

    with progress_on(plain or as_json) as progress:
        swept = kernels.sweep(submission, target, settings, case=case, on_event=progress)
    show(as_json, plain, {"module": submission.module.id, **swept.to_dict()},
         lambda screen: view.show(screen, submission.module, swept), submission.typed("inspect"),
         f"Edit {submission.to_edit}, then type: ")
    return swept.exit_code


@verb
def trace(
    exercise: CurrentOr = None,
    module_id: OfModule = None,
    case: Annotated[str | None, typer.Option(
        metavar="NAME", autocompletion=options.cases,
        help="Case to trace. Default: the first that failed in the last grade.")] = None,
    seed: Annotated[str | None, typer.Option(
        metavar="HEX", help="The inputs of an earlier grade.")] = None,
    program: Annotated[str | None, typer.Option(
        metavar="X,Y,Z", help="Print the steps of this program instead.")] = None,
    launch: Annotated[int, typer.Option(
        metavar="N", min=1, help="Launch that the program belongs to, counted from 1.")] = 1,
    html: Annotated[Path | None, typer.Option(
        metavar="FILE", help="File of the page. Default: trace.html beside the exercise.")] = None,
    open_: Annotated[bool, typer.Option(
        "--open", help="Open the page in a browser.")] = False,
    as_json: Json = False, plain: Plain = False,
) -> int:
    """Draw what each program of your kernels loads, masks, computes and stores.

    The page needs no network. Hidden cases are drawn with their inputs and your own values.
    """
    from tritonlab.grading import kernels
    from tritonlab.trace import browser, draw, program_steps

    place = kernels.place_in_grid(program)
    output_files.check(html)
    submission = resolve(course_choice.load(), exercise, module_id)
    with progress_on(plain or as_json) as progress:
        traced = kernels.trace(submission, case=case, seed=seed, program=place or (),
                               launch=launch - 1, on_event=progress)
    file = None
    if html is not None or (place is None and not as_json):
        file = draw.write(submission, traced, html)

    def view(screen: "Screen") -> None:
        if place is not None:
            program_steps.show(screen, traced, traced.number_of(place, launch - 1), launch - 1)
        if file is not None:
            program_steps.show_page(screen, traced, file)

    show(as_json, plain, {"module": submission.module.id, **traced.to_dict(),
                          "page": str(file) if file else None},
         view, submission.typed("grade"), f"Edit {submission.to_edit}, then type: "
         if traced.report.exit_code == 1 else "Next: ")
    if open_ and file is not None:
        warn(browser.open_page(file))
    return 0


@verb
def bench(
    exercise: CurrentOr = None,
    module_id: OfModule = None,
    function: Annotated[str, typer.Option(
        metavar="NAME", help="Benchmark only this function, if the module has several.")] = "",
    target: Annotated[str | None, typer.Option(
        metavar="GPU", autocompletion=options.gpus,
        help="Predict for this GPU, such as a100, instead of measuring.")] = None,
    gpu: Annotated[bool, typer.Option(
        "--gpu/--no-gpu", help="Measure on this machine's GPU if it has one, otherwise predict.",
    )] = True,
    html: Annotated[Path | None, typer.Option(
        metavar="FILE", help="Write an HTML page with charts and tables.")] = None,
    png: Annotated[Path | None, typer.Option(
        metavar="FILE", help="Write a chart: speed over size, and the roofline.")] = None,
    as_json: Json = False, plain: Plain = False,
) -> int:
    """Compare the speed of your kernels with PyTorch and the solution, over sizes.

    Right values come first: what is wrong is not timed. Without a GPU, times are predicted. The
    last benchmark of each module is kept for `tritonlab report`.
    """
    from grader.gpu import detect  # it knows the sandbox, which takes long to import
    from tritonlab.grading import kernels
    from tritonlab.render import bench_text as view

    the_target = grading.find_target(target) if target else None if gpu else detect.default_target()
    output_files.check(html)
    output_files.check(png, output_files.PICTURE)
    submission = resolve(course_choice.load(), exercise, module_id)
    with progress_on(plain or as_json) as progress:
        benchmark = kernels.bench(submission, function=function, target=the_target,
                                  on_event=progress)
        module = submission.module
        warning = ""
        if submission.in_place and submission.workspace is not None and not function:
            warning = caches.save_benchmark(submission.workspace.mark, module, benchmark)
        if html is not None or png is not None:
            progress("drawing")
        if html is not None:
            from tritonlab.render import pages

            output_files.write(pages.benchmark(module, benchmark), html)
        if png is not None:
            from tritonlab.render import charts

            picture = charts.benchmark_png(benchmark, f"{module.id}: {module.title}")
            output_files.write(picture, png, output_files.PICTURE)
    verb_after = "inspect" if benchmark.exit_code == 0 else "grade"
    command = f"tritonlab {verb_after} {module.id}" if submission.in_place else \
        submission.typed("grade")
    show(as_json, plain,
         {"module": module.id, **benchmark.to_dict(), "page": str(html) if html else None,
          "picture": str(png) if png else None},
         lambda screen: view.show(screen, module, benchmark, filter(None, (html, png))), command)
    warn(warning)
    return benchmark.exit_code
