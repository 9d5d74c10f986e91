"""Other ways to write or launch the reference solutions, to find out which of them is faster.

Every attempt keeps the contract of the solution on the shapes that `tests.benchmarks.kernels` times
it on, and only there: it checks nothing. What was learnt from them stands in `notes.md`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl

from tests.benchmarks.modules import solution

Attempts = dict[str, Callable[..., Any]]
MULTIPROCESSORS = 132  # of an H200; attempts that are persistent start a multiple of it


# ---------------------------------------------------------------------------------------------
# Element by element


def element_wise(kernel: Any, settings: tuple[tuple[int, int], ...], numbers: int = 1) -> Attempts:
    """A kernel of (inputs..., out, n, BLOCK_SIZE or BLOCK) by elements per program and warps.

    An element is so many ``numbers`` of the tensors.
    """
    block_name = kernel.arg_names[-1]

    def launched(block: int, warps: int) -> Callable[..., torch.Tensor]:
        def run(*inputs: torch.Tensor) -> torch.Tensor:
            out = torch.empty_like(inputs[0])
            n = out.numel() // numbers
            kernel[(triton.cdiv(n, block),)](
                *inputs, out, n, **{block_name: block}, num_warps=warps)
            return out
        return run

    return {f"{block} w{warps}": launched(block, warps) for block, warps in settings}


@triton.jit
def add_streaming_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Addition that tells the caches that nothing will be read again."""
    offs = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask, eviction_policy="evict_first")
    y = tl.load(y_ptr + offs, mask=mask, eviction_policy="evict_first")
    tl.store(out_ptr + offs, x + y, mask=mask, cache_modifier=".cs")


def vector_add() -> Attempts:
    kernel = solution("vector-add").vector_add_kernel
    return element_wise(kernel, ((256, 2), (512, 4), (1024, 8), (2048, 8))) | {
        f"streaming {name}": run for name, run in element_wise(
            add_streaming_kernel, ((512, 4), (1024, 4))).items()}


@triton.jit
def add_relu_mul_kernel(x_ptr, y_ptr, out_ptr, n, scale, BLOCK: tl.constexpr):
    """out[i] = max(x[i] + y[i], 0) * scale. One program owns BLOCK elements."""
    offs = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    total = tl.load(x_ptr + offs, mask=mask) + tl.load(y_ptr + offs, mask=mask)
    tl.store(out_ptr + offs, tl.where(total < 0, 0.0, total) * scale, mask=mask)


def add_relu_mul(block: int = 1024, warps: int = 4) -> Callable[..., torch.Tensor]:
    """The element-wise chain of the fusion module, which is yet to be written."""
    def run(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        n = out.numel()
        add_relu_mul_kernel[(triton.cdiv(n, block),)](
            x, y, out, n, 0.5, BLOCK=block, num_warps=warps)
        return out
    return run


# ---------------------------------------------------------------------------------------------
# Softmax


@triton.jit
def softmax_dividing_kernel(
    x_ptr, out_ptr, n_cols, stride_x, stride_out, BLOCK_SIZE: tl.constexpr,
):
    """A division an element, which the solution saves."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * stride_x + cols, mask=mask, other=-float("inf")).to(tl.float32)
    numerator = tl.exp(x - tl.max(x, axis=0))
    y = numerator / tl.sum(numerator, axis=0)
    tl.store(out_ptr + row * stride_out + cols, y.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def softmax_streaming_kernel(
    x_ptr, out_ptr, n_cols, stride_x, stride_out, BLOCK_SIZE: tl.constexpr,
):
    """The solution, telling the caches that nothing will be read again."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * stride_x + cols, mask=mask, other=-float("inf"),
                eviction_policy="evict_first").to(tl.float32)
    numerator = tl.exp(x - tl.max(x, axis=0))
    y = numerator * (1.0 / tl.sum(numerator, axis=0))
    tl.store(out_ptr + row * stride_out + cols, y.to(out_ptr.dtype.element_ty), mask=mask,
             cache_modifier=".cs")


