"""A mean and a softmax for every length, compiled a few times at most, and tools that count it.

    masked_mean    out[b, d] = mean of x[b, 0 .. lengths[b] - 1, d], 0 where lengths[b] is 0
    softmax_any    out[r, c] = exp(x[r, c] - max of row r) / sum of these over row r

Cost: masked_mean reads the steps that count once and writes B * D numbers. softmax_any reads a row
once and writes it once, 2 * R * C * itemsize bytes; beyond 65 536 columns a row no longer fits into
one program and is read twice, 3 * R * C * itemsize bytes.

Variants: a kernel is compiled again for each constexpr value, dtype and launch option, and for what
Triton may know of an argument: that an integer is 1 or a multiple of 16, that an address is one.
Sizes that change from call to call are therefore run-time arguments, and what is constexpr takes
few values.

Precision: everything between load and store is float32, whatever the tensors hold.

Source: the running maximum and sum are those of Milakov and Gimelshein, "Online normalizer
calculation for softmax" (2018).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import torch
import triton
import triton.language as tl

NARROW = 1_024  # columns up to which several rows share a program
WIDE = 65_536  # columns up to which a row is one block
FACTOR = 16  # of integers and addresses that Triton makes use of


# ---------------------------------------------------------------------------------------------
# What makes a variant


@dataclass(frozen=True)
class TensorArgument:
    """What a record keeps of a tensor that a kernel got."""

    dtype: str
    address: int  # of its first element, in bytes


@dataclass(frozen=True)
class LaunchRecord:
    """One launch: what each parameter got, and how the kernel was declared."""

    kernel: str
    arguments: dict[str, TensorArgument | int | float | bool | None]  # run-time ones, in order
    constexprs: dict[str, int | bool | str] = field(default_factory=dict)
    do_not_specialize: tuple[str, ...] = ()  # parameters that the decorator names
    num_warps: int = 4


def read_launch(line: str) -> LaunchRecord:
    """The launch that one line of `storm.log` tells of.

    The line has four parts: number and what Triton did; kernel and run-time arguments; constexpr
    values; options. A tensor is written as dtype@address.
    """
    _, told, constexprs, options = line.split("|")
    kernel, *arguments = told.split()
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
    """How many variants Triton compiles for these launches, on one GPU."""
    return len({_key(launch) for launch in launches})


def _key(launch: LaunchRecord) -> tuple[object, ...]:
    """All that the compiled code depends on."""
    known = tuple(
        (name, _known_of(value, name not in launch.do_not_specialize))
        for name, value in launch.arguments.items()
    )
    return launch.kernel, known, tuple(launch.constexprs.items()), launch.num_warps


def _known_of(value: object, specialize: bool) -> tuple[object, ...]:
    """What the compiler knows of a run-time argument: its type, and of its value what pays off."""
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
    return (type(value).__name__,)  # of floats and truth values only the type


@dataclass(frozen=True)
class StormAnswer:
    """What `storm.log` shows."""

    culprit: str  # the argument that makes Triton compile again and again
    variants_before: int  # compiled during the log
    variants_after: int  # for the same launches, had it been passed at run time, not specialized


STORM = StormAnswer(culprit="T", variants_before=93, variants_after=5)


# ---------------------------------------------------------------------------------------------
# Buckets


def bucket_length(n: int, buckets: Sequence[int]) -> int:
    """The smallest bucket that holds n.

    Raises:
        ValueError: n is negative, there is no bucket, they are not in strictly ascending order, or
            n is above the largest.
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
    """x with its last dimension filled up to a bucket, and the length that it had.

    Raises:
        ValueError: x has no dimension, or no bucket is right for its last one.
    """
    if x.dim() == 0:
        raise ValueError("x: expected at least 1 dimension, got 0")
    n = x.shape[-1]
    size = bucket_length(n, buckets)
    padded = x.new_full((*x.shape[:-1], size), fill)
    padded[..., :n] = x
    return padded, n


# ---------------------------------------------------------------------------------------------
# The mean of the steps that count


