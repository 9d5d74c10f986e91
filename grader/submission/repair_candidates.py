"""Statements with one expression changed, in the order in which a repair is likely.

Each candidate undoes a typical mistake: a wrong axis or broadcast, swapped operands or arguments,
one name in place of another, a wrong comparison or operator, a missing mask, stride or update of a
loop. None needs the solution.
"""

from __future__ import annotations

import ast
import copy
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import combinations, takewhile

from grader.submission import syntax
from grader.submission.dataflow import is_kernel
from grader.submission.statement_diff import Edit

_Statement = (ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Expr | ast.Return | ast.For
              | ast.While | ast.If)  # of the last three, the head
_Loop = ast.For | ast.While
_Changes = Callable[[ast.expr, "_Scope"], Iterator[ast.expr]]

_REDUCTIONS = frozenset(("sum", "max", "min", "argmax", "argmin", "reduce", "cumsum", "cumprod",
                         "associative_scan", "flip", "sort"))
_AXES = frozenset(("program_id", "num_programs", "size", "stride"))
_OTHER_FUNCTION = {"max": "min", "min": "max", "maximum": "minimum", "minimum": "maximum",
                   "exp": "exp2", "exp2": "exp", "log": "log2", "log2": "log", "rsqrt": "sqrt",
                   "sqrt": "rsqrt", "float16": "float32", "bfloat16": "float32",
                   "zeros_like": "empty_like", "empty_like": "zeros_like", "empty": "zeros",
                   "new_empty": "new_zeros", "argmax": "argmin", "argmin": "argmax"}
_ALLOCATIONS = frozenset(("empty", "new_empty", "zeros", "new_zeros"))
_FACTORS = {"size", "stride", "block"}  # kinds of names
_BEGINS = ("0.0", "-float('inf')")  # neutral for a sum and for a maximum
_OTHER_COMPARISON: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE, ast.Gt), ast.LtE: (ast.Lt, ast.Gt, ast.GtE),
    ast.Gt: (ast.GtE, ast.LtE, ast.Lt), ast.GtE: (ast.Gt, ast.Lt, ast.LtE),
    ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,)}
_OTHER_OPERATOR: dict[type[ast.operator], tuple[type[ast.operator], ...]] = {
    ast.Add: (ast.Sub, ast.Mult), ast.Sub: (ast.Add,), ast.Mult: (ast.Div, ast.Add),
    ast.Div: (ast.Mult,)}
_OTHER_DIVISION: dict[type[ast.operator], type[ast.operator]] = {
    ast.FloorDiv: ast.Mod, ast.Mod: ast.FloorDiv}
_OTHER_CONDITION: dict[type[ast.operator], type[ast.operator]] = {
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd}
_MASK_POSITION = {"load": 1, "store": 2}
_ORDERED = (ast.Sub, ast.Div, ast.FloorDiv, ast.Mod)


def candidates(tree: ast.Module, suspects: Sequence[Iterable[int]],
               of_shapes: bool = False) -> Iterator[Edit]:
    """The statements of some lines, each with one expression changed; the likeliest first.

    Args:
        suspects: groups of lines, the most suspicious first.
        of_shapes: only changes that give a block another shape.
    """
    groups = {line: group for group, lines in reversed(list(enumerate(suspects)))
              for line in lines}
    statements: defaultdict[int, list[tuple[_Statement, _Scope]]] = defaultdict(list)
    for function in syntax.functions(tree):
        scope = _Scope(function)
        for node in ast.walk(function):
            if isinstance(node, _Statement) and (
                    own := [groups[line] for line in _head_lines(node) if line in groups]):
                statements[min(own)].append((node, scope))
    kinds = _OF_SHAPES if of_shapes else _UNLIKELY
    steps = [(unlikely + group * _GROUP, group, changes)
             for group in statements for changes, unlikely in kinds.items()]
    updates = [edit for group, inside in statements.items() if group < _MOST_GROUPS
               for statement, scope in inside for edit in _updates(statement, scope)]
    yield from () if of_shapes else (edit for edit in _misplaced(tree) if edit.line in groups)
    yield from updates[:0 if of_shapes else _MOST_UPDATES]
    for _, group, changes in sorted(steps, key=lambda step: step[:2]):
        for statement, scope in statements[group]:
            yield from _edits(statement, scope, changes)


