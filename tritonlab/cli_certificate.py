"""The verbs of what was shown: certificate, verify and report."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from tritonlab import certificate as the_certificate
from tritonlab import course, guard, outputs, workspace
from tritonlab.errors import TritonlabError, shown
from tritonlab.verbs import Json, Plain, onward, print_json, screen_on


def add_to(app: typer.Typer) -> None:
    """Make the verbs known to the command."""
    for function in (certificate, verify, report):
        app.command()(function)


@guard.verb
def certificate(
    name: Annotated[str | None, typer.Option(
        help="The name to put on it; an empty one takes it off.")] = None,
    html: Annotated[Path | None, typer.Option(
        metavar="FILE", help="Write a page for a browser too, to print on one sheet.")] = None,
    as_json: Json = False, plain: Plain = False,
) -> int:
    """The certificate, made anew from the journal."""
    from tritonlab.render import certificate as view

    if html is not None:
        outputs.check(html, outputs.PAGE)
    the_course = course.load()
    journal = workspace.require(the_course.example).journal(the_course)
    if name is None:
        warning = journal.renew()
    else:
        warning = journal.append("named", name=" ".join(name.split())[:100]).warning
    reading = journal.read()
    made = the_certificate.build(the_course, reading)
    if html is not None:
        from tritonlab.render import sheets

        outputs.write(sheets.certificate(made, html.name).encode(), html, outputs.PAGE)
    if as_json:
        sys.stdout.write(made.to_json())
    elif html is not None:
        path = shown(html.absolute())
        view.show_page(screen_on(plain), made, path, f"tritonlab verify {shlex.quote(path)}")
    else:
        view.show(screen_on(plain), made, onward(the_course, reading, done="tritonlab list"))
    return guard.warn(warning, *reading.problems)


@guard.verb
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
    from tritonlab import claims, verification
    from tritonlab.render import verification as view
    from tritonlab.render.screen import Progress

    screen = screen_on(plain)
    the_course = course.load()
    located = claims.locate(the_course, file)
    file, claimed = located.file, located.claims
    root = sources or verification.sources(file, claimed)
    if not root.is_dir():
        raise TritonlabError(f"There is no folder {shown(root)}.",
                             "Name the one that holds the sources with `--sources FOLDER`.")
    with Progress(screen_on(plain or as_json, error=True)) as progress:
        found = verification.verify(the_course, claimed, root, gpu=gpu, on_event=progress)
    command, before = verification.onward(found, shown(file), shown(root))
    if as_json:
        print_json({**found.to_dict(), "sources": str(root), "next": command})
    else:
        view.show(screen, found, shown(root.absolute()), command, before)
    guard.warn(*located.problems)
    return found.exit_code


@guard.verb
def report(
    html: Annotated[Path | None, typer.Option(
        metavar="FILE", help="Write a page for a browser, with attempts over time and pictures.",
    )] = None,
    as_json: Json = False, plain: Plain = False,
) -> int:
    """Your way so far: modules, attempts over time, evidence, hints and benchmarks."""
    from tritonlab import overview
    from tritonlab.render import overview as view
    from tritonlab.render.screen import Progress

    if html is not None:
        outputs.check(html, outputs.PAGE)
    the_course = course.load()
    place = workspace.require(the_course.example)
    reading = place.journal(the_course).read()
    found = overview.build(the_course, reading, place)
    command = onward(the_course, reading)
    if html is not None:
        from tritonlab.render import sheets

        with Progress(screen_on(plain or as_json, error=True)) as progress:
            progress.say("drawing the page")
            outputs.write(sheets.report(found).encode(), html, outputs.PAGE)
    if as_json:
        print_json({**found.to_dict(), "page": str(html) if html else None, "next": command})
    elif html is not None:
        screen = screen_on(plain)
        screen.line(f"The page is {shown(html.absolute())}")
        screen.line(view.summary(found))
        screen.next(command)
    else:
        view.show(screen_on(plain), found, command)
    return guard.warn(*reading.problems)
