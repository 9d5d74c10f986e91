"""Kernel source changed so that plain Python means in it what it means to Triton's compiler."""

import ast
import copy
import functools
import inspect
import itertools
import linecache
import math
import sys
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, FunctionType, GeneratorType
from typing import Any, cast

import numpy as np
import triton
import triton.language as tl
from triton.language.core import _unwrap_if_constexpr as plain
from triton.runtime import interpreter

from grader.engine.interpreter import (
    combinators,
    libdevice,
    numerics,
    promises,
    scopes,
    source_blocks,
    unsupported_syntax,
)
from grader.engine.interpreter.block_value import Handle
from grader.engine.interpreter.errors import KernelError, NotInAKernel
from grader.engine.interpreter.transaction import of_all_programs
from grader.engine.interpreter.unsupported_syntax import PREFIX, call
from grader.submission import syntax

TRITON = tuple(int(part) for part in triton.__version__.split(".")[:2])
_ABSENT = object()


@functools.cache
def rewritten(fn: Any) -> Callable[..., Any]:
    """The function that runs in place of a kernel's or helper's own."""
    node = copy.deepcopy(definition(fn.__code__))  # the parsed file is kept as it is
    arguments = node.args
    if arguments.vararg:
        _since((3, 8), "a `*` parameter", node)
    if arguments.kwonlyargs:
        _since((3, 9), "a parameter that is given by its name only", node)
    for argument in itertools.chain(arguments.posonlyargs, arguments.args, arguments.kwonlyargs):
        if argument.arg.startswith(PREFIX):
            raise NotInAKernel(f"a parameter of the name `{argument.arg}`", node.lineno)
        argument.annotation = None  # bound already; evaluating them again could only do harm
    node.decorator_list, node.returns = [], None
    defaults = fn.__defaults__ or ()
    arguments.defaults = [ast.Constant(None) for _ in defaults]
    outside, local = names_of(fn), assigned(node)
    refuser = unsupported_syntax.Refuser(outside, local)
    node.body = [refuser.visit(statement) for statement in node.body]
    blocks = source_blocks.mark(node, PREFIX + "passed")
    module = ast.fix_missing_locations(ast.Module([_Rewriter().visit(node)], []))
    code = compile(module, fn.__code__.co_filename, "exec", dont_inherit=True)
    # A copy: names that rewriting needs must not appear in the learner's module.
    visible = {name: _visible(value) for name, value in outside.items()}
    namespace = {**_BUILTINS, **visible, **_HELPERS, "__builtins__": _PYTHON,
                 PREFIX + "passed": functools.partial(_passed, blocks)}
    exec(code, namespace)
    function: FunctionType = namespace[fn.__name__]
    _check_scope(function.__code__, local, node.lineno)
    function.__defaults__, function.__kwdefaults__ = fn.__defaults__, fn.__kwdefaults__
    return function


def _check_scope(code: CodeType, local: set[str], line: int) -> None:
    """What was checked as a variable of the kernel must be one, and no name from outside of it.

    Raises:
        NotInAKernel: what would have made it a variable is left out, as no compiler takes it.
    """
    outside = {name for part in _parts(code) for name in part.co_names}
    for name in sorted((local - {*code.co_varnames, *code.co_cellvars}) & outside):
        raise NotInAKernel(f"`{name}` is used and never assigned in a way that Triton compiles",
                           line)


