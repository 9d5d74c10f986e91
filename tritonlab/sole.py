"""Sole: one watch of an exercise at a time, by a lock that ends with its process."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import time

from tritonlab import durable
from tritonlab.errors import TritonlabError
from tritonlab.grading import Submission

FOLDER = "watches"  # in the workspace's own folder; below it a file for each exercise
_LONGEST = 100  # bytes of who holds it that are read


def hold(submission: Submission) -> contextlib.ExitStack:
    """Hold an exercise until what is returned is closed, or the process ends in whatever way.

    Two watches would record every save twice. Outside a workspace nothing is recorded, and where no
    lock can be had nothing can be written either: then nothing is held.

    Raises:
        TritonlabError: another process holds it; the message says which, and since when.
    """
    held = contextlib.ExitStack()
    if submission.workspace is None:
        return held
    folder = submission.workspace.mark / FOLDER
    name = hashlib.sha256(os.fsencode(os.path.realpath(submission.kernel))).hexdigest()[:16]
    with contextlib.suppress(OSError):
        folder.mkdir(exist_ok=True)
        with durable.opened(folder) as opened:
            descriptor = os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
                                 | os.O_NONBLOCK, 0o600, dir_fd=opened)
        held.callback(os.close, descriptor)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, _LONGEST, 0).decode("ascii", "replace")
            held.close()
            raise _held_by(holder, submission) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()} {time.strftime('%Y-%m-%d %H:%M')}".encode(), 0)
    return held


def _held_by(holder: str, submission: Submission) -> TritonlabError:
    process, _, since = holder.partition(" ")
    known = process.isdecimal() and bool(since)
    return TritonlabError(
        f"Another watch{f', process {process}, since {since},' if known else ''} grades every save "
        f"of {submission.to_edit} already.",
        "Go on in its terminal, or end it there with q"
        f"{f' or here with `kill {process}`' if known else ''} first.")
