"""The verbs of the record: status and merge."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from tritonlab import certificate, completion, course, guard, workspace
from tritonlab.errors import shown
from tritonlab.verbs import Json, Plain, onward, print_json, reading_here, screen_on


def add_to(app: typer.Typer) -> None:
    """Make the verbs known to the command."""
    for verb in (status, merge):
        app.command()(verb)


@guard.verb
def status(
    module_id: Annotated[str | None, typer.Argument(
        metavar="[ID]", help="Only the attempts at this module.",
        autocompletion=completion.modules)] = None,
    history: Annotated[bool, typer.Option(
        "--history", help="Every attempt: verdict, evidence, checks, hints, device.")] = False,
    as_json: Json = False, plain: Plain = False,
) -> int:
    """Your progress: what is passed, what is open, what is left; or every attempt."""
    from tritonlab.render import course as view

    if history or module_id:
        return _history(module_id, as_json, plain)
    the_course = course.load()
    reading = reading_here(the_course)
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


def _history(module_id: str | None, as_json: bool, plain: bool) -> int:
    from tritonlab import history
    from tritonlab.render import history as view

    the_course = course.load()
    reading = reading_here(the_course)
    module = the_course.find(module_id) if module_id else None
    found = history.attempts(the_course, reading, module)
    command = onward(the_course, reading)
    if module is not None:
        begun = any(record.module == module.id for record in reading.records)
        command = f"tritonlab {'grade' if begun else 'start'} {module.id}"
    if as_json:
        return print_json({"schema": 1, "module": module.id if module else None,
                           "attempts": [asdict(attempt) for attempt in found], "next": command})
    view.show(screen_on(plain), the_course, found, command)
    return 0


@guard.verb
def merge(
    path: Annotated[Path, typer.Argument(
        metavar="PATH", help="A workspace, its .tritonlab folder, or a journal.jsonl.")],
    as_json: Json = False, plain: Plain = False,
) -> int:
    """Add what you did on another machine to the record here; merging again changes nothing."""
    from tritonlab import merging
    from tritonlab.render import merging as view

    the_course = course.load()
    place = workspace.require(the_course.example)
    merged = merging.merge(the_course, place, path)
    command = "tritonlab status"
    if as_json:
        print_json({"schema": 1, "source": str(path), "added": merged.added,
                    "there": merged.there, "newly_passed": merged.gained,
                    "core_passed": merged.after.core.passed,
                    "problems": list(merged.problems), "next": command})
    else:
        view.show(screen_on(plain), merged, command)
    return guard.warn(merged.warning, *merged.problems)