def _parts(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _parts(constant)


def _attribute(owner: Any, name: str, *default: Any) -> Any:
    """``getattr`` of what a kernel computes with; nothing else is opened by it."""
    if not isinstance(owner, tl.tensor | tl.dtype | tl.constexpr | tuple) or name.startswith("_"):
        raise NotInAKernel(f"`getattr` of `{name}`")
    return getattr(owner, name, *default)


def names_of(fn: Any) -> dict[str, Any]:
    """Returns the outer names of a function: globals and closure."""
    return {**fn.__globals__, **inspect.getclosurevars(fn).nonlocals}


def parameters(kernel: ast.FunctionDef) -> list[str]:
    """Names of parameters in order, without what ``*`` and ``**`` take."""
    arguments = kernel.args
    return [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]


def assigned(kernel: ast.FunctionDef) -> set[str]:
    """A kernel's own names: all its parameters, and what its body assigns to."""
    return {*syntax.parameter_names(kernel)} | {
        node.id for statement in kernel.body for node in ast.walk(statement)
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}


def definition(code: CodeType) -> ast.FunctionDef:
    wanted = code.co_firstlineno  # the first decorator's line
    text = "".join(linecache.getlines(code.co_filename))  # submissions exist nowhere else
    for node in ast.walk(_parsed(text)):
        if isinstance(node, ast.FunctionDef) and node.name == code.co_name:
            first = min([node.lineno, *(item.lineno for item in node.decorator_list)])
            if wanted in (first, node.lineno):
                return node
    raise NotInAKernel(f"the source of {code.co_name} was not found")


@functools.cache
def _parsed(text: str) -> ast.Module:
    return ast.parse(text)


def _visible(value: Any) -> Any:
    """What a kernel sees for a global: builtins that were imported by name are told what they
    mean now, as those that are reached through the module are."""
    for name, original in _ORIGINALS.items():
        if value is original:
            return REPLACED[name]
    if replaced := libdevice.by_name(value):
        return replaced
    if not isinstance(value, type) and tl.core.is_builtin(value):
        return with_semantics(value)
    return value


def with_semantics(function: Any) -> Any:
    """A builtin or method of Triton's, called in the semantics of the interpreter."""
    return lambda *args, **kwargs: function(
        *args, **{**kwargs, "_semantic": interpreter.interpreter_semantic})


class _Rewriter(ast.NodeTransformer):
    """Line numbers stay; every changed node lies where the original lay."""

    def __init__(self) -> None:
        self._regions = itertools.count()

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        self.generic_visit(node)
        if len(node.targets) > 1:
            raise NotInAKernel("simultaneous multiple assignment is not supported", node.lineno)
        target = node.targets[0]
        if isinstance(target, ast.Tuple) and any(isinstance(e, ast.Tuple) for e in target.elts):
            _since((3, 8), "unpacking a tuple in a tuple", node)
        several = isinstance(target, ast.Tuple)
        node.value = call("unpacked" if several else "assigned", node.value)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        if not isinstance(node.target, ast.Name):
            return self.generic_visit(node)
        old = ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target)
        value = ast.copy_location(ast.BinOp(old, node.op, node.value), node)
        return self.visit_Assign(ast.copy_location(ast.Assign([node.target], value), node))

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        self.generic_visit(node)
        constant = ast.unparse(node.annotation).rpartition(".")[2].strip("'") == "constexpr"
        if node.value is not None and not constant:
            node.value = call("assigned", node.value)
        return node

    def visit_If(self, node: ast.If) -> list[ast.stmt]:
        body, orelse = scopes.bound(node.body), scopes.bound(node.orelse)
        numbers = scopes.numbers(node.body), scopes.numbers(node.orelse)
        self.generic_visit(node)
        before: list[ast.stmt] = []
        if body or orelse:
            test, entered = self._region(node, {**body, **orelse}, node.test)
            before, node.test = [test, entered], _read(test.targets[0])
            if body or numbers[1]:
                node.body += _leave("merged", entered, body, tuple(orelse), numbers[1])
            if orelse or numbers[0]:
                node.orelse += _leave("merged", entered, orelse, tuple(body), numbers[0])
        node.test = call("condition", node.test, ast.Constant("if"))
        return [*before, node]

    def visit_While(self, node: ast.While) -> list[ast.stmt]:
        names = scopes.bound(node.body)
        self.generic_visit(node)
        node.test = call("condition", node.test, ast.Constant("while"))
        if not names:
            return [node]
        runtime, entered = self._region(node, names, ast.Constant("while"))
        node.body += _leave("carried", entered, names)
        return [runtime, entered, node]

    def visit_For(self, node: ast.For) -> list[ast.stmt]:
        names = scopes.bound(node.body)
        for name in scopes.bound([node.target]):
            names.pop(name, None)
        self.generic_visit(node)
        if not names:
            return [node]
        turns, entered = self._region(node, names, node.iter)
        node.iter = _read(turns.targets[0])
        node.body += _leave("carried", entered, names)
        return [turns, entered, node]

    def _region(self, node: ast.stmt, names: Iterable[str], given: ast.expr
                ) -> tuple[ast.Assign, ast.Assign]:
        """The condition of a branch or loop, and the types of its names before it."""
        number = next(self._regions)
        decides = ast.Name(f"{PREFIX}{number}_by", ast.Store())
        before = ast.Name(f"{PREFIX}{number}_before", ast.Store())
        types = call("entered", _read(decides), ast.Constant(cast(Any, tuple(names))))
        return (ast.copy_location(ast.Assign([decides], given), given),
                ast.copy_location(ast.Assign([before], types), node))

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        numbers = [scopes.number(side) for side in (node.body, node.orelse)]
        self.generic_visit(node)
        if numbers != [None, None]:
            chosen = call("chosen", node.test, _later(node.body), _later(node.orelse),
                           ast.Constant(cast(Any, tuple(numbers))))
            return ast.copy_location(chosen, node)
        node.test = call("condition", node.test, ast.Constant("if"))
        return node

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        self.generic_visit(node)
        message = node.msg or ast.copy_location(ast.Constant(""), node.test)
        return ast.copy_location(ast.Expr(call("asserted", node.test, message)), node)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.AST:
        _since((3, 8), "`:=`", node)
        return self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        method = "logical_and" if isinstance(node.op, ast.And) else "logical_or"
        return call("logical", ast.Constant(method), *(_later(value) for value in node.values))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        return call("negated", node.operand) if isinstance(node.op, ast.Not) else node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if len(node.ops) == 1:
            return node
        if TRITON < (3, 9):
            raise NotInAKernel(
                "simultaneous multiple comparison is not supported: write `a <= b` and `b < c` "
                "with parentheses, joined by `&`", node.lineno)
        return interpreter.ASTTransformer().visit_Compare(node)  # type: ignore[no-any-return]


