"""Forms of a source that formatting, names and the order of statements do not change."""

import ast
from collections import defaultdict
from collections.abc import Callable

from grader.submission import syntax

_ROUNDS = 2  # of telling names apart by the statements that use them
_UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
_Place = tuple[str, str]  # scope and name
_Uses = dict[_Place, list[int]]
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def formatted(text: str) -> str:
    """Returns the source in one format, without comments and docstrings; "" if it is not Python."""
    return _of_tree(text, ast.unparse)


def unnamed(text: str) -> str:
    """Returns a digest of the source that does not depend on names and the order of statements.

    A name that the file binds is replaced by a digest of the statements that use it. Names of
    imports, attributes and keywords of other libraries stay. The digest is "" if the text is not
    Python; it differs between processes.
    """
    return _of_tree(text, lambda tree: str(_Digests(tree).of_file()))


def _of_tree(text: str, form: Callable[[ast.Module], str]) -> str:
    try:
        tree = syntax.parse(text)
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | _Function | ast.ClassDef):
                node.body = [one for one in node.body if not (
                    isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant)
                    and isinstance(one.value.value, str))]
        return form(tree)
    except _UNREADABLE:
        return ""


class _Digests:
    """Digests of the statements of a file."""

    def __init__(self, tree: ast.Module) -> None:
        self._tree = tree
        self._bound: dict[str, set[str]] = defaultdict(set)  # scope -> names
        self._collect(tree, "")
        self._parameters = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
        self._aliases = {alias.asname or alias.name: f"{getattr(node, 'module', '')}.{alias.name}"
                         for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)
                         for alias in node.names}
        self._of_names: dict[_Place, int] = {}

    def _collect(self, node: ast.AST, scope: str) -> None:
        for child in ast.iter_child_nodes(node):
            inner = scope
            match child:
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    self._bound[scope].add(name)
                    inner = f"{scope}.{name}"
                case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                    self._bound[scope].add(name)
            self._collect(child, inner)

    def of_file(self) -> int:
        for _ in range(_ROUNDS):
            uses: _Uses = defaultdict(list)
            self._block(self._tree.body, "", uses)
            self._of_names = {place: hash((self._of_names.get(place, 0), *sorted(digests)))
                              for place, digests in uses.items()}
        return self._block(self._tree.body, "", defaultdict(list))

    def _block(self, body: list[ast.stmt], scope: str, uses: _Uses) -> int:
        return hash(tuple(sorted(self._statement(one, scope, uses) for one in body)))

    def _statement(self, statement: ast.stmt, scope: str, uses: _Uses) -> int:
        """Returns the digest of a statement, and notes it for each name that it uses."""
        inner = f"{scope}.{statement.name}" if isinstance(statement, _Function) else scope
        parts: list[object] = []
        places: list[_Place] = []

        def add_name(name: str) -> None:
            place = next(((at, name) for at in _outward(inner) if name in self._bound[at]), None)
            if place is None or name in self._aliases:
                parts.append(self._aliases.get(name, name))
                return
            if place not in places:
                places.append(place)
            parts.extend((self._of_names.get(place, 0), places.index(place)))

        def add(part: object) -> None:
            match part:
                case ast.Name(id=name):
                    add_name(name)
                case ast.arg(arg=name, annotation=annotation):
                    add_name(name)
                    add(annotation)
                case ast.keyword(arg=str(name), value=value):
                    parts.append("parameter" if name in self._parameters else name)
                    add(value)
                case list() if part and isinstance(part[0], ast.stmt):
                    parts.append(self._block(part, inner, uses))
                case list():
                    parts.append(len(part))
                    for one in part:
                        add(one)
                case ast.AST():
                    parts.append(type(part).__name__)
                    for field, value in ast.iter_fields(part):
                        if field == "name" and isinstance(part, _Function):
                            add_name(value)
                        else:
                            add(value)
                case _:
                    parts.append(repr(part))

        add(statement)
        digest = hash(tuple(parts))
        for index, place in enumerate(places):
            uses[place].append(hash((digest, index)))
        return digest


def _outward(scope: str) -> list[str]:
    """A scope and those around it, from the inside."""
    parts = scope.split(".")
    return [".".join(parts[:count]) for count in range(len(parts), 0, -1)]
