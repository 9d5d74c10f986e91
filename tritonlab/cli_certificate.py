"""The verb of what was shown: certificate."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from tritonlab import certificate as the_certificate
from tritonlab import course, guard, outputs, workspace
from tritonlab.errors import shown
from tritonlab.verbs import Json, Plain, onward, screen_on


def add_to(app: typer.Typer) -> None:
    """Make the verb known to the command."""
    app.command()(certificate)


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
        from tritonlab.render import page

        outputs.write(page.certificate(made, html.name).encode(), html, outputs.PAGE)
    if as_json:
        sys.stdout.write(made.to_json())
    elif html is not None:
        path = shown(html.absolute())
        view.show_page(screen_on(plain), made, path, f"tritonlab verify {shlex.quote(path)}")
    else:
        view.show(screen_on(plain), made, onward(the_course, reading, done="tritonlab list"))
    return guard.warn(warning, *reading.problems)