class _Scope:
    """Names of a function.

    Attributes:
        every: parameters and locals.
        unused: those that the function never reads.
        indices: locals that follow from the program or from ``arange``, unused ones and scalars
            first.
        twins: name -> names that the function computes in the same way, and indices that follow
            from it.
        masks: of the function's accesses.
        bounds: comparisons of an index with a size.
        handed_on: parameters that the function returns, such as an accumulator.
        masked: ids of the values of names that are masks.
        blocks: those of the indices that are blocks.
        compiled: whether Triton compiles the function.
        programs: how often the function asks for the program's number.
        uncounted: sizes of new tensors that no number of programs depends on.
        inner: ids of sums and differences to which the same expression adds more.
    """

    def __init__(self, function: ast.FunctionDef):
        nodes = list(ast.walk(function))
        named = [node for node in nodes if isinstance(node, ast.Name)]
        parameters = syntax.parameter_names(function)
        read = {node.id for node in named if isinstance(node.ctx, ast.Load)}
        self.every = list(dict.fromkeys(
            [*parameters, *(node.id for node in named if isinstance(node.ctx, ast.Store))]))
        self.unused = [name for name in self.every if name not in read and name != "_"]
        self.inner = {id(node.left) for node in nodes if isinstance(node, ast.BinOp)
                      and isinstance(node.op, ast.Add | ast.Sub)}
        masks = [mask for node in nodes if isinstance(node, ast.Call) and (mask := _mask_of(node))]
        self.masks = list({ast.unparse(mask): mask for mask in masks}.values())
        self.bounds = list({ast.unparse(node): node for node in nodes
                            if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Lt)
                            }.values())
        named_masks = {mask.id for mask in masks if isinstance(mask, ast.Name)}
        self.masked = {id(value) for name, value in _values(nodes) if name in named_masks}
        self.handed_on = set(parameters) & syntax.names(
            node for node in nodes if isinstance(node, ast.Return))
        self.twins: defaultdict[str, list[str]] = defaultdict(list)
        values = list(_values(nodes))
        shapes: defaultdict[tuple[object, ...], list[str]] = defaultdict(list)
        for name, value in values:
            if not isinstance(value, ast.Name | ast.Constant):
                shapes[_shape(value)].append(name)
        for alike in shapes.values():
            for name in alike:
                self.twins[name] += [other for other in alike if other != name]
        self.blocks = set[str]()
        self.indices = self._indices(values)
        broadcast = {node.value.id: "" for node in nodes if isinstance(node, ast.Subscript)
                     and isinstance(node.value, ast.Name) and isinstance(node.slice, ast.Tuple)}
        self.indices += [name for name in broadcast
                         if name in parameters and name not in self.indices]
        self.blocks |= {*broadcast}
        for name, value in values:
            if name in self.indices:  # such as `start + lanes` and `lanes`
                for other in syntax.names([value]).intersection(self.indices) - {name}:
                    if (name in self.blocks) == (other in self.blocks):
                        self.twins[name].append(other)
                        self.twins[other].append(name)
        sizes = [size.id for node in nodes if isinstance(node, ast.Call)
                 and syntax.last_name(node.func) in _ALLOCATIONS for argument in node.args
                 if isinstance(argument, ast.Tuple) for size in argument.elts
                 if isinstance(size, ast.Name)]
        counted = syntax.names(node for node in nodes if isinstance(node, ast.Assign | ast.Expr)
                               and any(isinstance(one, ast.Call) and
                                       syntax.last_name(one.func) == "cdiv"
                                       for one in ast.walk(node)))
        self.uncounted = [name for name in dict.fromkeys(sizes) if name not in counted]
        self._values = values
        self._first: dict[str, int] = {}  # local -> line of its first value
        for node in named:
            if isinstance(node.ctx, ast.Store):
                self._first[node.id] = min(node.lineno, self._first.get(node.id, node.lineno))
        self.compiled = is_kernel(function)
        self.programs = sum(isinstance(node, ast.Call) and
                            syntax.last_name(node.func) == "program_id" for node in nodes)

    def kind(self, name: str) -> str:
        """What a name is for, as far as its spelling and its value show."""
        kind = "index" if name in self.indices else _kind(name)
        value = kind == "size" and self.compiled and name in self._first and name.islower()
        return "" if value else kind

    def defines(self, names: Iterable[str], statement: ast.stmt) -> bool:
        """Whether all of these names have values where a statement begins, parameters too."""
        return all(self._first.get(name, 0) < statement.lineno for name in names)

    def before(self, loop: ast.stmt) -> dict[str, ast.expr]:
        """The last values that names are given above a loop."""
        above = {name: value for name, value in self._values if value.lineno < loop.lineno}
        return {name: ast.Name(name, ast.Load()) for name in self.handed_on} | above

    def _indices(self, values: Sequence[tuple[str, ast.expr]]) -> list[str]:
        indices, blocks = list[str](), self.blocks
        for name, value in values:
            called = {syntax.last_name(node.func) for node in ast.walk(value)
                      if isinstance(node, ast.Call)}
            used = syntax.names([value])
            if not called & {"program_id", "arange", "range"} and used.isdisjoint(indices):
                continue
            if called & {"load", "dot"} or any(
                    isinstance(node, ast.Compare) for node in ast.walk(value)):
                continue
            indices.append(name)
            if "arange" in called or blocks & used:
                blocks.add(name)
        return sorted(dict.fromkeys(name for name in indices if _kind(name) != "pointer"),
                      key=lambda name: (name not in self.unused, name in blocks))


