"""P01: the blanks (``...``) of an exercise that are left, by TODO comment."""

import ast
from bisect import bisect_left
from collections.abc import Mapping, Sequence

from grader.finding import fault
from grader.report import Finding
from grader.submission import syntax
from grader.submission.todo_regions import IMPORTED, regions
from grader.text import ranges

MAX_SHOWN = 40  # blanks that are named by their numbers; no exercise has as many


def blanks_left(text: str, todos: dict[int, int], tree: ast.Module,
                total: int) -> Finding | None:
    """The finding of blanks that are left, or None.

    Args:
        text: of the file.
        todos: line -> number of its TODO comment, the lines in order.
        tree: of the file.
        total: blanks that the exercise starts with, 0 where it has none.
    """
    numbered: dict[int, int] = {}  # TODO number -> line
    unnumbered: list[int] = []
    places = regions(tree, text, todos) if "..." in text else {}
    for function in _functions_and_methods(tree) if "..." in text else ():
        for line in ellipses(function):
            if line in places:
                numbered.setdefault(places[line], line)
            else:
                unnumbered.append(line)
    numbered.update(missing_setup(todos, text.split("\n"), tree))
    count = len(numbered) + len(unnumbered)
    if not count:
        return None
    first = min([*numbered.values(), *unnumbered])
    numbers = tuple(sorted(numbered)[:MAX_SHOWN])
    return Finding("P01", fault("blanks", count=count, total=total, todos=numbers,
                                lines=tuple(sorted(unnumbered)[:8]),
                                more=len(numbered) > MAX_SHOWN), line=first, todos=numbers)


def blanks_left_in(trees: Mapping[str, ast.Module], total: int) -> Finding | None:
    """The finding of blanks that are left in several files, or None; they have no numbers.

    Args:
        trees: of all files, by their paths.
        total: blanks that the exercise starts with, 0 where it has none.
    """
    left = {name: sorted({line for function in _functions_and_methods(tree)
                          for line in ellipses(function)}) for name, tree in trees.items()}
    left = {name: lines for name, lines in left.items() if lines}
    if not left:
        return None
    return Finding("P01", fault(
        "blanks in files", count=sum(map(len, left.values())), total=total, files=tuple(left),
        lines=tuple(ranges(lines[:8]) for lines in left.values())))


def _functions_and_methods(tree: ast.Module) -> list[ast.FunctionDef]:
    """Methods have blanks too; what a protocol declares, or is abstract, has no body to fill in."""
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)
               and not any("Protocol" in ast.unparse(base) for base in node.bases)]
    return functions(tree) + [
        method for node in classes for method in node.body
        if isinstance(method, ast.FunctionDef) and not any(
            _is_overload(decorator) or "abstract" in ast.unparse(decorator)
            for decorator in method.decorator_list)]


def ellipses(part: ast.AST) -> list[int]:
    """The lines of every ``...`` that stands for code, in order.

    ``x[..., 0]`` and ``x[...] = 0`` are indices; in ``kernel[...](x)`` the grid is a blank.
    """
    lines: list[int] = []
    left: list[ast.AST] = [part]
    while left:
        node = left.pop()
        children = list(ast.iter_child_nodes(node))
        if isinstance(node, ast.Subscript):
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            children = [node.value, *(p for p in parts if not isinstance(p, ast.Constant))]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript):
            grid = node.func.slice
            children += [grid] if isinstance(grid, ast.Constant) else []
        elif isinstance(node, ast.Constant) and node.value is Ellipsis:
            lines.append(node.lineno)
        left += children
    return sorted(lines)


def missing_setup(todos: dict[int, int], lines: Sequence[str],
                   tree: ast.Module) -> dict[int, int]:
    """TODO number -> line of the comments at module level whose import or decorator is missing."""
    alone = [line for line in todos if lines[line - 1].startswith("#")]
    missing: dict[int, int] = {}
    above = 0  # the line of the statement before
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and not node.decorator_list:
            place = bisect_left(alone, node.lineno) - 1
            if place >= 0 and alone[place] >= above:
                missing[todos[alone[place]]] = alone[place]
        above = node.lineno
    rest = [line for line in alone if line not in missing.values()]
    if rest and syntax.names([tree]).intersection(IMPORTED) - bound_names(tree):
        missing[todos[rest[0]]] = rest[0]
    return missing


def functions(tree: ast.Module) -> list[ast.FunctionDef]:
    """Functions at the top of the file, without those that ``typing.overload`` declares."""
    return [node for node in syntax.functions(tree) if not any(map(_is_overload,
                                                                   node.decorator_list))]


def _is_overload(decorator: ast.expr) -> bool:
    return syntax.last_name(decorator) == "overload"


def bound_names(tree: ast.Module) -> set[str]:
    """Names that imports and assignments at the top of the file bind."""
    bound: set[str] = set()
    for node in tree.body:
        for inner in ast.walk(node) if isinstance(node, ast.Try | ast.If) else [node]:
            if isinstance(inner, ast.Import | ast.ImportFrom):
                bound |= {syntax.bound_name(alias) for alias in inner.names}
            elif isinstance(inner, ast.Assign):
                bound |= {t.id for t in inner.targets if isinstance(t, ast.Name)}
    return bound
