"""Which modules of Triton a file sees that imports none of them by name.

Python sets a submodule as an attribute of its package when it is first imported, by whomever. The
grader imports more of Triton than ``import triton, triton.language`` does; a file that takes such a
module from its package without importing it would run here, and nowhere else.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

_PACKAGE = "triton"
_plain: set[str] = set()  # what a plain import of Triton loads; empty where nobody noted that


def note_plain_imports() -> None:
    """Import torch and Triton as every file does, and note what comes with them.

    To be called in a process that has not imported Triton yet, and is forked afterwards.
    """
    for name in ("torch", "triton", "triton.language"):
        import_module(name)
    _plain.update(_loaded())


def is_plain(module: str) -> bool:
    """Whether a module of Triton is there wherever Triton is imported, as far as that is known."""
    return not _plain or module in _plain


def hide() -> None:
    """Have the modules that only the grader imported be attributes of no package until imported.

    Importing them finds the module that is there already; so all that refers to it goes on.
    """
    if not _plain:
        return
    hidden = {}
    for name in _loaded() - _plain:
        above, _, last = name.rpartition(".")
        module, package = sys.modules[name], sys.modules.get(above)
        if above in _plain and package is not None and package.__dict__.get(last) is module:
            hidden[name] = module
            delattr(package, last)
            del sys.modules[name]
    if hidden:
        sys.meta_path.insert(0, _Again(hidden))


def _loaded() -> set[str]:
    return {name for name in sys.modules if name.partition(".")[0] == _PACKAGE}


class _Again(MetaPathFinder, Loader):
    """Imports modules that were loaded before: nothing of them is run once more."""

    def __init__(self, modules: dict[str, ModuleType]) -> None:
        self._modules = modules

    def find_spec(self, fullname: str, path: Sequence[str] | None,
                  target: ModuleType | None = None) -> ModuleSpec | None:
        module = self._modules.get(fullname)
        if module is None:
            return None
        return ModuleSpec(fullname, self, loader_state=module.__spec__,
                          is_package=hasattr(module, "__path__"))

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._modules.pop(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__ = module.__spec__.loader_state
