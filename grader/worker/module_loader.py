"""The learner's module: loading it, and finding its lines in frames and exceptions."""

import ast
import importlib.util
import sys
import traceback
from functools import cache
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import triton

from grader.engine.interpreter.errors import raised_line
from grader.recording.model import MAX_MESSAGE
from grader.submission.dataflow import KernelDefinition, kernel_definitions

NAME = "kernel"
_NO_MEMORY = ("can't allocate memory", "Cannot allocate memory", "std::bad_alloc")


class _FromSource(SourceFileLoader):
    """Never takes bytecode from a file: it might belong to another text."""

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self.get_data(self.path), self.path)


def load(path: str) -> ModuleType:
    """Run the file as the module ``kernel``; its folder is not searched for other modules."""
    triton.knobs.runtime.interpret = False  # a file may ask for it; here its kernels are recorded
    loader = _FromSource(NAME, path)
    spec = importlib.util.spec_from_file_location(NAME, path, loader=loader)
    if spec is None:
        raise ImportError(f"{path} cannot be loaded as a module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[NAME] = module
    loader.exec_module(module)
    return module


def current_line(path: str) -> int | None:
    """The line that the innermost frame of the learner's file is at."""
    return next((line for frame, line in traceback.walk_stack(sys._getframe(1))
                 if frame.f_code.co_filename == path), None)


def _tree(path: str) -> ast.Module:
    """The file's syntax tree; without statements where it cannot be read."""
    try:
        return ast.parse(Path(path).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return ast.Module([], [])


@cache
def kernels_by_line(path: str) -> dict[int, KernelDefinition]:
    """The kernels of the file by their first lines, as code objects count them."""
    return {one.first_line: one for one in kernel_definitions(_tree(path))}


@cache
def lines_on_the_cpu(path: str) -> frozenset[int]:
    """The lines of all calls whose device is ``"cpu"``, written out."""
    return frozenset(
        line for node in ast.walk(_tree(path)) if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg == "device" and isinstance(keyword.value, ast.Constant)
        and keyword.value.value == "cpu"
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1))


def describe(path: str, error: BaseException) -> dict[str, Any]:
    """An exception as data. What a failed allocation raises counts as a ``MemoryError``."""
    types = [cls.__name__ for cls in type(error).__mro__ if cls is not object]
    try:
        message = str(error)
    except BaseException as second:
        message = f"(its message could not be made: {type(second).__name__})"
    if isinstance(error, RuntimeError) and any(text in message for text in _NO_MEMORY):
        types = ["MemoryError", *types]
    line = error.lineno if isinstance(error, SyntaxError) and error.filename == path else \
        raised_line(path, error)
    return {"types": types, "message": message[:MAX_MESSAGE], "line": line}
