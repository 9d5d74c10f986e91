"""Plants one mistake in a solution: an operator of its syntax tree changed, as learners slip."""

from __future__ import annotations

import ast
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest

from grader.submission import syntax
from grader.submission.dataflow import is_kernel

Edit = tuple[ast.AST, str]  # a node and the text that takes its place


@dataclass(frozen=True)
class Planted:
    """A mistake in a file.

    Args:
        kind: of the mistake, such as "swapped strides".
        line: the first line of the statement with the mistake, or where it was dropped.
        last: the last line of its statement, or of its head.
        before: the solution's code at the place; ``after`` what stands there now.
        text: of the whole file.
    """

    kind: str
    line: int
    last: int
    before: str
    after: str
    text: str


def planted(text: str, seed: str) -> Iterator[Planted]:
    """Mistakes of a solution, a different kind each time, in an order that the seed decides."""
    shuffled = random.Random(f"tritonlab {seed}")
    by_kind = [list(_mistakes(kind, text)) for kind in _KINDS]
    for mistakes in by_kind:
        shuffled.shuffle(mistakes)
    shuffled.shuffle(by_kind)
    for turn in zip_longest(*by_kind):
        yield from filter(None, turn)


def _mistakes(kind: str, text: str) -> Iterator[Planted]:
    for function in syntax.functions(syntax.parse(text)):
        if not is_kernel(function) and not any(
                isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript)
                for node in ast.walk(function)):
            continue  # checks of arguments, and answers in words
        for statement in _statements(function):
            for node, instead in _KINDS[kind](statement):
                before = ast.get_source_segment(text, node) or ""
                changed = _replaced(text, node, instead)
                try:
                    if ast.dump(syntax.parse(changed)) == ast.dump(syntax.parse(text)):
                        continue
                except SyntaxError:
                    continue
                first, last = statement.lineno, _head(statement)
                if instead == "pass":  # what is gone may be named by its neighbors
                    first, last = _neighbors(text, first, last)
                yield Planted(kind, first, last, before, instead, changed)


def _statements(function: ast.FunctionDef) -> Iterator[ast.stmt]:
    """The statements of a body, without the docstring, exceptions and what guards them."""
    for node in ast.walk(function):
        match node:
            case ast.Raise() | ast.Assert() | ast.Pass() | ast.Expr(ast.Constant()):
                continue
            case ast.If(body=body) if any(isinstance(one, ast.Raise) for one in body):
                continue
            case ast.stmt() if node is not function:
                yield node


def _neighbors(text: str, first: int, last: int) -> tuple[int, int]:
    """The nearest lines of code around some lines."""
    code = [number for number, line in enumerate(text.split("\n"), 1)
            if line.strip() and not line.lstrip().startswith("#")]
    return (max((n for n in code if n < first), default=first),
            min((n for n in code if n > last), default=last))


def _head(statement: ast.stmt) -> int:
    body = getattr(statement, "body", [])
    return max(statement.lineno, body[0].lineno - 1) if body else syntax.last_line(statement)


def _nodes(statement: ast.stmt) -> Iterator[ast.AST]:
    """The nodes of a statement, or of the head of one with a body."""
    pending: list[ast.AST] = [statement]
    while pending:
        node = pending.pop()
        yield node
        pending += [child for child in ast.iter_child_nodes(node)
                    if not isinstance(child, ast.stmt)]


def _replaced(text: str, node: ast.AST, instead: str) -> str:
    lines = text.split("\n")

    def at(line: int, column: int) -> int:
        inside = len(lines[line - 1].encode()[:column].decode())
        return sum(len(one) + 1 for one in lines[:line - 1]) + inside

    assert isinstance(node, ast.expr | ast.stmt | ast.keyword)
    start = at(node.lineno, node.col_offset)
    end = at(node.end_lineno or 0, node.end_col_offset or 0)
    return text[:start] + instead + text[end:]


# -- kinds of mistakes --------------------------------------------------------------------------


def _arguments_swapped(statement: ast.stmt) -> Iterator[Edit]:
    """Neighboring names of a call or a launch in each other's place."""
    for node in _nodes(statement):
        if isinstance(node, ast.Call):
            for index, (one, other) in enumerate(pairwise(node.args)):
                if isinstance(one, ast.Name) and isinstance(other, ast.Name):
                    args = [*node.args]
                    args[index], args[index + 1] = other, one
                    yield node, ast.unparse(ast.Call(node.func, args, node.keywords))


def _constant(statement: ast.stmt) -> Iterator[Edit]:
    """A number one too high, or another one."""
    for node in _nodes(statement):
        if isinstance(node, ast.Call | ast.BinOp | ast.Compare):
            parts = node.args if isinstance(node, ast.Call) else [
                child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
            yield from ((one, repr(one.value + 1)) for one in parts
                        if isinstance(one, ast.Constant) and type(one.value) in (int, float))


def _without_keyword(statement: ast.stmt, *names: str) -> Iterator[Edit]:
    for node in _nodes(statement):
        if isinstance(node, ast.Call) and any(word.arg == names[0] for word in node.keywords):
            yield node, ast.unparse(ast.Call(node.func, node.args, [
                word for word in node.keywords if word.arg not in names]))


def _off_by_one(statement: ast.stmt) -> Iterator[Edit]:
    for node in _nodes(statement):
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Lt):
            yield node, ast.unparse(ast.Compare(node.left, [ast.LtE()], node.comparators))
            yield node, ast.unparse(node) + " - 1"


