"""Verbs: the options that they share, and how each prints its result."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tritonlab import completion

if TYPE_CHECKING:
    from tritonlab.render.screen import Screen

Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Plain = Annotated[bool, typer.Option("--plain", help="One fact a line, no colour, no tables.")]
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
