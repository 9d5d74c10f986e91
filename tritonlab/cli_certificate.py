"""The verb of what was shown: certificate."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from tritonlab import certificate as the_certificate
from tritonlab import course, guard, workspace
from tritonlab.verbs import Json, Plain, onward, screen_on


def add_to(app: typer.Typer) -> None:
    """Make the verb known to the command."""
    app.command()(certificate)


@guard.verb
def certificate(
    name: Annotated[str | None, typer.Option(
        help="The name to put on it; an empty one takes it off.")] = None,
    as_json: Json = False, plain: Plain = False,
) -> int:
    """The certificate, made anew from the journal."""
    from tritonlab.render import certificate as view

    the_course = course.load()
    journal = workspace.require(the_course.example).journal(the_course)
    if name is None:
        warning = journal.renew()
    else:
        warning = journal.append("named", name=" ".join(name.split())[:100]).warning
    reading = journal.read()
    made = the_certificate.build(the_course, reading)
    if as_json:
        sys.stdout.write(made.to_json())
    else:
        view.show(screen_on(plain), made, onward(the_course, reading, done="tritonlab list"))
    return guard.warn(warning, *reading.problems)
