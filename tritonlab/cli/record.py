"""The verbs of the record: list, status and merge."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from tritonlab.cli import boundary, completion
from tritonlab.cli.options import Json, Plain, onward, print_json, reading_here, screen_on
from tritonlab.course import course
from tritonlab.errors import shown
from tritonlab.progress import certificate
from tritonlab.workspace import workspace


@boundary.verb
def list_(as_json: Json = False, plain: Plain = False) -> int:
    """All tracks and modules, and how far you have come."""
    from tritonlab.render import progress as view

    the_course = course.load()
    reading = reading_here(the_course)
    shown_certificate = certificate.build(the_course, reading)
    if as_json:
        return print_json(view.list_to_dict(the_course, shown_certificate))
    view.show_list(screen_on(plain), the_course, shown_certificate, onward(the_course, reading))
    return 0


@boundary.verb
def status(
    module_id: Annotated[str | None, typer.Argument(
        metavar="[ID]", help="Only the attempts at this module.",
        autocompletion=completion.modules)] = None,
    history: Annotated[bool, typer.Option(
        "--history", help="Every attempt: verdict, evidence, checks, hints, device.")] = False,
    as_json: Json = False, plain: Plain = False,
) -> int:
    """Your progress: what is passed, what is open, what is left; or every attempt."""
    from tritonlab.render import progress as view

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
    from tritonlab.progress import history
    from tritonlab.render import progress as view

    the_course = course.load()
    reading = reading_here(the_course)
    module = the_course.find(module_id) if module_id else None
    attempts = history.attempts(the_course, reading, module)
    command = onward(the_course, reading)
    if module is not None:
        begun = any(record.module == module.id for record in reading.records)
        command = f"tritonlab {'grade' if begun else 'start'} {module.id}"
    if as_json:
        return print_json({"schema": 1, "module": module.id if module else None,
                           "attempts": [asdict(attempt) for attempt in attempts], "next": command})
    view.show_history(screen_on(plain), the_course, attempts, command)
    return 0


@boundary.verb
def merge(
    path: Annotated[Path, typer.Argument(
        metavar="PATH", help="A workspace, its .tritonlab folder, or a journal.jsonl.")],
    as_json: Json = False, plain: Plain = False,
) -> int:
    """Add what you did on another machine to the record here; merging again changes nothing."""
    from tritonlab.progress import merge as merging
    from tritonlab.render import progress as view

    the_course = course.load()
    place = workspace.require(the_course.example)
    merged = merging.merge(the_course, place.journal(the_course), path)
    command = "tritonlab status"
    if as_json:
        print_json({"schema": 1, "source": str(path), "added": merged.added,
                    "there": merged.there, "newly_passed": merged.gained,
                    "core_passed": merged.after.core.passed,
                    "problems": list(merged.problems), "next": command})
    else:
        view.show_merge(screen_on(plain), merged, command)
    return boundary.warn(merged.warning, *merged.problems)
