"""The builder that Triton's semantics call, with every operation computed at once.

The methods have the names and parameters of Triton's own builder. A ``Handle`` holds the values of
all programs that run together; types are Triton's own, where the compiler has types of its IR.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import triton
import triton.language as tl
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia.compiler import min_dot_size
from triton.runtime.interpreter import InterpreterOptions

from grader.engine.compiler import targets
from grader.engine.interpreter import libdevice, numerics
from grader.engine.interpreter.block_value import Array, Handle, Pointers, aligned, constant
from grader.engine.interpreter.descriptors import BlockDescriptor, BlockPointer
from grader.engine.interpreter.errors import KernelError, NotInAKernel, NotInterpreted
from grader.engine.interpreter.memory import Memory
from grader.engine.interpreter.numerics import numpy_dtype

_TYPES = {dtype.name: dtype for dtype in (
    tl.void, tl.int1, tl.int8, tl.uint8, tl.int16, tl.uint16, tl.int32, tl.uint32, tl.int64,
    tl.uint64, tl.float16, tl.bfloat16, tl.float32, tl.float64, tl.float8e4nv, tl.float8e4b15,
    tl.float8e5)}
_IR_NAMES = {"fp16": "half", "fp32": "float", "fp64": "double"}  # where the IR has others

_BINARY: dict[str, Callable[..., Array]] = {
    "fadd": np.add, "fsub": np.subtract, "fmul": np.multiply, "fdiv": np.divide, "frem": np.fmod,
    "precise_divf": np.divide, "approx_divf": np.divide,
    "add": np.add, "sub": np.subtract, "mul": np.multiply,
    "sdiv": numerics.truncated_quotient, "udiv": np.floor_divide,
    "srem": np.fmod, "urem": np.fmod,  # the sign of the dividend, as in C
    "shl": np.left_shift, "lshr": np.right_shift, "ashr": np.right_shift,
    "minsi": np.minimum, "minui": np.minimum, "maxsi": np.maximum, "maxui": np.maximum,
    "minimumf": np.minimum, "minnumf": np.fmin, "maximumf": np.maximum, "maxnumf": np.fmax,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "umulhi": numerics.upper_product,
}
_COMPARISONS: dict[str, Callable[..., Array]] = {
    f"{family}{suffix}": function
    for suffix, function in (("LE", np.less_equal), ("LT", np.less), ("GE", np.greater_equal),
                             ("GT", np.greater), ("EQ", np.equal), ("NE", np.not_equal))
    for family in ("icmp", "icmpS", "icmpU", "fcmpO", "fcmpU")
}
_UNARY: dict[str, Callable[..., Array]] = {
    "fneg": np.negative, "fabs": np.abs, "iabs": np.abs, "floor": np.floor, "ceil": np.ceil,
    "exp": np.exp, "exp2": np.exp2, "log": np.log, "log2": np.log2, "sin": np.sin, "cos": np.cos,
    "sqrt": np.sqrt, "precise_sqrt": np.sqrt, "rsqrt": libdevice.rsqrt, "erf": libdevice.erf,
}
_WHOLE = 32  # values of a block that tl.device_print shows whole
_WIDTH = 76  # columns of its lines, which a report indents
_TRITON = tuple(int(part) for part in triton.__version__.split(".")[:2])
_ONE_BIT = (np.add, np.subtract, np.multiply)


@dataclass(frozen=True)
class Options(InterpreterOptions):  # type: ignore[misc]
    """The options of a backend that Triton's semantics read: those of an NVIDIA GPU."""

    num_warps: int = 4
    debug: bool = False  # without it the compiler leaves out every device_assert
    sanitize_overflow: bool = False  # would compute every integer operation twice more
    supported_fp8_dtypes: tuple[str, ...] = ("fp8e4b15", "fp8e4nv", "fp8e5")
    allowed_dot_input_precisions: tuple[str, ...] = ("tf32", "tf32x3", "ieee", "bf16x3", "bf16x6")


