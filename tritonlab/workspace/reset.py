"""Reset: replaces the learner's work by a fresh exercise and keeps it as a backup.

The new files are first written beside the backups. Then the work is renamed into a new backup and
the new files into its place. A failure halfway is rolled back; after a kill halfway each file is in
one of the two folders. Backups are never removed.
"""

import contextlib
import errno
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from tritonlab.course.course import EXERCISE, Course, Module
from tritonlab.errors import NotSaved, NoWorkspace, not_saved, shown
from tritonlab.progress import safe_files
from tritonlab.workspace.workspace import Workspace, fresh

BACKUPS = "backups"
_BACKUP = re.compile(r"(\d{4}-\d\d-\d\dT\d{6})(?:-(\d+))?")
_MADE_BY_PYTHON = {"__pycache__", ".pytest_cache"}


@dataclass(frozen=True)
class Backup:
    """The result of a reset: the folder of the backup and the names of the files moved there.

    ``restored`` is the backup whose copy is in place now. ``error``: why there is no record of it;
    ``warning``: why the certificate is out of date.
    """

    module: Module
    folder: Path | None = None
    names: tuple[str, ...] = ()
    restored: Path | None = None
    warning: str = ""
    error: NotSaved | None = None

    @property
    def changed(self) -> bool:
        """Whether any file was moved; an untouched exercise is left alone."""
        return self.folder is not None or self.restored is not None


def reset(course: Course, place: Workspace, module: Module) -> Backup:
    """Moves the learner's work to a dated backup, writes a fresh exercise and records it.

    Raises:
        NoWorkspace: the module was not started here.
        NotSaved: it failed; the work is where it was.
    """
    folder = place.folder(module)
    present = [name for name in entries(module) if os.path.lexists(folder / name)]
    if not present:
        raise NoWorkspace(f"There is no exercise of {module.id} in {shown(folder)}.",
                          f"`tritonlab start {module.id}` creates a fresh one.")
    with _staged(place, module) as incoming:
        for name, content in fresh(module).items():
            (incoming / name).parent.mkdir(parents=True, exist_ok=True)
            (incoming / name).write_bytes(content)
        if all(_contents(folder / name) == _contents(incoming / name) for name in entries(module)):
            return Backup(module)
        backup = _exchange(place, module, incoming)
    return _recorded(course, place, backup)


def undo(course: Course, place: Workspace, module: Module) -> Backup:
    """Restores a copy of the newest backup; the present work becomes a backup itself.

    Raises:
        NoWorkspace: there is no backup of this module.
        NotSaved: it failed; the work is where it was.
    """
    newest = next(iter(backups(place, module)), None)
    if newest is None:
        raise NoWorkspace(f"There is no backup of {module.id} to bring back.",
                          f"`tritonlab reset {module.id}` creates one when it replaces your "
                          "exercise with a fresh one.")
    with _staged(place, module) as incoming:
        for path in newest.iterdir():
            _copy(path, incoming / path.name)
        backup = _exchange(place, module, incoming)
    return _recorded(course, place, replace(backup, restored=newest))


def exchange(place: Workspace, module: Module, text: str) -> Path:
    """Writes ``text`` as the exercise's file; returns the backup of the file that was there.

    Raises:
        NotSaved: it failed; the work is where it was.
    """
    with _staged(place, module) as incoming:
        (incoming / EXERCISE).write_text(text, encoding="utf-8")
        backup = _exchange(place, module, incoming).folder
    assert backup is not None
    return backup


def backups(place: Workspace, module: Module) -> list[Path]:
    """Returns the backups of a module that are not empty, the newest first."""
    folder = _folder(place, module)
    folders = [path for path in folder.iterdir() if _BACKUP.fullmatch(path.name) and
               any(path.iterdir())] if folder.is_dir() else []
    return sorted(folders, key=_age, reverse=True)


def entries(module: Module) -> tuple[str, ...]:
    """Returns the names of the learner's files and folders in the folder of a module."""
    return tuple(sorted({EXERCISE, *(Path(name).parts[0] for name in module.files)}))


@contextlib.contextmanager
def _staged(place: Workspace, module: Module) -> Iterator[Path]:
    """Yields a temporary folder on the workspace's disk, under the workspace's lock."""
    folder = _folder(place, module)
    try:
        with safe_files.writing(place.mark):
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=".incoming-", dir=folder) as incoming:
                yield Path(incoming)
    except OSError as error:
        raise not_saved("The backup", error, place.folder(module)) from error


def _exchange(place: Workspace, module: Module, incoming: Path) -> Backup:
    """Moves replaced files to a new backup, and the incoming ones into their place."""
    folder = place.folder(module)
    names = sorted(path.name for path in incoming.iterdir())
    moved = tuple(name for name in names if os.path.lexists(folder / name))
    backup = _new_backup(place, module) if moved else None
    with contextlib.ExitStack() as back:
        if backup is not None:
            back.callback(backup.rmdir)
            for name in moved:
                _move(folder / name, backup / name)
                back.callback(_move, backup / name, folder / name)
        folder.mkdir(parents=True, exist_ok=True)
        for name in names:
            _move(incoming / name, folder / name)
            back.callback(_move, folder / name, incoming / name)
        back.pop_all()
    return Backup(module, backup, moved)


def _recorded(course: Course, place: Workspace, backup: Backup) -> Backup:
    """Records a reset, which is done whether or not the record can be written."""
    try:
        warning = place.journal(course).append("reset", backup.module.id,
                                               undone=backup.restored is not None)
    except NotSaved as error:
        return replace(backup, error=error)
    return replace(backup, warning=warning)


def _folder(place: Workspace, module: Module) -> Path:
    return place.mark / BACKUPS / module.id


def _new_backup(place: Workspace, module: Module) -> Path:
    """Creates a folder named after the time, later than all others even if the clock went back."""
    stamp, number = f"{datetime.now():%Y-%m-%dT%H%M%S}", 1
    folder = _folder(place, module)
    last = max((_age(path) for path in folder.iterdir() if _BACKUP.fullmatch(path.name)),
               default=("", 0))
    if last[0] >= stamp:
        stamp, number = last[0], last[1] + 1
    path = folder / (stamp if number == 1 else f"{stamp}-{number}")
    path.mkdir()
    return path


def _age(path: Path) -> tuple[str, int]:
    match = _BACKUP.fullmatch(path.name)
    assert match is not None
    return match[1], int(match[2] or 1)


def _move(source: Path, target: Path) -> None:
    """Renames; across disks, copies before it removes."""
    try:
        source.rename(target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        _copy(source, target)
        os.sync()
        shutil.rmtree(source) if source.is_dir() and not source.is_symlink() else source.unlink()


def _copy(source: Path, target: Path) -> None:
    """Copies a file, a link as a link, or a folder with its contents."""
    if source.is_dir() and not source.is_symlink():
        shutil.copytree(source, target, symlinks=True)
    else:
        shutil.copy2(source, target, follow_symlinks=False)


def _contents(path: Path) -> dict[str, bytes | None]:
    """Returns the contents of a file, or of a folder without caches of Python."""
    files = [path] if not path.is_dir() else [
        file for file in path.rglob("*") if file.is_symlink() or not file.is_dir()]
    return {str(file.relative_to(path)): file.read_bytes() if file.is_file() else None
            for file in files if not _MADE_BY_PYTHON & set(file.relative_to(path).parts)}
