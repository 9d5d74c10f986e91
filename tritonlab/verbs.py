"""Verbs: the options that they share, and how each prints its result."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tritonlab import certificate, guard, workspace
from tritonlab.course import Course, Module
from tritonlab.journal import Reading

if TYPE_CHECKING:
    from tritonlab.render.screen import Screen

Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Plain = Annotated[bool, typer.Option("--plain", help="One fact a line, no colour, no tables.")]
ModuleId = Annotated[str, typer.Argument(metavar="ID", help="Such as track1/softmax or 1.3.")]


def screen_on(plain: bool, error: bool = False) -> Screen:
    """The screen for standard output, or for standard error."""
    from tritonlab.render.screen import screen_for

    return screen_for(sys.stderr if error else sys.stdout, plain=plain)


def print_json(data: Any) -> int:
    """Print a result as JSON; returns the exit code for it."""
    print(json.dumps(data, indent=2), flush=True)
    return 0


def onward(course: Course, reading: Reading, after: Module | None = None,
           done: str = "tritonlab certificate") -> str:
    """The command that starts the next module; ``done`` where all are passed."""
    following = certificate.next_module(course, reading, after)
    return f"tritonlab start {following.id}" if following else done


def reading_here() -> Reading:
    """The journal of the workspace, or an empty one; damage is said once, on standard error."""
    place = workspace.find()
    if place is None:
        return Reading(())
    reading = place.journal(Course(())).read()
    guard.warn(*reading.problems)
    return reading