def _since(version: tuple[int, int], construct: str, node: Any) -> None:
    """Refuse what an older compiler than this one of Triton's does."""
    if version > TRITON:
        raise NotInAKernel(f"Triton {triton.__version__} does not know {construct} in a kernel",
                           node.lineno)


def _read(name: Any) -> ast.Name:
    return ast.Name(name.id, ast.Load())


def _leave(helper: str, entered: ast.Assign, bound: dict[str, int], *facts: Any) -> list[ast.stmt]:
    """The end of a branch or turn: what was checked, and names that end with it."""
    gone = ast.Name(PREFIX + "gone", ast.Store())
    left = call(helper, _read(entered.targets[0]),
                 *map(ast.Constant, (tuple(bound.items()), *facts)))
    statements: list[ast.stmt] = [ast.Assign([gone], left)]
    for name in bound:
        ends = ast.Compare(ast.Constant(name), [ast.In()], [_read(gone)])
        statements.append(ast.If(ends, [ast.Delete([ast.Name(name, ast.Del())])], []))
    return [ast.copy_location(statement, entered) for statement in statements]


def _later(value: ast.expr) -> ast.expr:
    nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    return ast.copy_location(ast.Lambda(nothing, value), value)


# -- what the rewritten code calls --------------------------------------------------------------


def _passed(blocks: tuple[source_blocks.SourceBlock, ...], number: int) -> None:
    """A block of the source begins."""
    interpreter.interpreter_semantic.builder.memory.passed(blocks, number)


def _assigned(value: Any) -> Any:
    """An assigned number becomes a scalar of the kernel, as it does in compiled code."""
    return interpreter.interpreter_semantic.to_tensor(value, False)


def _unpacked(values: Any) -> Any:
    return tuple(map(_assigned, values)) if isinstance(values, tuple | tl.tuple) else values


def _chosen(condition: Any, body: Callable[[], Any], orelse: Callable[[], Any],
            numbers: tuple[Any, Any]) -> Any:
    """A ternary with a side that is a number.

    Raises:
        NotInAKernel: the sides have two types, and the condition is known only at run time.
    """
    taken = truth(condition)
    value = body() if taken else orelse()
    other = numbers[1] if taken else numbers[0]
    if isinstance(condition, tl.tensor) and other is not None:
        kinds = [scopes.kind(_assigned(side)) for side in (value, other)]
        if scopes.differ(*kinds):
            raise NotInAKernel(f"one side of a ternary is {scopes.word(kinds[0])} and the "
                               f"other {scopes.word(kinds[1])}; both need one type "
                               "where the condition is a runtime value")
    return value


def truth(value: Any, keyword: str = "if") -> bool:
    """The truth of a scalar.

    Raises:
        NotInAKernel: the value is a block.
        Diverged: it is true for some programs only.
        Spinning: a ``while`` waits for ever.
    """
    if isinstance(value, tl.condition):
        value = value.condition
    if not isinstance(value, tl.tensor):
        return bool(value)
    handle = value.handle
    if math.prod(handle.shape) != 1:
        raise NotInAKernel(
            f"`{keyword}` needs a scalar, and this condition is a block of shape "
            f"{list(handle.shape)}; tl.where chooses element by element, and a mask guards a load "
            "or store")
    result = bool(of_all_programs(handle.data.reshape(-1) != 0))
    if result and keyword == "while":
        builder = interpreter.interpreter_semantic.builder
        builder.memory.attempt.another_turn(sys._getframe(1))
    return result


