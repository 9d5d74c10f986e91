"""The command `tritonlab`: its verbs, in the order in which the help lists them."""

from __future__ import annotations

import shutil
import sys
from typing import Annotated

import typer

from tritonlab import errors
from tritonlab.cli import (
    author,
    bench,
    boundary,
    certificate,
    doctor,
    grade,
    inspect,
    learn,
    record,
    watch,
)
from tritonlab.errors import Interrupted
from tritonlab.version import __version__

NARROW = 52  # columns; in fewer, help would be wrapped at 50 columns all the same


def narrow_help(columns: int) -> dict[str, int]:
    """Returns typer's setting for help in a terminal narrower than typer's minimum."""
    return {"terminal_width": columns} if columns < NARROW else {}


app = typer.Typer(name="tritonlab", rich_markup_mode=None, pretty_exceptions_enable=False,
                  no_args_is_help=True, help="Learn to write GPU kernels in Triton.",
                  context_settings=narrow_help(shutil.get_terminal_size().columns))
for _verb in (
        record.list_, learn.start, learn.next_, learn.read, learn.hint, learn.reset,
        learn.solution, grade.grade, inspect.inspect, record.status, record.merge,
        certificate.certificate, certificate.verify, certificate.report, doctor.tour,
        doctor.doctor, bench.bench, watch.watch, author.check, author.new):
    app.command(_verb.__name__.rstrip("_"))(_verb)


def main() -> None:
    """Runs the command `tritonlab`."""
    boundary.never_fail_to_encode()
    try:
        sys.exit(app(prog_name="tritonlab", standalone_mode=False))
    except boundary.WRONG_COMMAND_LINE as error:
        sys.exit(boundary.show_usage(error))
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(boundary.show_error(Interrupted()))
    except BrokenPipeError:
        errors.silence_broken_pipe()
        sys.exit(0)


@app.callback(invoke_without_command=True)
def options(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        typer.echo(f"tritonlab {__version__}")
        raise typer.Exit
