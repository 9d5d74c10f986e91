"""Caches the builder calls of an operation by the types of its operands.

Triton's semantics check types, broadcast and cast, and then ask their builder for one to five
things. What they ask for depends on types, shapes and constants alone, never on a value that a
kernel computes: the compiler has none when it asks. But they take ten times as long as NumPy takes
to do it. So the first time an operation is called its requests are noted, as a plan, and from then
on the plan is followed for all operands that it holds for.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import triton.language as tl

from grader.engine.interpreter.block_value import Handle

_MOST = 4096  # plans of one operation; a loop over constants could ask for any number

# Operations that ask nothing but their builder, and whose result is one tensor or nothing.
METHODS = frozenset(f"__{name}__" for name in (
    "add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "floordiv", "rfloordiv",
    "mod", "rmod", "neg", "invert", "and", "rand", "or", "ror", "xor", "rxor", "lshift", "rlshift",
    "rshift", "rrshift", "lt", "le", "gt", "ge", "eq", "ne", "getitem",
)) | {"logical_and", "logical_or", "to", "cast"}
FUNCTIONS = frozenset((
    "load", "store", "dot", "where", "cast", "maximum", "minimum", "clamp", "fma", "add", "sub",
    "mul", "exp", "exp2", "log", "log2", "sqrt", "sqrt_rn", "rsqrt", "sin", "cos", "erf", "abs",
    "floor", "ceil", "fdiv", "div_rn", "umulhi", "arange", "full", "broadcast_to", "expand_dims",
    "program_id", "num_programs", "trans", "permute", "reshape",
))
# Requests whose answer is the same each time they are made for the same constants.
_CONSTANT = frozenset((
    "create_splat", "create_broadcast", "create_int_cast", "create_si_to_fp", "create_ui_to_fp",
    "create_fp_ext", "create_fp_trunc", "create_fp_to_fp",
))


class _NoPlan(Exception):
    """An operand or a request is of a kind that plans do not know."""


# One request: what is called, its arguments, and (position among them, number of the handle)
_Step = tuple[Callable[..., Any], tuple[Any, ...], list[tuple[int, int]]]


@dataclass(frozen=True)
class _Plan:
    """Handles are numbered: those of the operands first, then what each step gives.

    The result is an operand itself, or a tensor with the handle ``handle`` and the attributes
    ``attributes``, or nothing.
    """

    steps: tuple[_Step, ...]
    operand: int | None = None
    handle: int = -1
    attributes: dict[str, Any] | None = None

    def follow(self, tensors: list[Any]) -> Any:
        handles = [tensor.handle for tensor in tensors]
        for ask, constants, places in self.steps:
            arguments = [*constants]
            for place, number in places:
                arguments[place] = handles[number]
            handles.append(ask(*arguments))
        if self.attributes is not None:
            result = tl.tensor.__new__(tl.tensor)
            vars(result).update(self.attributes, handle=handles[self.handle])
            return result
        return None if self.operand is None else tensors[self.operand]


class Planner:
    """Plans of all operations, for one builder."""

    def __init__(self, semantic: Any, builder: Any) -> None:
        self._semantic = semantic
        self._builder = builder
        self._noting = False  # what the semantics call meanwhile is part of the same plan

    def planned(self, operation: Callable[..., Any]) -> Callable[..., Any]:
        """The same operation, by plans where there are some."""
        plans: dict[tuple[Any, ...], _Plan | None] = {}

        def call(*args: Any, **kwargs: Any) -> Any:
            if self._noting or "_semantic" in kwargs:
                return operation(*args, **kwargs)
            tensors = []
            key: list[Any] = [*kwargs]
            try:
                for value in (*args, *kwargs.values()):
                    if type(value) is tl.tensor:
                        tensors.append(value)
                        key.append(_number(value.type))
                    else:
                        key.append(_constant_key(value))
            except _NoPlan:
                return operation(*args, **kwargs)
            if len(tensors) > 1:
                key.append(_shared(tensors))
            plan_key = tuple(key)
            if (plan := plans.get(plan_key)) is not None:
                return plan.follow(tensors)
            if plan_key in plans or len(plans) >= _MOST:
                return operation(*args, **kwargs)
            notes = _Notes(self._builder)
            self._noting, self._semantic.builder = True, notes
            try:
                result = operation(*args, **kwargs)
            finally:
                self._noting, self._semantic.builder = False, self._builder
            try:
                plans[plan_key] = notes.plan(tensors, result)
            except _NoPlan:
                plans[plan_key] = None
            return result

        return call


class _Notes:
    """Stands in for the builder, and keeps what one thread asks of it."""

    def __init__(self, builder: Any) -> None:
        self._builder = builder
        self._thread = threading.get_ident()  # another one may have its turn meanwhile
        self._asked: list[tuple[str, Callable[..., Any], tuple[Any, ...], bool, Any]] = []

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._builder, name)
        if not callable(method):
            return method

        def ask(*args: Any, **kwargs: Any) -> Any:
            answer = method(*args, **kwargs)
            if threading.get_ident() == self._thread:
                self._asked.append((name, method, args, bool(kwargs), answer))
            return answer

        return ask

    def plan(self, tensors: Sequence[Any], result: Any) -> _Plan:
        """Builds a plan from the recorded requests.

        Raises:
            _NoPlan: it cannot be repeated from the operands alone.
        """
        numbers = {id(tensor.handle): number for number, tensor in enumerate(tensors)}
        constants: dict[int, Any] = {}
        steps: list[_Step] = []
        for name, ask, arguments, named, answer in self._asked:
            if name.startswith("get_") and not isinstance(answer, Handle):
                continue  # a type, which stands among the arguments of a later request
            if named or not (answer is None or isinstance(answer, Handle)):
                raise _NoPlan
            places = []
            for place, value in enumerate(arguments):
                if id(value) in numbers:
                    places.append((place, numbers[id(value)]))
                elif id(value) not in constants and not _is_plain(value):
                    raise _NoPlan
            if not places and answer is not None and result is not None and (
                    answer is not getattr(result, "handle", None)) and (
                    name.startswith("get_") or name in _CONSTANT):
                constants[id(answer)] = answer
                continue
            if answer is not None:
                numbers[id(answer)] = len(tensors) + len(steps)
            steps.append((ask, arguments, places))
        if result is None:
            if not steps or self._asked[-1][-1] is not None:
                raise _NoPlan  # what it was called for was asked of somebody else
            return _Plan(tuple(steps))
        for number, tensor in enumerate(tensors):
            if tensor is result:
                return _Plan(tuple(steps), operand=number)
        if type(result) is not tl.tensor or id(result.handle) not in numbers:
            raise _NoPlan
        attributes = {name: value for name, value in vars(result).items() if name != "handle"}
        return _Plan(tuple(steps), handle=numbers[id(result.handle)], attributes=attributes)


# -- what a plan holds for ----------------------------------------------------------------------

_numbers: dict[Any, int] = {}


def _number(kind: Any) -> int:
    """A number for a type; equal types have the same, and a type knows its own once it was asked.

    Raises:
        _NoPlan: it is a type of another kind.
    """
    number: int | None = vars(kind).get("_plan_number")
    if number is None:
        structure = _structure(kind)
        number = kind._plan_number = _numbers.setdefault(structure, len(_numbers))
    return number


def _structure(kind: Any) -> tuple[Any, ...]:
    match kind:
        case tl.block_type():
            return ("block", _structure(kind.element_ty), tuple(kind.shape))
        case tl.pointer_type():
            return ("pointer", _structure(kind.element_ty), kind.address_space, kind.const)
    if type(kind) is not tl.dtype:
        raise _NoPlan
    return (kind.name,)


def _shared(tensors: Sequence[Any]) -> tuple[int, ...]:
    """Returns which operands are identical, so that x * x and x * y differ."""
    handles = [id(tensor.handle) for tensor in tensors]
    return () if len({*handles}) == len(handles) else tuple(map(handles.index, handles))


def _constant_key(value: Any) -> Any:
    """Returns the cache key of a constant, including its type.

    Raises:
        _NoPlan: it is not a known constant.
    """
    kind = type(value)
    if value is None or kind in (int, bool, str):
        return kind, value
    if kind is float:
        return kind, value.hex()  # -0.0 equals 0.0, and NaN not even itself
    if kind is tl.constexpr:
        return kind, _constant_key(value.value)
    if kind is slice:
        return kind, *map(_constant_key, (value.start, value.stop, value.step))
    if kind in (tuple, list):
        return kind, *map(_constant_key, value)
    if isinstance(value, tl.dtype):
        return "type", _number(value)
    raise _NoPlan


def _is_plain(value: Any) -> bool:
    """Whether an argument of a request is not a handle and contains none."""
    if isinstance(value, tuple | list):
        return all(map(_is_plain, value))
    return not isinstance(value, Handle | tl.tensor) and not hasattr(value, "handle")
