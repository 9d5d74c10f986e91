"""Hides modules of Triton that a plain import of Triton does not load.

Python sets a submodule as an attribute of its package when any code first imports it. The grader
imports more of Triton than ``import triton, triton.language`` does; a file that uses such a module
as an attribute without importing it would run here, and nowhere else.
"""

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

_PACKAGE = "triton"
_plain: set[str] = set()  # what a plain import of Triton loads; empty where nobody noted that


def note_plain_imports() -> None:
    """Imports torch and Triton as every file does, and records the modules that this loads.

    For a process that has not imported Triton yet, and is forked afterwards.
    """
    for name in ("torch", "triton", "triton.language"):
        import_module(name)
    _plain.update(_loaded())


def is_plain(module: str) -> bool:
    """Whether importing Triton loads a module; true where plain imports were not recorded."""
    return not _plain or module in _plain


def hide() -> None:
    """Removes modules that only the grader imported from their packages, until imported again.

    A later import returns the module that is already loaded, so references to it stay valid.
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
    """Imports modules that were loaded before, without running them again."""

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
