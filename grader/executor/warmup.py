"""A small submission that uses what most submissions use; run once before the first grade."""

# mypy: ignore-errors
# A jit function has no Python types: its parameters are pointers and blocks.
import torch
import triton
import triton.language as tl

LOG2_E = tl.constexpr(1.4426950408889634)


@triton.jit
def exponential(x):
    """exp(x), by way of exp2."""
    return tl.exp2(x * LOG2_E)


@triton.jit
def softmax_kernel(
    x_ptr, y_ptr,              # [n_rows, n_cols]
    stride, n_cols, scale,
    BLOCK_SIZE: tl.constexpr,  # noqa: N803 - a power of two >= n_cols, in Triton's spelling
):
    """y = softmax(scale * x) along rows, in two steps so that loops and branches are used too."""
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK_SIZE)
    mask = offs < n_cols

    x = tl.load(x_ptr + row * stride + offs, mask=mask, other=float("-inf")).to(tl.float32)
    x = x * scale - tl.max(x * scale, axis=0)
    numerator = exponential(x)
    total = 0.0
    for _ in tl.range(0, 1):
        total += tl.sum(numerator, axis=0)
    if total > 0.0:
        numerator = numerator / total

    tl.store(y_ptr + row * stride + offs, numerator, mask=mask)


def softmax(x: torch.Tensor) -> torch.Tensor:
    """softmax(x) of 8 elements as 4 rows of 2, with checks, views, casts and fills before."""
    if x.isnan().any() or x.amax().item() > 1e30:
        raise ValueError("no numbers")
    x = x.view(2, 4).t().contiguous().half().float()
    y = torch.zeros_like(x)
    y[:] = 0
    grid = lambda meta: (triton.cdiv(x.numel(), meta["BLOCK_SIZE"]),)  # noqa: E731
    softmax_kernel[grid](x, y, 2, 2, 1.0, BLOCK_SIZE=2)
    return y
