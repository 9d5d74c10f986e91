"""Statements with one expression changed, in the order in which a repair is likely.

Each candidate undoes a typical mistake: a wrong axis or broadcast, swapped operands or arguments,
one name in place of another, a wrong comparison or operator. None needs the solution.
"""

from __future__ import annotations

import ast
import copy
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations

from grader.submission import syntax
from grader.submission.statement_diff import Edit

_Statement = ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Expr | ast.Return
_Changes = Callable[[ast.expr, "_Scope"], Iterator[ast.expr]]

_REDUCTIONS = frozenset(("sum", "max", "min", "argmax", "argmin", "reduce", "cumsum", "cumprod",
                         "associative_scan", "flip", "sort"))
_AXES = frozenset(("program_id", "num_programs", "size", "stride"))
_OTHER_FUNCTION = {"max": "min", "min": "max", "maximum": "minimum", "minimum": "maximum",
                   "exp": "exp2", "exp2": "exp", "log": "log2", "log2": "log", "rsqrt": "sqrt",
                   "sqrt": "rsqrt", "float16": "float32", "bfloat16": "float32",
                   "zeros_like": "empty_like", "argmax": "argmin", "argmin": "argmax"}
_OTHER_COMPARISON: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE, ast.Gt), ast.LtE: (ast.Lt, ast.Gt, ast.GtE),
    ast.Gt: (ast.GtE, ast.LtE, ast.Lt), ast.GtE: (ast.Gt, ast.Lt, ast.LtE),
    ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,)}
_OTHER_OPERATOR: dict[type[ast.operator], tuple[type[ast.operator], ...]] = {
    ast.Add: (ast.Sub, ast.Mult), ast.Sub: (ast.Add,), ast.Mult: (ast.Div, ast.Add),
    ast.Div: (ast.Mult,), ast.FloorDiv: (ast.Mod,), ast.Mod: (ast.FloorDiv,)}
_OTHER_CONDITION: dict[type[ast.operator], type[ast.operator]] = {
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd}
_ORDERED = (ast.Sub, ast.Div, ast.FloorDiv, ast.Mod)


def candidates(tree: ast.Module, suspects: Sequence[Iterable[int]]) -> Iterator[Edit]:
    """The statements of some lines, each with one expression changed; the likeliest first.

    Args:
        suspects: groups of lines, the most suspicious first.
    """
    groups = {line: group for group, lines in reversed(list(enumerate(suspects)))
              for line in lines}
    statements: defaultdict[int, list[tuple[_Statement, _Scope]]] = defaultdict(list)
    for function in syntax.functions(tree):
        scope = _Scope(function)
        for node in ast.walk(function):
            if isinstance(node, _Statement) and (
                    own := [groups[line] for line in syntax.lines_of(node) if line in groups]):
                statements[min(own)].append((node, scope))
    steps = [(unlikely + group * _GROUP, group, changes)
             for group in statements for changes, unlikely in _UNLIKELY.items()]
    for _, group, changes in sorted(steps, key=lambda step: step[:2]):
        for statement, scope in statements[group]:
            yield from _edits(statement, scope, changes)


class _Scope:
    """Names of a function: ``every`` one, and the parameters that are ``unused``."""

    def __init__(self, function: ast.FunctionDef):
        named = [node for node in ast.walk(function) if isinstance(node, ast.Name)]
        parameters = syntax.parameter_names(function)
        read = {node.id for node in named if isinstance(node.ctx, ast.Load)}
        self.every = list(dict.fromkeys(
            [*parameters, *(node.id for node in named if isinstance(node.ctx, ast.Store))]))
        self.unused = [name for name in parameters if name not in read]


def _edits(statement: _Statement, scope: _Scope, changes: _Changes) -> Iterator[Edit]:
    """One edit for each change of an expression of the statement."""
    for at, node in enumerate(ast.walk(statement)):
        if not isinstance(node, ast.expr) or isinstance(getattr(node, "ctx", None), ast.Store):
            continue
        for other in changes(node, scope):
            changed = copy.deepcopy(statement)
            _Replace(list(ast.walk(changed))[at], other).visit(changed)
            yield Edit(statement, ast.fix_missing_locations(changed), statement.lineno, 0)


class _Replace(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.expr):
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        return self.new if node is self.old else self.generic_visit(node)


