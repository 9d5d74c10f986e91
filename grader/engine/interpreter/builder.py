"""Triton's interpreter builder with watched memory and a GPU's numerics."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter

from grader.engine.interpreter import libdevice, numerics
from grader.engine.interpreter.memory import Memory

_TensorHandle = interpreter.TensorHandle


class NativeProxy:
    """Stands for Triton's native module: its four memory functions never touch a real address."""

    def __init__(self, native: Any) -> None:
        self._native = native
        self.memory: Memory | None = None
        self._names = {
            value: name for name, value in vars(native.RMW_OP).items()
            if isinstance(value, native.RMW_OP)
        }

    def __getattr__(self, name: str) -> Any:
        return getattr(self._native, name)

    def _memory(self) -> Memory:
        if self.memory is None:
            raise RuntimeError("a kernel touched memory while none was installed")
        return self.memory

    def load(self, pointers: Any, mask: Any, other: Any, dtype: Any) -> Any:
        return self._memory().load(pointers, mask, other, np.dtype(dtype))

    def store(self, pointers: Any, value: Any, mask: Any) -> None:
        self._memory().store(pointers, value, mask)

    def atomic_rmw(self, operation: Any, pointers: Any, value: Any, mask: Any, _sem: Any) -> Any:
        return self._memory().atomic_rmw(self._names[operation], pointers, value, mask)

    def atomic_cas(self, pointers: Any, compare: Any, value: Any, _sem: Any) -> Any:
        return self._memory().atomic_cas(pointers, compare, value)


class WatchedBuilder(interpreter.InterpreterBuilder):  # type: ignore[misc]
    """What differs from Triton's own: masked lanes, casts, bfloat16, dot, and program ids."""

    def __init__(self, native: NativeProxy) -> None:
        super().__init__()
        self._native = native
        # device_assert speaks only in debug mode. The overflow checks would compute every integer
        # operation twice more and are dropped unless an option asks for them.
        self.options = interpreter.InterpreterOptions(debug=True, sanitize_overflow=False)
        self.codegen_fns["min_dot_size"] = _min_dot_size

    # Memory. The trailing arguments are cache hints: two strings up to 3.8, one object in 3.9.

    def create_load(self, ptr: Any, *rest: Any, **hints: Any) -> Any:
        return self.create_masked_load(ptr, _EVERY_LANE, None)

    def create_store(self, ptr: Any, val: Any, *rest: Any, **hints: Any) -> Any:
        return self.create_masked_store(ptr, val, _EVERY_LANE)

    def create_masked_load(self, ptrs: Any, mask: Any, other: Any, *rest: Any,
                           **hints: Any) -> Any:
        kind = ptrs.get_element_ty()
        given = None if other is None else other.data
        loaded = self._native.load(ptrs.data, _array(mask), given, numerics.numpy_dtype(kind))
        return _TensorHandle(loaded, kind)

    def create_masked_store(self, ptrs: Any, value: Any, mask: Any, *rest: Any,
                            **hints: Any) -> Any:
        return self._native.store(ptrs.data, value.data, _array(mask))

    # Who am I

    def create_get_program_id(self, axis: int) -> Any:
        memory = self._native.memory
        if memory is not None:
            memory.running.axes.add(int(axis))
        return super().create_get_program_id(axis)

    # Numerics

    def get_bf16(self, value: float) -> Any:  # missing up to 3.8
        return _TensorHandle(np.array([value], numerics.numpy_dtype(tl.bfloat16)), tl.bfloat16)

    def cast_impl(self, src: Any, dst_type: Any) -> Any:
        return _TensorHandle(numerics.cast(src.data, dst_type), dst_type.scalar)

    def create_fp_to_fp(self, src: Any, dst_type: Any, rounding_mode: Any) -> Any:
        return self.cast_impl(src, dst_type)

    def create_dot(self, a: Any, b: Any, d: Any, input_precision: Any,
                   max_num_imprecise_acc: Any) -> Any:
        return _TensorHandle(numerics.dot(a.data, b.data, d.data), d.dtype.scalar)

    def create_extern_elementwise(self, library: str, path: str, symbol: str, arguments: Any,
                                  result: Any, is_pure: bool) -> Any:
        kind = result.scalar
        arrays = [argument.data for argument in arguments]
        return _TensorHandle(libdevice.call(symbol, arrays, numerics.numpy_dtype(kind)), kind)

    def binary_op(self, lhs: Any, rhs: Any, op: Any) -> Any:
        kind = lhs.dtype.scalar
        left, right = lhs.data, rhs.data
        if left.dtype == np.bool_ and right.dtype == np.bool_ and op in _ARITHMETIC:
            # one-bit integers wrap round; NumPy would saturate or refuse
            output = (op(left.astype(np.int8), right.astype(np.int8)) & 1).astype(np.bool_)
        else:
            output = op(left, right)
        wanted = numerics.numpy_dtype(kind)
        if output.dtype != wanted and output.dtype != np.bool_:
            output = output.astype(wanted)
        return _TensorHandle(output, kind)

    def ternary_op(self, lhs: Any, rhs: Any, other: Any, op: Any) -> Any:
        kind = other.dtype.scalar
        output = op(lhs.data, rhs.data, other.data)
        return _TensorHandle(output.astype(numerics.numpy_dtype(kind), copy=False), kind)


class _EveryLane:
    data = np.ones(1, np.bool_)


_EVERY_LANE = _EveryLane()
_ARITHMETIC = (np.add, np.subtract, np.multiply)


def _array(mask: Any) -> Any:
    """Masks of descriptors are bare arrays up to 3.8."""
    return mask if isinstance(mask, np.ndarray) else mask.data


def _min_dot_size(lhs: Any, rhs: Any) -> tuple[int, int, int]:
    """The least M, N, K of ``tl.dot`` on NVIDIA GPUs: K fills 32 bytes."""
    left, right = lhs.scalar.primitive_bitwidth, rhs.scalar.primitive_bitwidth
    if left != right:
        raise ValueError("lhs and rhs bitwidth must be the same")
    return (1, 1, max(1, 256 // left))