class Builder:
    """An ``ir.builder`` that evaluates eagerly; each ``create_*`` returns NumPy-backed values."""

    def __init__(self) -> None:
        self.memory: Memory = None  # type: ignore[assignment]  # set while it is installed
        self.target = GPUTarget("cuda", targets.find().capability, targets.WARP)
        self.arch = None
        self.options = Options()
        self.codegen_fns = {"min_dot_size": min_dot_size(self.target),
                            "convert_custom_types": _convert_custom_types}

    def __getattr__(self, name: str) -> Any:
        raise NotInterpreted(f"an operation (`{name}`)")

    # -- types and constants -------------------------------------------------------------------

    get_ptr_ty, get_block_ty = staticmethod(tl.pointer_type), staticmethod(tl.block_type)

    def get_fp8e5b16_ty(self) -> Any:
        """Raises ``NotInAKernel``: one of the float8 types that only AMD's GPUs have."""
        supported = " and ".join(Options.supported_fp8_dtypes)
        raise NotInAKernel(f"this float8 type is AMD's; NVIDIA's GPUs have {supported}")

    get_fp8e4b8_ty = get_fp8e5b16_ty

    def get_null_value(self, dtype: Any) -> Handle:
        return constant(0, dtype)

    def get_all_ones_value(self, dtype: Any) -> Handle:
        kind = numpy_dtype(dtype)
        return constant(np.iinfo(kind).max if kind.kind == "u" else -1, dtype)

    def get_cache_policy(self, *_: Any) -> None:
        return None

    # -- who am I ------------------------------------------------------------------------------

    def create_get_program_id(self, axis: int) -> Handle:
        running = self.memory.running
        running.attempt.axes.add(int(axis))
        return Handle(running.place_along(int(axis)), tl.int32)

    def create_get_num_programs(self, axis: int) -> Handle:
        return constant(self.memory.running.grid[int(axis)], tl.int32)

    # -- memory. What follows the operands are cache hints: two up to Triton 3.8, one in 3.9 ----

    def create_load(self, ptr: Handle, *hints: Any) -> Handle:
        return self.memory.load(ptr, None, None, volatile=hints[-1:] == (True,))

    def create_masked_load(self, ptrs: Handle, mask: Handle | None, other: Handle | None,
                           *hints: Any) -> Handle:
        return self.memory.load(ptrs, mask, other, volatile=hints[-1:] == (True,))

    def create_store(self, ptr: Handle, val: Handle, *hints: Any) -> None:
        self.memory.store(ptr, None, val)

    def create_masked_store(self, ptrs: Handle, value: Handle, mask: Handle | None,
                            *hints: Any) -> None:
        self.memory.store(ptrs, mask, value)

    def create_atomic_rmw(self, operation: Any, ptr: Handle, val: Handle, mask: Handle, sem: Any,
                          scope: Any) -> Handle:
        return self.memory.atomic(_name(operation), ptr, mask, val, ordered=_ordered(sem))

    def create_atomic_cas(self, ptr: Handle, cmp: Handle, val: Handle, sem: Any,
                          scope: Any) -> Handle:
        if not ptr.shape == cmp.shape == val.shape:
            raise NotInAKernel("tl.atomic_cas needs pointers and values of the same shape")
        return self.memory.atomic("CAS", ptr, None, val, ordered=_ordered(sem), compare=cmp)

    def create_atomic_poll(self, ptr: Handle, expected: Handle, timeout_ns: Any, sem: Any,
                           scope: Any) -> Handle:
        if not ptr.shape:
            self.create_barrier()
        return self.memory.poll(ptr, expected, ends=isinstance(timeout_ns, Handle))

    def create_atomic_load(self, ptr: Handle, mask: Handle, sem: Any, scope: Any) -> Handle:
        if not ptr.shape:
            self.create_barrier()
        return self.memory.load(ptr, mask, None, volatile=_ordered(sem))

    def create_atomic_store(self, ptr: Handle, val: Handle, mask: Handle, sem: Any,
                            scope: Any) -> None:
        self.memory.atomic("XCHG", ptr, mask, val, ordered=_ordered(sem))

    def create_barrier(self) -> None:
        """All threads of a program wait for each other, so that they see what it stored."""
        self.memory.attempt.recent.settle()

    # Reductions, scans, products and what rearranges a block pass elements from thread to thread:
    # through shared memory, with a barrier, unless the layouts let each warp keep to itself. The
    # check of threads would rather miss a mistake than claim one, so they all count as barriers.
    exchange = create_barrier

    def create_grid_dependency_wait(self) -> None:
        """Launches run one after the other here."""

    create_grid_dependency_launch_dependents = create_grid_dependency_wait

    # -- descriptors and block pointers --------------------------------------------------------

    def create_make_tensor_descriptor(self, base: Handle, shape: list[Handle],
                                      strides: list[Handle], block_shape: list[int],
                                      is_signed: bool, padding: Any = None) -> BlockDescriptor:
        return BlockDescriptor(base, shape, strides, [int(n) for n in block_shape],
                          pad_nan=padding == ir.PADDING_OPTION.PAD_NAN)

    def create_descriptor_load(self, desc: BlockDescriptor, indices: list[Handle],
                               *hints: Any) -> Handle:
        loaded = self.memory.load(*desc.place(indices), desc.padding())
        if desc.rounds_to_tf32:
            loaded.data = numerics.near_tf32(loaded.data)
        return loaded

    def create_descriptor_store(self, desc: BlockDescriptor, value: Handle,
                                indices: list[Handle]) -> None:
        self.memory.store(*desc.place(indices), value)

    def create_descriptor_reduce(self, kind: Any, desc: BlockDescriptor, value: Handle,
                                 indices: list[Handle]) -> None:
        name = _name(kind)
        if value.data.dtype.kind == "u" and name in ("MIN", "MAX"):
            name = f"U{name}"
        self.memory.atomic(name, *desc.place(indices), value, ordered=False)

    def create_descriptor_gather(self, desc: BlockDescriptor, x_offsets: Handle, y_offset: Handle,
                                 dtype: Any) -> Handle:
        return self.memory.load(*desc.rows(x_offsets, y_offset), desc.padding())

    def create_descriptor_scatter(self, desc: BlockDescriptor, value: Handle, x_offsets: Handle,
                                  y_offset: Handle) -> None:
        self.memory.store(*desc.rows(x_offsets, y_offset), value)

    def create_make_block_ptr(self, base: Handle, shape: list[Handle], strides: list[Handle],
                              offsets: list[Handle], block_shape: list[int],
                              order: Any) -> BlockPointer:
        return BlockPointer(base, shape, strides, [int(n) for n in block_shape], offsets)

    def create_advance(self, ptr: BlockPointer, offsets: list[Handle]) -> BlockPointer:
        return ptr.advanced(offsets)

    def create_tensor_pointer_load(self, ptr: BlockPointer, boundary_check: Sequence[int],
                                   padding: Any, *hints: Any) -> Handle:
        pointers, mask = ptr.place(boundary_check)
        other = None
        if padding is not None:
            value = np.nan if padding == ir.PADDING_OPTION.PAD_NAN else 0
            other = constant(value, pointers.get_element_ty())
        return self.memory.load(pointers, mask, other)

    def create_tensor_pointer_store(self, ptr: BlockPointer, value: Handle,
                                    boundary_check: Sequence[int], *hints: Any) -> None:
        self.memory.store(*ptr.place(boundary_check), value)

    # -- casts ---------------------------------------------------------------------------------

    def create_int_cast(self, src: Handle, dst_type: Any, *is_signed: bool) -> Handle:
        return Handle(numerics.cast(src.data, dst_type), dst_type.scalar, src.shape)

    create_fp_to_si = create_fp_to_ui = create_si_to_fp = create_ui_to_fp = create_int_cast
    create_fp_ext = create_fp_trunc = create_int_cast

    def create_fp_to_fp(self, src: Handle, dst_type: Any, rounding: Any) -> Handle:
        convert = numerics.cast
        if rounding == ir.ROUNDING_MODE.RTZ:
            convert = numerics.cast_toward_zero
        return Handle(convert(src.data, dst_type), dst_type.scalar, src.shape)

    def create_bitcast(self, src: Handle, dst_type: Any) -> Handle:
        return Handle(src.data.view(numpy_dtype(dst_type)), dst_type.scalar, src.shape)

    create_int_to_ptr = create_ptr_to_int = create_bitcast

    # -- elementwise ---------------------------------------------------------------------------

    def create_select(self, cond: Handle, lhs: Handle, rhs: Handle) -> Handle:
        chosen, x, y = aligned(cond, lhs, rhs)
        if x.dtype != y.dtype:  # the same bits under another sign: up to 3.8, atomic_min does so
            x = x.view(y.dtype)
        return Handle(np.where(chosen, x, y), rhs.dtype, _shape(cond, lhs, rhs))

    def create_clampf(self, arg: Handle, low: Handle, high: Handle, propagate: Any) -> Handle:
        x, least, most = aligned(arg, low, high)
        over_nan = propagate == ir.PROPAGATE_NAN.NONE
        clamp: Callable[..., Array] = (
            lambda x, low, high: np.fmin(np.fmax(x, low), high)) if over_nan else np.clip
        if numerics.is_float(x.dtype) and x.dtype.kind != "f":
            clamp = numerics.in_float32(clamp)
        return Handle(clamp(x, least, most), arg.dtype, _shape(arg, low, high))

    def create_fma(self, x: Handle, y: Handle, z: Handle) -> Handle:
        operands = aligned(x, y, z)
        kind = operands[2].dtype
        data = numerics.fused_multiply_add(*(numerics.widened(operand) for operand in operands))
        return Handle(data.astype(kind, copy=False), z.dtype, _shape(x, y, z))

    def create_extern_elementwise(self, library: str, path: str, symbol: str,
                                  arguments: list[Handle], result: Any, is_pure: bool) -> Handle:
        kind = result.scalar
        data = libdevice.call(symbol, aligned(*arguments), numpy_dtype(kind))
        return Handle(data, kind, _shape(*arguments))

    def create_addptr(self, ptr: Handle, offset: Handle) -> Handle:
        itemsize = max(1, ptr.get_element_ty().primitive_bitwidth // 8)
        if isinstance(ptr, Pointers) and ptr.shape == _shape(ptr, offset) and (
                further := ptr.plus(offset.data)):
            return further
        base, steps = aligned(ptr, offset)
        return Pointers(base, steps, itemsize, ptr.dtype, _shape(ptr, offset))

    # -- shapes --------------------------------------------------------------------------------

    def create_make_range(self, dtype: Any, start: int, stop: int) -> Handle:
        return Handle(np.arange(start, stop, dtype=np.int32)[None], tl.int32, (stop - start,))

    def create_splat(self, dtype: Any, arg: Handle) -> Handle:
        shape = tuple(int(n) for n in dtype.shape)
        return Handle(arg.data.reshape(len(arg.data), *(1,) * len(shape)), arg.dtype, shape)

    def create_unsplat(self, arg: Handle) -> Handle:
        return Handle(arg.data.reshape(len(arg.data)), arg.dtype)

    def create_broadcast(self, arg: Handle, shape: Sequence[int]) -> Handle:
        return Handle(arg.data, arg.dtype, tuple(int(n) for n in shape))

    def create_expand_dims(self, arg: Handle, axis: int) -> Handle:
        shape = (*arg.shape[:axis], 1, *arg.shape[axis:])
        return Handle(np.expand_dims(arg.data, axis + 1), arg.dtype, shape)

    def create_reshape(self, arg: Handle, shape: Sequence[int], can_reorder: bool) -> Handle:
        self.exchange()
        wanted = tuple(int(n) for n in shape)
        return Handle(arg.full().reshape(len(arg.data), *wanted), arg.dtype, wanted)

    def create_trans(self, arg: Handle, order: Sequence[int]) -> Handle:
        self.exchange()
        axes = [int(axis) for axis in order]
        data = np.transpose(arg.data, (0, *(axis + 1 for axis in axes)))
        return Handle(data, arg.dtype, tuple(arg.shape[axis] for axis in axes))

    def create_cat(self, lhs: Handle, rhs: Handle) -> Handle:
        self.exchange()
        programs = max(len(lhs.data), len(rhs.data))
        data = np.concatenate([lhs.full(programs), rhs.full(programs)], axis=1)
        return Handle(data, lhs.dtype, data.shape[1:])

    def create_join(self, lhs: Handle, rhs: Handle) -> Handle:
        self.exchange()
        data = np.stack(np.broadcast_arrays(*aligned(lhs, rhs)), axis=-1)
        return Handle(data, lhs.dtype, (*lhs.shape, 2))

    def create_split(self, val: Handle) -> tuple[Handle, Handle]:
        self.exchange()
        data, shape = val.along(len(val.shape) - 1), val.shape[:-1]
        return Handle(data[..., 0], val.dtype, shape), Handle(data[..., 1], val.dtype, shape)

    def create_gather(self, src: Handle, indices: Handle, axis: int) -> Handle:
        self.exchange()
        programs = max(len(src.data), len(indices.data))
        index = indices.full(programs)
        if index.size and not (index.min() >= 0 and index.max() < src.shape[axis]):
            raise NotInAKernel(
                f"tl.gather has indices from {index.min()} to {index.max()} along an axis of "
                f"{src.shape[axis]} elements")
        data = np.take_along_axis(src.full(programs), index.astype(np.int64), axis=axis + 1)
        return Handle(data, src.dtype, indices.shape)

    def create_histogram(self, data: Handle, bins: int, mask: Handle | None) -> Handle:
        if data.data.dtype.itemsize == 8 and _TRITON < (3, 9):
            raise NotInAKernel(f"Triton {triton.__version__} has no histogram of 64-bit integers")
        self.exchange()
        programs = max(len(data.data), len(mask.data) if mask is not None else 1)
        values = data.full(programs).reshape(programs, -1).astype(np.int64)
        counted = (values >= 0) & (values < bins)
        if mask is not None:
            counted &= mask.full(programs).reshape(programs, -1)
        places = values + np.arange(programs)[:, None] * bins
        counts = np.bincount(places[counted], minlength=programs * bins)
        return Handle(counts.reshape(programs, bins).astype(np.int32), tl.int32, (bins,))

    # -- products ------------------------------------------------------------------------------

    def create_dot(self, a: Handle, b: Handle, d: Handle, input_precision: Any,
                   max_num_imprecise_acc: Any) -> Handle:
        self.exchange()
        *batch, m, k = a.shape
        self._count_product(2 * m * k * b.shape[-1] * int(np.prod(batch)))
        if not self.memory.computes:
            return Handle(d.data, d.dtype, d.shape)
        data = numerics.dot(a.full(), b.full(), d.data, _name(input_precision))
        return Handle(data, d.dtype, d.shape)

    def _count_product(self, flops: int) -> None:
        attempt = self.memory.attempt
        attempt.ledger.count_product(flops * attempt.count)

    def create_dot_scaled(self, lhs: Handle, lhs_scale: Handle | None, lhs_format: Any,
                          rhs: Handle, rhs_scale: Handle | None, rhs_format: Any, fast_math: bool,
                          lhs_k_pack: bool, rhs_k_pack: bool, acc: Handle) -> Handle:
        self.exchange()
        packed = ir.ScaleDotElemTypeTY.E2M1
        k = lhs.shape[-1] * (2 if lhs_format == packed and lhs_k_pack else 1)
        self._count_product(2 * int(np.prod(acc.shape)) * k)
        if not self.memory.computes:
            return Handle(acc.data, acc.dtype, acc.shape)
        a = _unscaled(lhs, lhs_format == packed, -1 if lhs_k_pack else -2)
        b = _unscaled(rhs, rhs_format == packed, -2 if rhs_k_pack else -1)
        if lhs_scale is not None:
            a = a * _scales(lhs_scale, a.shape[-1])
        if rhs_scale is not None:  # [N, K / 32], against b's [K, N]
            b = b * np.swapaxes(_scales(rhs_scale, b.shape[-2]), -1, -2)
        return Handle(numerics.dot(a, b, acc.data), acc.dtype, acc.shape)

    # -- words ---------------------------------------------------------------------------------

    def create_print(self, prefix: str, hexadecimal: bool, values: list[Handle],
                     is_signed: Any) -> None:
        memory = self.memory
        if memory.printed_enough:
            return
        blocks = [value.full(memory.attempt.count) for value in values]
        along = [memory.running.place_along(axis).tolist() for axis in range(3)]
        for row, (x, y, z) in enumerate(zip(*along, strict=True)):
            lead = f"({x}, {y}, {z}) {prefix}"
            for shown in [_text(block[row], hexadecimal, lead) for block in blocks] or [""]:
                memory.print(f"{lead}{shown}")

    def create_assert(self, condition: Handle, message: str) -> None:
        self._hold(condition, "an assertion", f": {message}" if str(message) else "")

    def create_assume(self, condition: Handle) -> None:
        if condition.shape:
            raise NotInAKernel("tl.assume takes a scalar condition, and this one is a block of "
                               f"shape {list(condition.shape)}")
        self._hold(condition, "what tl.assume promises", "")

    def _hold(self, condition: Handle, promise: str, message: str) -> None:
        running = self.memory.running
        holds = condition.data.reshape(len(condition.data), -1).all(axis=1)
        if not holds.all():
            broken = np.broadcast_to(~holds, running.attempt.count)
            place = running.place(int(running.attempt.programs[broken].min()))
            raise KernelError(f"{promise} does not hold in {place}{message}")


# -- methods that differ only in a function -----------------------------------------------------


def _binary(function: Callable[..., Array]) -> Any:
    narrow = numerics.in_float32(function)
    integers = function in (np.bitwise_and, np.bitwise_or, np.bitwise_xor)

    def create(self: Builder, lhs: Handle, rhs: Handle) -> Handle:
        left, right = aligned(lhs, rhs)
        kind = left.dtype
        if kind == np.bool_ and function in _ONE_BIT:  # one-bit integers wrap round
            data = (function(left.astype(np.int8), right.astype(np.int8)) & 1).astype(np.bool_)
        elif kind == numerics.BFLOAT16:
            data = narrow(left, right)
        elif kind in numerics.FLOAT8 and not integers:
            raise NotInAKernel(
                f"there is no arithmetic on {lhs.dtype}: convert to float16 or float32 first")
        else:
            data = function(left, right)
            if data.dtype != kind:
                data = data.astype(kind)
        return Handle(data, lhs.dtype, lhs.shape if lhs.shape else rhs.shape)

    return create


def _comparison(function: Callable[..., Array]) -> Any:
    def create(self: Builder, lhs: Handle, rhs: Handle) -> Handle:
        left, right = (numerics.widened(data) for data in aligned(lhs, rhs))
        return Handle(function(left, right), tl.int1, lhs.shape if lhs.shape else rhs.shape)

    return create


def _unary(function: Callable[..., Array]) -> Any:
    narrow = numerics.in_float32(function)

    def create(self: Builder, arg: Handle) -> Handle:
        native = arg.data.dtype.kind in "biuf"
        return Handle((function if native else narrow)(arg.data), arg.dtype, arg.shape)

    return create


for _suffix, _dtype in _TYPES.items():
    setattr(Builder, f"get_{_IR_NAMES.get(_suffix, _suffix)}_ty", lambda self, is_=_dtype: is_)
    setattr(Builder, f"get_{_suffix}", lambda self, value, of=_dtype: constant(value, of))
for _make, _functions in ((_binary, _BINARY), (_comparison, _COMPARISONS), (_unary, _UNARY)):
    for _suffix, _function in _functions.items():
        setattr(Builder, f"create_{_suffix}", _make(_function))


# -- helpers ------------------------------------------------------------------------------------


def _ordered(semantics: Any) -> bool:
    return bool(semantics != ir.MEM_SEMANTIC.RELAXED)


def _name(member: Any) -> str:
    """The name of a member of one of the IR's enumerations."""
    return str(member).rsplit(".", 1)[-1]


def _shape(*handles: Handle) -> tuple[int, ...]:
    return next((handle.shape for handle in handles if handle.shape), ())


def _unscaled(handle: Handle, packed: bool, axis: int) -> Array:
    data = handle.full()
    if packed:
        return numerics.unpacked_e2m1(data.view(np.uint8), axis)
    return data.astype(np.float32)


def _scales(handle: Handle, length: int) -> Array:
    data = handle.full()
    factors = (numerics.scale_e8m0(data) if data.dtype.kind in "iu" else data.astype(np.float32))
    return np.repeat(factors, length // factors.shape[-1], axis=-1)


def _text(values: Array, hexadecimal: bool, lead: str) -> str:
    """One program's values; of more than 32, the first and last ones along each axis."""
    formatter: Any = None
    if hexadecimal:
        values = np.asarray(values).view(np.dtype(f"u{values.dtype.itemsize}"))
        formatter = {"int": lambda n: f"0x{n:0{2 * values.itemsize}x}"}
    return np.array2string(np.asarray(values), threshold=_WHOLE, formatter=formatter,
                           prefix=lead, max_line_width=_WIDTH)


def _convert_custom_types(arg: Any, dst_ty: Any, rounding: Any, _semantic: Any = None) -> Any:
    """From fp8e4b15; the conversion to it depends on the GPU."""
    if dst_ty.scalar == tl.float8e4b15:
        raise NotInterpreted("a conversion to fp8e4b15")
    data = numerics.cast(numerics.from_e4b15(arg.handle.data), dst_ty)
    return tl.tensor(Handle(data, dst_ty.scalar, arg.handle.shape), dst_ty)


