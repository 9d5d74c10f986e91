"""The boundary of a verb: what it prints, and errors as a sentence and an exit code."""

import codecs
import contextlib
import functools
import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ParamSpec, TextIO

import typer

from grader.report import EXIT_USAGE
from tritonlab import errors
from tritonlab.course.course import Course, Module
from tritonlab.errors import Interrupted, TritonlabError
from tritonlab.progress import certificate
from tritonlab.progress.journal import JournalReading
from tritonlab.workspace import workspace

if TYPE_CHECKING:
    from tritonlab.render.screen import Progress, Screen

P = ParamSpec("P")

# The base class of typer's usage errors, which it does not export.
WRONG_COMMAND_LINE: type[Exception] = typer.BadParameter.__mro__[1]


def verb(function: Callable[P, int]) -> Callable[P, None]:
    """Turns a function that returns an exit code into a verb."""

    @functools.wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> None:
        raise typer.Exit(run(functools.partial(function, *args, **kwargs)))

    return guarded


def warn(*sentences: str) -> int:
    for sentence in sentences:
        if sentence:
            print(sentence, file=sys.stderr)
    return 0


def show_error(error: TritonlabError) -> int:
    print(error, file=sys.stderr)
    return error.exit_code


def show_usage(error: Any) -> int:
    """Prints what is wrong with a command line, and the command for its help."""
    message = error.format_message()
    if "\n" in message:  # no verb at all: the whole help
        error.show()
        return EXIT_USAGE
    command = error.ctx.command_path if error.ctx else "tritonlab"
    usage = [error.ctx.get_usage()] if error.ctx else []
    end = "" if message.endswith((".", "?")) else "."
    return warn(*usage, f"{message}{end} `{command} --help` shows the usage.") or EXIT_USAGE


def run(work: Callable[[], int]) -> int:
    """Runs a verb; an error becomes one sentence on standard error and an exit code."""
    try:
        return work()
    except TritonlabError as error:
        return show_error(error)
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return show_error(Interrupted())
    except BrokenPipeError:
        errors.silence_broken_pipe()
        return 0
    except Exception as error:  # internal: the traceback goes to a file
        place = None
        with contextlib.suppress(TritonlabError):
            place = workspace.find()
        return show_error(errors.unexpected(error, place.mark if place else None))


def screen_on(plain: bool, stream: TextIO | None = None) -> "Screen":
    """Returns the screen of standard output; TRITONLAB_PLAIN=1 asks for plain mode too."""
    from tritonlab.render.screen import Screen

    asked = os.environ.get("TRITONLAB_PLAIN", "") not in ("", "0")
    return Screen(stream, plain=plain or asked)


def progress_on(plain: bool) -> "Progress":
    """Returns a status line on standard error."""
    from tritonlab.render.screen import Progress

    return Progress(screen_on(plain, sys.stderr))


def show(as_json: bool, plain: bool, data: Mapping[str, Any], view: Callable[["Screen"], None],
         command: str, before: str = "Next: ") -> None:
    """Prints a result, as JSON or by its view, and the command that comes next."""
    if as_json:
        print_json({**data, "next": command})
    else:
        screen = screen_on(plain)
        view(screen)
        screen.next(command, before)


def print_json(data: Any) -> None:
    print(json.dumps(data, indent=2), flush=True)


def onward(the_course: Course, reading: JournalReading, after: Module | None = None,
           done: str = "tritonlab certificate") -> str:
    """Returns the command that starts the next module, or ``done`` if none is left."""
    following = certificate.next_module(the_course, reading, after)
    return f"tritonlab start {following.id}" if following else done


def reading_here(the_course: Course) -> JournalReading:
    """Reads the journal of the workspace, if any, and warns of damage."""
    place = workspace.find()
    if place is None:
        return JournalReading(())
    reading = place.journal(the_course).read()
    warn(*reading.problems)
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


_IN_ASCII = {"•": "*", "…": "...", "·": "-", "×": "x", "µ": "u", "²": "^2", "–": "-", "—": "-",
             "≤": "<=", "≥": ">=", "→": "->", "←": "<-", "─": "-", "│": "|"}


def never_fail_to_encode() -> None:
    """Replaces characters that the terminal's encoding lacks.

    With LC_ALL=C that is all but ASCII, although Python then writes UTF-8 (PEP 540).
    """
    codecs.register_error("tritonlab", _respelled)
    ascii_only = os.environ.get("LC_ALL") in ("C", "POSIX")
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="ascii" if ascii_only else None, errors="tritonlab")


def _respelled(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start:error.end]
    return "".join(_IN_ASCII.get(char, "?") for char in lacking), error.end