def _values(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, ast.expr]]:
    """Names and the expressions that they are given; of a loop, what it runs over."""
    for node in nodes:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                yield name, value
            case ast.For(target=ast.Name(id=name), iter=value):
                yield name, value
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=value):
                own = value.elts if isinstance(value, ast.Tuple) and \
                    len(value.elts) == len(targets) else [value] * len(targets)
                yield from ((target.id, one) for target, one in zip(targets, own, strict=True)
                            if isinstance(target, ast.Name))


def _shape(value: ast.expr) -> tuple[object, ...]:
    """The operations of an expression, without its names and numbers."""
    return tuple(syntax.last_name(node.func) if isinstance(node, ast.Call) else type(node)
                 for node in ast.walk(value) if not isinstance(node, ast.expr_context))


def _head_lines(statement: _Statement) -> range:
    body = getattr(statement, "body", None)
    return range(statement.lineno, max(statement.lineno + 1, body[0].lineno)) if body else \
        syntax.lines_of(statement)


def _head(statement: _Statement) -> list[ast.AST]:
    """The nodes of a statement, without those of a loop's or condition's body."""
    if isinstance(statement, ast.For):
        return list(ast.walk(statement.iter))
    return list(ast.walk(statement.test if isinstance(statement, ast.While | ast.If)
                         else statement))


def _edits(statement: _Statement, scope: _Scope, changes: _Changes) -> Iterator[Edit]:
    """One edit for each change of an expression of the statement."""
    for at, node in enumerate(_head(statement)):
        if not isinstance(node, ast.expr) or isinstance(getattr(node, "ctx", None), ast.Store):
            continue
        for other in changes(node, scope):
            if not scope.defines(syntax.names([other]) - syntax.names([node]), statement):
                continue
            changed = copy.deepcopy(statement)
            _Replace(_head(changed)[at], other).visit(changed)
            yield Edit(statement, ast.fix_missing_locations(changed), statement.lineno, 0)


def _updates(loop: _Statement, scope: _Scope) -> Iterator[Edit]:
    """What a loop has to keep or to move on at the end of an iteration, and does not."""
    if not isinstance(loop, _Loop):
        return
    inside = [node for statement in loop.body for node in ast.walk(statement)]
    stored = {node.id for node in inside if isinstance(node, ast.Name)
              and isinstance(node.ctx, ast.Store)}
    read = {node.id for node in inside if isinstance(node, ast.Name)} - stored
    own = list(_values(inside))
    behind = loop.body[-1]

    def added(code: str) -> Edit:
        (statement,) = ast.parse(code).body
        return Edit(None, statement, syntax.last_line(behind), 0,
                    (id(loop), "body", len(loop.body)))

    for name, value in scope.before(loop).items():
        if isinstance(value, ast.Call) and syntax.last_name(value.func) == "arange" and \
                name in read and isinstance(loop, ast.For) and \
                not syntax.names([loop.target]) & read:
            yield added(f"{name} += {ast.unparse(value.args[-1])}")
        if not _is_begin(value) and name not in scope.handed_on:
            continue
        if name in read:
            following = [other for other, value in own if name in syntax.names([value])]
            for other in sorted(following, key=lambda other: -_common(name, other)):
                yield added(f"{name} = {other}")
        for statement in loop.body:
            match statement:
                case ast.Assign(targets=[ast.Name(id=target)], value=new) if \
                        target == name and name not in syntax.names([new]):
                    yield _edit(statement, ast.AugAssign(
                        ast.Name(name, ast.Store()), ast.Add(), new))


