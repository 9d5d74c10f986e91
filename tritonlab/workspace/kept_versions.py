"""The last two versions of each exercise that were graded or inspected, beside the journal."""

import contextlib
from collections.abc import Mapping
from pathlib import Path

import msgspec

from tritonlab.course.course import Module
from tritonlab.progress import safe_files

FOLDER = "versions"  # in the workspace's own folder; below it a file for each module, by its id
_MOST = 2  # the present one and the one before
_LARGEST = 8_000_000  # bytes of a file
_Content = dict[str, bytes]


def keep(mark: Path, module: Module, content: Mapping[str, bytes]) -> None:
    """Stores the files of a version, the newest first; a failure only costs comparisons."""
    versions = _load(mark, module)
    if not content or versions[:1] == [content]:
        return
    versions = [dict(content), *(one for one in versions if one != content)][:_MOST]
    file = _path(mark, module)
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        with safe_files.opened(file.parent) as folder:
            safe_files.replace(folder, file.name, msgspec.json.encode(versions))


def before(mark: Path, module: Module, content: Mapping[str, bytes]) -> _Content | None:
    """Returns the newest version that differs from these files, or None."""
    return next((one for one in _load(mark, module) if one != content), None)


def _path(mark: Path, module: Module) -> Path:
    return mark / FOLDER / f"{module.id}.json"


def _load(mark: Path, module: Module) -> list[_Content]:
    file = _path(mark, module)
    try:
        with safe_files.opened(file.parent) as folder:
            return msgspec.json.decode(safe_files.read(folder, file.name, _LARGEST) or b"[]",
                                       type=list[_Content])
    except (OSError, ValueError, RecursionError):
        return []
