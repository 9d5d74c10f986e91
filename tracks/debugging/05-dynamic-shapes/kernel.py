"""A chat service that compiles at every new length, a softmax for few widths, and tools that lie.

Goal:    make `masked_mean` and `softmax_any` serve every length with few compiled variants, repair
         the tools that count variants and choose buckets, and say what `storm.log` shows.
Shapes:  beside each function. Results are new tensors; inputs stay as they are.
Given:   all that is right. What somebody saw stands above each function as its symptom; nobody has
         looked for the reasons. `read_launch` is right.
Judged:  specialization_keys   launches by Triton's own rule
         bucket_length, pad_to_bucket   against a search by brute force, and what they refuse
         masked_mean   values, lengths of 0; 16 values of T compile at most 4 variants
         softmax_any   widths from 1 to over a million; 2 R C e bytes, beyond 65 536 columns 3 R C e
         STORM         culprit, variants before, variants after

`python kernel.py` runs some cases, `tritonlab grade track3/dynamic-shapes` all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
import triton
import triton.language as tl

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


# Symptom: for the log it counts nearly as many variants as there are launches, and Triton compiled
# fewer. For other launches it counts too few.
def specialization_keys(launches: Sequence[LaunchRecord]) -> int:
    """How many variants Triton compiles for these launches, on one GPU."""
    return len({_key(launch) for launch in launches})


def _key(launch: LaunchRecord) -> tuple[object, ...]:
    """All that the compiled code depends on."""
    known = tuple((name, str(value)) for name, value in launch.arguments.items())
    return launch.kernel, known


@dataclass(frozen=True)
class StormAnswer:
    """What `storm.log` shows."""

    culprit: str  # the argument that makes Triton compile again and again
    variants_before: int  # compiled during the log
    variants_after: int  # for the same launches, had it been passed at run time, not specialized


STORM = StormAnswer(culprit="", variants_before=0, variants_after=0)


# ---------------------------------------------------------------------------------------------
# Buckets


# Symptom: a prompt of 130 tokens came back with 128.
def bucket_length(n: int, buckets: Sequence[int]) -> int:
    """The smallest bucket that holds n.

    Raises:
        ValueError: n is negative, there is no bucket, they are not in strictly ascending order, or
            n is above the largest.
    """
    return max(bucket for bucket in buckets if bucket <= n)


# Symptom: with fill=-inf, the softmax of a padded row still sums to less than 1 over its real part.
# And nobody can cut the result back to what it was.
def pad_to_bucket(
    x: torch.Tensor, buckets: Sequence[int], fill: float
) -> tuple[torch.Tensor, int]:
    """x with its last dimension filled up to a bucket, and the length that it had.

    Raises:
        ValueError: x has no dimension, or no bucket is right for its last one.
    """
    n = x.shape[-1]
    size = bucket_length(n, buckets)
    padded = x.new_zeros((*x.shape[:-1], size))
    padded[..., :n] = x
    return padded, size


# ---------------------------------------------------------------------------------------------
# The mean of the steps that count


# Symptom: the first request of every new length takes a second. A conversation that has no token
# yet gets NaN.
@triton.jit
def masked_mean_kernel(
    x_ptr, lengths_ptr, out_ptr,  # [B, T, D], [B] and [B, D]
    stride_xb, stride_xt,         # elements from sample to sample, and from step to step
    D,
    T: tl.constexpr,              # steps of the longest sample
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

    mean = tl.sum(acc, axis=0) / length

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
        x, lengths.contiguous(), out, x.stride(0), x.stride(1), D, T=T, BLOCK_T=32, BLOCK_D=block_d
    )
    return out


# ---------------------------------------------------------------------------------------------
# A softmax for every width


# Symptom: 128 and 256 columns are right. With 384, rows write over other rows. Rows of 10 columns
# take a program each. A vocabulary of more than 65 536 words is refused: the block got too large.
@triton.heuristics({"EVEN": lambda args: args["n_cols"] % 128 == 0})
@triton.jit
def softmax_kernel(
    x_ptr, out_ptr,       # [n_rows, n_cols], each row without gaps
    stride_x,             # elements from one row of x to the next
    n_cols,
    BLOCK: tl.constexpr,  # power of two >= n_cols
    EVEN: tl.constexpr,   # the sizes are even, so no mask is needed
):
    """Softmax of one row, which is one block. Moves 2 * n_rows * n_cols * itemsize bytes."""
    row = tl.program_id(axis=0).to(tl.int64)
    cols = tl.arange(0, BLOCK)

    if EVEN:
        x = tl.load(x_ptr + row * stride_x + cols)
    else:
        x = tl.load(x_ptr + row * stride_x + cols, mask=cols < n_cols, other=-float("inf"))
    x = x.to(tl.float32)

    numerator = tl.exp(x - tl.max(x, axis=0))
    y = (numerator / tl.sum(numerator, axis=0)).to(out_ptr.dtype.element_ty)

    if EVEN:
        tl.store(out_ptr + row * n_cols + cols, y)
    else:
        tl.store(out_ptr + row * n_cols + cols, y, mask=cols < n_cols)


def softmax_any(x: torch.Tensor) -> torch.Tensor:
    """Softmax over dim 1 of a matrix of any width, as a new contiguous tensor."""
    if x.stride(1) != 1:
        x = x.contiguous()
    n_rows, n_cols = x.shape
    out = x.new_empty(x.shape)
    if out.numel() == 0:
        return out
    block = triton.next_power_of_2(n_cols)
    if block > 65_536:
        raise ValueError(f"x: expected at most 65536 columns, got {n_cols}")
    num_warps = max(4, block // 4_096)
    softmax_kernel[(n_rows,)](x, out, x.stride(0), n_cols, BLOCK=block, num_warps=num_warps)
    return out


if __name__ == "__main__":
    import tritonlab

    tritonlab.run_public_cases(__file__)