def _is_begin(value: ast.expr) -> bool:
    """Whether a sum, a maximum or another value that a loop updates can begin so."""
    return isinstance(value, ast.Constant | ast.UnaryOp) or (
        isinstance(value, ast.Call) and syntax.last_name(value.func) in ("zeros", "full"))


def _common(one: str, other: str) -> int:
    """The length of the longest word that two names share."""
    words = {*one.split("_")} & {*other.split("_")}
    return max(map(len, words), default=0)


class _Replace(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.expr):
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        return self.new if node is self.old else self.generic_visit(node)


def _axes(node: ast.expr, scope: _Scope) -> Iterator[ast.expr]:
    """Reductions along another axis, and another axis of the grid or of a tensor."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return
    function = syntax.last_name(node.func)
    most = 2 if function in _REDUCTIONS else 3 if function in _AXES else 0
    if function in ("program_id", "num_programs"):
        most = min(most, scope.programs)
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


def _misplaced(tree: ast.Module) -> Iterator[Edit]:
    """Launches with two arguments in each other's place, as the names of parameters tell.

    The axes of a grid of two as well, which have no names.
    """
    parameters = {function.name: syntax.parameter_names(function)
                  for function in syntax.functions(tree) if is_kernel(function)}
    for statement in ast.walk(tree):
        match statement:
            case ast.Expr(value=ast.Call(func=ast.Subscript(value=ast.Name(id=kernel))) as call):
                passed = takewhile(lambda one: not isinstance(one, ast.Starred), call.args)
                named = zip(passed, parameters.get(kernel, ()), strict=False)
                for (at, (one, first)), (to, (other, last)) in combinations(enumerate(named), 2):
                    if _is_for(one, last, first) and _is_for(other, first, last):
                        args = [*call.args]
                        args[at], args[to] = args[to], args[at]
                        yield _edit(statement, ast.Expr(ast.Call(call.func, args, call.keywords)))
            case ast.Assign(targets=[ast.Name(id="grid")], value=ast.Tuple(elts=[one, other])):
                yield _edit(statement, ast.Assign(
                    statement.targets, ast.Tuple([other, one], ast.Load())))


def _edit(statement: ast.stmt, changed: ast.stmt) -> Edit:
    """The edit that puts a new statement in the place of another."""
    return Edit(statement, ast.fix_missing_locations(ast.copy_location(changed, statement)),
                statement.lineno, 0)


def _is_for(argument: ast.expr, parameter: str, other: str) -> bool:
    """Whether an argument is called as one parameter, or begins as it, and not as the other."""
    name = argument.id.lower() if isinstance(argument, ast.Name) else ""
    right, wrong = (one.removesuffix("_ptr").lower() for one in (parameter, other))
    return name.startswith(right) and not name.startswith(wrong)


def _launch_arguments(node: ast.expr, scope: _Scope) -> Iterator[ast.expr]:
    """Neighboring arguments of a launch in each other's place."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript):
        yield from _arguments(node, scope)