def _asserted(condition: Any, message: Any) -> None:
    """``assert`` is ``tl.device_assert`` to the compiler."""
    tl.core.device_assert(condition, message, _semantic=interpreter.interpreter_semantic)


def _logical(method: str, *values: Callable[[], Any]) -> Any:
    """``and`` and ``or``: element by element on tensors, short-circuiting on plain values."""
    result: Any = None
    started = False
    for value in values:
        item = value()
        if not isinstance(item, tl.tensor):
            if bool(item) is (method == "logical_or"):
                return item
            if not started:
                result = item
            continue
        result = getattr(result, method)(item) if started else item
        started = True
    return result


def _negated(value: Any) -> Any:
    if not isinstance(value, tl.tensor):
        return not value
    return value.logical_and(True).__not__() if value.dtype != tl.int1 else value.__not__()


def _iterated(values: Any, line: int) -> Any:
    """Evaluates the iterable of a ``for``."""
    if not isinstance(values, range | GeneratorType):
        raise NotInAKernel("Triton does not compile a loop over anything but a range", line)
    return values


def program_range(*bounds: Any, **options: Any) -> Iterator[Any]:
    """``tl.range``."""
    loop = _loop("range", bounds, options)
    return _turns(loop.start, loop.end, loop.step)


def _python_range(first: Any, *others: Any, **_: Any) -> Iterator[Any]:
    """``range``: the compiler takes up to three arguments by position and ignores all others."""
    start, end, step = (first, *others, 1)[:3] if others else (0, first, 1)
    return _turns(start, end, step)


