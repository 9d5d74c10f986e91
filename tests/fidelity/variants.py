"""Right solutions that differ from ours: a file, or a folder with the files that differ."""

from __future__ import annotations

import shutil
from pathlib import Path

RIGHT = Path(__file__).parent / "right"


def of(slug: str) -> list[Path]:
    """All of a module, by its slug."""
    found = (RIGHT / slug).iterdir() if (RIGHT / slug).is_dir() else ()
    return sorted(path for path in found
                  if path.suffix == ".py" or (path.is_dir() and path.name != "__pycache__"))


def whole(path: Path, solution: Path, folder: Path) -> Path:
    """What is graded: the file, or the kernel.py of the solution's folder with the others in it.

    Args:
        path: one of ``of``.
        solution: the kernel.py of the module's solution.
        folder: which is filled, where the submission has several files.
    """
    if path.is_file():
        return path
    for source in (solution.parent, path):
        shutil.copytree(source, folder, dirs_exist_ok=True,
                        ignore=shutil.ignore_patterns("__pycache__"))
    return folder / solution.name