def _quotients(node: ast.expr, scope: _Scope) -> Iterator[ast.expr]:
    """A launch that passes a size instead of how often it fits in another one."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript):
        sizes = [one for one in node.args if isinstance(one, ast.Name)
                 and scope.kind(one.id) == "size"]
        for one in sizes:
            yield from (_with(node, one, ast.BinOp(ast.Name(name, ast.Load()), ast.FloorDiv(), one))
                        for name in scope.every
                        if scope.kind(name) == "size" and name != one.id)


def _arguments(node: ast.expr, _: _Scope) -> Iterator[ast.expr]:
    """Neighboring arguments of ``where``, ``dot``, an allocation and the like swapped."""
    if not isinstance(node, ast.Call):
        return
    for at, (one, other) in enumerate(zip(node.args, node.args[1:], strict=False)):
        if ast.dump(one) != ast.dump(other) and (
                _alike(one, other) or (at and syntax.last_name(node.func) == "store")):
            yield ast.Call(node.func, [*node.args[:at], other, one, *node.args[at + 2:]],
                           node.keywords)


def _alike(one: ast.expr, other: ast.expr) -> bool:
    """Whether two arguments can be mistaken for each other."""
    written = [ast.unparse(node) for node in (one, other)]
    return type(one) is type(other) and written[0].isupper() == written[1].isupper() and \
        ("ptr" in written[0]) == ("ptr" in written[1])


def _swapped_strides(node: ast.expr, scope: _Scope) -> Iterator[ast.expr]:
    """Two strides, sizes or blocks in each other's place in an expression."""
    return _swaps(node, scope, ("stride", "size", "block"))


def _swapped_names(node: ast.expr, scope: _Scope) -> Iterator[ast.expr]:
    """Two other names in each other's place in an expression."""
    return _swaps(node, scope, ("",))


def _swaps(node: ast.expr, scope: _Scope, kinds: Collection[str]) -> Iterator[ast.expr]:
    if not isinstance(node, ast.BinOp | ast.Compare | ast.Tuple):
        return
    counts = Counter(one.id for one in ast.walk(node) if isinstance(one, ast.Name)
                     and one.id in scope.every)
    used = [name for name, count in counts.items() if count == 1]
    for one, other in combinations(used, 2):
        if scope.kind(one) == scope.kind(other) and scope.kind(one) in kinds:
            changed = copy.deepcopy(node)
            for name in ast.walk(changed):
                if isinstance(name, ast.Name) and name.id in (one, other):
                    name.id = other if name.id == one else one
            yield changed


def _unused_names(node: ast.expr, scope: _Scope) -> Iterator[ast.expr]:
    """A name that the function does not use, of the same kind or a factor for a factor."""
    if isinstance(node, ast.Name) and node.id in scope.every:
        for name in scope.unused:
            if scope.kind(name) == scope.kind(node.id) or \
                    {scope.kind(name), scope.kind(node.id)} <= _FACTORS:
                yield ast.Name(name, ast.Load())


def _unused_terms(node: ast.expr, scope: _Scope) -> Iterator[ast.expr]:
    """A sum with a stride or an index that the function does not use, in a factor or a term."""
    if isinstance(node, ast.Name) and node.id in scope.indices:
        yield from (ast.BinOp(ast.Name(name, ast.Load()), ast.Add(), node)
                    for name in scope.unused if name in scope.indices)
    if _is_sum(node, scope):
        for name in scope.unused:
            other = ast.Name(name, ast.Load())
            if scope.kind(name) in ("stride", "size"):
                for part in _terms(node):
                    if not _is_pointer(part):
                        yield _with(node, part, ast.BinOp(part, ast.Mult(), other))
                for index in scope.indices[:_MOST_INDICES]:
                    yield ast.BinOp(node, ast.Add(), ast.BinOp(
                        ast.Name(index, ast.Load()), ast.Mult(), other))
            elif name in scope.indices:
                for factor in scope.every:
                    if scope.kind(factor) in ("stride", "size"):
                        yield ast.BinOp(node, ast.Add(), ast.BinOp(
                            other, ast.Mult(), ast.Name(factor, ast.Load())))


def _block_factors(node: ast.expr, scope: _Scope) -> Iterator[ast.expr]:
    """`pid * BLOCK + tl.arange(0, BLOCK)` for `pid + tl.arange(0, BLOCK)`."""
    match node:
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            for call in ast.walk(right):
                if isinstance(call, ast.Call) and syntax.last_name(call.func) == "arange" and \
                        isinstance(size := call.args[-1], ast.Name) and \
                        size.id not in syntax.names([left]):
                    yield ast.BinOp(ast.BinOp(left, ast.Mult(), size), ast.Add(), right)
        case ast.Call(args=[*_, ast.Name() as size]) if syntax.last_name(node.func) == "arange":
            for name in scope.unused:
                if name in scope.indices:
                    index = ast.Name(name, ast.Load())
                    yield ast.BinOp(index, ast.Add(), node)
                    yield ast.BinOp(ast.BinOp(index, ast.Mult(), size), ast.Add(), node)


