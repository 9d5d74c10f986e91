"""Temporary folders: removed even if untrusted code wrote to them."""

import contextlib
import os
import shutil
from pathlib import Path


def remove(folder: Path) -> None:
    """Removes a folder with all its contents, folders without permissions included."""
    shutil.rmtree(folder, ignore_errors=True)
    if not folder.exists():
        return
    for place, names, _ in os.walk(folder):  # a folder is opened up before the walk looks inside
        for path in (Path(place), *(Path(place, name) for name in names)):
            with contextlib.suppress(OSError):  # what goes meanwhile need not be removed
                if not path.is_symlink():
                    path.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)
