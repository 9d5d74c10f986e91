"""Hidden tests reduced to their public cases, as source text."""

import ast
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import grader
from grader.suite import Case, Suite

_MARK = "__seen__"
_DROPPED_ARGUMENTS = frozenset(("wrong_formulas",))  # known mistakes, as mutants are
_Sequence = ast.List | ast.Tuple
_Comprehension = ast.ListComp | ast.GeneratorExp


@dataclass(frozen=True)
class PublicSuite:
    """The files of a reduced suite. ``left_out``: public cases that cannot be separated."""

    files: Mapping[str, bytes] = field(default_factory=dict)
    cases: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


def reduce(path: Path) -> PublicSuite:
    """Reduces the suite at ``path``.

    The suite is run with every element of its lists watched. An element that yields hidden cases
    is removed, then everything that the rest does not use. The module's own reference function
    stays, since it computes the expected values; mutants and known wrong formulas do not.

    Raises:
        Exception: any error of the author's suite.
    """
    suite = grader.load_suite(path)
    public = tuple(case.name for case in suite.ordered(public_only=True))
    tree = ast.parse(path.read_text(encoding="utf-8"))
    tree.body = [node for node in tree.body if not (
        isinstance(node, ast.FunctionDef) and node.name.startswith("test_"))]
    for number, node in enumerate(ast.walk(tree), start=1):
        vars(node)["number"] = number
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) \
                and node.func.id in ("Suite", "Function"):
            node.keywords = [one for one in node.keywords if one.arg not in _DROPPED_ARGUMENTS]
    while doomed := _doomed(tree, path):
        _Elements(doomed=doomed).visit(tree)
    tree = _used(tree, {"suite"})
    files = {"suite.py": _text(tree), **_others(tree, path, suite, public)}
    if _names_of_hidden(suite) & _strings(files):
        return PublicSuite(left_out=public)
    cases = _loaded_cases(files)
    if not set(cases) <= set(public):
        return PublicSuite(left_out=public)
    return PublicSuite(files, cases, tuple(name for name in public if name not in cases))


class _Elements(ast.NodeTransformer):
    """Marks the elements of all lists with their numbers, or removes those that are ``doomed``."""

    def __init__(self, doomed: frozenset[int] | None = None) -> None:
        self._doomed = doomed

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        node.value = self.visit(node.value)  # the tuple of an index holds no cases
        return node

    def visit_List(self, node: ast.List) -> ast.AST:
        return self._sequence(node)

    def visit_Tuple(self, node: ast.Tuple) -> ast.AST:
        return self._sequence(node)

    def visit_ListComp(self, node: ast.ListComp) -> Any:
        return self._comprehension(node)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> Any:
        return self._comprehension(node)

    def _sequence(self, node: _Sequence) -> ast.AST:
        if not isinstance(node.ctx, ast.Load):
            return node
        elements: list[ast.expr] = []
        for element in node.elts:
            starred = isinstance(element, ast.Starred)
            inner = element.value if isinstance(element, ast.Starred) else element
            if not self._is_doomed(inner):
                marked = self._marked(inner, self.visit(inner))
                elements.append(ast.Starred(marked, ast.Load()) if starred else marked)
        node.elts = elements
        return node

    def _comprehension(self, node: _Comprehension) -> Any:
        if self._is_doomed(node):
            return ast.List([], ast.Load())
        return self._marked(node, self.generic_visit(node))

    def _is_doomed(self, node: ast.expr) -> bool:
        return self._doomed is not None and _number(node) in self._doomed

    def _marked(self, node: ast.expr, visited: Any) -> Any:
        if self._doomed is not None:
            return visited
        return ast.Call(ast.Name(_MARK, ast.Load()), [ast.Constant(_number(node)), visited], [])


def _number(node: ast.AST) -> int:
    return int(getattr(node, "number", 0))


