"""Making the folder of a sandbox, and removing one that untrusted code has written to."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path


def make(folder: Path) -> None:
    """Make a folder that only its owner may use, unless it is there.

    Raises:
        OSError: there is no place for it.
    """
    folder.mkdir(mode=0o700, exist_ok=True)


def remove(folder: Path) -> None:
    """Remove ``folder`` with all that is in it, folders without permissions included."""
    shutil.rmtree(folder, ignore_errors=True)
    if not folder.exists():
        return
    for place, names, _ in os.walk(folder):  # a folder is opened up before the walk looks inside
        for path in (Path(place), *(Path(place, name) for name in names)):
            with contextlib.suppress(OSError):  # what goes meanwhile need not be removed
                if not path.is_symlink():
                    path.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)
