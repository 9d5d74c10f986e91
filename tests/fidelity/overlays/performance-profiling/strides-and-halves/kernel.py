"""Any strides without a copy; the row in two halves that stay in registers; torch sorts.
"""

del quantile

from collections.abc import Callable


def benchmark(fn: Callable[[], object], device: Device, *, warmup: int = 10,
              repeat: int = 100) -> Stats:
    """Time ``repeat`` calls of ``fn`` after ``warmup`` others, each with a cold cache.

    Raises:
        ValueError: ``warmup`` is negative, or ``repeat`` is not above 0.
    """
    if warmup < 0:
        raise ValueError(f"warmup: expected at least 0, got {warmup}")
    check_positive("repeat", repeat)
    for _ in range(warmup):
        device.flush_cache()
        fn()
    times = torch.empty(repeat, dtype=torch.float64)
    for call in range(repeat):
        device.synchronize()
        device.flush_cache()
        device.synchronize()
        times[call] = -device.now()
        fn()
        device.synchronize()
        times[call] += device.now()
    shares = torch.tensor([0.5, 0.2, 0.8], dtype=torch.float64)
    return Stats(*torch.quantile(times, shares).tolist(), repeat)


@triton.jit
def row_l2_normalize_kernel(x_ptr, out_ptr, stride_xm, stride_xn, n_cols, eps,
                            HALF: tl.constexpr):
    """out[m] = x[m] / max(norm of x[m], eps). One program owns row m, in two blocks."""
    row = tl.program_id(axis=0).to(tl.int64)
    left = tl.arange(0, HALF)
    right = HALF + left
    from_row = x_ptr + row * stride_xm
    x = tl.load(from_row + left * stride_xn, mask=left < n_cols, other=0.0).to(tl.float32)
    y = tl.load(from_row + right * stride_xn, mask=right < n_cols, other=0.0).to(tl.float32)
    largest = tl.maximum(tl.max(tl.abs(x), axis=0), tl.max(tl.abs(y), axis=0))
    scale = tl.where(largest > 0.0, largest, 1.0)
    x = x / scale
    y = y / scale
    norm = tl.sqrt(tl.sum(x * x, axis=0) + tl.sum(y * y, axis=0))
    divisor = tl.maximum(norm, eps / scale, propagate_nan=tl.PropagateNan.ALL)
    to_row = out_ptr + row * n_cols
    tl.store(to_row + left, (x / divisor).to(out_ptr.dtype.element_ty), mask=left < n_cols)
    tl.store(to_row + right, (y / divisor).to(out_ptr.dtype.element_ty), mask=right < n_cols)


def row_l2_normalize(x: torch.Tensor, eps: float = 1e-12) -> torch.Tensor:
    """Every row divided by its Euclidean norm, or by ``eps`` where the norm is smaller.

    Args:
        x: [n_rows, n_cols] with at most 16,384 columns.
        eps: from 2**-126 on.

    Raises:
        TypeError: x is no tensor of a supported dtype.
        ValueError: x is no matrix, or has too many columns, or eps is out of range.
    """
    check_arguments(x, eps)
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    n_rows, n_cols = x.shape
    half = max(1, triton.next_power_of_2(n_cols) // 2)
    row_l2_normalize_kernel[(n_rows,)](x, out, x.stride(0), x.stride(1), n_cols, eps, HALF=half,
                                       num_warps=min(16, max(1, half // 256)))
    return out
