"""Verbs: the options that they share, and how each prints its result."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tritonlab import certificate, completion, course, guard, workspace
from tritonlab.errors import TritonlabError
from tritonlab.journal import Reading

if TYPE_CHECKING:
    from tritonlab.render.screen import Screen

Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Plain = Annotated[bool, typer.Option("--plain", help="One fact a line, no colour, no tables.")]
OptionalId = Annotated[str | None, typer.Argument(
    metavar="[ID]", help="The current module if left out.",
    autocompletion=completion.modules)]
ModuleId = Annotated[str, typer.Argument(
    metavar="ID", help="Such as track1/softmax or 1.3.", autocompletion=completion.modules)]
CurrentOr = Annotated[str | None, typer.Argument(
    metavar="[ID or PATH]", help="The current module if left out.",
    autocompletion=completion.modules)]
OfModule = Annotated[str | None, typer.Option(
    "--module", metavar="ID", help="The module that the file at PATH belongs to.",
    autocompletion=completion.modules)]
Function = Annotated[str | None, typer.Option(
    metavar="NAME", help="A function that is to be written or repaired.",
    autocompletion=completion.functions)]


def screen_on(plain: bool, error: bool = False) -> Screen:
    """The screen for standard output, or for standard error."""
    from tritonlab.render.screen import screen_for

    return screen_for(sys.stderr if error else sys.stdout, plain=plain)


def print_json(data: Any) -> int:
    """Print a result as JSON; returns the exit code for it."""
    print(json.dumps(data, indent=2), flush=True)
    return 0


def onward(the_course: course.Course, reading: Reading, after: course.Module | None = None,
           done: str = "tritonlab certificate") -> str:
    """The command that starts the next module, or ``done`` where none is left."""
    following = certificate.next_module(the_course, reading, after)
    return f"tritonlab start {following.id}" if following else done


def reading_here(the_course: course.Course) -> Reading:
    """The journal of the workspace, or an empty one; damage is said once, on standard error."""
    place = workspace.find()
    if place is None:
        return Reading(())
    reading = place.journal(the_course).read()
    guard.warn(*reading.problems)
    return reading


def agreed(question: str, unasked: str, otherwise: str) -> bool:
    """Ask on the terminal; all but a yes is a no.

    Raises:
        TritonlabError: there is nobody to ask. ``unasked`` says what was therefore not done, and
            ``otherwise`` names the option that says yes.
    """
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise TritonlabError(f"{unasked}: there is no terminal to ask on.", otherwise)
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    answer = sys.stdin.readline()
    if not answer.endswith("\n"):  # the input ended, and with it the line on the terminal did not
        print(file=sys.stderr)
    return answer.strip().casefold() in ("y", "yes")