def _axes(node: ast.expr, _: _Scope) -> Iterator[ast.expr]:
    """Reductions along another axis, and another axis of the grid or of a tensor."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return
    function = syntax.last_name(node.func)
    most = 2 if function in _REDUCTIONS else 3 if function in _AXES else 0
    numbers = [*(word.value for word in node.keywords if word.arg in ("axis", "dim")),
               *node.args[function in _REDUCTIONS:]]
    for number in numbers:
        if isinstance(number, ast.Constant) and type(number.value) is int:
            for axis in range(most):
                if axis != number.value:
                    yield _with(node, number, ast.Constant(axis))


def _broadcasts(node: ast.expr, _: _Scope | None) -> Iterator[ast.expr]:
    """``[None, :]`` for ``[:, None]`` and the reverse."""
    match node:
        case ast.Subscript(slice=ast.Tuple(elts=[one, other])) if {type(one), type(other)} == {
                ast.Slice, ast.Constant}:
            yield ast.Subscript(node.value, ast.Tuple([other, one], ast.Load()), ast.Load())


def _all_broadcasts(node: ast.expr, _: _Scope) -> Iterator[ast.expr]:
    """Every broadcast of an operation turned."""
    if isinstance(node, ast.BinOp):
        turned = _Turned()
        changed: ast.expr = turned.visit(copy.deepcopy(node))
        if turned.count > 1:
            yield changed


class _Turned(ast.NodeTransformer):
    count = 0

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        other = next(_broadcasts(node, None), None)
        self.count += other is not None
        return other or self.generic_visit(node)


def _operands(node: ast.expr, _: _Scope) -> Iterator[ast.expr]:
    """Operands in each other's place."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, _ORDERED):
        yield ast.BinOp(node.right, node.op, node.left)


def _arguments(node: ast.expr, _: _Scope) -> Iterator[ast.expr]:
    """Neighboring arguments of a launch or of ``where``, ``dot`` and the like swapped."""
    if not isinstance(node, ast.Call):
        return
    for at, (one, other) in enumerate(zip(node.args, node.args[1:], strict=False)):
        if ast.dump(one) != ast.dump(other) and _alike(one, other):
            yield ast.Call(node.func, [*node.args[:at], other, one, *node.args[at + 2:]],
                           node.keywords)


def _alike(one: ast.expr, other: ast.expr) -> bool:
    """Whether two arguments can be mistaken for each other."""
    pointers = ["ptr" in ast.unparse(node) for node in (one, other)]
    return type(one) is type(other) and pointers[0] == pointers[1]


def _swapped_names(node: ast.expr, scope: _Scope) -> Iterator[ast.expr]:
    """Two names of one kind in each other's place in an expression."""
    if not isinstance(node, ast.BinOp | ast.Compare | ast.Tuple):
        return
    used = dict.fromkeys(one.id for one in ast.walk(node) if isinstance(one, ast.Name)
                         and one.id in scope.every)
    for one, other in combinations(used, 2):
        if _kind(one) == _kind(other) != "pointer":
            changed = copy.deepcopy(node)
            for name in ast.walk(changed):
                if isinstance(name, ast.Name) and name.id in (one, other):
                    name.id = other if name.id == one else one
            yield changed


def _unused_names(node: ast.expr, scope: _Scope) -> Iterator[ast.expr]:
    """A parameter that the function does not use."""
    if isinstance(node, ast.Name) and node.id in scope.every:
        for name in scope.unused:
            if (_kind(name) == "pointer") == (_kind(node.id) == "pointer"):
                yield ast.Name(name, ast.Load())


def _similar_names(node: ast.expr, scope: _Scope) -> Iterator[ast.expr]:
    """A name that differs in one character, such as the stride of another dimension."""
    if isinstance(node, ast.Name) and node.id in scope.every:
        for name in scope.every:
            if _similar(name, node.id) and _kind(name) == _kind(node.id):
                yield ast.Name(name, ast.Load())


def _alike_names(node: ast.expr, scope: _Scope) -> Iterator[ast.expr]:
    """Another size or block."""
    if isinstance(node, ast.Name) and node.id in scope.every and \
            _kind(node.id) in ("size", "block"):
        for name in scope.every:
            if _kind(name) == _kind(node.id) and name != node.id and not _similar(name, node.id):
                yield ast.Name(name, ast.Load())


