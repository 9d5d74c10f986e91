"""Statements in which a submission differs from its solution, and the file with some replaced."""

from __future__ import annotations

import ast
import copy
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from grader.submission import syntax

_BODIES = ("body", "orelse", "finalbody")
_Compound = (ast.FunctionDef | ast.ClassDef | ast.For | ast.While | ast.If | ast.With | ast.Try
             | ast.ExceptHandler)
_Slot = tuple[int, str, int]  # id of the node around, field, index of the statement behind


@dataclass(frozen=True, eq=False)
class Edit:
    """A statement to replace, to remove or to add.

    A statement that stands elsewhere in the solution is replaced at ``slot``.

    Args:
        mine: the submission's statement; None where one is missing.
        theirs: the solution's statement; None where the submission has one more.
        line: of ``mine``, or the last one of what the missing statement follows.
        solution_line: of ``theirs``; 0 without one.
    """

    mine: ast.stmt | None
    theirs: ast.stmt | None
    line: int
    solution_line: int
    slot: _Slot = (0, "", 0)


def edits(mine: ast.Module, theirs: ast.Module) -> list[Edit]:
    """The statements in which functions and constants of one name differ, in order of lines.

    Comments, docstrings, imports and annotations other than ``tl.constexpr`` do not count, and
    neither does what only the submission defines.
    """
    own = dict(_definitions(mine))
    differing: list[Edit] = []
    for name, statement in _definitions(theirs):
        if name in own:
            differing += _between(own[name], statement)
        else:
            differing.append(Edit(None, statement, 0, statement.lineno,
                                  (id(mine), "body", len(mine.body))))
    return sorted(differing, key=lambda one: one.line)


def patched(tree: ast.Module, chosen: Collection[Edit]) -> str:
    """The source of a file with some edits made."""
    instead = {id(one.mine): None if one.slot[0] else one.theirs
               for one in chosen if one.mine is not None}
    added: dict[_Slot, list[ast.stmt]] = {}
    for one in chosen:
        if one.slot[0] and one.theirs is not None:
            added.setdefault(one.slot, []).append(one.theirs)

    def body_of(node: ast.AST, field: str) -> list[ast.stmt]:
        statements: list[ast.stmt] = getattr(node, field)
        body: list[ast.stmt] = []
        for index, statement in enumerate(statements):
            body += added.get((id(node), field, index), ())
            body += rebuilt(statement)
        return body + added.get((id(node), field, len(statements)), [])

    def rebuilt(node: ast.stmt) -> Iterator[ast.stmt]:
        other = instead.get(id(node), node)
        if other is None:
            return
        yield with_bodies(node, other) if isinstance(node, _Compound) and \
            type(node) is type(other) else other

    def with_bodies(node: Any, head: Any) -> Any:
        """The head of one statement with the bodies of another."""
        whole = copy.copy(head)
        for field in _BODIES:
            if hasattr(node, field):
                setattr(whole, field, body_of(node, field))
        if isinstance(node, ast.Try) and node is head:
            whole.handlers = [with_bodies(one, one) for one in node.handlers]
        whole.body = whole.body or [ast.Pass()]
        return whole

    return ast.unparse(ast.Module(body_of(tree, "body"), []))