@triton.jit
def softmax_rows_kernel(
    x_ptr, out_ptr, n_rows, n_cols, stride_x, stride_out,
    BLOCK_ROWS: tl.constexpr, BLOCK_SIZE: tl.constexpr,
):
    """Several rows per program."""
    rows = tl.program_id(0).to(tl.int64) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = (rows < n_rows)[:, None] & (cols < n_cols)[None, :]
    x = tl.load(x_ptr + (rows * stride_x)[:, None] + cols[None, :], mask=mask,
                other=-float("inf")).to(tl.float32)
    numerator = tl.exp(x - tl.max(x, axis=1)[:, None])
    y = numerator * (1.0 / tl.sum(numerator, axis=1))[:, None]
    tl.store(out_ptr + (rows * stride_out)[:, None] + cols[None, :],
             y.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def softmax_persistent_kernel(
    x_ptr, out_ptr, n_rows, n_cols, stride_x, stride_out,
    BLOCK_SIZE: tl.constexpr, NUM_STAGES: tl.constexpr,
):
    """As many programs as fit; the next row is on its way while this one is computed."""
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    for row in tl.range(tl.program_id(0), n_rows, tl.num_programs(0), num_stages=NUM_STAGES):
        at = row.to(tl.int64)
        x = tl.load(x_ptr + at * stride_x + cols, mask=mask, other=-float("inf")).to(tl.float32)
        numerator = tl.exp(x - tl.max(x, axis=0))
        y = numerator * (1.0 / tl.sum(numerator, axis=0))
        tl.store(out_ptr + at * stride_out + cols, y.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def softmax_chunks_kernel(
    x_ptr, out_ptr, n_cols, stride_x, stride_out, BLOCK_SIZE: tl.constexpr,
):
    """Online: maximum and sum in one walk through the row, the results in a second one from cache.

    The lowest finite number as the first maximum: minus infinity would be taken from itself.
    """
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK_SIZE)
    row_max = -3.4028234663852886e38
    sums = tl.zeros([BLOCK_SIZE], dtype=tl.float32)
    for start in range(0, n_cols, BLOCK_SIZE):
        cols = start + lanes
        x = tl.load(x_ptr + row * stride_x + cols, mask=cols < n_cols, other=-float("inf"),
                    eviction_policy="evict_last").to(tl.float32)
        new_max = tl.maximum(row_max, tl.max(x, axis=0))
        sums = sums * tl.exp(row_max - new_max) + tl.exp(x - new_max)
        row_max = new_max
    scale = 1.0 / tl.sum(sums, axis=0)
    for start in range(0, n_cols, BLOCK_SIZE):
        cols = start + lanes
        x = tl.load(x_ptr + row * stride_x + cols, mask=cols < n_cols, other=-float("inf"),
                    eviction_policy="evict_first").to(tl.float32)
        y = tl.exp(x - row_max) * scale
        tl.store(out_ptr + row * stride_out + cols, y.to(out_ptr.dtype.element_ty),
                 mask=cols < n_cols)


@triton.jit
def softmax_aligned_kernel(
    x_ptr, out_ptr, n_cols, stride, BLOCK_SIZE: tl.constexpr, WIDTH: tl.constexpr,
):
    """Rows that begin anywhere: 16 bytes at a time from the first place where that is possible, and
    what lies before and behind, fewer than WIDTH elements each, one by one."""
    start = tl.program_id(0).to(tl.int64) * stride
    first = tl.cdiv(start, WIDTH) * WIDTH
    head = (first - start).to(tl.int32)
    body = (n_cols - head) // WIDTH * WIDTH
    lanes = tl.arange(0, BLOCK_SIZE)
    mask = lanes < body
    edge = tl.arange(0, 2 * WIDTH)
    edge_cols = tl.where(edge < WIDTH, edge, head + body + edge - WIDTH)
    edge_mask = tl.where(edge < WIDTH, edge < head, edge_cols < n_cols)

    x = tl.load(x_ptr + first + lanes, mask=mask, other=-float("inf")).to(tl.float32)
    rest = tl.load(x_ptr + start + edge_cols, mask=edge_mask, other=-float("inf")).to(tl.float32)

    row_max = tl.maximum(tl.max(x, axis=0), tl.max(rest, axis=0))
    numerator, others = tl.exp(x - row_max), tl.exp(rest - row_max)
    scale = 1.0 / (tl.sum(numerator, axis=0) + tl.sum(others, axis=0))

    tl.store(out_ptr + first + lanes, (numerator * scale).to(out_ptr.dtype.element_ty), mask=mask)
    tl.store(out_ptr + start + edge_cols, (others * scale).to(out_ptr.dtype.element_ty),
             mask=edge_mask)


def softmax(columns: int) -> Attempts:
    own = solution("softmax").softmax_kernel
    block = triton.next_power_of_2(columns)

    def by_row(kernel: Any, warps: int, **more: Any) -> Callable[..., torch.Tensor]:
        def run(x: torch.Tensor) -> torch.Tensor:
            out = torch.empty_like(x)
            kernel[(len(x),)](x, out, x.shape[1], x.stride(0), out.stride(0), num_warps=warps,
                              **{"BLOCK_SIZE": block, **more})
            return out
        return run

    def by_rows(rows: int, warps: int) -> Callable[..., torch.Tensor]:
        def run(x: torch.Tensor) -> torch.Tensor:
            out = torch.empty_like(x)
            softmax_rows_kernel[(triton.cdiv(len(x), rows),)](
                x, out, *x.shape, x.stride(0), out.stride(0), BLOCK_ROWS=rows, BLOCK_SIZE=block,
                num_warps=warps)
            return out
        return run

    def persistent(each: int, warps: int, stages: int) -> Callable[..., torch.Tensor]:
        def run(x: torch.Tensor) -> torch.Tensor:
            out = torch.empty_like(x)
            softmax_persistent_kernel[(min(len(x), MULTIPROCESSORS * each),)](
                x, out, *x.shape, x.stride(0), out.stride(0), BLOCK_SIZE=block, NUM_STAGES=stages,
                num_warps=warps)
            return out
        return run

    def aligned(warps: int) -> Callable[..., torch.Tensor]:
        def run(x: torch.Tensor) -> torch.Tensor:
            out = torch.empty_like(x)
            softmax_aligned_kernel[(len(x),)](
                x, out, x.shape[1], x.stride(0), BLOCK_SIZE=block, WIDTH=16 // x.element_size(),
                num_warps=warps)
            return out
        return run

    def own_by(*warps: int) -> Attempts:
        return {f"own w{w}": by_row(own, w) for w in warps}

    def dividing_by(*warps: int) -> Attempts:
        return {f"dividing w{w}": by_row(softmax_dividing_kernel, w) for w in warps}

    def streaming_by(*warps: int) -> Attempts:
        return {f"streaming w{w}": by_row(softmax_streaming_kernel, w) for w in warps}

    def chunks(*settings: tuple[int, int]) -> Attempts:
        return {f"chunks of {size} w{w}": by_row(softmax_chunks_kernel, w, BLOCK_SIZE=size)
                for size, w in settings}

    if columns <= 1024:
        return (own_by(1, 4) | dividing_by(2, 4) | streaming_by(2)
                | {"2 rows w2": by_rows(2, 2), "2 rows w4": by_rows(2, 4),
                   "4 rows w4": by_rows(4, 4), "persistent x8 w4 s3": persistent(8, 4, 3)})
    if columns <= 4096:
        return (own_by(2, 8, 16) | dividing_by(4, 8, 16) | streaming_by(4)
                | {"persistent x4 w8 s2": persistent(4, 8, 2)})
    if columns % 16:
        return (own_by(8, 32) | dividing_by(16, 32) | streaming_by(16)
                | chunks((2048, 8), (4096, 8), (4096, 16))
                | {"own w16 of 64 registers": by_row(own, 16, maxnreg=64),
                   "aligned w8": aligned(8), "aligned w16": aligned(16),
                   "persistent x2 w16 s2": persistent(2, 16, 2)})
    return (own_by(16) | dividing_by(16, 32) | streaming_by(32)
            | chunks((4096, 8), (8192, 8), (8192, 16))
            | {"persistent x1 w32 s2": persistent(1, 32, 2),
               "persistent x1 w16 s2": persistent(1, 16, 2)})


# ---------------------------------------------------------------------------------------------
# Layer norm


@triton.jit
def layer_norm_early_kernel(
    x_ptr, out_ptr, weight_ptr, bias_ptr, mean_ptr, rstd_ptr, n_cols, stride_x, stride_out, eps,
    BLOCK_SIZE: tl.constexpr, STREAM: tl.constexpr,
):
    """The parameters are asked for before the statistics, so that nobody waits for them."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * stride_x + cols, mask=mask, other=0.0,
                eviction_policy="evict_first" if STREAM else "").to(tl.float32)
    weight = tl.load(weight_ptr + cols, mask=mask,
                     eviction_policy="evict_last" if STREAM else "")
    bias = tl.load(bias_ptr + cols, mask=mask, eviction_policy="evict_last" if STREAM else "")
    mean = tl.sum(x, axis=0) / n_cols
    centred = tl.where(mask, x - mean, 0.0)
    rstd = tl.rsqrt(tl.sum(centred * centred, axis=0) / n_cols + eps)
    y = centred * rstd * weight.to(tl.float32) + bias.to(tl.float32)
    tl.store(out_ptr + row * stride_out + cols, y.to(out_ptr.dtype.element_ty), mask=mask,
             cache_modifier=".cs" if STREAM else "")
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)


@triton.jit
def layer_norm_kept_kernel(
    x_ptr, out_ptr, weight_ptr, bias_ptr, mean_ptr, rstd_ptr, n_cols, stride_x, stride_out, eps,
    BLOCK_SIZE: tl.constexpr,
):
    """The solution, telling the caches to keep the parameters and to give up what is read once."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * stride_x + cols, mask=mask, other=0.0,
                eviction_policy="evict_first").to(tl.float32)
    mean = tl.sum(x, axis=0) / n_cols
    centred = tl.where(mask, x - mean, 0.0)
    rstd = tl.rsqrt(tl.sum(centred * centred, axis=0) / n_cols + eps)
    weight = tl.load(weight_ptr + cols, mask=mask, eviction_policy="evict_last").to(tl.float32)
    bias = tl.load(bias_ptr + cols, mask=mask, eviction_policy="evict_last").to(tl.float32)
    y = centred * rstd * weight + bias
    tl.store(out_ptr + row * stride_out + cols, y.to(out_ptr.dtype.element_ty), mask=mask)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)