def _size_or_stride(node: ast.expr, scope: _Scope) -> Iterator[ast.expr]:
    """A size for a stride and the reverse."""
    other = {"size": "stride", "stride": "size"}
    if isinstance(node, ast.Name) and node.id in scope.every:
        for name in scope.every:
            if _kind(name) == other.get(_kind(node.id)):
                yield ast.Name(name, ast.Load())


def _other_names(node: ast.expr, scope: _Scope) -> Iterator[ast.expr]:
    """Another name of any kind but pointers."""
    if isinstance(node, ast.Name) and node.id in scope.every and _kind(node.id) != "pointer":
        for name in scope.every:
            if _kind(name) not in ("pointer", _kind(node.id)):
                yield ast.Name(name, ast.Load())


def _similar(one: str, other: str) -> bool:
    """Whether two names differ in one character, as those of one tensor or dimension do."""
    return len(one) == len(other) and sum(map(str.__ne__, one, other)) == 1


def _kind(name: str) -> str:
    """What a name is for, as far as its spelling shows."""
    lower = name.lower()
    if lower.endswith(("ptr", "ptrs", "desc")):
        return "pointer"
    if "stride" in lower or (len(lower) == 3 and lower[0] == "s"):
        return "stride"
    return "block" if name.isupper() and "BLOCK" in name else "size" if len(name) < 3 or \
        lower.startswith(("n_", "num_")) else ""


def _comparisons(node: ast.expr, _: _Scope) -> Iterator[ast.expr]:
    """Another comparison, and `|` for `&` and the reverse."""
    if isinstance(node, ast.BinOp) and type(node.op) in _OTHER_CONDITION:
        yield ast.BinOp(node.left, _OTHER_CONDITION[type(node.op)](), node.right)
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        for other in _OTHER_COMPARISON.get(type(node.ops[0]), ()):
            yield ast.Compare(node.left, [other()], node.comparators)


def _parts(node: ast.expr, _: _Scope) -> Iterator[ast.expr]:
    """An expression without one of its terms, factors or conversions."""
    if isinstance(node, ast.BinOp):
        yield node.left
        if not isinstance(node.op, _ORDERED):
            yield node.right
    match node:
        case ast.Call(func=ast.Attribute(value=value, attr="to")):
            yield value


def _operators(node: ast.expr, _: _Scope) -> Iterator[ast.expr]:
    """Another operator."""
    if isinstance(node, ast.BinOp):
        for other in _OTHER_OPERATOR.get(type(node.op), ()):
            yield ast.BinOp(node.left, other(), node.right)
        if isinstance(node.op, ast.FloorDiv):
            yield ast.Call(ast.Attribute(ast.Name("triton", ast.Load()), "cdiv", ast.Load()),
                           [node.left, node.right], [])
    if isinstance(node, ast.Call) and syntax.last_name(node.func) == "cdiv" and \
            len(node.args) == 2:
        yield ast.BinOp(node.args[0], ast.FloorDiv(), node.args[1])


def _functions(node: ast.expr, _: _Scope) -> Iterator[ast.expr]:
    """Another function or type of the same module."""
    if isinstance(node, ast.Attribute) and node.attr in _OTHER_FUNCTION:
        yield ast.Attribute(node.value, _OTHER_FUNCTION[node.attr], ast.Load())


def _with(node: ast.expr, old: ast.expr, new: ast.expr) -> ast.expr:
    """A copy of an expression with one part replaced."""
    at = next(number for number, one in enumerate(ast.walk(node)) if one is old)
    changed = copy.deepcopy(node)
    _Replace(list(ast.walk(changed))[at], new).visit(changed)
    return changed


# How unlikely each kind of mistake is. A statement of the next group is less likely by ``_GROUP``.
_UNLIKELY: dict[_Changes, float] = {
    _unused_names: 0, _axes: 0, _operands: 1, _broadcasts: 1, _similar_names: 1,
    _swapped_names: 1.5, _comparisons: 2, _functions: 2, _arguments: 2, _size_or_stride: 2,
    _operators: 3, _alike_names: 3, _parts: 4, _all_broadcasts: 4, _other_names: 6}
_GROUP = 1.5