def _definitions(tree: ast.Module) -> Iterator[tuple[tuple[str, int], ast.stmt]]:
    """Functions, classes and constants of a file by name and number, as several are called `_`."""
    counts = Counter[str]()
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.Assign(
                    targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                counts[name] += 1
                yield (name, counts[name]), node


def _between(mine: ast.stmt, theirs: ast.stmt) -> Iterator[Edit]:
    """The edits of two statements that stand for each other."""
    if type(mine) is not type(theirs) or _head(mine) != _head(theirs):
        yield Edit(mine, theirs, _line_of(mine, theirs), theirs.lineno)
        if isinstance(mine, ast.Try):
            return  # with other handlers, all of it is replaced
    if isinstance(mine, _Compound) and type(mine) is type(theirs):
        yield from _inside(mine, theirs)
    if isinstance(mine, ast.Try) and isinstance(theirs, ast.Try):
        for one, other in zip(mine.handlers, theirs.handlers, strict=True):
            yield from _inside(one, other)


def _line_of(mine: ast.stmt, theirs: ast.stmt) -> int:
    """The first line of a statement; of one with other handlers, that of the first of them."""
    if isinstance(mine, ast.Try) and isinstance(theirs, ast.Try):
        right = [*map(ast.dump, theirs.handlers)]
        for number, one in enumerate(mine.handlers):
            if number >= len(right) or ast.dump(one) != right[number]:
                return one.lineno
    return syntax.first_line(mine)


def _inside(mine: ast.AST, theirs: ast.AST) -> Iterator[Edit]:
    for field in _BODIES:
        if hasattr(mine, field):
            yield from _in_bodies(mine, theirs, field)


def _in_bodies(around: Any, other: Any, field: str) -> Iterator[Edit]:
    mine, theirs = _statements(around, field), _statements(other, field)
    slots = {id(statement): index for index, statement in enumerate(getattr(around, field))}
    pairs = list(_paired(mine, theirs))
    moved = _moved(pairs)
    for one, two, at in pairs:
        if one is not None and two is not None:
            yield from _between(one, two)
        elif one is not None:
            if one not in moved.values():
                yield Edit(one, None, one.lineno, 0)
        elif two is not None:
            behind = mine[at] if at < len(mine) else None
            before = mine[at - 1] if at else around
            line = syntax.last_line(before) if at else _last_of_head(around)
            slot = slots[id(behind)] if behind is not None else len(getattr(around, field))
            if two in moved:
                line = moved[two].lineno
            yield Edit(moved.get(two), two, line, two.lineno, (id(around), field, slot))


def _moved(pairs: Iterable[tuple[ast.stmt | None, ast.stmt | None, int]]
           ) -> dict[ast.stmt, ast.stmt]:
    """Assignments of the solution -> the only unpaired one of the same names in the submission."""
    mine, theirs = defaultdict(list), defaultdict(list)
    for one, two, _ in pairs:
        if two is None and isinstance(one, ast.Assign):
            mine[_does(one)].append(one)
        if one is None and isinstance(two, ast.Assign):
            theirs[_does(two)].append(two)
    return {theirs[names][0]: ours[0] for names, ours in mine.items()
            if len(ours) == len(theirs[names]) == 1}


def _paired(mine: Sequence[ast.stmt], theirs: Sequence[ast.stmt],
            by: int = 0) -> Iterator[tuple[ast.stmt | None, ast.stmt | None, int]]:
    """Statements of two bodies side by side; the place in ``mine`` comes third.

    First equal heads stand for each other, then statements that assign the same names, then those
    of runs that are equally long.
    """
    keys = (_head, _does)
    matcher = SequenceMatcher(None, [keys[by](one) for one in mine],
                              [keys[by](one) for one in theirs], autojunk=False)
    for operation, start, end, other, other_end in matcher.get_opcodes():
        ours, others = mine[start:end], theirs[other:other_end]
        if operation == "equal" or (by == 1 and len(ours) == len(others)):
            yield from ((one, two, start) for one, two in zip(ours, others, strict=True))
        elif operation == "replace" and by == 0:
            yield from ((one, two, start + at) for one, two, at in _paired(ours, others, 1))
        else:
            yield from ((one, None, start) for one in ours)
            yield from ((None, two, end) for two in others)


def _statements(node: ast.AST, field: str) -> list[ast.stmt]:
    """The statements of a body without docstrings and ``pass``."""
    return [one for one in getattr(node, field) if not isinstance(one, ast.Pass) and not (
        isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant)
        and isinstance(one.value.value, str))]


def _head(node: ast.stmt) -> str:
    """What a statement is, without its bodies."""
    match node:
        case ast.FunctionDef():
            arguments = copy.deepcopy(node.args)
            for one in ast.walk(arguments):
                if isinstance(one, ast.arg) and one.annotation is not None and \
                        "constexpr" not in ast.unparse(one.annotation):
                    one.annotation = None
            return _dumped(f"def {node.name}", arguments, *node.decorator_list)
        case ast.ClassDef():
            return _dumped(f"class {node.name}", *node.bases, *node.keywords,
                           *node.decorator_list)
        case ast.Try():
            types = [one.type or ast.Tuple([]) for one in node.handlers]
            return _dumped(f"try {[one.name for one in node.handlers]}", *types)
        case ast.For():
            return _dumped("for", node.target, node.iter)
        case ast.If() | ast.While():
            return _dumped(type(node).__name__, node.test)
        case ast.With():
            return _dumped("with", *node.items)
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            return _dumped("=", target, value)
        case ast.Assign(targets=[target], value=value):
            return _dumped("=", target, value)
    return ast.dump(node)


def _dumped(kind: str, *nodes: ast.AST) -> str:
    return f"{kind} {' '.join(map(ast.dump, nodes))}"


def _does(node: ast.stmt) -> str:
    """What a statement is for: the names that it assigns, or what it calls."""
    match node:
        case ast.Assign(targets=targets):
            return f"= {sorted(_stored(targets))}"
        case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
            return f"= {sorted(_stored([target]))}"
        case ast.Expr(ast.Call(func=function)):
            return f"call {ast.unparse(function)}"
    return type(node).__name__


def _stored(targets: Iterable[ast.AST]) -> set[str]:
    return {ast.unparse(one) for target in targets for one in ast.walk(target)
            if isinstance(one, ast.Name | ast.Subscript | ast.Attribute)}


def _last_of_head(node: ast.stmt | ast.ExceptHandler) -> int:
    body = getattr(node, "body", [])
    return max(node.lineno, body[0].lineno - 1) if body else node.end_lineno or node.lineno