@triton.jit
def layer_norm_even_kernel(
    x_ptr, out_ptr, weight_ptr, bias_ptr, mean_ptr, rstd_ptr, n_cols, stride_x, stride_out, eps,
    BLOCK_SIZE: tl.constexpr, EARLY: tl.constexpr,
):
    """The solution without masks, for rows that fill the block; parameters at once or at last."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + row * stride_x + cols).to(tl.float32)
    if EARLY:
        weight = tl.load(weight_ptr + cols)
        bias = tl.load(bias_ptr + cols)
    mean = tl.sum(x, axis=0) / n_cols
    centred = x - mean
    rstd = tl.rsqrt(tl.sum(centred * centred, axis=0) / n_cols + eps)
    if not EARLY:
        weight = tl.load(weight_ptr + cols)
        bias = tl.load(bias_ptr + cols)
    y = centred * rstd * weight.to(tl.float32) + bias.to(tl.float32)
    tl.store(out_ptr + row * stride_out + cols, y.to(out_ptr.dtype.element_ty))
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)


@triton.jit
def layer_norm_again_kernel(
    x_ptr, out_ptr, weight_ptr, bias_ptr, mean_ptr, rstd_ptr, n_cols, stride_x, stride_out, eps,
    BLOCK_SIZE: tl.constexpr, CHUNK: tl.constexpr,
):
    """Each lane keeps sums of its columns around the row's first value; the row is read twice.

    The caches are told to keep the row until its second reading. n_cols is a multiple of CHUNK.
    """
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, CHUNK)
    row_start = x_ptr + row * stride_x
    shift = tl.load(row_start).to(tl.float32)
    first = tl.zeros((CHUNK,), tl.float32)
    second = tl.zeros((CHUNK,), tl.float32)
    for start in range(0, n_cols, CHUNK):
        d = tl.load(row_start + start + cols, eviction_policy="evict_last").to(tl.float32) - shift
        first += d
        second += d * d
    offset = tl.sum(first, axis=0) / n_cols
    mean = shift + offset
    rstd = tl.rsqrt(tl.sum(second, axis=0) / n_cols - offset * offset + eps)
    for start in range(0, n_cols, CHUNK):
        x = tl.load(row_start + start + cols, eviction_policy="evict_first").to(tl.float32)
        weight = tl.load(weight_ptr + start + cols, eviction_policy="evict_last").to(tl.float32)
        bias = tl.load(bias_ptr + start + cols, eviction_policy="evict_last").to(tl.float32)
        y = (x - mean) * rstd * weight + bias
        tl.store(out_ptr + row * stride_out + start + cols, y.to(out_ptr.dtype.element_ty))
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)


@triton.jit
def layer_norm_rows_kernel(
    x_ptr, out_ptr, weight_ptr, bias_ptr, mean_ptr, rstd_ptr,
    n_rows, n_cols, stride_x, stride_out, eps,
    BLOCK_ROWS: tl.constexpr, BLOCK_SIZE: tl.constexpr,
):
    """Several rows per program, which load the parameters once for all of them."""
    rows = tl.program_id(0).to(tl.int64) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)
    cols = tl.arange(0, BLOCK_SIZE)
    inside = cols < n_cols
    mask = (rows < n_rows)[:, None] & inside[None, :]
    x = tl.load(x_ptr + (rows * stride_x)[:, None] + cols[None, :], mask=mask,
                other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=1) / n_cols
    centred = tl.where(mask, x - mean[:, None], 0.0)
    rstd = tl.rsqrt(tl.sum(centred * centred, axis=1) / n_cols + eps)
    weight = tl.load(weight_ptr + cols, mask=inside).to(tl.float32)
    bias = tl.load(bias_ptr + cols, mask=inside).to(tl.float32)
    y = centred * rstd[:, None] * weight[None, :] + bias[None, :]
    tl.store(out_ptr + (rows * stride_out)[:, None] + cols[None, :],
             y.to(out_ptr.dtype.element_ty), mask=mask)
    tl.store(mean_ptr + rows, mean, mask=rows < n_rows)
    tl.store(rstd_ptr + rows, rstd, mask=rows < n_rows)


@triton.jit
def layer_norm_persistent_kernel(
    x_ptr, out_ptr, weight_ptr, bias_ptr, mean_ptr, rstd_ptr,
    n_rows, n_cols, stride_x, stride_out, eps,
    BLOCK_SIZE: tl.constexpr, NUM_STAGES: tl.constexpr,
):
    """As many programs as fit: the parameters are loaded once each, the next row ahead of time."""
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    weight = tl.load(weight_ptr + cols, mask=mask)
    bias = tl.load(bias_ptr + cols, mask=mask)
    for row in tl.range(tl.program_id(0), n_rows, tl.num_programs(0), num_stages=NUM_STAGES):
        at = row.to(tl.int64)
        x = tl.load(x_ptr + at * stride_x + cols, mask=mask, other=0.0).to(tl.float32)
        mean = tl.sum(x, axis=0) / n_cols
        centred = tl.where(mask, x - mean, 0.0)
        rstd = tl.rsqrt(tl.sum(centred * centred, axis=0) / n_cols + eps)
        y = centred * rstd * weight.to(tl.float32) + bias.to(tl.float32)
        tl.store(out_ptr + at * stride_out + cols, y.to(out_ptr.dtype.element_ty), mask=mask)
        tl.store(mean_ptr + at, mean)
        tl.store(rstd_ptr + at, rstd)


@triton.jit
def layer_norm_chunks_kernel(
    x_ptr, out_ptr, weight_ptr, bias_ptr, mean_ptr, rstd_ptr, n_cols, stride_x, stride_out, eps,
    BLOCK_SIZE: tl.constexpr,
):
    """The statistics of chunks, merged by the formula of Chan, Golub and LeVeque; then the results,
    from cache."""
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK_SIZE)
    mean, squares = 0.0, 0.0
    for start in range(0, n_cols, BLOCK_SIZE):
        cols = start + lanes
        mask = cols < n_cols
        x = tl.load(x_ptr + row * stride_x + cols, mask=mask, other=0.0,
                    eviction_policy="evict_last").to(tl.float32)
        count = tl.minimum(n_cols - start, BLOCK_SIZE)
        chunk_mean = tl.sum(x, axis=0) / count
        centred = tl.where(mask, x - chunk_mean, 0.0)
        delta = chunk_mean - mean
        share = count.to(tl.float32) / (start + count)
        squares += tl.sum(centred * centred, axis=0) + delta * delta * start * share
        mean += delta * share
    rstd = tl.rsqrt(squares / n_cols + eps)
    for start in range(0, n_cols, BLOCK_SIZE):
        cols = start + lanes
        mask = cols < n_cols
        x = tl.load(x_ptr + row * stride_x + cols, mask=mask, other=0.0,
                    eviction_policy="evict_first").to(tl.float32)
        weight = tl.load(weight_ptr + cols, mask=mask, eviction_policy="evict_last")
        bias = tl.load(bias_ptr + cols, mask=mask, eviction_policy="evict_last")
        y = (x - mean) * rstd * weight.to(tl.float32) + bias.to(tl.float32)
        tl.store(out_ptr + row * stride_out + cols, y.to(out_ptr.dtype.element_ty), mask=mask)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)


@triton.jit
def layer_norm_lanes_kernel(
    x_ptr, out_ptr, weight_ptr, bias_ptr, mean_ptr, rstd_ptr, n_cols, stride_x, stride_out, eps,
    BLOCK_SIZE: tl.constexpr,
):
    """Three walks through the row, two of them from cache, whose sums stay apart in the lanes."""
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK_SIZE)
    sums = tl.zeros([BLOCK_SIZE], dtype=tl.float32)
    for start in range(0, n_cols, BLOCK_SIZE):
        cols = start + lanes
        sums += tl.load(x_ptr + row * stride_x + cols, mask=cols < n_cols, other=0.0,
                        eviction_policy="evict_last").to(tl.float32)
    mean = tl.sum(sums, axis=0) / n_cols
    squares = tl.zeros([BLOCK_SIZE], dtype=tl.float32)
    for start in range(0, n_cols, BLOCK_SIZE):
        cols = start + lanes
        x = tl.load(x_ptr + row * stride_x + cols, mask=cols < n_cols, other=0.0,
                    eviction_policy="evict_last").to(tl.float32)
        centred = tl.where(cols < n_cols, x - mean, 0.0)
        squares += centred * centred
    rstd = tl.rsqrt(tl.sum(squares, axis=0) / n_cols + eps)
    for start in range(0, n_cols, BLOCK_SIZE):
        cols = start + lanes
        mask = cols < n_cols
        x = tl.load(x_ptr + row * stride_x + cols, mask=mask, other=0.0,
                    eviction_policy="evict_first").to(tl.float32)
        weight = tl.load(weight_ptr + cols, mask=mask, eviction_policy="evict_last")
        bias = tl.load(bias_ptr + cols, mask=mask, eviction_policy="evict_last")
        y = (x - mean) * rstd * weight.to(tl.float32) + bias.to(tl.float32)
        tl.store(out_ptr + row * stride_out + cols, y.to(out_ptr.dtype.element_ty), mask=mask)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)


def layer_norm(columns: int) -> Attempts:
    own = solution("layer-norm").layer_norm_kernel
    block = triton.next_power_of_2(columns)

    def results(x: torch.Tensor) -> list[torch.Tensor]:
        return [torch.empty_like(x), *(x.new_empty(len(x), dtype=torch.float32) for _ in range(2))]

    def by_row(kernel: Any, warps: int, **more: Any) -> Callable[..., torch.Tensor]:
        def run(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
            out, mean, rstd = results(x)
            kernel[(len(x),)](
                x, out, weight, bias, mean, rstd, x.shape[1], x.stride(0), out.stride(0), 1e-5,
                num_warps=warps, **{"BLOCK_SIZE": block, **more})
            return out
        return run

    def persistent(each: int, warps: int, stages: int) -> Callable[..., torch.Tensor]:
        def run(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
            out, mean, rstd = results(x)
            layer_norm_persistent_kernel[(min(len(x), MULTIPROCESSORS * each),)](
                x, out, weight, bias, mean, rstd, *x.shape, x.stride(0), out.stride(0), 1e-5,
                BLOCK_SIZE=block, NUM_STAGES=stages, num_warps=warps)
            return out
        return run

    def by_rows(rows: int, warps: int) -> Callable[..., torch.Tensor]:
        def run(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
            out, mean, rstd = results(x)
            layer_norm_rows_kernel[(triton.cdiv(len(x), rows),)](
                x, out, weight, bias, mean, rstd, *x.shape, x.stride(0), out.stride(0), 1e-5,
                BLOCK_ROWS=rows, BLOCK_SIZE=block, num_warps=warps)
            return out
        return run

    def own_by(*warps: int) -> Attempts:
        return {f"own w{w}": by_row(own, w) for w in warps}

    def own_of(registers: int, warps: int) -> Attempts:
        """With so few registers for a thread that one more program fits a multiprocessor."""
        return {f"own w{warps} of {registers} registers": by_row(own, warps, maxnreg=registers)}

    def kept_by(*warps: int) -> Attempts:
        return {f"kept w{w}": by_row(layer_norm_kept_kernel, w) for w in warps}

    def even_by(*warps: int) -> Attempts:
        return {f"even{', parameters first' * early} w{w}": by_row(
            layer_norm_even_kernel, w, EARLY=early) for w in warps for early in (False, True)}

    def again(*settings: tuple[int, int]) -> Attempts:
        return {f"read again by {size} w{w}": by_row(layer_norm_again_kernel, w, CHUNK=size)
                for size, w in settings}

    def early_by(*warps: int) -> Attempts:
        return {f"early w{w}": by_row(layer_norm_early_kernel, w, STREAM=False) for w in warps} | {
            f"streaming w{w}": by_row(layer_norm_early_kernel, w, STREAM=True) for w in warps[:2]}

    def chunks(*settings: tuple[int, int]) -> Attempts:
        return {f"chunks of {size} w{w}": by_row(layer_norm_chunks_kernel, w, BLOCK_SIZE=size)
                for size, w in settings}

    def lanes(*settings: tuple[int, int]) -> Attempts:
        return {f"lanes of {size} w{w}": by_row(layer_norm_lanes_kernel, w, BLOCK_SIZE=size)
                for size, w in settings}

    if columns <= 4096:
        return (own_by(2, 4, 8, 16) | own_of(40, 8) | kept_by(4, 8) | early_by(4, 8, 16)
                | even_by(4, 8, 16) | again((1024, 4), (2048, 8), (2048, 16), (4096, 16))
                | chunks((2048, 8), (4096, 8)) | lanes((1024, 4), (2048, 8))
                | {"2 rows w8": by_rows(2, 8), "2 rows w16": by_rows(2, 16),
                   "persistent x4 w8 s2": persistent(4, 8, 2),
                   "persistent x2 w16 s2": persistent(2, 16, 2)})
    return (own_by(8, 16, 32) | own_of(64, 16) | kept_by(8, 16) | early_by(16, 32)
            | even_by(8, 16) | again((2048, 8), (2048, 16), (4096, 16), (8192, 16))
            | chunks((4096, 8), (4096, 16), (8192, 16))
            | lanes((2048, 8), (4096, 8), (4096, 16))
            | {"persistent x1 w16 s2": persistent(1, 16, 2),
               "persistent x1 w32 s2": persistent(1, 32, 2),
               "persistent x2 w16 s2": persistent(2, 16, 2)})


# ---------------------------------------------------------------------------------------------
# What has no goal: only other settings of the launch


def l2_norm(columns: int) -> Attempts:
    own = solution("custom-kernels").l2_norm_kernel

    def launched(warps: int) -> Callable[..., torch.Tensor]:
        def run(x: torch.Tensor) -> torch.Tensor:
            out = x.new_empty(len(x), dtype=torch.float32)
            own[(len(x),)](x, out, x.shape[1], x.stride(0), num_warps=warps,
                           BLOCK_COLS=triton.next_power_of_2(columns))
            return out
        return run

    return {f"own w{w}": launched(w) for w in (2, 4, 16)}


def scale(factor: float) -> Attempts:
    own = solution("basic-debugging").scale_kernel

    def launched(block: int, warps: int) -> Callable[..., torch.Tensor]:
        def run(x: torch.Tensor) -> torch.Tensor:
            out = torch.empty_like(x)
            own[(triton.cdiv(len(x), block),)](x, out, len(x), factor, BLOCK=block, num_warps=warps)
            return out
        return run

    return {f"own {block} w{warps}": launched(block, warps)
            for block, warps in ((256, 2), (512, 4), (1024, 4))}
