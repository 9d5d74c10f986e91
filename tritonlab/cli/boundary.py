"""The boundary of a verb: errors become a sentence on standard error and an exit code."""

from __future__ import annotations

import codecs
import contextlib
import functools
import os
import sys
from collections.abc import Callable
from typing import Any, ParamSpec

import typer

from grader.report import EXIT_USAGE
from tritonlab import errors
from tritonlab.errors import Interrupted, TritonlabError
from tritonlab.workspace import workspace

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
    return warn(*usage, f"{message}{end} `{command} --help` shows what can be typed.") or EXIT_USAGE


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


def nobody_reads(error: OSError) -> None:
    """Ends output, with the reason unless the reader has closed the pipe."""
    errors.silence_broken_pipe()
    if not isinstance(error, BrokenPipeError):
        reason = (error.strerror or str(error)).lower()
        warn(f"The report could not be printed: {reason}.")


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
