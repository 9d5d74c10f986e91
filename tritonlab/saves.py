"""Saves: what the files of an exercise hold now, told each time that it has changed."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import watchfiles

from grader import source
from tritonlab import workspace
from tritonlab.errors import TritonlabError
from tritonlab.grading import Submission

STEP_MS = 10  # without a further event, before a change is looked at; each costs 0.05 ms
QUIET_S = 0.01  # between two readings that have to be alike
TORN_S = 0.3  # granted to a save that is empty, missing or no Python, as half a file is
RESTLESS_S = 3.0  # after which a file that does not come to rest is taken as it is
LOOK_S = 1.0  # between looks where no event came
POLL_MS = 200  # between looks where events are not used

Tell = Callable[["Content"], None]
Mark = tuple[object, ...]


@dataclass(frozen=True)
class Content:
    """What the files hold: the hash of it, or why they cannot be graded."""

    sha256: str = ""
    complaint: str = ""
    torn: bool = field(default=False, compare=False)  # it may be half of a save


def look(submission: Submission) -> Content:
    """What there is to grade now. A pipe is not waited for, and a device not read."""
    try:
        workspace.check_file(submission.kernel)
        found = source.read(submission.kernel, submission.module.files)
    except TritonlabError as error:
        return Content(complaint=error.message, torn=True)
    except source.UnreadableSubmission as error:
        return Content(complaint=str(error), torn=True)
    return Content(found.sha256, torn=found.problem is not None or not found.data.strip())


class Saves:
    """Looks at the files of an exercise in a thread of its own, until the block is left.

    The folder is watched and not the file, as many editors write another file and rename it. Where
    no events come (network drives, some containers) or none can be asked for, the files are looked
    at every second all the same; with ``poll`` five times a second, and events are not used.

    ``tell`` is called in that thread: with the first content at once, then with every other one.
    """

    def __init__(self, submission: Submission, tell: Tell, *, poll: bool = False) -> None:
        self._submission = submission
        self._tell = tell
        self._poll = poll
        folder = submission.kernel.parent
        self._files = [submission.kernel, *(folder / name for name in submission.module.files)]
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="saves", daemon=True)
        self._mark: Mark = ()
        self._content: Content | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        self._glance()
        while not self._over.is_set():
            for event in self._occasions():
                if event or self._mark != self._marks():
                    self._glance()

    def _occasions(self) -> Iterator[bool]:
        """Whenever it is time to look: True where something happened in the folder.

        Ends when the folder is another one than before, or there is none.
        """
        folder = self._submission.kernel.parent
        watched = _identity(folder)
        try:
            for changes in watchfiles.watch(
                    folder, watch_filter=None, step=STEP_MS, debounce=5 * STEP_MS,
                    stop_event=self._over, rust_timeout=int(LOOK_S * 1000), yield_on_timeout=True,
                    raise_interrupt=False, force_polling=self._poll or None, poll_delay_ms=POLL_MS,
                    recursive=bool(self._submission.module.files),
                    ignore_permission_denied=True):
                yield bool(changes)
                if watched is None or _identity(folder) != watched:
                    return
        except (OSError, RuntimeError):  # gone, or no events are left
            self._over.wait(LOOK_S)
            yield False

    def _glance(self) -> None:
        """Read the files once they have come to rest; tell what they hold if that is new."""
        started = time.monotonic()
        seen = (self._marks(), look(self._submission))
        resting = False
        while not resting:
            before = seen
            if self._over.wait(QUIET_S):
                return
            seen = (self._marks(), look(self._submission))
            took_s = time.monotonic() - started
            half = seen[1].torn and seen[1] != self._content and took_s < TORN_S
            resting = took_s > RESTLESS_S or (seen == before and not half)
        self._mark, content = seen
        if content != self._content:
            self._content = content
            self._tell(content)

    def _marks(self) -> Mark:
        """What changes with the files, without reading them."""
        return tuple(map(_mark, self._files))


def _mark(path: Path) -> object:
    with contextlib.suppress(OSError):
        status = path.stat()
        return (status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns)
    return None


def _identity(folder: Path) -> object:
    with contextlib.suppress(OSError):
        status = folder.stat()
        return (status.st_dev, status.st_ino)
    return None