def _moved_factors(node: ast.expr, scope: _Scope) -> Iterator[ast.expr]:
    """A sum in which a factor of one term belongs to another one."""
    if not _is_sum(node, scope):
        return
    terms = list(_terms(node))
    for one in terms:
        if not isinstance(one, ast.BinOp) or not isinstance(one.op, ast.Mult):
            continue
        for other in terms:
            if other is not one and not _is_pointer(other):
                moved = _with(node, one, one.left)
                (at,) = (number for number, term in enumerate(terms) if term is other)
                target = list(_terms(moved))[at]
                yield _with(moved, target, ast.BinOp(target, ast.Mult(), one.right))


def _own_strides(node: ast.expr, scope: _Scope) -> Iterator[ast.expr]:
    """An address with the unused strides, in order, for the factors of its last terms."""
    strides = [name for name in scope.unused if scope.kind(name) == "stride"]
    terms = [part for part in _terms(node) if not _is_pointer(part)] if _is_sum(node, scope) else []
    if not 1 < len(strides) <= len(terms):
        return
    changed = node
    for at, name in enumerate(strides, start=-len(strides)):
        part = [one for one in _terms(changed) if not _is_pointer(one)][at]
        index = part.left if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mult) else part
        changed = _with(changed, part, ast.BinOp(index, ast.Mult(), ast.Name(name, ast.Load())))
    yield changed


def _size_factors(node: ast.expr, scope: _Scope) -> Iterator[ast.expr]:
    """An address with a size as a further factor of one of its terms."""
    if _is_sum(node, scope) and any(map(_is_pointer, _terms(node))):
        for part in _terms(node):
            if not _is_pointer(part):
                for name in scope.every:
                    if scope.kind(name) == "size" and name not in syntax.names([part]):
                        yield _with(node, part, ast.BinOp(
                            part, ast.Mult(), ast.Name(name, ast.Load())))


def _counts(node: ast.expr, scope: _Scope) -> Iterator[ast.expr]:
    """The end of a range with a step, or a number of programs, with a further factor."""
    match node:
        case ast.Call(args=[_, count, _]) if syntax.last_name(node.func) == "range":
            own = syntax.names([count])
            factors = [name for name in scope.every if scope.kind(name) == "size" and
                       (name in scope.unused or any(_similar(name, one) for one in own))]
        case ast.Call(args=[count, _]) if syntax.last_name(node.func) == "cdiv" and \
                not scope.compiled:
            factors = scope.uncounted
        case _:
            return
    yield from (_with(node, count, ast.BinOp(count, ast.Mult(), ast.Name(name, ast.Load())))
                for name in factors if name not in syntax.names([count]))


def _is_sum(node: ast.expr, scope: _Scope) -> bool:
    """Whether this is a whole sum, and no part of one."""
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and \
        id(node) not in scope.inner


