"""The lines behind an access, a launch or a result: where what they are made of was computed."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import lru_cache

from grader import syntax
from grader.source import is_kernel

_NEAR = 2  # steps: addresses and mask themselves, then what they are made of
_FAR = 16
_ACCESSES = {"load": 1, "store": 2}  # the position of the mask
_POINTERS = ("pointer", "ptr")

Lines = tuple[int, ...]


def lines_behind(text: str, line: int, *, far: bool = False, mask: bool = True) -> Lines:
    """The lines that give a load or store of a kernel its addresses and its mask, in order.

    Nothing where the line has none, or where the text cannot be read. With ``far``, also those that
    these are computed from, up to the program's number; without ``mask``, those of addresses only.
    """
    function = _function_at(text, line)
    if function is None:
        return ()
    names = {name for call in _accesses(function) if _holds(call, line)
             for name in _places(call, mask)}
    return _in_order(_made(function, names, _FAR if far else _NEAR), without=line)


def lines_of_values(text: str) -> Lines:
    """The lines of all kernels by which what is loaded becomes what is stored, in order.

    What no load has to do with, such as the zeros that a sum begins with, comes last.
    """
    found: set[int] = set()
    begun: set[int] = set()
    for function in _functions(text):
        if not is_kernel(function):
            continue
        accesses = list(_accesses(function))
        places = {name for call in accesses for name in _places(call, mask=True)}
        stores = [call for call in accesses if _attribute(call) == "store"]
        names = _names(value for call in stores for value in (
            *call.args[1:2], *(one.value for one in call.keywords if one.arg == "value")))
        made = _made(function, names - places, _FAR, without=places)
        loads = {call.lineno for call in accesses if _attribute(call) == "load"}
        assigned = [node for node in ast.walk(function) if isinstance(node, ast.Assign)]
        known = _names(target for node in assigned for target in node.targets)
        begun |= {node.lineno for node in assigned
                  if node.lineno in made - loads and known.isdisjoint(_names([node.value]))}
        found |= {call.lineno for call in stores} | made
    return (*_in_order(found - begun), *_in_order(begun))


def lines_of_stores(text: str) -> Lines:
    return _in_order({call.lineno for function in _functions(text) if is_kernel(function)
                      for call in _accesses(function) if _attribute(call) == "store"})


def lines_of_operands(text: str, line: int) -> Lines:
    """Where the values that a line of a kernel works on were made."""
    function = _function_at(text, line)
    if function is None:
        return ()
    here = [node for node in ast.walk(function) if getattr(node, "lineno", 0) == line]
    named = {node.id for node in here
             if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    named |= _names(node.target for node in here if isinstance(node, ast.AugAssign))
    return _in_order(_made(function, named, 1), without=line)


def lines_of_addresses(text: str) -> Lines:
    """The lines of all loads of kernels and those that give them their addresses, in order."""
    found: set[int] = set()
    for function in _functions(text):
        if is_kernel(function):
            loads = [call for call in _accesses(function) if _attribute(call) == "load"]
            found |= {call.lineno for call in loads}
            found |= _made(function, {name for call in loads for name in _names(call.args[:1])},
                           _FAR)
    return _in_order(found)


def lines_of_grid(text: str, line: int | None) -> Lines:
    """Where the grid of a launch was computed: of that in this line, else of the only one.

    Where the grid stands in the launch itself, that is its line.
    """
    found: set[int] = set()
    for function, call in _launches(text, line):
        assert isinstance(call.func, ast.Subscript)
        found |= _made(function, _names([call.func.slice]), 1) or {call.lineno}
    return _in_order(found)


def lines_of_arguments(text: str, names: Iterable[str], line: int | None = None) -> Lines:
    """Where the values that launches pass by these names were computed, or else are passed."""
    wanted, found = set(names), set[int]()
    for function, call in _launches(text, line):
        for keyword in call.keywords:
            if keyword.arg in wanted:
                found |= _made(function, _names([keyword.value]), 1) or {keyword.value.lineno}
    return _in_order(found)


def keywords_of_launches(text: str, line: int | None) -> set[str]:
    """The names by which a launch passes arguments."""
    return {keyword.arg for _, call in _launches(text, line) for keyword in call.keywords
            if keyword.arg}


def lines_of_launches(text: str) -> Lines:
    return _in_order({call.lineno for _, call in _launches(text, None)})


def lines_of_results(text: str, entry: str) -> Lines:
    """Where a function made what it returns."""
    found: set[int] = set()
    for function in _functions(text):
        if function.name == entry:
            returned = [node.value for node in ast.walk(function)
                        if isinstance(node, ast.Return) and node.value is not None]
            found |= _made(function, _names(returned), 1)
    return _in_order(found)


def sizes_in(text: str, line: int) -> set[str]:
    """The constexpr parameters of a kernel that a line names, or all where it names none."""
    function = _function_at(text, line)
    if function is None:
        return set()
    sizes = {one.arg for one in function.args.args
             if one.annotation is not None and "constexpr" in ast.unparse(one.annotation)}
    named = {node.id for node in ast.walk(function)
             if isinstance(node, ast.Name) and node.lineno == line}
    return sizes & named or sizes


# ---------------------------------------------------------------------------------------------
# Reading a file


@lru_cache(maxsize=2)  # every finding of a grade asks, of the same file
def _functions(text: str) -> tuple[ast.FunctionDef, ...]:
    try:
        tree = syntax.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return ()
    return tuple(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def _function_at(text: str, line: int) -> ast.FunctionDef | None:
    return next((function for function in _functions(text)
                 if function.lineno <= line <= (function.end_lineno or function.lineno)), None)


def _accesses(function: ast.FunctionDef) -> Iterator[ast.Call]:
    return (node for node in ast.walk(function)
            if isinstance(node, ast.Call) and _attribute(node) in _ACCESSES)


def _attribute(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _holds(call: ast.Call, line: int) -> bool:
    return call.lineno <= line <= (call.end_lineno or call.lineno)


def _places(call: ast.Call, mask: bool) -> set[str]:
    at = _ACCESSES[_attribute(call)]
    names = (*_POINTERS, "mask") if mask else _POINTERS
    return _names([*call.args[:1], *(call.args[at:at + 1] if mask else ()),
                   *(one.value for one in call.keywords if one.arg in names)])


def _launches(text: str, line: int | None) -> list[tuple[ast.FunctionDef, ast.Call]]:
    """The launch of this line; without one, the launch if there is a single one."""
    found = [(function, node) for function in _functions(text) if not is_kernel(function)
             for node in ast.walk(function)
             if isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript)]
    if line is not None:
        return [(function, call) for function, call in found if _holds(call, line)]
    return found if len(found) == 1 else []


def _made(function: ast.FunctionDef, names: set[str], steps: int,
          without: Iterable[str] = ()) -> set[int]:
    """The lines of all assignments to these names, and to those that they are made of.

    What the names ``without`` are made of is none of it.
    """
    found: set[int] = set()
    known: set[str] = set(without)
    for _ in range(steps):
        known |= names
        behind: set[str] = set()
        for node in ast.walk(function):
            targets = node.targets if isinstance(node, ast.Assign) else \
                [node.target] if isinstance(node, ast.AugAssign | ast.AnnAssign) else []
            if targets and names & _names(targets):
                assert isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign)
                found.add(node.lineno)
                behind |= _names([node.value] if node.value else [])
        names = behind - known
        if not names:
            break
    return found


def _names(nodes: Iterable[ast.AST]) -> set[str]:
    return {one.id for node in nodes for one in ast.walk(node) if isinstance(one, ast.Name)}


def _in_order(lines: set[int], without: int | None = None) -> Lines:
    return tuple(sorted(lines - {without}))
