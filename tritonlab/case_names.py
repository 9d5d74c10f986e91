"""The names of the cases of each module that was graded, kept for shells to complete."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from pathlib import Path

from tritonlab import durable

FILE = "cases.json"  # beside the journal: {module: [name, ...]}


def keep(folder: Path, module: str, names: Sequence[str]) -> None:
    """Keep the names of a module's cases; where that fails, only a press of Tab offers less."""
    known = kept(folder)
    if known.get(module) == [*names]:
        return
    with contextlib.suppress(OSError), durable.opened(folder) as opened:
        content = json.dumps({**known, module: [*names]}, indent=1)
        durable.replace(opened, FILE, content.encode())


def kept(folder: Path) -> dict[str, list[str]]:
    """The names by module; none where the file is absent or damaged."""
    try:
        with durable.opened(folder) as opened:
            data = json.loads(durable.read(opened, FILE) or b"{}")
        return {module: [str(name) for name in names] for module, names in data.items()}
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return {}