def _comparison(statement: ast.stmt) -> Iterator[Edit]:
    others: dict[type, ast.cmpop] = {ast.Lt: ast.Gt(), ast.Gt: ast.Lt(), ast.LtE: ast.GtE(),
                                     ast.GtE: ast.LtE(), ast.Eq: ast.NotEq(), ast.NotEq: ast.Eq()}
    for node in _nodes(statement):
        if isinstance(node, ast.Compare) and type(node.ops[0]) in others:
            yield node, ast.unparse(ast.Compare(
                node.left, [others[type(node.ops[0])], *node.ops[1:]], node.comparators))


def _swapped_names(statement: ast.stmt, prefix: str) -> Iterator[Edit]:
    """Two different names of one statement in each other's place."""
    named = [node for node in _nodes(statement) if isinstance(node, ast.Name)
             and isinstance(node.ctx, ast.Load) and node.id.startswith(prefix)]
    for one, other in pairwise(sorted({node.id for node in named})):
        value = getattr(statement, "value", None)
        if isinstance(value, ast.expr):
            yield value, ast.unparse(_Renamed({one: other, other: one}).visit(
                ast.parse(ast.unparse(value), mode="eval").body))


class _Renamed(ast.NodeTransformer):
    def __init__(self, names: dict[str, str]) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(self._names.get(node.id, node.id), node.ctx)


def _strides(statement: ast.stmt) -> Iterator[Edit]:
    yield from _swapped_names(statement, "stride")


def _operands(statement: ast.stmt) -> Iterator[Edit]:
    """The operands of a difference, a quotient or a remainder in each other's place."""
    for node in _nodes(statement):
        if isinstance(node, ast.BinOp) and isinstance(
                node.op, ast.Sub | ast.Div | ast.FloorDiv | ast.Mod):
            yield node, f"({ast.unparse(ast.BinOp(node.right, node.op, node.left))})"


def _operator(statement: ast.stmt) -> Iterator[Edit]:
    others: dict[type, ast.operator] = {
        ast.Add: ast.Sub(), ast.Sub: ast.Add(), ast.Mult: ast.Add(), ast.Div: ast.Mult(),
        ast.Mod: ast.FloorDiv(), ast.FloorDiv: ast.Mod(), ast.BitAnd: ast.BitOr()}
    for node in _nodes(statement):
        if isinstance(node, ast.BinOp) and type(node.op) in others:
            yield node, f"({ast.unparse(ast.BinOp(node.left, others[type(node.op)], node.right))})"


def _parentheses(statement: ast.stmt) -> Iterator[Edit]:
    for node in _nodes(statement):
        match node:
            case ast.BinOp(left=ast.BinOp(op=ast.Add() | ast.Sub()) as left,
                           op=ast.Mult() | ast.Div() | ast.FloorDiv()):
                inner = ast.unparse(left)
                yield node, ast.unparse(node).replace(f"({inner})", inner, 1)


def _axis(statement: ast.stmt) -> Iterator[Edit]:
    for node in _nodes(statement):
        if not isinstance(node, ast.Call):
            continue
        for word in node.keywords:
            if word.arg == "axis" and isinstance(word.value, ast.Constant) and \
                    type(word.value.value) is int:
                yield word.value, repr(1 - word.value.value)
        if syntax.last_name(node.func) == "stride" and node.args and isinstance(
                node.args[0], ast.Constant) and node.args[0].value in (0, 1):
            yield node.args[0], repr(1 - node.args[0].value)


def _broadcast(statement: ast.stmt) -> Iterator[Edit]:
    """``[:, None]`` in the place of ``[None, :]``."""
    for node in _nodes(statement):
        if isinstance(node, ast.Subscript) and ast.unparse(node.slice) in ("None, :", ":, None"):
            instead = ":, None" if ast.unparse(node.slice) == "None, :" else "None, :"
            yield node, f"{ast.unparse(node.value)}[{instead}]"


def _cast(statement: ast.stmt) -> Iterator[Edit]:
    for node in _nodes(statement):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and \
                node.func.attr == "to":
            yield node, ast.unparse(node.func.value)


def _dropped(statement: ast.stmt) -> Iterator[Edit]:
    match statement:
        case ast.AugAssign() | ast.Expr(ast.Call(func=ast.Attribute(attr="store"))):
            yield statement, "pass"
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if name in syntax.names([value]):
            yield statement, "pass"


def _term(statement: ast.stmt) -> Iterator[Edit]:
    """A term of a sum, or a factor, that is forgotten."""
    for node in _nodes(statement):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Mult):
            yield node, ast.unparse(node.left)


_KINDS: dict[str, Callable[[ast.stmt], Iterator[Edit]]] = {
    "swapped arguments": _arguments_swapped,
    "wrong constant": _constant,
    "no mask": lambda statement: _without_keyword(statement, "mask", "other"),
    "no other": lambda statement: _without_keyword(statement, "other"),
    "off by one": _off_by_one,
    "wrong comparison": _comparison,
    "swapped strides": _strides,
    "swapped operands": _operands,
    "wrong operator": _operator,
    "no parentheses": _parentheses,
    "wrong axis": _axis,
    "wrong broadcast": _broadcast,
    "no cast": _cast,
    "dropped statement": _dropped,
    "forgotten term": _term,
}
KINDS: Sequence[str] = tuple(_KINDS)
