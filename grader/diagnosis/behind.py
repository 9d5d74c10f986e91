"""The lines behind an access, a launch or a result: where what they are made of was computed."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import lru_cache

from grader import syntax
from grader.definitions import is_kernel
from grader.places import numbered_comments

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


def has_mask(text: str, line: int) -> bool | None:
    """Whether the load or store of a line has a mask; None where the text does not show it."""
    function = _function_at(text, line)
    calls = [] if function is None else [
        call for call in _accesses(function) if _holds(call, line)]
    given = {len(call.args) > _ACCESSES[_attribute(call)]
             or any(one.arg in ("mask", None) for one in call.keywords) for call in calls}
    return given.pop() if len(given) == 1 else None


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
            found |= _made(function, {name for call in loads for name in _places(call, mask=False)},
                           _FAR)
    return _in_order(found)


def lines_of_grid(text: str, line: int | None, entry: str = "") -> Lines:
    """Where the grid of a launch was computed: of that in this line, else of the only one, in the
    file or in the function ``entry``.

    Where the grid stands in the launch itself, that is its line.
    """
    found: set[int] = set()
    for function, call in _launches(text, line, entry):
        assert isinstance(call.func, ast.Subscript)
        found |= _made(function, _names([call.func.slice]), 1) or {call.lineno}
    return _in_order(found)


def lines_of_arguments(text: str, names: Iterable[str], line: int | None = None, *,
                       kernel_line: int | None = None) -> Lines:
    """Where the values that launches pass by these names were computed, or else are passed.

    Those of the launch in ``line``, of all launches of the kernel that ``kernel_line`` is in, or
    else of the only one.
    """
    wanted, found = set(names), set[int]()
    launches = _launches_of(text, kernel_line) if kernel_line else []
    for function, call in launches or _launches(text, line):
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
# What belongs to a function


def names_reached(text: str, roots: Iterable[str]) -> frozenset[str]:
    """All names in what a file defines by the names ``roots``, and in what these name in turn."""
    return _reached(text, frozenset(roots))


@lru_cache(maxsize=32)  # every finding of a function asks, of the same file
def _reached(text: str, names: frozenset[str]) -> frozenset[str]:
    left = list(_pieces(text))
    while more := [piece for piece in left if names & piece[0]]:
        left = [piece for piece in left if piece not in more]
        names = names.union(*(words for _, words in more))
    return names


def lines_elsewhere(text: str, roots: Iterable[str]) -> frozenset[int]:
    """The lines of functions that no function of ``roots`` comes to, by their names.

    None are, where the file has no function of these names.
    """
    functions, names = _top_level(text), frozenset(roots)
    if names.isdisjoint(function.name for function in functions):
        return frozenset()
    reached = names_reached(text, names)
    return frozenset(line for function in functions if function.name not in reached
                     for line in range(_first_line(function), _last_line(function) + 1))


def comment_above(text: str, line: int, marker: str) -> int | None:
    """The line of the last numbered comment above a line in the same function."""
    function = _function_at(text, line)
    if function is None:
        return None
    comments = [one for one in numbered_comments(text, marker)
                if function.lineno <= one <= line]
    return max(comments, default=None)


def comments_in(text: str, roots: Iterable[str], marker: str) -> Lines:
    """The lines of numbered comments in functions that those of ``roots`` come to."""
    reached = names_reached(text, roots)
    numbered = numbered_comments(text, marker)
    return tuple(line for function in _top_level(text) if function.name in reached
                 for line in sorted(numbered)
                 if _first_line(function) <= line <= _last_line(function))


# ---------------------------------------------------------------------------------------------
# Reading a file


_Piece = tuple[frozenset[str], frozenset[str]]  # names defined, names mentioned


@lru_cache(maxsize=2)
def _pieces(text: str) -> tuple[_Piece, ...]:
    """Functions and classes of a file, and names that it gives values."""
    try:
        tree = syntax.parse(text)
    except syntax.UNREADABLE:
        return ()
    found = []
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                defined = {name}
            case ast.Assign(targets=targets):
                defined = _names(targets)
            case ast.AnnAssign(target=target):
                defined = _names([target])
            case _:
                continue
        mentioned = _names([node]) | {one.attr for one in ast.walk(node)
                                      if isinstance(one, ast.Attribute)}
        found.append((frozenset(defined), frozenset(mentioned)))
    return tuple(found)


def _top_level(text: str) -> list[ast.FunctionDef]:
    return [function for function in _functions(text) if function.col_offset == 0]


def _first_line(function: ast.FunctionDef) -> int:
    return min([function.lineno, *(one.lineno for one in function.decorator_list)])


def _last_line(function: ast.FunctionDef) -> int:
    return function.end_lineno or function.lineno


@lru_cache(maxsize=2)  # every finding of a grade asks, of the same file
def _functions(text: str) -> tuple[ast.FunctionDef, ...]:
    try:
        tree = syntax.parse(text)
    except syntax.UNREADABLE:
        return ()
    return tuple(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def _function_at(text: str, line: int) -> ast.FunctionDef | None:
    return next((function for function in _functions(text)
                 if function.lineno <= line <= _last_line(function)), None)


def _accesses(function: ast.FunctionDef) -> Iterator[ast.Call]:
    return (node for node in ast.walk(function)
            if isinstance(node, ast.Call) and _attribute(node) in _ACCESSES)


def _attribute(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _holds(call: ast.Call, line: int) -> bool:
    return call.lineno <= line <= (call.end_lineno or call.lineno)


def _places(call: ast.Call, mask: bool) -> set[str]:
    """The names in addresses and mask of an access; of one by a descriptor, that of this too."""
    at = _ACCESSES[_attribute(call)]
    names = (*_POINTERS, "mask") if mask else _POINTERS
    owner = [call.func.value] if isinstance(call.func, ast.Attribute) else []
    return _names([*owner, *call.args[:1], *(call.args[at:at + 1] if mask else ()),
                   *(one.value for one in call.keywords if one.arg in names)])


def _launches(text: str, line: int | None, entry: str = ""
              ) -> list[tuple[ast.FunctionDef, ast.Call]]:
    """The launch of this line; without one, the launch if there is a single one, in all of the file
    or in the function ``entry``.
    """
    found = _all_launches(text)
    if line is not None:
        return [(function, call) for function, call in found if _holds(call, line)]
    if len(found) > 1:
        found = [(function, call) for function, call in found if function.name == entry]
    return found if len(found) == 1 else []


def _all_launches(text: str) -> list[tuple[ast.FunctionDef, ast.Call]]:
    return [(function, node) for function in _functions(text) if not is_kernel(function)
            for node in ast.walk(function)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript)]


def _launches_of(text: str, line: int) -> list[tuple[ast.FunctionDef, ast.Call]]:
    """The launches that name the kernel with this line."""
    kernel = _function_at(text, line)
    return [(function, call) for function, call in _all_launches(text)
            if kernel is not None and isinstance(call.func, ast.Subscript)
            and isinstance(call.func.value, ast.Name) and call.func.value.id == kernel.name]


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
