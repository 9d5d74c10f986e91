"""The modules that exist, their reference solutions and starters."""

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
    name = "_".join((path.parts[-4], path.stem, path.parent.name))
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, str(path.parent))
    spec.loader.exec_module(module)
    sys.path.pop(0)
    return module


def solution(slug: str) -> ModuleType:
    """The reference solution of the module with this slug."""
    return load(ROOT / "solutions" / _folder(slug) / "kernel.py")


def starter(slug: str) -> ModuleType:
    """The file that learners of the module with this slug start from."""
    return load(ROOT / "tracks" / _folder(slug) / "kernel.py")


def _folder(slug: str) -> Path:
    [file] = (ROOT / "solutions").glob(f"*/*-{slug}/kernel.py")
    return file.parent.relative_to(ROOT / "solutions")
