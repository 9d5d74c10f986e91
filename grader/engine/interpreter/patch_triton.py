"""Puts the engine in the place of Triton's compiler for a while, and checks that it fits there."""

import inspect
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.language import semantic as semantics
from triton.runtime import interpreter
from triton.runtime.jit import JITFunction

from grader.engine.compiler.targets import WARP
from grader.engine.interpreter import libdevice, op_cache, rewrite
from grader.engine.interpreter.builder import Builder
from grader.engine.interpreter.memory import Memory

# Every seam: where it is, its name, and the parameters that are relied on, in order.
_SEAMS: tuple[tuple[Any, str, tuple[str, ...]], ...] = (
    (interpreter, "_patch_lang", ("fn",)),
    (interpreter, "_LangPatchScope", ()),
    (interpreter, "interpreter_builder", ()),
    (interpreter, "interpreter_semantic", ()),
    (interpreter, "ASTTransformer", ()),
    (semantics.TritonSemantic, "to_tensor", ("self", "x", "check_type")),
    (semantics.TritonSemantic, "permute", ("self", "input", "dims")),
    (semantics.TritonSemantic, "broadcast_impl_value", ("self", "lhs", "rhs")),
    (semantics.TritonSemantic, "make_tensor_descriptor",
     ("self", "base", "shape", "strides", "block_shape", "padding_option")),
    (tl.core, "is_builtin", ("fn",)),
    (JITFunction, "__call__", ("self",)),
    (JITFunction, "run", ("self",)),
)
# What the language can ask of a builder and the engine does not do: inline assembly, which is
# refused by name, and what only the compiler's own code generator asks: positions in its IR, and
# the bodies of reductions and their like, which the engine runs by itself.
_NOT_INTERPRETED = frozenset((
    "create_inline_asm",
    "create_reduce", "create_reduce_ret", "create_scan", "create_scan_ret",
    "create_map_elementwise", "create_map_elementwise_ret", "get_loc", "set_loc",
    "create_name_loc", "get_insertion_point", "restore_insertion_point", "new_block",
    "set_insertion_point_to_start", "create_block_with_parent", "create_tensor_descriptor_type",
))


_ABSENT = object()
_OF_A_TYPE = {"element_ty", "shape", "numel", "name"}  # attributes of a block's type


class UnknownTriton(RuntimeError):
    """This Triton has not the form that the grader was written for."""

    def __init__(self, difference: str) -> None:
        super().__init__(f"Triton {triton.__version__} cannot be watched: {difference}. "
                         "The grader knows Triton 3.6 to 3.9.")


@cache
def check_seams() -> None:
    """Look for every seam by name and parameters, and for every operation of the language.

    Raises:
        UnknownTriton: a seam is missing or has other parameters, or the language asks its builder
            for an operation that the engine has never heard of.
    """
    for owner, name, parameters in _SEAMS:
        member: Any = getattr(owner, name, None)
        if member is None:
            raise UnknownTriton(f"{owner.__name__}.{name} is missing")
        if parameters:
            names = tuple(inspect.signature(member).parameters)[:len(parameters)]
            if names != parameters:
                raise UnknownTriton(
                    f"{owner.__name__}.{name} takes {names} instead of {parameters}")
    offered = {*dir(Builder), *vars(Builder()), *_NOT_INTERPRETED}
    for module in (semantics, tl.core, tl.math):
        asked = set(re.findall(r"\bbuilder\.(\w+)", inspect.getsource(module)))
        if asked - offered:
            raise UnknownTriton(
                f"{module.__name__} asks for {', '.join(sorted(asked - offered))}")


@cache
def _builder() -> Builder:
    return Builder()


@contextmanager
def installed(memory: Memory, capability: int | None = None) -> Iterator[Builder]:
    """Within the block, kernels run on ``memory``; afterwards Triton compiles as before.

    ``capability`` is that of the GPU that a kernel finds where it asks for one, such as 80; if left
    out, that of the block around, or else 90.
    """
    check_seams()
    builder = _builder()
    if builder.memory is memory:
        yield builder
        return
    previous_memory, builder.memory = builder.memory, memory
    previous_target = builder.target
    if capability is not None:
        builder.target = GPUTarget("cuda", capability, WARP)
    patches = [] if previous_memory else _patches()
    originals = [(owner, name, vars(owner).get(name, _ABSENT)) for owner, name, _ in patches]
    try:
        for owner, name, value in patches:
            setattr(owner, name, value)
        with np.errstate(all="ignore"):  # infinities and NaN are values like any other
            yield builder
    finally:
        for owner, name, value in reversed(originals):
            if value is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, value)
        builder.memory, builder.target = previous_memory, previous_target


@cache
def _patches() -> list[tuple[Any, str, Any]]:
    """(owner, name, value) of everything that the engine puts in the place of Triton's own.

    Triton's interpreter says itself what has to be replaced. Asking it takes milliseconds, so it
    is asked once, and what it did is undone at once.
    """
    scope = interpreter._LangPatchScope()
    scope.set_attr(interpreter, "interpreter_builder", _builder())  # what 3.6 goes by
    scope.set_attr(interpreter.interpreter_semantic, "builder", _builder())
    language = interpreter._patch_lang(SimpleNamespace(__globals__={"tl": tl, "core": tl.core}))
    try:
        _patch_language(scope)
        places = {(id(owner), name): owner
                  for owner, name, _ in [*scope._changes, *language._changes]}
        planner = op_cache.Planner(interpreter.interpreter_semantic, _builder())
        return [(owner, name, _planned(planner, owner, name, vars(owner)[name]))
                for (_, name), owner in places.items()]
    finally:
        scope.restore()  # the later patches first: they lie over the others
        language.restore()


