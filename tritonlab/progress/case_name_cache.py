"""The case names of each graded module, stored for shell completion."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from pathlib import Path

import msgspec

from tritonlab.progress import safe_files

FILE = "cases.json"  # beside the journal: {module: [name, ...]}


def keep(folder: Path, module: str, names: Sequence[str]) -> None:
    """Stores the case names of a module; a failure only costs completions."""
    cached = kept(folder)
    if cached.get(module) == [*names]:
        return
    with contextlib.suppress(OSError), safe_files.opened(folder) as opened:
        content = json.dumps({**cached, module: [*names]}, indent=1)
        safe_files.replace(opened, FILE, content.encode())


def kept(folder: Path) -> dict[str, list[str]]:
    """Returns the names by module; empty if the file is absent or damaged."""
    try:
        with safe_files.opened(folder) as opened:
            return msgspec.json.decode(safe_files.read(opened, FILE) or b"{}",
                                       type=dict[str, list[str]])
    except (OSError, msgspec.DecodeError, RecursionError):
        return {}
