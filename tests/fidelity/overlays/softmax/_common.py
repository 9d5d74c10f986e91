"""What the right solutions here share, over the solution."""

del MAX_COLUMNS
del check_argument


def softmax(x: torch.Tensor) -> torch.Tensor:
    check(x)
    if x.stride(1) != 1:
        x = x.contiguous()
    out = x.new_empty(x.shape)
    if out.numel() == 0:
        return out
    n_rows, n_cols = x.shape
    width = triton.next_power_of_2(n_cols)
    softmax_kernel[(n_rows,)](x, out, n_cols, x.stride(0), out.stride(0), width, num_warps=8)
    return out


class WrongShape(ValueError):
    """x is no matrix, or too wide."""


SUPPORTED = (torch.float32, torch.float16, torch.bfloat16)


def check(x: torch.Tensor) -> None:
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"x: expected a tensor, got {type(x).__name__}")
    if x.dtype not in SUPPORTED:
        raise TypeError(f"x: expected one of {SUPPORTED}, got {x.dtype}")
    if x.ndim != 2:
        raise ValueError(f"x: expected a matrix (2 dimensions), got {x.ndim}: {tuple(x.shape)}")
    if x.size(1) > 65536:
        raise ValueError(f"x: expected at most 65536 columns, got {x.size(1)}")
