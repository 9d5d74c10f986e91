"""Kept: the files that passed, beside the journal, for `verify` to grade again."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Container, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from grader import source
from tritonlab import workspace
from tritonlab.course import Module
from tritonlab.errors import TritonlabError, not_saved
from tritonlab.workspace import EXERCISE

if TYPE_CHECKING:
    from tritonlab.grading import Submission

FOLDER = "passed"  # in the workspace's own folder; below it <module id>/<SHA-256>/
_SUBJECT = "The pass is recorded, but the source that passed"
MOST = 8  # of a module; what its certificate claims is kept besides

Snapshot = Mapping[str, bytes]


def snapshot(submission: Submission) -> Snapshot:
    """The content of an exercise's files before they are graded, as they may change meanwhile."""
    folder, found = submission.kernel.parent, {}
    with contextlib.suppress(OSError, TritonlabError):  # what cannot be read cannot pass
        for name, path in ((EXERCISE, submission.kernel),
                           *((name, folder / name) for name in submission.module.files)):
            workspace.check_file(path)
            found[name] = path.read_bytes()
    return found


def keep(mark: Path, module: Module, content: Snapshot, sha256: str) -> str:
    """Keep files, if ``sha256`` is theirs, whole or not at all; returns why they are not kept.

    Nothing waits for the disk: a save is graded in the meantime, and what a crash of the machine
    spoils has another digest. Where files cannot be kept, `verify` has only the workspace's to go
    by, and says so.
    """
    target = _place(mark, module, sha256)
    try:
        if find(mark, module, sha256):
            os.utime(target)  # it passed again
            return ""
        if target.is_dir():
            shutil.rmtree(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".incoming-", dir=target.parent) as incoming:
            made = Path(incoming) / sha256
            for name, data in content.items():
                (made / name).parent.mkdir(parents=True, exist_ok=True)
                (made / name).write_bytes(data)
            if digest(made / EXERCISE, module.files) != sha256:
                return f"{_SUBJECT} is not kept: it was edited while it was graded."
            made.rename(target)
    except OSError as error:
        return str(not_saved(_SUBJECT, error, mark / FOLDER))
    return ""


def prune(mark: Path, module: Module, claimed: Container[str | None]) -> None:
    """Remove the oldest of a module but for ``MOST`` and what is claimed."""
    with contextlib.suppress(OSError):
        folders = [path for path in _place(mark, module, "").iterdir()
                   if not path.name.startswith(".")]
        folders.sort(key=lambda path: path.stat().st_mtime_ns, reverse=True)
        for path in folders[MOST:]:
            if path.name not in claimed:
                shutil.rmtree(path, ignore_errors=True)


def find(mark: Path, module: Module, sha256: str) -> Path | None:
    """The exercise of that digest, if it was kept and nobody has changed it since."""
    kernel = _place(mark, module, sha256) / EXERCISE
    return kernel if digest(kernel, module.files) == sha256 else None


def digest(kernel: Path, files: Sequence[str]) -> str:
    """The SHA-256 by which records know an exercise; empty for one that cannot be read."""
    try:
        workspace.check_file(kernel)
        return source.read(kernel, files).sha256
    except (OSError, TritonlabError):
        return ""


def _place(mark: Path, module: Module, sha256: str) -> Path:
    return mark / FOLDER / module.id / sha256
