"""The modules that exist, and their reference solutions."""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]
MODULES = sorted(path.parent.relative_to(ROOT / "tracks")
                 for path in (ROOT / "tracks").glob("*/*/module.toml"))


@cache
def load(path: Path) -> ModuleType:
    """A file of kernels as a module; it may be the door of a package beside it."""
    spec = importlib.util.spec_from_file_location(f"kernel_{path.stem}_{path.parent.name}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, str(path.parent))
    spec.loader.exec_module(module)
    sys.path.pop(0)
    return module


def solution(slug: str) -> ModuleType:
    """The reference solution of the module with this slug."""
    [module] = [module for module in MODULES if module.name.endswith(f"-{slug}")]
    return load(ROOT / "solutions" / module / "kernel.py")
