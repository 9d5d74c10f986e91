"""Reset: a fresh exercise in the place of the learner's work, which is kept, and the way back.

What is put in place is made whole beside the backups first. Then the work is moved to a new backup
and the other into its place, by renames; what fails halfway is moved back, and what is killed
halfway has left each file in one of the two. No backup is ever removed.
"""

from __future__ import annotations

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

from tritonlab import durable
from tritonlab.course import Course, Module
from tritonlab.errors import NotSaved, NoWorkspace, not_saved, shown
from tritonlab.workspace import EXERCISE, Workspace, fresh

BACKUPS = "backups"
_BACKUP = re.compile(r"(\d{4}-\d\d-\d\dT\d{6})(?:-(\d+))?")
_MADE_BY_PYTHON = {"__pycache__", ".pytest_cache"}


@dataclass(frozen=True)
class Backup:
    """Where the learner's work lies now, and what of it; None and nothing where none was moved.

    ``restored`` is the backup whose copy is in place now. ``error`` says why the journal does not
    tell of it, ``warning`` why the certificate is not fresh.
    """

    module: Module
    folder: Path | None = None
    names: tuple[str, ...] = ()
    restored: Path | None = None
    warning: str = ""
    error: NotSaved | None = None

    @property
    def changed(self) -> bool:
        """Whether anything was done: an exercise that nobody has touched is left as it is."""
        return self.folder is not None or self.restored is not None


def reset(course: Course, place: Workspace, module: Module) -> Backup:
    """Move the learner's work to a dated backup, put a fresh exercise in its place, record it.

    Raises:
        NoWorkspace: the module was not started here.
        NotSaved: it could not be done; the work is where it was.
    """
    folder = place.folder(module)
    present = [name for name in entries(module) if os.path.lexists(folder / name)]
    if not present:
        raise NoWorkspace(f"There is no exercise of {module.id} in {shown(folder)}.",
                          f"`tritonlab start {module.id}` makes a fresh one.")
    with _staged(place, module) as incoming:
        for name, content in fresh(module).items():
            (incoming / name).parent.mkdir(parents=True, exist_ok=True)
            (incoming / name).write_bytes(content)
        if all(_same(folder / name, incoming / name) for name in entries(module)):
            return Backup(module)
        made = _exchange(place, module, incoming)
    return _recorded(course, place, made)


def undo(course: Course, place: Workspace, module: Module) -> Backup:
    """Put a copy of the newest backup in place; what lies there becomes a backup itself.

    Raises:
        NoWorkspace: there is no backup of this module.
        NotSaved: it could not be done; the work is where it was.
    """
    newest = next(iter(backups(place, module)), None)
    if newest is None:
        raise NoWorkspace(f"There is no backup of {module.id} to bring back.",
                          f"`tritonlab reset {module.id}` makes one when it puts a fresh exercise "
                          "in the place of yours.")
    with _staged(place, module) as incoming:
        for path in newest.iterdir():
            _copy(path, incoming / path.name)
        made = _exchange(place, module, incoming)
    return _recorded(course, place, replace(made, restored=newest))


def backups(place: Workspace, module: Module) -> list[Path]:
    """The backups of a module that hold anything, the newest first."""
    folder = _folder(place, module)
    found = [path for path in folder.iterdir() if _BACKUP.fullmatch(path.name) and
             any(path.iterdir())] if folder.is_dir() else []
    return sorted(found, key=_age, reverse=True)


def entries(module: Module) -> tuple[str, ...]:
    """What belongs to the learner in the folder of a module: files, and folders with all in them.
    """
    return tuple(sorted({EXERCISE, *(Path(name).parts[0] for name in module.files)}))


@contextlib.contextmanager
def _staged(place: Workspace, module: Module) -> Iterator[Path]:
    """A folder on the workspace's disk for what will be put in place, and the workspace's lock."""
    folder = _folder(place, module)
    try:
        with (durable.uninterrupted(), durable.opened(place.mark) as mark, durable.locked(mark)):
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=".incoming-", dir=folder) as incoming:
                yield Path(incoming)
    except OSError as error:
        raise not_saved("The backup", error, place.folder(module)) from error


def _exchange(place: Workspace, module: Module, incoming: Path) -> Backup:
    """Move what the incoming files replace to a new backup, and them into its place."""
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


def _recorded(course: Course, place: Workspace, made: Backup) -> Backup:
    """The same, on record; the reset is done whether or not that can be written."""
    try:
        saved = place.journal(course).append("reset", made.module.id,
                                             undone=made.restored is not None)
    except NotSaved as error:
        return replace(made, error=error)
    return replace(made, warning=saved.warning)


def _folder(place: Workspace, module: Module) -> Path:
    return place.mark / BACKUPS / module.id


def _new_backup(place: Workspace, module: Module) -> Path:
    """A new folder, named after the time of day, and newer than all others whatever the clock says.
    """
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
    """Rename; from one disk to another, copy and only then remove."""
    try:
        source.rename(target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        _copy(source, target)
        os.sync()
        _remove(source)


def _copy(source: Path, target: Path) -> None:
    """Copy a file, a link as a link, or a folder with all in it."""
    if source.is_dir() and not source.is_symlink():
        shutil.copytree(source, target, symlinks=True)
    else:
        shutil.copy2(source, target, follow_symlinks=False)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def _same(one: Path, other: Path) -> bool:
    """Whether two files, or all files in two folders, hold the same; what Python made apart."""
    return _contents(one) == _contents(other)


def _contents(path: Path) -> dict[str, bytes | None]:
    files = [path] if not path.is_dir() else [
        file for file in path.rglob("*") if file.is_symlink() or not file.is_dir()]
    return {str(file.relative_to(path)): file.read_bytes() if file.is_file() else None
            for file in files if not _MADE_BY_PYTHON & set(file.relative_to(path).parts)}