def _terms(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        yield from _terms(node.left)
        yield from _terms(node.right)
    else:
        yield node


def _is_pointer(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and _kind(node.id) == "pointer"


def _masks(node: ast.expr, scope: _Scope) -> Iterator[ast.expr]:
    """A load or store without a mask, with that of another access."""
    if isinstance(node, ast.Call) and syntax.last_name(node.func) in _MASK_POSITION and \
            len(node.args) <= _MASK_POSITION[syntax.last_name(node.func)] and \
            not any(word.arg in ("mask", None) for word in node.keywords):
        zero = [] if syntax.last_name(node.func) == "store" else [
            ast.keyword("other", ast.Constant(0))]
        index = syntax.names(node.args[:1])
        index |= {twin for name in index for twin in scope.twins.get(name, ())}
        bare = [changed for bound in scope.bounds if syntax.names([bound.left]) & index
                and isinstance(bound.left, ast.Subscript)
                for changed in [_with(bound, bound.left, bound.left.value)]]
        for mask in [*scope.masks, *bare]:
            yield ast.Call(node.func, node.args, [*node.keywords, ast.keyword("mask", mask), *zero])


def _mask_of(call: ast.Call) -> ast.expr | None:
    """The mask of a load or store."""
    position = _MASK_POSITION.get(syntax.last_name(call.func))
    if position is None:
        return None
    return next((word.value for word in call.keywords if word.arg == "mask"),
                call.args[position] if len(call.args) > position else None)


def _conditions(node: ast.expr, scope: _Scope) -> Iterator[ast.expr]:
    """A mask with the bound of a further index of the address."""
    mask = _mask_of(node) if isinstance(node, ast.Call) else None
    if isinstance(node, ast.Call) and mask is not None and not isinstance(mask, ast.Name):
        free = syntax.names(node.args[:1]) - syntax.names([mask])
        yield from (_with(node, mask, ast.BinOp(mask, ast.BitAnd(), bound))
                    for bound in scope.bounds if syntax.names([bound.left]) & free)
    if isinstance(node, ast.Compare) and id(node) in scope.masked:
        yield from (ast.BinOp(node, ast.BitAnd(), bound) for bound in scope.bounds
                    if syntax.names([bound.left]).isdisjoint(syntax.names([node])))


def _begins(node: ast.expr, _: _Scope) -> Iterator[ast.expr]:
    """Another neutral value: of masked elements, or of a sum or maximum before its loop."""
    if isinstance(node, ast.Call) and syntax.last_name(node.func) == "load":
        if _mask_of(node) is not None and len(node.args) < 3 and \
                all(word.arg not in ("other", None) for word in node.keywords):
            for other in _BEGINS:
                yield ast.Call(node.func, node.args, [*node.keywords, ast.keyword(
                    "other", ast.parse(other, mode="eval").body)])
        for word in node.keywords:
            if word.arg == "other" and isinstance(word.value, ast.Constant) and \
                    type(word.value.value) is int:
                yield from (_with(node, word.value, other) for other in _other_begins(word.value))
    elif isinstance(node, ast.UnaryOp) or (
            isinstance(node, ast.Constant) and type(node.value) is float):
        yield from _other_begins(node)


def _other_begins(value: ast.expr) -> Iterator[ast.expr]:
    written = "0.0" if isinstance(value, ast.Constant) and value.value == 0 else ast.unparse(value)
    if written in _BEGINS:
        yield from (ast.parse(one, mode="eval").body for one in _BEGINS if one != written)


def _twins(node: ast.expr, scope: _Scope) -> Iterator[ast.expr]:
    """A name that the function computes in the same way, such as that of another axis."""
    if isinstance(node, ast.Name):
        for name in scope.twins.get(node.id, ())[:_MOST_TWINS]:
            yield ast.Name(name, ast.Load())


def _numbers(node: ast.expr, scope: _Scope) -> Iterator[ast.expr]:
    """A factor, a quotient or an argument that is one too low or too high, and twice a term."""
    match node:
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            for name in (one for one in (left, right) if isinstance(one, ast.Name)):
                yield from (_with(node, name, ast.BinOp(name, op, ast.Constant(1)))
                            for op in (ast.Add(), ast.Sub()))
        case ast.BinOp(op=ast.FloorDiv()) if not scope.compiled:
            yield from (ast.BinOp(node, op, ast.Constant(1)) for op in (ast.Add(), ast.Sub()))
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right) if not scope.compiled:
            yield from (_with(node, name, ast.BinOp(ast.Constant(2), ast.Mult(), name))
                        for name in (left, right) if isinstance(name, ast.Name))
        case ast.BinOp(right=ast.Constant(value=int(number)) as old) | ast.Compare(
                comparators=[ast.Constant(value=int(number)) as old]):
            for value in (number - 1, number + 1):
                yield _with(node, old, ast.Constant(value))


def _similar_names(node: ast.expr, scope: _Scope) -> Iterator[ast.expr]:
    """A name that differs in one character, such as the stride of another dimension."""
    if isinstance(node, ast.Name) and node.id in scope.every:
        for name in scope.every:
            if _similar(name, node.id) and scope.kind(name) == scope.kind(node.id) != "pointer":
                yield ast.Name(name, ast.Load())


def _alike_names(node: ast.expr, scope: _Scope) -> Iterator[ast.expr]:
    """Another size, block or pointer."""
    if isinstance(node, ast.Name) and node.id in scope.every and \
            scope.kind(node.id) in ("size", "block", "pointer"):
        for name in scope.every:
            if scope.kind(name) == scope.kind(node.id) and name != node.id:
                yield ast.Name(name, ast.Load())


def _size_or_stride(node: ast.expr, scope: _Scope) -> Iterator[ast.expr]:
    """A size for a stride and the reverse, as a factor or divisor."""
    other = {"size": "stride", "stride": "size"}
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div):
        for factor in (node.left, node.right):
            if isinstance(factor, ast.Name) and factor.id in scope.every:
                yield from (_with(node, factor, ast.Name(name, ast.Load()))
                            for name in scope.every
                            if scope.kind(name) == other.get(scope.kind(factor.id)))