def _doomed(tree: ast.Module, path: Path) -> frozenset[int]:
    """Returns the elements to remove next: those of hidden cases only, then mixed ones."""
    public: set[int] = set()
    hidden: set[int] = set()

    def seen(number: int, value: Any) -> Any:
        if hasattr(value, "__next__"):  # a generator, which can be read once
            value = list(value)
        many = value if isinstance(value, list | tuple) else [value]
        for one in many:
            if isinstance(one, Case):
                (public if one.public else hidden).add(number)
        return value

    marked = ast.fix_missing_locations(_Elements().visit(deepcopy(tree)))
    _run(marked, path, {_MARK: seen})
    return frozenset(hidden - public or hidden)


def _run(tree: ast.Module, path: Path, more: Mapping[str, Callable[..., Any]]) -> None:
    """Executes a suite's module in place of the file at ``path``."""
    module = ModuleType(f"reduced_suite_{path.parent.name}")
    module.__file__ = str(path)
    vars(module).update(more)
    sys.modules[module.__name__] = module  # dataclasses look their module up
    try:
        exec(compile(tree, str(path), "exec"), vars(module))
    finally:
        del sys.modules[module.__name__]


def _used(tree: ast.Module, roots: Iterable[str]) -> ast.Module:
    """Returns a module with the statements that ``roots`` need; comments are gone."""
    needed, kept = set(roots), set[int]()
    grown = True
    while grown:
        grown = False
        for number, node in enumerate(tree.body):
            if number not in kept and _binds(node) & needed:
                kept.add(number)
                needed |= {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
                grown = True
    body: list[ast.stmt] = []
    for number, node in enumerate(tree.body):
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            body.append(node)
        elif number in kept:
            if isinstance(node, ast.Import | ast.ImportFrom):
                node.names = [one for one in node.names if _name_of(one) in needed]
            body.append(node)
    for one in ast.walk(ast.Module(body, [])):
        if isinstance(one, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(one):
            one.body = one.body[1:] or [ast.Pass()]
    return ast.Module(body, [])


def _binds(node: ast.stmt) -> set[str]:
    """Returns the names that a statement defines or changes."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {_name_of(one) for one in node.names}
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return {node.name}
    if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return {one.id for target in targets for one in ast.walk(target)
                if isinstance(one, ast.Name)}
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


def _name_of(alias: ast.alias) -> str:
    return alias.asname or alias.name.partition(".")[0]


def _text(tree: ast.Module) -> bytes:
    return f"{ast.unparse(ast.fix_missing_locations(tree))}\n".encode()


def _others(tree: ast.Module, path: Path, suite: Suite, public: Iterable[str]
            ) -> dict[str, bytes]:
    """Returns the files beside suite.py that the reduced one needs, themselves reduced."""
    files = {}
    entries = {case.call.of for case in suite.all_cases if case.call and case.name in public}
    entries |= {part.entry for part in suite.parts if part.drives}
    if suite.calls and entries and (calls := _used(ast.parse(suite.calls), entries)).body:
        files["calls.py"] = _text(calls)
    texts = {one.value for one in ast.walk(tree) if isinstance(one, ast.Constant)}
    for file in path.parent.iterdir():
        named = {file.name, file.stem} if file.suffix == ".py" else {file.name}
        if file.is_file() and file.name not in ("suite.py", "calls.py") and named & texts:
            files[file.name] = file.read_bytes()
    return files


def _names_of_hidden(suite: Suite) -> set[str]:
    hidden = [case for case in suite.ordered() if not case.public]
    shown = {case.name.removeprefix(f"{case.function}: ") for case in suite.ordered()
             if case.public}
    return {case.name.removeprefix(f"{case.function}: ") for case in hidden} - shown


def _strings(files: Mapping[str, bytes]) -> set[str]:
    """Returns all texts in Python files."""
    return {one.value for name, text in files.items() if name.endswith(".py")
            for one in ast.walk(ast.parse(text))
            if isinstance(one, ast.Constant) and isinstance(one.value, str)}


def _loaded_cases(files: Mapping[str, bytes]) -> tuple[str, ...]:
    """Loads a reduced suite as a student does, and returns the names of its cases."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "reduced")
        place.mkdir()
        for name, content in files.items():
            (place / name).write_bytes(content)
        return tuple(case.name for case in grader.load_suite(place / "suite.py").ordered())