@triton.jit(do_not_specialize=["T"])  # not even whether it is 1 or a multiple of 16 matters here
def masked_mean_kernel(
    x_ptr, lengths_ptr, out_ptr,  # [B, T, D], [B] and [B, D]
    stride_xb, stride_xt,         # elements from sample to sample, and from step to step
    T, D,
    BLOCK_T: tl.constexpr,        # steps that are added at once
    BLOCK_D: tl.constexpr,        # columns per program
):
    """out[b, d] = mean of x[b, t, d] over t < lengths[b]. One program owns BLOCK_D columns of b.

    Moves (sum of lengths + B) * D * itemsize bytes, and a length for each program.
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

    mean = tl.sum(acc, axis=0) / tl.maximum(length, 1)  # the sum of no step is 0, and so is 0 / 1

    tl.store(out_ptr + b * D + cols, mean.to(out_ptr.dtype.element_ty), mask=cols < D)


def masked_mean(x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """The mean over the first lengths[b] steps of x[b], for x of shape (B, T, D), as (B, D).

    Lengths are integers; one above T counts as T, and where it is 0 the mean is 0.
    """
    if x.stride(2) != 1:
        x = x.contiguous()
    B, T, D = x.shape
    out = x.new_empty(B, D)
    if out.numel() == 0:
        return out
    block_d = min(128, triton.next_power_of_2(D))  # of a model, D is the same in every call
    grid = (B, triton.cdiv(D, block_d))
    masked_mean_kernel[grid](
        x, lengths.contiguous(), out, x.stride(0), x.stride(1), T, D, BLOCK_T=32, BLOCK_D=block_d
    )
    return out


# ---------------------------------------------------------------------------------------------
# A softmax for every width


@triton.heuristics({"EVEN": lambda args: args["n_cols"] % args["BLOCK"] == 0})
@triton.jit
def softmax_narrow_kernel(
    x_ptr, out_ptr,       # [n_rows, n_cols], each row without gaps
    stride_x,             # elements from one row of x to the next
    n_rows, n_cols,
    ROWS: tl.constexpr,   # per program
    BLOCK: tl.constexpr,  # power of two >= n_cols
    EVEN: tl.constexpr,   # every element has a column
):
    """Softmax of rows that are narrower than what a program can hold: it owns ROWS of them.

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
    x_ptr, out_ptr,       # [n_rows, n_cols], each row without gaps
    stride_x,             # elements from one row of x to the next
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
    x_ptr, out_ptr,       # [n_rows, n_cols], each row without gaps
    stride_x,             # elements from one row of x to the next
    n_cols,
    BLOCK: tl.constexpr,  # columns that are looked at together, whatever the width
):
    """Softmax of one row in two sweeps over its blocks: maximum and sum, then the quotients.

    Moves 3 * n_rows * n_cols * itemsize bytes: the row is read twice.
    """
    row = tl.program_id(axis=0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    x_row = x_ptr + row * stride_x

    row_max = -float("inf")
    total = 0.0
    for start in range(0, n_cols, BLOCK):
        cols = start + lanes
        x = tl.load(x_row + cols, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
        new_max = tl.maximum(row_max, tl.max(x, axis=0))
        shift = tl.where(new_max == -float("inf"), 0.0, new_max)  # -inf - -inf would be NaN
        # What was added so far had been divided by exp(row_max): now it is by exp(new_max).
        total = total * tl.exp(row_max - shift) + tl.sum(tl.exp(x - shift), axis=0)
        row_max = new_max

    shift = tl.where(row_max == -float("inf"), 0.0, row_max)
    scale = 1.0 / total
    for start in range(0, n_cols, BLOCK):
        cols = start + lanes
        mask = cols < n_cols
        x = tl.load(x_row + cols, mask=mask).to(tl.float32)
        y = tl.exp(x - shift) * scale
        tl.store(out_ptr + row * n_cols + cols, y.to(out_ptr.dtype.element_ty), mask=mask)


def softmax_any(x: torch.Tensor) -> torch.Tensor:
    """Softmax over dim 1 of a matrix of any width, as a new contiguous tensor."""
    if x.stride(1) != 1:
        x = x.contiguous()
    n_rows, n_cols = x.shape
    out = x.new_empty(x.shape)
    if out.numel() == 0:
        return out
    block = triton.next_power_of_2(n_cols)
    if n_cols <= NARROW:
        rows = max(4, min(64, 2_048 // block))  # 16 numbers or more for each of 128 threads
        softmax_narrow_kernel[(triton.cdiv(n_rows, rows),)](
            x, out, x.stride(0), n_rows, n_cols, ROWS=rows, BLOCK=block
        )
    elif n_cols <= WIDE:
        # The widest block has 16 warps: with 32, no thread has more than 64 registers.
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
