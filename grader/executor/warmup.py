"""A kernel that uses what most kernels use; run once before the first grade."""

# mypy: ignore-errors
# A jit function has no Python types: its parameters are pointers and blocks.
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