def _planned(planner: op_cache.Planner, owner: Any, name: str, value: Any) -> Any:
    of_tensors = owner is tl.tensor and name in op_cache.METHODS
    of_language = owner in (tl, tl.core, tl.math, tl.tensor) and name in op_cache.FUNCTIONS
    return planner.planned(value) if of_tensors or of_language else value


def _patch_language(scope: Any) -> None:
    scope.set_attr(JITFunction, "__call__",  # another jit function, the file's or of the library
                   lambda helper, *args, **kwargs: rewrite.rewritten(helper.fn)(*args, **kwargs))
    scope.set_attr(JITFunction, "__get__", _bound)
    scope.set_attr(interpreter.interpreter_semantic, "broadcast_impl_value",
                   _quick_broadcast(interpreter.interpreter_semantic.broadcast_impl_value))
    for name, member in list(vars(tl.tensor).items()):
        if isinstance(member, FunctionType) and not tl.core.is_builtin(member) and (
                "_semantic" in inspect.signature(member).parameters):  # x.exp(), up to 3.8
            scope.set_attr(tl.tensor, name, rewrite.with_semantics(member))
    scope.set_attr(tl.tensor, "__init__", _quick_init(tl.tensor.__init__))
    scope.set_attr(tl.block_type, "__init__", _quick_type(tl.block_type.__init__))
    scope.set_attr(tl.tensor, "__bool__", rewrite.tensor_bool)
    scope.set_attr(tl.tensor, "__index__", rewrite.tensor_index)
    scope.set_attr(tl.tensor, "__str__", rewrite.tensor_text)
    scope.set_attr(tl.tensor, "__repr__", rewrite.tensor_text)
    scope.set_attr(tl.tensor, "T", property(
        lambda block: interpreter.interpreter_semantic.permute(block, (1, 0))))
    scope.set_attr(tl.tensor, "__array_ufunc__", None)  # NumPy refuses them, as the compiler does
    scope.set_attr(tl.target_info, "current_target", lambda: _builder().target)
    for module, name, function in libdevice.bound(interpreter.interpreter_semantic):
        scope.set_attr(module, name, function)
    for language in (tl, tl.core):
        scope.set_attr(language, "dot_scaled", _with_constants(language.dot_scaled))
        for name, function in rewrite.REPLACED.items():
            scope.set_attr(language, name, function)


def _quick_init(original: Any) -> Any:
    """Making a tensor wraps every size of its shape anew; equal shapes share the wrappers here."""
    shared: dict[tuple[int, ...], tuple[Any, Any]] = {}

    def init(self: Any, handle: Any, type: Any) -> None:
        key = tuple(type.shape) if type.is_block() else ()
        if key not in shared:
            original(self, handle, type)
            if vars(self).keys() == {"handle", "type", "dtype", "shape", "numel"}:
                shared[key] = self.shape, self.numel
            return
        self.handle, self.type, self.dtype = handle, type, type.scalar
        self.shape, self.numel = shared[key]

    return init


def _quick_type(original: Any) -> Any:
    """Every operation makes the type of its result, and each checks and prints its shape anew; here
    equal ones share the result.
    """
    shared: dict[tuple[Any, ...], dict[str, Any]] = {}
    shapes: dict[tuple[int, ...], Any] = {}  # one object for each, so that `is` can tell

    def init(self: Any, element_ty: Any, shape: Any) -> None:
        sizes = [size.value if type(size) is tl.constexpr else size
                 for size in getattr(shape, "values", shape)]
        key = (type(element_ty), element_ty.name, *sizes)
        whole = {*map(type, sizes)} == {int}  # 4.0 would be found where 4 is known
        if not whole or key not in shared:
            original(self, element_ty, shape)
            if whole and vars(self).keys() == _OF_A_TYPE:
                self.shape = shapes.setdefault(tuple(sizes), self.shape)
                shared[key] = {name: value for name, value in vars(self).items()
                               if name != "element_ty"}
            return
        self.element_ty = element_ty
        vars(self).update(shared[key])

    return init


def _quick_broadcast(original: Any) -> Any:
    """Blocks of one shape need no other; the long way is to compare their sizes one by one."""
    def broadcast(lhs: Any, rhs: Any) -> Any:
        shape = getattr(lhs.type, "shape", None)  # numbers and pointers have none
        if shape is not None and shape is getattr(rhs.type, "shape", None):
            return lhs, rhs
        return original(lhs, rhs)

    return broadcast


def _with_constants(function: Any) -> Any:
    """Words among the arguments are constants to the compiler; up to 3.7 it relies on that."""
    def constant(value: Any) -> Any:
        return tl.constexpr(value) if isinstance(value, str) else value

    return lambda *args, **kwargs: function(
        *map(constant, args), **{name: constant(value) for name, value in kwargs.items()})


def _bound(helper: Any, instance: Any, owner: Any = None) -> Any:
    """``x.sum(0)``: a jit function that is an attribute of a class becomes a method."""
    if instance is None:
        return helper
    return lambda *args, **kwargs: helper(instance, *args, **kwargs)
