"""A mean and a softmax for every length with few compiled variants, and tools that count them.

    masked_mean    out[b, d] = mean of x[b, 0 .. lengths[b] - 1, d], 0 where lengths[b] is 0
    softmax_any    out[r, c] = exp(x[r, c] - max of row r) / sum of these exponentials

Cost: masked_mean reads each valid step once and writes B * D elements. softmax_any reads and writes
each row once, 2 * R * C * itemsize bytes; above 65,536 columns a row no longer fits into one
program and is read twice, 3 * R * C * itemsize bytes.

Variants: Triton compiles a kernel for each combination of constexpr values, dtypes and launch
options, and specializes on integers that are 1 or a multiple of 16 and on addresses that are a
multiple of 16. Sizes that change from call to call are therefore run-time arguments, and constexprs
take few values.

Precision: float32 between load and store, for every dtype.

Source: the running maximum and sum are from Milakov and Gimelshein, "Online normalizer calculation
for softmax" (2018).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import torch
import triton
import triton.language as tl

NARROW = 1_024  # columns; up to here several rows share a program
WIDE = 65_536  # columns; up to here a row is one block
FACTOR = 16  # Triton specializes on integers and addresses that it divides


# ---------------------------------------------------------------------------------------------
# Compiled variants


@dataclass(frozen=True)
class TensorArgument:
    """A tensor argument of a launch."""

    dtype: str
    address: int  # of the first element, in bytes


@dataclass(frozen=True)
class LaunchRecord:
    """One launch: its arguments, constexprs and options, and the declaration of the kernel."""

    kernel: str
    arguments: dict[str, TensorArgument | int | float | bool | None]  # at run time, in order
    constexprs: dict[str, int | bool | str] = field(default_factory=dict)
    do_not_specialize: tuple[str, ...] = ()  # parameters named by the decorator
    num_warps: int = 4


def read_launch(line: str) -> LaunchRecord:
    """Parses one line of `storm.log`.

    The line has four fields: number and Triton's action; kernel and run-time arguments; constexprs;
    options. A tensor is written as dtype@address.
    """
    _, call, constexprs, options = line.split("|")
    kernel, *arguments = call.split()
    return LaunchRecord(
        kernel=kernel,
        arguments={name: _read_value(value) for name, value in _pairs(arguments)},
        constexprs={name: int(value) for name, value in _pairs(constexprs.split())},
        num_warps=int(dict(_pairs(options.split()))["num_warps"]),
    )


def _pairs(words: Sequence[str]) -> list[tuple[str, str]]:
    split = (word.partition("=") for word in words)
    return [(name, value) for name, _, value in split]


def _read_value(text: str) -> TensorArgument | int:
    dtype, at, address = text.partition("@")
    return TensorArgument(dtype, int(address, 16)) if at else int(text)


def specialization_keys(launches: Sequence[LaunchRecord]) -> int:
    """Returns how many variants Triton compiles for these launches, on one GPU."""
    return len({_key(launch) for launch in launches})


def _key(launch: LaunchRecord) -> tuple[object, ...]:
    """Returns everything that the compiled code depends on."""
    known = tuple(
        (name, _known_of(value, name not in launch.do_not_specialize))
        for name, value in launch.arguments.items()
    )
    return launch.kernel, known, tuple(launch.constexprs.items()), launch.num_warps


def _known_of(value: object, specialize: bool) -> tuple[object, ...]:
    """Returns what Triton specializes on for a run-time argument: its type and some values."""
    if isinstance(value, TensorArgument):
        return "pointer", value.dtype, specialize and value.address % FACTOR == 0
    if isinstance(value, int) and not isinstance(value, bool):
        if specialize and value == 1:
            return ("one",)  # compiled in as a constant
        bits = 32 if -(2**31) <= value < 2**31 else 64
        signed = value < 2**63
        return "integer", bits, signed, specialize and value % FACTOR == 0
    if value is None:
        return ("none",)
    return (type(value).__name__,)  # floats and bools: only the type


@dataclass(frozen=True)
class StormAnswer:
    """The diagnosis of `storm.log`."""

    culprit: str  # the argument that causes most compilations
    variants_before: int  # compiled during the log
    variants_after: int  # if it were passed at run time, without specialization


STORM = StormAnswer(culprit="T", variants_before=93, variants_after=5)


# ---------------------------------------------------------------------------------------------
# Buckets


def bucket_length(n: int, buckets: Sequence[int]) -> int:
    """Returns the smallest bucket that is at least n.

    Raises:
        ValueError: n is negative or above the largest bucket, or the buckets are empty or not
            strictly ascending.
    """
    if n < 0:
        raise ValueError(f"n: expected a length of at least 0, got {n}")
    if not buckets:
        raise ValueError(f"buckets: expected at least one for a length of {n}, got none")
    for low, high in pairwise(buckets):
        if low >= high:
            raise ValueError(f"buckets: expected ascending sizes, got {low} before {high}")
    if n > buckets[-1]:
        raise ValueError(f"n: expected at most {buckets[-1]}, the largest bucket, got {n}")
    return next(bucket for bucket in buckets if bucket >= n)


def pad_to_bucket(
    x: torch.Tensor, buckets: Sequence[int], fill: float
) -> tuple[torch.Tensor, int]:
    """Returns x with its last dimension padded to a bucket, and its original length.

    Raises:
        ValueError: x has no dimensions, or no bucket fits its last one.
    """
    if x.dim() == 0:
        raise ValueError("x: expected at least 1 dimension, got 0")
    n = x.shape[-1]
    size = bucket_length(n, buckets)
    padded = x.new_full((*x.shape[:-1], size), fill)
    padded[..., :n] = x
    return padded, n


# ---------------------------------------------------------------------------------------------
# Mean over valid steps


@triton.jit(do_not_specialize=["T"])  # neither 1 nor multiples of 16 get a variant
def masked_mean_kernel(
    x_ptr, lengths_ptr, out_ptr,  # [B, T, D], [B] and [B, D]
    stride_xb, stride_xt,         # elements between samples, and between steps
    T, D,
    BLOCK_T: tl.constexpr,        # steps per iteration
    BLOCK_D: tl.constexpr,        # columns per program
):
    """out[b, d] = mean of x[b, t, d] over t < lengths[b]. One program owns BLOCK_D columns of b.

    Moves (sum of lengths + B) * D * itemsize bytes, and one length per program.
    """
    b = tl.program_id(axis=0).to(tl.int64)  # b * stride passes 2**31 in large batches
    cols = tl.program_id(axis=1) * BLOCK_D + tl.arange(0, BLOCK_D)
    length = tl.minimum(tl.load(lengths_ptr + b), T).to(tl.int32)

    acc = tl.zeros((BLOCK_T, BLOCK_D), dtype=tl.float32)
    for start in range(0, length, BLOCK_T):
        steps = start + tl.arange(0, BLOCK_T)
        mask = (steps[:, None] < length) & (cols[None, :] < D)
        offs = steps[:, None].to(tl.int64) * stride_xt + cols[None, :]
        acc += tl.load(x_ptr + b * stride_xb + offs, mask=mask, other=0.0).to(tl.float32)

    mean = tl.sum(acc, axis=0) / tl.maximum(length, 1)  # without steps: 0 / 1

    tl.store(out_ptr + b * D + cols, mean.to(out_ptr.dtype.element_ty), mask=cols < D)


def masked_mean(x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """Returns the means over the first lengths[b] steps of x[b], (B, T, D) to (B, D).

    Lengths are integers. A length above T counts as T, and the mean of length 0 is 0.
    """
    if x.stride(2) != 1:
        x = x.contiguous()
    B, T, D = x.shape
    out = x.new_empty(B, D)
    if out.numel() == 0:
        return out
    block_d = min(128, triton.next_power_of_2(D))  # a model has one D, so this is one variant
    grid = (B, triton.cdiv(D, block_d))
    masked_mean_kernel[grid](
        x, lengths.contiguous(), out, x.stride(0), x.stride(1), T, D, BLOCK_T=32, BLOCK_D=block_d
    )
    return out


# ---------------------------------------------------------------------------------------------
# Softmax of any width


@triton.heuristics({"EVEN": lambda args: args["n_cols"] % args["BLOCK"] == 0})
@triton.jit
def softmax_narrow_kernel(
    x_ptr, out_ptr,       # [n_rows, n_cols], contiguous within a row
    stride_x,             # elements between rows of x
    n_rows, n_cols,
    ROWS: tl.constexpr,   # per program
    BLOCK: tl.constexpr,  # power of two >= n_cols
    EVEN: tl.constexpr,   # every element of the block has a column
):
    """Softmax of narrow rows. One program owns ROWS rows.

    Moves 2 * n_rows * n_cols * itemsize bytes.
    """
    rows = tl.program_id(axis=0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK)
    mask = rows[:, None] < n_rows
    if not EVEN:
        mask = mask & (cols[None, :] < n_cols)

    x = tl.load(x_ptr + rows[:, None] * stride_x + cols[None, :], mask=mask, other=-float("inf"))
    x = x.to(tl.float32)

    numerator = tl.exp(x - tl.max(x, axis=1)[:, None])
    y = numerator / tl.sum(numerator, axis=1)[:, None]

    out_ptrs = out_ptr + rows[:, None] * n_cols + cols[None, :]
    tl.store(out_ptrs, y.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def softmax_block_kernel(
    x_ptr, out_ptr,       # [n_rows, n_cols], contiguous within a row
    stride_x,             # elements between rows of x
    n_cols,
    BLOCK: tl.constexpr,  # power of two >= n_cols
):
    """Softmax of one row, which is one block. Moves 2 * n_rows * n_cols * itemsize bytes."""
    row = tl.program_id(axis=0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols

    x = tl.load(x_ptr + row * stride_x + cols, mask=mask, other=-float("inf")).to(tl.float32)

    numerator = tl.exp(x - tl.max(x, axis=0))
    y = numerator * (1.0 / tl.sum(numerator, axis=0))

    tl.store(out_ptr + row * n_cols + cols, y.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def softmax_online_kernel(
    x_ptr, out_ptr,       # [n_rows, n_cols], contiguous within a row
    stride_x,             # elements between rows of x
    n_cols,
    BLOCK: tl.constexpr,  # columns per step, the same for every width
):
    """Softmax of one row in two passes over its blocks: maximum and sum, then quotients.

    Moves 3 * n_rows * n_cols * itemsize bytes: the row is read twice.
    """
    row = tl.program_id(axis=0).to(tl.int64)
    offs = tl.arange(0, BLOCK)
    x_row = x_ptr + row * stride_x

    m_i = -float("inf")
    l_i = 0.0
    for start in range(0, n_cols, BLOCK):
        cols = start + offs
        x = tl.load(x_row + cols, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
        m_ij = tl.maximum(m_i, tl.max(x, axis=0))
        shift = tl.where(m_ij == -float("inf"), 0.0, m_ij)  # -inf - -inf would be NaN
        alpha = tl.exp(m_i - shift)  # rescales the sum from the old maximum to the new one
        l_i = l_i * alpha + tl.sum(tl.exp(x - shift), axis=0)
        m_i = m_ij

    shift = tl.where(m_i == -float("inf"), 0.0, m_i)
    scale = 1.0 / l_i
    for start in range(0, n_cols, BLOCK):
        cols = start + offs
        mask = cols < n_cols
        x = tl.load(x_row + cols, mask=mask).to(tl.float32)
        y = tl.exp(x - shift) * scale
        tl.store(out_ptr + row * n_cols + cols, y.to(out_ptr.dtype.element_ty), mask=mask)


def softmax_any(x: torch.Tensor) -> torch.Tensor:
    """Returns the softmax over dim 1 of a matrix of any width, a new contiguous tensor."""
    if x.stride(1) != 1:
        x = x.contiguous()
    n_rows, n_cols = x.shape
    out = x.new_empty(x.shape)
    if out.numel() == 0:
        return out
    block = triton.next_power_of_2(n_cols)
    if n_cols <= NARROW:
        rows = max(4, min(64, 2_048 // block))  # at least 16 elements for each of 128 threads
        softmax_narrow_kernel[(triton.cdiv(n_rows, rows),)](
            x, out, x.stride(0), n_rows, n_cols, ROWS=rows, BLOCK=block
        )
    elif n_cols <= WIDE:
        # The widest block has 16 warps; with 32, a thread has at most 64 registers.
        num_warps = 16 if block == WIDE else max(4, block // 1_024)
        softmax_block_kernel[(n_rows,)](
            x, out, x.stride(0), n_cols, BLOCK=block, num_warps=num_warps
        )
    else:
        softmax_online_kernel[(n_rows,)](x, out, x.stride(0), n_cols, BLOCK=8_192, num_warps=8)
    return out


if __name__ == "__main__":
    import tritonlab

    tritonlab.run_public_cases(__file__)