def _other_names(node: ast.expr, scope: _Scope) -> Iterator[ast.expr]:
    """Another name of any kind but pointers."""
    if isinstance(node, ast.Name) and node.id in scope.every and scope.kind(node.id) != "pointer":
        for name in scope.every:
            if scope.kind(name) not in ("pointer", scope.kind(node.id)):
                yield ast.Name(name, ast.Load())


def _similar(one: str, other: str) -> bool:
    """Whether two names differ in one character, as those of one tensor or dimension do."""
    if len(one) == 1 and not (one + other).isupper():
        return False  # such as `x` and `m`
    return len(one) == len(other) and sum(map(str.__ne__, one, other)) == 1


def _kind(name: str) -> str:
    """What a name is for, as far as its spelling shows."""
    lower = name.lower()
    if lower.endswith(("ptr", "ptrs", "desc")):
        return "pointer"
    if "stride" in lower or (len(lower) == 3 and lower[0] == "s"):
        return "stride"
    return "block" if name.isupper() and len(name) > 2 else "size" if len(name) < 3 or \
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
    if isinstance(node, ast.BinOp) and not any(map(_is_pointer, _terms(node))):
        for other in _OTHER_OPERATOR.get(type(node.op), ()):
            yield ast.BinOp(node.left, other(), node.right)


def _divisions(node: ast.expr, _: _Scope) -> Iterator[ast.expr]:
    """The remainder for a quotient and the reverse, and a quotient that is rounded otherwise."""
    if isinstance(node, ast.BinOp) and type(node.op) in _OTHER_DIVISION:
        yield ast.BinOp(node.left, _OTHER_DIVISION[type(node.op)](), node.right)
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
    match node:  # such as 1 / D for 1 / math.sqrt(D)
        case ast.BinOp(left=ast.Constant(), op=ast.Div(), right=ast.Name() as name):
            yield _with(node, name, ast.BinOp(name, ast.Pow(), ast.Constant(0.5)))
    if isinstance(node, ast.Name) and node.id in ("max", "min"):
        yield ast.Name(_OTHER_FUNCTION[node.id], ast.Load())


def _with(node: ast.expr, old: ast.expr, new: ast.expr) -> ast.expr:
    """A copy of an expression with one part replaced."""
    at = next(number for number, one in enumerate(ast.walk(node)) if one is old)
    changed = copy.deepcopy(node)
    _Replace(list(ast.walk(changed))[at], new).visit(changed)
    return changed


# How unlikely each kind of mistake is. A statement of the next group is less likely by ``_GROUP``.
_UNLIKELY: dict[_Changes, float] = {
    _own_strides: 0, _masks: 0, _unused_names: 0, _unused_terms: 0, _block_factors: 0,
    _counts: -1.5, _conditions: 0.5, _launch_arguments: 0, _axes: 0.5, _divisions: 0.5,
    _swapped_strides: 0.5,
    _operands: 1, _functions: 1, _begins: 1, _twins: 1, _similar_names: 1, _moved_factors: 1.2,
    _broadcasts: 1.5, _swapped_names: 1.5, _size_or_stride: 1.8, _comparisons: 1.8,
    _arguments: 2, _size_factors: 2.5, _operators: 2.5, _numbers: 2.8, _alike_names: 3, _parts: 3,
    _all_broadcasts: 4, _quotients: 4, _other_names: 6}
_OF_SHAPES: dict[_Changes, float] = {
    _axes: 0, _broadcasts: 0.5, _all_broadcasts: 0.5, _arguments: 1, _twins: 1.5,
    _similar_names: 1.5}
_GROUP = 1.5
_MOST_GROUPS = 2  # in which loops are looked at
_MOST_UPDATES = 6  # of loops, that are tried
_MOST_TWINS = 3  # of a name
_MOST_INDICES = 3  # that are tried with a stride
