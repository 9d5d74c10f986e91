"""Names the kind of mistake in which one statement differs from another, such as swapped strides.

The name holds code of neither statement.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from grader.submission.syntax import last_name

_REDUCTIONS = frozenset(("sum", "max", "min", "argmax", "argmin", "reduce", "cumsum", "cumprod",
                         "associative_scan", "sort", "flip", "xor_sum"))
_OF_AXES = frozenset(("program_id", "num_programs", "stride", "size"))
_SHORT_STRIDE = re.compile("s[a-z]{2}")  # such as `sxm`
_NARROW = ("float16", "bfloat16")
_ROOTS = frozenset(("sqrt", "rsqrt", "sqrt_rn"))
MOST_CHARACTERS = 60  # of an expression that is quoted
_ACCESSES = frozenset(("load", "store"))
_Pair = tuple[ast.AST, ast.AST, tuple[ast.AST, ...]]  # two that differ, and the nodes around


def kind_of(mine: ast.stmt | None, theirs: ast.stmt | None) -> str:
    """The kind of mistake in ``mine``, which ``messages.mistake`` words; empty if unknown.

    Args:
        mine: None where a statement is missing.
        theirs: the right statement; None where ``mine`` is one too many.
    """
    if mine is None or theirs is None:
        if mine is not None:
            return "superfluous statement"
        updates = isinstance(theirs, ast.AugAssign) or (
            isinstance(theirs, ast.Assign) and isinstance(theirs.value, ast.Name))
        return "no store" if _calls(theirs, "store") else \
            "missing update" if updates else "missing statement"
    if isinstance(mine, ast.Assign) and isinstance(theirs, ast.AugAssign):
        return "overwritten"
    if isinstance(mine, ast.AugAssign) and isinstance(theirs, ast.Assign) and \
            ast.dump(mine.value) == ast.dump(theirs.value):
        return "added twice"
    if isinstance(mine, ast.Assign) and isinstance(theirs, ast.Assign) and isinstance(
            mine.value, ast.Tuple) and isinstance(theirs.value, ast.Tuple) and \
            Counter(_dumps(mine.value.elts)) == Counter(_dumps(theirs.value.elts)):
        return "order"
    pairs = list(_differing(mine, theirs))
    kind = _of_pair(*pairs[0]) if _is_one(pairs) else _kind_of_all(pairs)
    if kind in ("", "arguments", "name", "bound", "stride"):
        return _swapped(mine, theirs) or kind or _of_values(mine, theirs) or \
            _rearranged(mine, theirs, [one for one, _, _ in pairs])
    return kind


def part_of(mine: ast.stmt | None, theirs: ast.stmt | None, text: str = "") -> str:
    """The one expression of ``mine`` that differs; empty where several do, or it is long.

    Args:
        text: of the file with ``mine``, from which the expression is quoted.
    """
    pairs = list(_differing(mine, theirs)) if mine and theirs else []
    match pairs:
        case [(ast.Name(id=first), ast.Name(id=second), _),
              (ast.Name(id=third), ast.Name(id=last), _)] if (first, second) == (last, third):
            return f"{first}, {second}"
    alike = _is_one(pairs) or _kind_of_all(pairs)
    one, other, around = pairs[0] if alike else (None, None, ())
    if len(pairs) > 1 and _is_one(pairs):  # all that one name is part of, such as `a.stride(0)`
        for node in reversed(around):
            if not isinstance(node, ast.Attribute | ast.Subscript | ast.Call) or one in getattr(
                    node, "args", ()):
                break
            one = node
    if isinstance(one, ast.Name) and isinstance(other, ast.Name) and around and \
            _of_names(around) != "name":
        one = around[-1]  # a bound beside its index, a stride beside what it multiplies
    if isinstance(one, ast.Call) and isinstance(other, ast.Call) and \
            ast.dump(one.func) != ast.dump(other.func):
        one = one.func
    if one is not None and _is_number(one) and around and \
            isinstance(around[-1], ast.keyword | ast.expr) and len(_arguments(around[-1])) < 2:
        one = around[-1]  # `axis=0` says which 0
    if not isinstance(one, ast.keyword | ast.expr):
        return ""
    code = (ast.get_source_segment(text, one) if text else "") or ast.unparse(one)
    return code if len(code) <= MOST_CHARACTERS and "\n" not in code else ""


def _is_one(pairs: Sequence[_Pair]) -> bool:
    """Whether one expression differs, or one name throughout."""
    names = {(one.id, other.id) if isinstance(one, ast.Name) and isinstance(other, ast.Name)
             else () for one, other, _ in pairs}
    return len(pairs) == 1 or (len(names) == 1 and () not in names)


def _kind_of_all(pairs: Iterable[_Pair]) -> str:
    """The kind of several expressions that differ in one way; empty for other kinds."""
    kinds = {_of_pair(*pair) for pair in pairs}
    return kinds.pop() if kinds in ({"axis"}, {"reduction axis"}, {"sign"}) else ""


def _arguments(node: ast.AST) -> list[ast.AST]:
    return [*node.args, *node.keywords] if isinstance(node, ast.Call) else []


def _of_pair(one: ast.AST, other: ast.AST, around: Sequence[ast.AST]) -> str:
    """The kind where a single expression differs; ``around`` are the nodes around it."""
    call = next((node for node in reversed(around) if isinstance(node, ast.Call)), None)
    word = next((node for node in reversed(around) if isinstance(node, ast.keyword)), None)
    called = last_name(call.func) if call else ""
    nearest = around[-1] if around else None
    if word is not None and word.arg == "other":
        return "other"
    if _is_number(one) and _is_number(other):
        if called in _REDUCTIONS and (word is None or word.arg == "axis"):
            return "reduction axis"
        if called in _OF_AXES or isinstance(nearest, ast.Subscript):
            return "axis"
        return "number"
    match one, other:
        case ast.Call(), ast.Call(func=ast.Subscript(value=value)) if _same(one.func, value):
            return "no grid"
        case ast.UnaryOp(op=ast.USub(), operand=value), _ if _same(value, other):
            return "sign"
        case _, ast.UnaryOp(op=ast.USub(), operand=value) if _same(value, one):
            return "sign"
        case _, ast.Attribute(value=value) if _same(value, one):
            return "missing attribute"
        case ast.Constant(), ast.Name():
            return "constant"
        case ast.Call(), ast.Call() if ast.dump(one.func) == ast.dump(other.func):
            return _of_calls(one, other)
        case _, ast.Call(func=ast.Attribute(value=value, attr="to")) if _same(one, value):
            return "no cast"
        case ast.Call(func=ast.Attribute(value=value, attr="to")), _ if _same(value, other):
            return "needless cast"
        case ast.Compare(), ast.Compare():
            return "comparison"
        case ast.BinOp(), ast.BinOp() if _leaves(one) == _leaves(other) and \
                _operators(one) == _operators(other):
            return "parentheses"
    if isinstance(other, ast.BinOp) and (_same(one, other.left) or _same(one, other.right)):
        return f"missing {_part(type(other.op))}"
    if isinstance(one, ast.BinOp) and (_same(one.left, other) or _same(one.right, other)):
        return "root" if called in _ROOTS else f"superfluous {_part(type(one.op))}"
    if isinstance(one, ast.Call) and isinstance(other, ast.Call) and \
            _dumps([*one.args, *one.keywords]) == _dumps([*other.args, *other.keywords]):
        return "function"
    if isinstance(one, ast.BinOp) and isinstance(other, ast.BinOp):
        if _same(one.left, other.right) and _same(one.right, other.left):
            return "operands"
        if type(one.op) is not type(other.op) and _same(one.left, other.left) and \
                _same(one.right, other.right):
            return "operator"
    if isinstance(one, ast.Slice | ast.Tuple | ast.Constant) and isinstance(nearest, ast.Subscript):
        return "broadcast"
    if last_name(one) in _NARROW and last_name(other) == "float32":
        return "narrow type"
    if isinstance(one, ast.operator):
        return "operator"
    if isinstance(one, ast.BinOp) and isinstance(other, ast.BinOp) and \
            type(one.op) is not type(other.op) and _leaves(one) == _leaves(other):
        return "operator"
    if isinstance(one, ast.expr) and isinstance(other, ast.BinOp) and \
            Counter(_leaves(one)) < Counter(_leaves(other)):
        mine, theirs = Counter(_operators(one)), Counter(_operators(other))
        return f"missing {_part(next(iter(theirs - mine)))}" if mine <= theirs else "operation"
    if isinstance(one, ast.Name) and isinstance(other, ast.Name):
        return _of_names(around)
    if isinstance(one, ast.BinOp) and isinstance(other, ast.BinOp) and \
            type(one.op) is not type(other.op) and (
                _same(one.left, other.left) or _same(one.right, other.right)):
        return "operation"
    return ""


def _of_names(around: Sequence[ast.AST]) -> str:
    """The kind where one name differs: a bound, a stride in an address, or another one."""
    if any(isinstance(node, ast.Compare) for node in around):
        return "bound"
    pointers = any(name.endswith(("ptr", "ptrs")) for node in around[:1]
                   for name in _names(node))
    factor = bool(around) and isinstance(around[-1], ast.BinOp) and \
        isinstance(around[-1].op, ast.Mult)
    return "stride" if pointers and factor else "name"


def _of_calls(one: ast.Call, other: ast.Call) -> str:
    """The kind where arguments of a call of the same function differ in number."""
    mine, theirs = ({word.arg for word in call.keywords} for call in (one, other))
    if last_name(one.func) in _ACCESSES:
        missing = theirs - mine
        if "mask" in missing:
            return "no mask"
        if "other" in missing:
            return "no other"
    if "axis" in theirs ^ mine and last_name(one.func) in _REDUCTIONS:
        return "reduction axis"
    more = len([*other.args, *other.keywords]) - len([*one.args, *one.keywords])
    if more == 1 and "input_precision" in theirs - mine:
        return "no precision"
    return "missing argument" if more > 0 else "superfluous argument"


def _of_values(mine: ast.stmt, theirs: ast.stmt) -> str:
    """The kind where more than one expression differs."""
    broadcasts = [[ast.dump(node.slice) for node in ast.walk(statement)
                   if isinstance(node, ast.Subscript)] for statement in (mine, theirs)]
    if broadcasts[0] != broadcasts[1] and Counter(_names(mine)) == Counter(_names(theirs)) and \
            _shape(mine) == _shape(theirs):
        return "broadcast"
    return ""


def _swapped(mine: ast.stmt, theirs: ast.stmt) -> str:
    """The kind where the same names stand in other places, and nothing else differs."""
    ours, others = _names(mine), _names(theirs)
    if ours == others or Counter(ours) != Counter(others) or _shape(mine) != _shape(theirs):
        return ""
    moved = {name for one, other in zip(ours, others, strict=True) if one != other
             for name in (one, other)}
    if all("stride" in name or _SHORT_STRIDE.fullmatch(name) for name in moved):
        height = {name.rstrip("0123456789")[-1:] for name in moved} == {"h", "w"}
        return "height and width" if height else "strides"
    in_call = any(isinstance(node, ast.Call) and moved <= {
        one.id for one in node.args if isinstance(one, ast.Name)} for node in ast.walk(mine))
    return "arguments" if in_call else "names"


def _rearranged(mine: ast.stmt, theirs: ast.stmt, differing: Iterable[ast.AST]) -> str:
    """The kind where both have the same parts in another arrangement."""
    ours, others = ([node for node in ast.walk(statement) if isinstance(node, ast.Call)]
                    for statement in (mine, theirs))
    for one, other in zip(ours, others, strict=False):
        if last_name(one.func) != last_name(other.func) or _dumps(one.args) == _dumps(other.args):
            continue
        if last_name(one.func) == "arange":
            return "range"
        if last_name(one.func) == "where" and \
                _dumps(one.args) == _dumps([*other.args[:1], *other.args[:0:-1]]):
            return "branches"
        if Counter(_dumps(one.args)) == Counter(_dumps(other.args)):
            return "arguments"
    parts = [Counter(_dumps(node for node in ast.walk(statement) if isinstance(
        node, ast.Name | ast.Constant | ast.operator))) for statement in (mine, theirs)]
    if parts[0] != parts[1]:
        return ""
    return "placement" if any(isinstance(node, ast.Call) for part in differing
                              for node in ast.walk(part)) else "terms"


def _part(operator: type[ast.operator]) -> str:
    """What an operator adds to an expression."""
    if operator in (ast.BitAnd, ast.BitOr):
        return "condition"
    return "term" if operator in (ast.Add, ast.Sub) else "factor"


def _dumps(nodes: Iterable[ast.AST]) -> list[str]:
    return [ast.dump(node) for node in nodes]


def _names(statement: ast.AST) -> list[str]:
    return [node.id for node in ast.walk(statement) if isinstance(node, ast.Name)]


def _shape(statement: ast.stmt) -> list[type[ast.AST]]:
    return [type(node) for node in ast.walk(statement)
            if not isinstance(node, ast.Slice | ast.Constant)]


def _calls(statement: ast.stmt | None, name: str) -> bool:
    return statement is not None and any(
        isinstance(node, ast.Call) and last_name(node.func) == name
        for node in ast.walk(statement))


def _is_number(node: ast.AST) -> bool:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    if isinstance(node, ast.Call) and last_name(node.func) == "float":
        return True  # of "inf"
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float)


def _same(one: ast.AST, other: ast.AST) -> bool:
    return ast.dump(one) == ast.dump(other)


def _leaves(node: ast.expr) -> list[str]:
    """What operators join, from left to right."""
    if isinstance(node, ast.BinOp):
        return [*_leaves(node.left), *_leaves(node.right)]
    return [ast.dump(node)]


def _operators(node: ast.expr) -> list[type[ast.operator]]:
    if isinstance(node, ast.BinOp):
        return [*_operators(node.left), type(node.op), *_operators(node.right)]
    return []


def _differing(one: ast.AST, other: ast.AST,
               around: tuple[ast.AST, ...] = ()) -> Iterator[_Pair]:
    """The smallest expressions in which two trees differ, and the nodes around each."""
    if _same(one, other):
        return
    if isinstance(one, ast.Call) and isinstance(other, ast.Call) and _same(one.func, other.func) \
            and _of_calls(one, other).endswith("argument") and (common := _common(one, other)):
        for pair in common:
            yield from _differing(*pair, (*around, one))
        return
    mine, theirs = list(ast.iter_child_nodes(one)), list(ast.iter_child_nodes(other))
    plain = [[value for field, value in ast.iter_fields(node)
              if not isinstance(value, ast.AST | list)] for node in (one, other)]
    inner = [pair for pair in zip(mine, theirs, strict=False) if not _same(*pair)]
    if type(one) is not type(other) or len(mine) != len(theirs) or plain[0] != plain[1] or \
            (isinstance(one, ast.BinOp | ast.Compare) and len(inner) > 1) or \
            (isinstance(one, ast.Call) and isinstance(other, ast.Call)
             and last_name(one.func) != last_name(other.func)) or \
            (isinstance(one, ast.Compare) and any(isinstance(a, ast.cmpop) for a, _ in inner)) or \
            (isinstance(one, ast.BinOp) and any(isinstance(a, ast.operator) for a, _ in inner)):
        yield one, other, around
        return
    for pair in inner:
        yield from _differing(*pair, (*around, one))


def _common(one: ast.Call, other: ast.Call) -> list[tuple[ast.AST, ast.AST]]:
    """The arguments in which two calls differ although both have them, where one has more."""
    if len(_arguments(one)) == len(_arguments(other)):
        return []
    named = {word.arg: word for word in other.keywords}
    pairs = [*zip(one.args, other.args, strict=False),
             *((word, named[word.arg]) for word in one.keywords if word.arg in named)]
    return [pair for pair in pairs if not _same(*pair)]
