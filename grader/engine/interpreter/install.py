"""Puts the watched semantics in Triton's place for a while, and checks that the seams are there."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import triton
import triton.language as tl
from triton.runtime import interpreter
from triton.runtime.jit import JITCallable, JITFunction

from grader.engine.interpreter import libdevice, numerics, reduce, rewrite
from grader.engine.interpreter.builder import NativeProxy, WatchedBuilder
from grader.engine.interpreter.memory import Memory

# Every seam: where it is, its name, and the parameters that are relied on, in order.
_SEAMS: tuple[tuple[Any, str, tuple[str, ...]], ...] = (
    (interpreter, "_patch_lang", ("fn",)),
    (interpreter, "_get_np_dtype", ("tt_dtype",)),
    (interpreter, "TensorHandle", ("data", "dtype")),
    (interpreter, "InterpreterOptions", ()),
    (interpreter, "ASTTransformer", ()),
    (interpreter.TensorHandle, "__post_init__", ("self",)),
    (interpreter.InterpreterBuilder, "set_grid_dim", ("self", "nx", "ny", "nz")),
    (interpreter.InterpreterBuilder, "set_grid_idx", ("self", "x", "y", "z")),
    (interpreter.InterpreterBuilder, "create_load", ("self", "ptr")),
    (interpreter.InterpreterBuilder, "create_store", ("self", "ptr", "val")),
    (interpreter.InterpreterBuilder, "create_masked_load", ("self", "ptrs", "mask", "other")),
    (interpreter.InterpreterBuilder, "create_masked_store", ("self", "ptrs", "value", "mask")),
    (interpreter.InterpreterBuilder, "create_get_program_id", ("self", "axis")),
    (interpreter.InterpreterBuilder, "cast_impl", ("self", "src", "dst_type")),
    (interpreter.InterpreterBuilder, "create_fp_to_fp", ("self", "src", "dst_type")),
    (interpreter.InterpreterBuilder, "create_dot", ("self", "a", "b", "d", "input_precision")),
    (interpreter.InterpreterBuilder, "create_extern_elementwise", ("self",)),
    (interpreter.InterpreterBuilder, "binary_op", ("self", "lhs", "rhs", "op")),
    (interpreter.InterpreterBuilder, "ternary_op", ("self", "lhs", "rhs", "other", "op")),
    (JITFunction, "__call__", ("self",)),
)
_NATIVE = ("load", "store", "atomic_rmw", "atomic_cas", "RMW_OP")


class UnknownTriton(RuntimeError):
    """This Triton's interpreter has not the form that the grader was written for."""


@cache
def check_seams() -> None:
    """Look for every seam by name and parameters.

    Raises:
        UnknownTriton: one is missing or has other parameters.
    """
    for owner, name, parameters in _SEAMS:
        found: Any = getattr(owner, name, None)
        if found is None:
            _refuse(f"{owner.__name__}.{name} is missing")
        if parameters:
            names = tuple(inspect.signature(found).parameters)[:len(parameters)]
            if names != parameters:
                _refuse(f"{owner.__name__}.{name} takes {names} instead of {parameters}")
    for name in _NATIVE:
        if not hasattr(interpreter._interpreter, name):
            _refuse(f"the native function {name} is missing")
    if not hasattr(interpreter, "interpreter_builder") or not hasattr(
            interpreter, "interpreter_semantic"):
        _refuse("the interpreter's builder is missing")


def _refuse(what: str) -> None:
    raise UnknownTriton(
        f"Triton {triton.__version__} cannot be watched: {what}. "
        "The grader knows Triton 3.6 to 3.9."
    )


@cache
def _builder() -> tuple[NativeProxy, WatchedBuilder]:
    native = NativeProxy(interpreter._interpreter)
    return native, WatchedBuilder(native)


@contextmanager
def installed(memory: Memory) -> Iterator[WatchedBuilder]:
    """Within the block, kernels run on ``memory``; afterwards Triton compiles as before.

    Installing takes a millisecond, so whoever runs many launches installs once around them all.
    """
    check_seams()
    native, builder = _builder()
    if native.memory is memory:
        yield builder
        return
    scope = interpreter._LangPatchScope()
    semantic = interpreter.interpreter_semantic
    previous_memory = native.memory
    native.memory = memory
    try:
        scope.set_attr(interpreter, "_interpreter", native)
        scope.set_attr(interpreter, "_get_np_dtype", numerics.numpy_dtype)
        scope.set_attr(interpreter, "interpreter_builder", builder)
        scope.set_attr(semantic, "builder", builder)
        scope.set_attr(interpreter.TensorHandle, "__post_init__", lambda self: None)
        language = interpreter._patch_lang(SimpleNamespace(__globals__={"tl": tl, "core": tl.core}))
        try:
            _patch_language(scope)
            with np.errstate(all="ignore"):  # infinities and NaN are values like any other
                yield builder
        finally:
            scope.restore()
            language.restore()
    finally:
        scope.restore()
        native.memory = previous_memory


def _patch_language(scope: Any) -> None:
    scope.set_attr(JITFunction, "__call__", _call_helper)
    for name, member in list(vars(tl.tensor).items()):
        if isinstance(member, JITCallable):  # x.sum(0): the function is no method by itself
            scope.set_attr(tl.tensor, name, _method(member))
    scope.set_attr(tl.tensor, "__bool__", rewrite.tensor_bool)
    scope.set_attr(tl.tensor, "__index__", rewrite.tensor_index)
    for module, name, function in libdevice.bound(interpreter.interpreter_semantic):
        scope.set_attr(module, name, function)
    for language in (tl, tl.core):
        scope.set_attr(language, "reduce", reduce.reduce)
        scope.set_attr(language, "associative_scan", reduce.scan)
        scope.set_attr(language, "range", rewrite.program_range)
        scope.set_attr(language, "static_range", rewrite.static_range)


def _call_helper(helper: Any, *args: Any, **kwargs: Any) -> Any:
    """A kernel calls another jit function, its own or one of Triton's library."""
    return rewrite.rewritten(helper.fn)(*args, **kwargs)


def _method(helper: Any) -> Any:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return helper(self, *args, **kwargs)

    return method