def _turns(start: Any, end: Any, step: Any) -> Iterator[Any]:
    """The loop variable of each turn, a scalar of the type that the compiler promotes to.

    The compiler swaps the bounds where a constant step is negative. All other loops count upwards,
    and bounds are compared as signed integers of the promoted type.

    Raises:
        NotInAKernel: a bound or the step is not a scalar integer, or a constant step is zero.
        KernelError: a step that is not a constant is zero or negative.
    """
    semantic = interpreter.interpreter_semantic
    constant = not isinstance(step, tl.tensor)
    bounds = [_integer(semantic.to_tensor(value)) for value in (start, end, step)]
    first, second, third = (bound.dtype for bound in bounds)
    kind = semantic.integer_promote_impl(semantic.integer_promote_impl(first, second), third)
    unsigned = numerics.numpy_dtype(kind)
    signed = np.dtype(f"i{unsigned.itemsize}")
    low, high, stride = (bound.handle.data.reshape(-1).astype(signed).astype(np.int64)
                         for bound in bounds)
    if constant and not stride.all():
        raise NotInAKernel("a loop's step must not be zero")
    if not constant and (stride <= 0).any():
        raise KernelError(f"a loop has the step {int(stride.min())}, which is not a constant; "
                          "Triton counts downwards only by a tl.constexpr")
    counts = np.maximum(0, -((low - high) // stride))
    for turn in semantic.builder.memory.turns(counts):
        yield tl.tensor(Handle((low + turn * stride).astype(signed).view(unsigned), kind), kind)


def _integer(bound: Any) -> Any:
    if bound.handle.shape or not bound.dtype.is_int():
        raise NotInAKernel(f"a loop's bounds and step must be scalar integers, not {bound.type}")
    return bound


def static_range(*bounds: Any, **options: Any) -> range:
    """``tl.static_range``: unrolled by the compiler, so the loop variable is a plain number."""
    if any(isinstance(bound, tl.tensor) for bound in (*bounds, *options.values())):
        raise NotInAKernel("tl.static_range needs bounds that are tl.constexpr")
    loop = _loop("static_range", bounds, options)
    return range(loop.start.value, loop.end.value, loop.step.value)


def _loop(kind: str, bounds: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """A range of Triton's own class, which decides which bound is which.

    Every number in a kernel's text is a constexpr to the compiler, and so is ``None``.
    """
    def constant(value: Any) -> Any:
        return value if isinstance(value, tl.tensor | tl.constexpr) else tl.constexpr(value)

    return _ORIGINALS[kind](*map(constant, bounds), **{k: constant(v) for k, v in options.items()})


def _extreme(on_numbers: Any, *values: Any) -> Any:
    """Python's ``min`` or ``max``."""
    if not any(isinstance(value, tl.tensor) for value in values):
        return on_numbers(*values)
    name = on_numbers.__name__
    if len(values) == 1:
        raise NotInAKernel(f"Python's `{name}` of one block; `tl.{name}(x, axis=0)` is the "
                           f"{name}imum of a block")
    return functools.reduce(getattr(tl, f"{name}imum"), values)


def device_print(*args: Any, **options: Any) -> None:
    """``tl.device_print``, which is also what ``print`` means to the compiler.

    Raises:
        NotInAKernel: the first argument is not a string, or another one is.
    """
    prefix, *values = args or (options.get("prefix"),)
    strings = [isinstance(plain(value), str) for value in (prefix, *values)]
    if strings != [True] + [False] * len(values) or not options.keys() <= {"prefix", "hex"}:
        raise NotInAKernel("a kernel prints with `tl.device_print`, which takes one string that "
                           'names the values, then the values: `tl.device_print("x", x)`')
    _ORIGINALS["device_print"](*args, **options, _semantic=interpreter.interpreter_semantic)


_HELPERS: dict[str, Any] = {
    **{PREFIX + name: helper for name, helper in {
        "assigned": _assigned, "unpacked": _unpacked, "condition": truth, "chosen": _chosen,
        "entered": scopes.entered, "merged": scopes.merged, "carried": scopes.carried,
        "asserted": _asserted, "logical": _logical, "negated": _negated, "iterated": _iterated,
        "refused": unsupported_syntax.refused, "constant": unsupported_syntax.constant,
    }.items()},
    "_InterpreterComparison": getattr(interpreter, "_InterpreterComparison", None),
}
# All of Python that a kernel can reach, whatever it is called there.
_PYTHON: dict[str, Any] = {
    "abs": abs, "bool": bool, "float": float, "int": int, "isinstance": isinstance, "len": len,
    "list": list, "tuple": tuple, "AssertionError": AssertionError,
    "getattr": _attribute,
    "hasattr": lambda owner, name: _attribute(owner, name, _ABSENT) is not _ABSENT,
}
_BUILTINS: dict[str, Any] = {
    "range": _python_range, "print": device_print,
    "min": functools.partial(_extreme, min), "max": functools.partial(_extreme, max)}
def tensor_bool(tensor: Any) -> bool:
    """``bool(tensor)``. Triton's own code asks it in the sense of "is there one"."""
    asking = sys._getframe(1).f_globals.get("__name__", "")
    return True if asking.startswith("triton.") else truth(tensor)


def tensor_index(tensor: Any) -> int:
    """``int(tensor)``, where Python asks for an index.

    Raises:
        NotInAKernel: a kernel asks, by ``int(x)`` or ``math.sqrt(x)``: its values are not known
            when it is compiled.
    """
    asking = sys._getframe(1).f_globals.get("__name__", "")
    if not asking.startswith(("triton.", "grader.engine.")):
        raise NotInAKernel("Python's own functions need constants, and this is a value that is "
                           "known only when the kernel runs")
    if math.prod(tensor.handle.shape) != 1:
        raise NotInAKernel("an index must be a scalar")
    return int(of_all_programs(tensor.handle.data.reshape(-1)))


def static_assert(condition: Any, message: Any = "") -> None:
    """``tl.static_assert``: checked when the kernel is compiled."""
    if isinstance(condition, tl.tensor):
        raise NotInAKernel("tl.static_assert needs a condition that is a tl.constexpr")
    if not plain(condition):
        reason = f": {message}" if message else ""
        raise NotInAKernel(f"a tl.static_assert does not hold{reason}")


def static_print(*values: Any, sep: Any = " ", **_: Any) -> None:
    """``tl.static_print``: prints constants, and the types of values, when a kernel is compiled."""
    texts = (f"{value.type.scalar}{list(map(plain, value.shape))}" if isinstance(value, tl.tensor)
             else str(plain(value)) for value in values)
    memory = interpreter.interpreter_semantic.builder.memory
    memory.print_once(str(plain(sep)).join(texts))


def tensor_text(tensor: Any) -> str:
    """Renders ``print(tensor)`` for the first program, the only one that runs.

    A message of Triton's own says of which type it is.
    """
    if sys._getframe(1).f_globals.get("__name__", "").startswith("triton."):
        return str(tensor.type)
    return str(tensor.handle.full()[0])


# What kernels see in the place of functions of Triton's language.
REPLACED: dict[str, Any] = {
    "range": program_range, "static_range": static_range, "static_assert": static_assert,
    "static_print": static_print, "device_print": device_print, "multiple_of": promises.multiple_of,
    "max_contiguous": promises.max_contiguous, "max_constancy": promises.max_constancy,
    "reduce": combinators.reduce, "associative_scan": combinators.scan,
    "map_elementwise": combinators.map_elementwise,
}
_ORIGINALS = {name: getattr(tl, name) for name in REPLACED}
