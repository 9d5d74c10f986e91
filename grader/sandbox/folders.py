"""Removing a folder that untrusted code has written to."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path


def remove(folder: Path) -> None:
    """Remove ``folder`` with all that is in it, folders without permissions included."""
    shutil.rmtree(folder, ignore_errors=True)
    if not folder.exists():
        return
    for place, _, _ in os.walk(folder):  # a folder is opened up before the walk looks inside
        for path in (Path(place), *(entry for entry in Path(place).iterdir())):
            if path.is_dir() and not path.is_symlink():
                with contextlib.suppress(OSError):
                    path.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)
