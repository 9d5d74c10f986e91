"""The verbs of the record: status."""

from __future__ import annotations

import typer

from tritonlab import certificate, course, guard, workspace
from tritonlab.errors import shown
from tritonlab.verbs import Json, Plain, onward, print_json, reading_here, screen_on


def add_to(app: typer.Typer) -> None:
    """Make the verbs known to the command."""
    app.command()(status)


@guard.verb
def status(as_json: Json = False, plain: Plain = False) -> int:
    """Your progress: what is passed, what is open, what is left."""
    from tritonlab.render import course as view

    the_course, reading = course.load(), reading_here()
    place = workspace.find()
    standing = certificate.build(the_course, reading)
    current = (place.module_here(the_course) if place else None) or (
        the_course.get(reading.current) if reading.current else None)
    command = "tritonlab grade" if current and standing.entry(current).is_open else \
        onward(the_course, reading)
    if as_json:
        return print_json({**standing.to_dict(), "current": current.id if current else None,
                            "workspace": str(place.root) if place else None, "next": command})
    view.show_status(screen_on(plain), the_course, standing, current,
                     shown(place.root) if place else None, command)
    return 0
