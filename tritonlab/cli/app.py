"""The command `tritonlab`: its verbs, in the order in which the help lists them."""

import shutil
import sys
from typing import Annotated

import typer

from tritonlab import errors
from tritonlab.cli import (
    author,
    boundary,
    classroom,
    course,
    doctor,
    explain,
    grade,
    kernels,
    learn,
    record,
)
from tritonlab.errors import Interrupted
from tritonlab.version import __version__

NARROW = 52  # columns; in fewer, help would be wrapped at 50 columns all the same
_columns = shutil.get_terminal_size().columns

app = typer.Typer(name="tritonlab", rich_markup_mode=None, pretty_exceptions_enable=False,
                  no_args_is_help=True, help="Learn to write GPU kernels in Triton.",
                  context_settings={"terminal_width": _columns} if _columns < NARROW else {})
for _verb in (
        record.list_, learn.start, learn.next_, learn.read, learn.hint, learn.reset,
        learn.solution, grade.grade, explain.explain, explain.codes, kernels.trace,
        kernels.inspect, record.status, record.merge,
        record.certificate, record.verify, record.report, doctor.tour, doctor.doctor,
        kernels.bench, grade.watch, author.check, author.new):
    app.command(_verb.__name__.rstrip("_"))(_verb)


app.add_typer(classroom.app)
app.add_typer(course.app)


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
