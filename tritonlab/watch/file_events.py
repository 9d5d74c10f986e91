"""Watches the files of an exercise and reports each new content."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import watchfiles

from grader.submission import source
from tritonlab.errors import TritonlabError
from tritonlab.workspace import workspace
from tritonlab.workspace.submission import Submission

STEP_MS = 10  # without a further event, before a change is read; each costs 0.05 ms
QUIET_S = 0.01  # between two reads that have to be equal
TORN_S = 0.3  # granted to a save that is empty, missing or no Python, as half a file is
RESTLESS_S = 3.0  # until a file that keeps changing is graded as it is
LOOK_S = 1.0  # between checks without an event
POLL_MS = 200  # between checks if events are not used


@dataclass(frozen=True)
class Content:
    """The content of the files: its SHA-256, or why they cannot be graded."""

    sha256: str = ""
    complaint: str = ""
    torn: bool = field(default=False, compare=False)  # maybe half of a save


def look(submission: Submission) -> Content:
    """Reads the current content, without blocking on a pipe or device."""
    try:
        workspace.check_file(submission.kernel)
        submitted = source.read(submission.kernel, submission.module.files)
    except TritonlabError as error:
        return Content(complaint=error.message, torn=True)
    except source.UnreadableSubmission as error:
        return Content(complaint=str(error), torn=True)
    torn = submitted.problem is not None or not submitted.data.strip()
    return Content(submitted.sha256, torn=torn)


class Saves:
    """Watches the files of an exercise in a thread until the block is left.

    The folder is watched instead of the file, as many editors write another file and rename it.
    Without events (network drives, some containers) the files are checked every second; with
    ``poll``, five times a second.

    ``on_content`` is called in that thread with the first content and with each new one.
    """

    def __init__(self, submission: Submission, on_content: Callable[[Content], None], *,
                 poll: bool = False) -> None:
        self._submission = submission
        self._on_content = on_content
        self._poll = poll
        folder = submission.kernel.parent
        self._files = [submission.kernel, *(folder / name for name in submission.module.files)]
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="saves", daemon=True)
        self._last_marks: tuple[tuple[int, ...], ...] = ()
        self._content: Content | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        self._read()
        while not self._over.is_set():
            for event in self._events():
                if event or self._last_marks != self._marks():
                    self._read()

    def _events(self) -> Iterator[bool]:
        """Yields whenever the files should be checked: True after an event in the folder.

        Ends when the folder was replaced or removed.
        """
        folder = self._submission.kernel.parent
        watched = _status(folder)
        try:
            for changes in watchfiles.watch(
                    folder, watch_filter=None, step=STEP_MS, debounce=5 * STEP_MS,
                    stop_event=self._over, rust_timeout=int(LOOK_S * 1000), yield_on_timeout=True,
                    raise_interrupt=False, force_polling=self._poll or None, poll_delay_ms=POLL_MS,
                    recursive=bool(self._submission.module.files),
                    ignore_permission_denied=True):
                yield bool(changes)
                if not watched or _status(folder)[:2] != watched[:2]:  # another folder
                    return
        except (OSError, RuntimeError):  # the folder is gone, or inotify has no watches left
            self._over.wait(LOOK_S)
            yield False

    def _read(self) -> None:
        """Reads the files once they are stable; reports the content if it is new."""
        started = time.monotonic()
        current = (self._marks(), look(self._submission))
        resting = False
        while not resting:
            before = current
            if self._over.wait(QUIET_S):
                return
            current = (self._marks(), look(self._submission))
            took_s = time.monotonic() - started
            half = current[1].torn and current[1] != self._content and took_s < TORN_S
            resting = took_s > RESTLESS_S or (current == before and not half)
        self._last_marks, content = current
        if content != self._content:
            self._content = content
            self._on_content(content)

    def _marks(self) -> tuple[tuple[int, ...], ...]:
        """Returns the status of the files, which changes with their content."""
        return tuple(map(_status, self._files))


def _status(path: Path) -> tuple[int, ...]:
    """Device and inode, then what changes with the content; empty without a file."""
    with contextlib.suppress(OSError):
        status = path.stat()
        return (status.st_dev, status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns)
    return ()
