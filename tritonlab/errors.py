"""Errors that users see: a sentence, the next step and a stable exit code."""

import contextlib
import errno
import os
import sys
import tempfile
import traceback
from datetime import date
from pathlib import Path

from grader.report import EXIT_GRADER_BROKE, EXIT_USAGE
from tritonlab.interrupts import EXIT_STOPPED


class TritonlabError(Exception):
    """An error for users: what happened and where, then the next step."""

    exit_code = EXIT_USAGE
    usual_step = ""  # unless another one is given

    def __init__(self, message: str, next_step: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.next_step = next_step or self.usual_step

    def __str__(self) -> str:
        return f"{self.message} {self.next_step}".strip()


class UnknownModule(TritonlabError):
    """No module, or more than one, has the given name."""


class NoWorkspace(TritonlabError):
    """There is no workspace, or it lacks the requested module."""


class OtherCourse(TritonlabError):
    """A workspace, journal or certificate belongs to another course than the one in use."""


class UnusableFile(TritonlabError):
    """A file cannot be graded: missing, a folder, not text, too large."""


class BadCourse(TritonlabError):
    """A file of the course itself is missing or malformed."""

    exit_code = EXIT_GRADER_BROKE
    usual_step = "Install tritonlab again."


class NotSaved(TritonlabError):
    """A file could not be written; results are still shown."""

    exit_code = EXIT_GRADER_BROKE


class CannotGrade(TritonlabError):
    """The grader does not start on this machine, so the kernel has no verdict."""

    exit_code = EXIT_GRADER_BROKE
    usual_step = "Run `tritonlab doctor` to find the cause."


class Interrupted(TritonlabError):
    """The user pressed Ctrl-C."""

    exit_code = EXIT_STOPPED

    def __init__(self, recorded: bool = False) -> None:
        super().__init__("Stopped.", "The result is recorded." if recorded
                         else "Nothing was recorded.")


_REASONS = {
    errno.ENOSPC: ("no space is left on the disk", "Free some space, then repeat the command."),
    errno.EDQUOT: ("your disk quota is used up", "Free some space, then repeat the command."),
    errno.EROFS: ("the file system is read-only",
                  "Set TRITONLAB_WORKSPACE to a writable folder."),
    errno.EACCES: ("writing there is not permitted",
                   "Make the workspace writable, or set TRITONLAB_WORKSPACE to another folder."),
    errno.ELOOP: ("a file of the record is a symbolic link, and links are not followed",
                  "Put a real file or folder in its place."),
    errno.ENOTDIR: ("there is a file where a folder is needed, or the folder is a symbolic link",
                    "Put a real folder in its place, or set TRITONLAB_WORKSPACE."),
    errno.EISDIR: ("there is a folder where a file is needed",
                   "Move that folder away, then repeat the command."),
    errno.ENOENT: ("the folder is gone", "Create it again with `tritonlab start`."),
    errno.ETIMEDOUT: ("another tritonlab process held the lock of the record for 10 s",
                      "Wait until it exits, then repeat the command."),
}
_REASONS[errno.EPERM] = _REASONS[errno.EACCES]


def not_saved(subject: str, error: OSError, place: Path) -> NotSaved:
    """Returns the error for ``subject`` ("The result") that was not written to ``place``."""
    reason, advice = _reason(error)
    return NotSaved(f"{subject} was not saved: {reason} ({shown(place)}).", advice)


def cannot_make(module: str, error: OSError) -> TritonlabError:
    """Returns the error for a new module whose files cannot be written."""
    reason, _ = _reason(error)
    place = f" ({shown(Path(error.filename))})" if isinstance(error.filename, str) else ""
    return TritonlabError(f"{module} was not created: {reason}{place}.",
                          "Choose a writable folder with --course.")


def cannot_grade(error: OSError) -> CannotGrade:
    """Returns the error for a grader without a folder for temporary files."""
    reason = "none can be written" if error.errno == errno.ENOENT else _reason(error)[0]
    return CannotGrade(f"The grader cannot start: it has no folder for temporary files; {reason}.",
                       "Set TMPDIR to a folder with some space, then repeat the command.")


def out_of_date(error: OSError, place: Path) -> str:
    """Returns the warning for a certificate that could not be renewed."""
    reason, _ = _reason(error)
    return (f"The journal is safe, but certificate.json beside it is out of date: {reason} "
            f"({shown(place)}). `tritonlab certificate` creates it again.")


def unreadable(error: OSError, place: Path, subject: str = "The journal") -> NotSaved:
    """Returns the error for a record in ``place`` that cannot be read."""
    reason, advice = _reason(error)
    return NotSaved(f"{subject} cannot be read: {reason} ({shown(place)}).", advice)


def reason_of(error: OSError) -> str:
    """Returns the system's description of an error, for the middle of a sentence."""
    return (error.strerror or str(error)).lower()


def _reason(error: OSError) -> tuple[str, str]:
    return _REASONS.get(error.errno or 0, (reason_of(error),
                                           "Repeat the command once the cause is removed."))


def shown(path: Path) -> str:
    """Returns a path relative to the current folder if it lies below it."""
    try:
        return str(path.relative_to(Path.cwd()))
    except (ValueError, OSError):
        return str(path)


def unexpected(error: BaseException, folder: Path | None) -> TritonlabError:
    """Writes the traceback of an internal error to a file and returns an error that names it."""
    details = keep("".join(traceback.format_exception(error)), folder)
    failure = TritonlabError(
        f"tritonlab itself failed ({type(error).__name__}); your work is untouched. {details}",
        "Repeat the command; if it fails again, report it with these details.")
    failure.exit_code = EXIT_GRADER_BROKE
    return failure


def keep(details: str, folder: Path | None) -> str:
    """Writes the details of a failure to a file and returns a sentence that names it.

    The file goes into ``folder`` (the workspace's own), otherwise into the temporary folder.
    """
    name = f"traceback-{date.today():%Y-%m-%d}-{os.getpid()}.txt"
    for place in (folder, None) if folder else (None,):
        with contextlib.suppress(OSError):  # also of `gettempdir`, if it finds no folder
            path = (place or Path(tempfile.gettempdir())) / name
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(details)
            return f"The details for a bug report are in {shown(path)}."
    return "The details could not be written anywhere."


def brief(reason: str) -> str:
    """Returns a reason without its traceback, at most 240 characters long."""
    text = " ".join(reason.partition("Traceback (most recent call last)")[0].split())
    return text if len(text) <= 240 else text[:239] + "…"


def silence_broken_pipe() -> None:
    """Discards further output, as its reader has closed the pipe."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
