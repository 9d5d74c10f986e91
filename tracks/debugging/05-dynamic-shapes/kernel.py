"""A chat service that recompiles at every new length, a softmax for few widths, and wrong tools.

Goal:    make `masked_mean` and `softmax_any` serve every length with few compiled variants, repair
         the tools that count variants and choose buckets, and record what `storm.log` shows.
Shapes:  in the docstring of each function. Results are new tensors; inputs are not modified.
Given:   everything that is right, including `read_launch`. The comment above each function
         describes the symptom; nobody has looked for the cause.
Graded:  specialization_keys   launches by Triton's own rule
         bucket_length, pad_to_bucket   against a brute-force search, and their exceptions
         masked_mean   values, lengths of 0; 16 values of T compile at most 4 variants
         softmax_any   widths from 1 to over a million; 2 R C e bytes, above 65,536 columns 3 R C e
         STORM         culprit, variants before, variants after

`python kernel.py` runs some cases, `tritonlab grade track3/dynamic-shapes` all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
import triton
import triton.language as tl

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


# Symptom: for the log, it counts nearly as many variants as there are launches, and Triton compiled
# fewer. For other launches, it counts too few.
def specialization_keys(launches: Sequence[LaunchRecord]) -> int:
    """Returns how many variants Triton compiles for these launches, on one GPU."""
    return len({_key(launch) for launch in launches})


def _key(launch: LaunchRecord) -> tuple[object, ...]:
    """Returns everything that the compiled code depends on."""
    known = tuple((name, str(value)) for name, value in launch.arguments.items())
    return launch.kernel, known


@dataclass(frozen=True)
class StormAnswer:
    """The diagnosis of `storm.log`."""

    culprit: str  # the argument that causes most compilations
    variants_before: int  # compiled during the log
    variants_after: int  # if it were passed at run time, without specialization


STORM = StormAnswer(culprit="", variants_before=0, variants_after=0)


# ---------------------------------------------------------------------------------------------
# Buckets


# Symptom: a prompt of 130 tokens was cut to 128.
def bucket_length(n: int, buckets: Sequence[int]) -> int:
    """Returns the smallest bucket that is at least n.

    Raises:
        ValueError: n is negative or above the largest bucket, or the buckets are empty or not
            strictly ascending.
    """
    return max(bucket for bucket in buckets if bucket <= n)


# Symptom: with fill=-inf, the softmax of a padded row sums to less than 1 over its original part, and
# the result cannot be cut back to the original length.
def pad_to_bucket(
    x: torch.Tensor, buckets: Sequence[int], fill: float
) -> tuple[torch.Tensor, int]:
    """Returns x with its last dimension padded to a bucket, and its original length.

    Raises:
        ValueError: x has no dimensions, or no bucket fits its last one.
    """
    n = x.shape[-1]
    size = bucket_length(n, buckets)
    padded = x.new_zeros((*x.shape[:-1], size))
    padded[..., :n] = x
    return padded, size


# ---------------------------------------------------------------------------------------------
# Mean over valid steps


# Symptom: the first request of every new length takes a second. A conversation without tokens gets
# NaN.
@triton.jit
def masked_mean_kernel(
    x_ptr, lengths_ptr, out_ptr,  # [B, T, D], [B] and [B, D]
    stride_xb, stride_xt,         # elements between samples, and between steps
    D,
    T: tl.constexpr,              # steps of x
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

    mean = tl.sum(acc, axis=0) / length

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
        x, lengths.contiguous(), out, x.stride(0), x.stride(1), D, T=T, BLOCK_T=32, BLOCK_D=block_d
    )
    return out


# ---------------------------------------------------------------------------------------------
# Softmax of any width


# Symptom: right for 128 and 256 columns. With 384, rows overwrite other rows. Rows of 10 columns take
# a program each. A vocabulary of more than 65,536 words is rejected because of the block size.
@triton.heuristics({"EVEN": lambda args: args["n_cols"] % 128 == 0})
@triton.jit
def softmax_kernel(
    x_ptr, out_ptr,       # [n_rows, n_cols], contiguous within a row
    stride_x,             # elements between rows of x
    n_cols,
    BLOCK: tl.constexpr,  # power of two >= n_cols
    EVEN: tl.constexpr,   # no mask is needed
):
    """Softmax of one row in one block. Moves 2 * n_rows * n_cols * itemsize bytes."""
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
    """Returns the softmax over dim 1 of a matrix of any width, a new contiguous tensor."""
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
