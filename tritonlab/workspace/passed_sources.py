"""Copies of the files that passed, beside the journal, for `verify`."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Container, Mapping, Sequence
from pathlib import Path

from grader.submission import source
from tritonlab.course.course import EXERCISE, Module
from tritonlab.errors import TritonlabError, not_saved
from tritonlab.workspace import workspace
from tritonlab.workspace.submission import Submission

FOLDER = "passed"  # in the workspace's own folder; below it <module id>/<SHA-256>/
_SUBJECT = "The pass is recorded, but the source that passed"
MOST = 8  # of a module, besides the one that its certificate claims


def snapshot(submission: Submission) -> dict[str, bytes]:
    """Reads an exercise's files before the grade, during which they may change."""
    contents = {}
    with contextlib.suppress(OSError, TritonlabError):  # an unreadable file cannot pass
        for name, path in submission.files.items():
            workspace.check_file(path)
            contents[name] = path.read_bytes()
    return contents


def keep(mark: Path, module: Module, content: Mapping[str, bytes], sha256: str) -> str:
    """Stores files with the digest ``sha256`` completely or not at all.

    There is no fsync, as files damaged by a crash have another digest. Without stored files,
    `verify` grades those of the workspace.

    Returns:
        Why they are not stored, or an empty string.
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
            copy = Path(incoming) / sha256
            for name, data in content.items():
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                (copy / name).write_bytes(data)
            if digest(copy / EXERCISE, module.files) != sha256:
                return f"{_SUBJECT} is not kept: it was edited while it was graded."
            copy.rename(target)
    except OSError as error:
        return str(not_saved(_SUBJECT, error, mark / FOLDER))
    return ""


def prune(mark: Path, module: Module, claimed: Container[str | None]) -> None:
    """Removes old copies of a module except the newest ``MOST`` and claimed ones."""
    with contextlib.suppress(OSError):
        folders = [path for path in _place(mark, module, "").iterdir()
                   if not path.name.startswith(".")]
        folders.sort(key=lambda path: path.stat().st_mtime_ns, reverse=True)
        for path in folders[MOST:]:
            if path.name not in claimed:
                shutil.rmtree(path, ignore_errors=True)


def find(mark: Path, module: Module, sha256: str) -> Path | None:
    """Returns the stored exercise with that digest, if it exists unchanged."""
    kernel = _place(mark, module, sha256) / EXERCISE
    return kernel if digest(kernel, module.files) == sha256 else None


def digest(kernel: Path, files: Sequence[str]) -> str:
    """Returns the SHA-256 of an exercise as in records; empty if it cannot be read."""
    try:
        return source.read(kernel, files).sha256
    except OSError:
        return ""


def _place(mark: Path, module: Module, sha256: str) -> Path:
    return mark / FOLDER / module.id / sha256
