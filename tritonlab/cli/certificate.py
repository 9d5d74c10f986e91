"""The verbs about a certificate and a report: certificate, verify and report."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from tritonlab.cli import boundary
from tritonlab.cli.options import Json, Plain, onward, print_json, screen_on
from tritonlab.course import course
from tritonlab.errors import TritonlabError, shown
from tritonlab.progress import certificate as the_certificate
from tritonlab.workspace import output_files, workspace


@boundary.verb
def certificate(
    name: Annotated[str | None, typer.Option(
        help="The name to put on it; an empty one takes it off.")] = None,
    html: Annotated[Path | None, typer.Option(
        metavar="FILE", help="Write a page for a browser too, to print on one sheet.")] = None,
    as_json: Json = False, plain: Plain = False,
) -> int:
    """The certificate, made anew from the journal."""
    from tritonlab.render import certificate_text as view

    if html is not None:
        output_files.check(html, output_files.PAGE)
    the_course = course.load()
    journal = workspace.require(the_course.example).journal(the_course)
    if name is None:
        warning = journal.renew()
    else:
        warning = journal.append("named", name=" ".join(name.split())[:100]).warning
    reading = journal.read()
    current = the_certificate.build(the_course, reading)
    if html is not None:
        from tritonlab.render import pages

        output_files.write(pages.certificate(current, html.name).encode(), html,
                           output_files.PAGE)
    if as_json:
        sys.stdout.write(current.to_json())
    elif html is not None:
        path = shown(html.absolute())
        view.show_page(screen_on(plain), current, path, f"tritonlab verify {shlex.quote(path)}")
    else:
        view.show(screen_on(plain), current, onward(the_course, reading, done="tritonlab list"))
    return boundary.warn(warning, *reading.problems)


@boundary.verb
def verify(
    file: Annotated[Path, typer.Argument(
        metavar="FILE", help="A certificate: its page, its JSON, or a workspace.")],
    sources: Annotated[Path | None, typer.Option(
        metavar="FOLDER", help="Where the sources lie, as in a workspace. By default beside the "
                               "certificate.")] = None,
    gpu: Annotated[bool, typer.Option(
        "--gpu/--no-gpu", help="Run and time the kernels on this machine's GPU too, if it has one.",
    )] = True,
    as_json: Json = False, plain: Plain = False,
) -> int:
    """Grade again, on new inputs, what a certificate claims. Nothing is recorded.

    Exit code 0 if all that is claimed holds, as far as this machine can show; 1 if anything does
    not, its source is missing or another one; 2 if there is nothing to verify.
    """
    from tritonlab.render import certificate_text as view
    from tritonlab.render.screen import Progress
    from tritonlab.verify import certificate_reader
    from tritonlab.verify import verify as verification

    screen = screen_on(plain)
    the_course = course.load()
    located = certificate_reader.locate(the_course, file)
    file, claimed = located.file, located.claims
    root = sources or verification.sources(file, claimed)
    if not root.is_dir():
        raise TritonlabError(f"There is no folder {shown(root)}.",
                             "Name the one that holds the sources with `--sources FOLDER`.")
    with Progress(screen_on(plain or as_json, error=True)) as progress:
        result = verification.verify(the_course, claimed, root, gpu=gpu, on_event=progress)
    command, before = verification.onward(result, shown(file), shown(root))
    if as_json:
        print_json({**result.to_dict(), "sources": str(root), "next": command})
    else:
        view.show_verification(screen, result, shown(root.absolute()), command, before)
    boundary.warn(*located.problems)
    return result.exit_code


@boundary.verb
def report(
    html: Annotated[Path | None, typer.Option(
        metavar="FILE", help="Write a page for a browser, with attempts over time and pictures.",
    )] = None,
    as_json: Json = False, plain: Plain = False,
) -> int:
    """Your way so far: modules, attempts over time, evidence, hints and benchmarks."""
    from tritonlab.progress import progress_report
    from tritonlab.render import progress as view
    from tritonlab.render.screen import Progress

    if html is not None:
        output_files.check(html, output_files.PAGE)
    the_course = course.load()
    place = workspace.require(the_course.example)
    reading = place.journal(the_course).read()
    overview = progress_report.build(the_course, reading, place.mark)
    command = onward(the_course, reading)
    if html is not None:
        from tritonlab.render import pages

        with Progress(screen_on(plain or as_json, error=True)) as progress:
            progress.say("drawing the page")
            output_files.write(pages.report(overview).encode(), html, output_files.PAGE)
    if as_json:
        print_json({**overview.to_dict(), "page": str(html) if html else None, "next": command})
    elif html is not None:
        screen = screen_on(plain)
        screen.line(f"The page is {shown(html.absolute())}")
        screen.line(view.report_summary(overview))
        screen.next(command)
    else:
        view.show_report(screen_on(plain), overview, command)
    return boundary.warn(*reading.problems)
