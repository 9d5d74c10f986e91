"""A cache on disk: JSON by digest, bounded in size, damaged entries dropped."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import tempfile
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from grader.gpu import client

FOLDER = "TRITONLAB_CACHE"  # environment variable: another folder, or "off"
MOST_BYTES = 64 << 20  # of one cache
_ROOT = Path(__file__).parents[1]


class Cache:
    """One folder of entries.

    Every process of the user may share it: an entry is a file that is replaced as a whole. Errors
    of the disk cost an entry, never a grade. Only trusted code may write entries.
    """

    def __init__(self, name: str, most_bytes: int = MOST_BYTES) -> None:
        home = folder()
        self._folder = home / name if home else None
        self._most_bytes = most_bytes
        self._written = most_bytes  # so that the first write checks the size of all

    def read(self, key: str) -> Any:
        """Returns the entry of a key, or None where there is none or it is damaged."""
        if self._folder is None:
            return None
        path = self._folder / key
        try:
            if not (_is_own(self._folder) and stat.S_ISREG(path.lstat().st_mode)):
                return None
            digest, _, text = path.read_text(encoding="utf-8").partition("\n")
            if digest != _digest(key, text):
                raise ValueError
            value = json.loads(text)
            os.utime(path)  # the oldest entries go first
        except (OSError, ValueError):
            return None
        return value

    def write(self, key: str, value: Any) -> None:
        """Adds or replaces an entry."""
        if self._folder is None:
            return
        text = json.dumps(value, separators=(",", ":"))
        with contextlib.suppress(OSError), contextlib.ExitStack() as cleanup:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not _is_own(self._folder):
                return
            with tempfile.NamedTemporaryFile("w", dir=self._folder, prefix=".", encoding="utf-8",
                                             delete=False) as file:
                cleanup.callback(Path(file.name).unlink, missing_ok=True)
                file.write(f"{_digest(key, text)}\n{text}")
            Path(file.name).replace(self._folder / key)
            self._written += len(text)
            if self._written > self._most_bytes / 8:
                self._written = 0
                self._shrink()

    def _shrink(self) -> None:
        """Removes the entries that were used longest ago, once all are too large."""
        assert self._folder is not None
        with os.scandir(self._folder) as files:
            entries = sorted(((one.stat().st_mtime, one.stat().st_size, one.path)
                              for one in files), reverse=True)
        total = 0
        for _, size, path in entries:
            total += size
            if total > self._most_bytes:
                Path(path).unlink(missing_ok=True)


def folder() -> Path | None:
    """``$TRITONLAB_CACHE``, else ``$XDG_CACHE_HOME/tritonlab``.

    None where it is switched off or the home folder does not exist, which is never created.
    """
    chosen = os.environ.get(FOLDER, "")
    if chosen:
        return None if chosen == "off" else Path(chosen)
    try:
        place = client.cache().parent
    except RuntimeError:  # no home
        return None
    return place if place.parents[1].is_dir() else None


@cache
def sources_sha256(packages: Sequence[str] = ("",)) -> str:
    """The digests of the grader's own code: of all of it, or of these packages."""
    return "".join(folder_sha256(_ROOT / package) for package in packages)


def folder_sha256(folder: Path, without: str = "") -> str:
    """The digest of all files below a folder, caches of Python and one folder apart."""
    sha256 = hashlib.sha256()
    for path in files_below(folder, without):
        data = path.read_bytes()
        sha256.update(f"{path.relative_to(folder)}\0{len(data)}\0".encode() + data)
    return sha256.hexdigest()


def files_below(folder: Path, without: str = "") -> Iterator[Path]:
    """All files below a folder in a fixed order, caches of Python and one folder apart."""
    for place, folders, names in os.walk(folder):
        left_out = {"__pycache__", without} if place == str(folder) else {"__pycache__"}
        folders[:] = sorted({*folders} - left_out)
        yield from filter(Path.is_file, (Path(place, name) for name in sorted(names)))


def _digest(key: str, text: str) -> str:
    return hashlib.sha256(f"{key}\n{text}".encode()).hexdigest()


def _is_own(path: Path) -> bool:
    """Whether nobody else can write to a folder."""
    status = path.stat()
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
