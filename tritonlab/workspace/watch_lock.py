"""A lock that allows one watch of an exercise and ends with its process."""

import contextlib
import fcntl
import hashlib
import os
import time

from tritonlab.errors import TritonlabError
from tritonlab.progress import safe_files
from tritonlab.workspace.submission import Submission

FOLDER = "watches"  # in the workspace's own folder; below it a file for each exercise
_LONGEST = 100  # bytes of the holder's description


def hold(submission: Submission) -> contextlib.ExitStack:
    """Locks an exercise until the returned stack is closed or the process ends.

    Two watches would record every save twice. Outside a workspace nothing is recorded, and if no
    lock file can be opened, nothing can be written either: then nothing is locked.

    Raises:
        TritonlabError: another process holds it.
    """
    lock = contextlib.ExitStack()
    if submission.workspace is None:
        return lock
    folder = submission.workspace.mark / FOLDER
    name = hashlib.sha256(os.fsencode(os.path.realpath(submission.kernel))).hexdigest()[:16]
    with contextlib.suppress(OSError):
        folder.mkdir(exist_ok=True)
        with safe_files.opened(folder) as opened:
            descriptor = os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
                                 | os.O_NONBLOCK, 0o600, dir_fd=opened)
        lock.callback(os.close, descriptor)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, _LONGEST, 0).decode("ascii", "replace")
            lock.close()
            process, _, since = holder.partition(" ")
            readable = process.isdecimal() and bool(since)
            raise TritonlabError(
                f"Another watch{f', process {process}, since {since},' if readable else ''} "
                f"grades every save of {submission.to_edit} already.",
                "Go on in its terminal, or end it there with q"
                f"{f' or here with `kill {process}`' if readable else ''} first.") from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()} {time.strftime('%Y-%m-%d %H:%M')}".encode(), 0)
    return lock
