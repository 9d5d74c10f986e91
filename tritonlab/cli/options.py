"""The options that verbs share, and helpers that print results."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tritonlab.cli import boundary, completion
from tritonlab.course import course
from tritonlab.errors import TritonlabError
from tritonlab.progress import certificate
from tritonlab.progress.journal import JournalReading
from tritonlab.workspace import workspace

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
    """Returns the screen of standard output, or of standard error."""
    from tritonlab.render.screen import screen_for

    return screen_for(sys.stderr if error else sys.stdout, plain=plain)


def print_json(data: Any) -> int:
    """Prints a result as JSON; returns exit code 0."""
    print(json.dumps(data, indent=2), flush=True)
    return 0


def onward(the_course: course.Course, reading: JournalReading, after: course.Module | None = None,
           done: str = "tritonlab certificate") -> str:
    """Returns the command that starts the next module, or ``done`` if none is left."""
    following = certificate.next_module(the_course, reading, after)
    return f"tritonlab start {following.id}" if following else done


def reading_here(the_course: course.Course) -> JournalReading:
    """Reads the journal of the workspace, if any, and warns of damage."""
    place = workspace.find()
    if place is None:
        return JournalReading(())
    reading = place.journal(the_course).read()
    boundary.warn(*reading.problems)
    return reading


def agreed(question: str, unasked: str, otherwise: str) -> bool:
    """Asks on the terminal; returns whether the answer is yes.

    Raises:
        TritonlabError: there is no terminal. ``unasked`` is its message, ``otherwise`` its next
            step.
    """
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise TritonlabError(f"{unasked}: there is no terminal to ask on.", otherwise)
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    answer = sys.stdin.readline()
    if not answer.endswith("\n"):  # end of input leaves the cursor in the line
        print(file=sys.stderr)
    return answer.strip().casefold() in ("y", "yes")
