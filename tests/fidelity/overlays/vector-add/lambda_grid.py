"""Right but different: a lambda as the grid, and tiles of 4 096 for eight warps."""

del DTYPES
del WrongShape
del name_of


def vector_add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    check(x, y)
    x = x.contiguous()
    y = y.contiguous()
    out = x.new_empty(x.shape)
    n = out.numel()
    if n > 0:
        grid = lambda meta: (triton.cdiv(n, meta["BLOCK_SIZE"]),)  # noqa: E731 - as tutorials do
        vector_add_kernel[grid](x, y, out, n, BLOCK_SIZE=4096, num_warps=8, num_stages=1)
    return out


def check(x: torch.Tensor, y: torch.Tensor) -> None:
    for name, value in (("x", x), ("y", y)):
        if not isinstance(value, torch.Tensor):
            raise TypeError(f"{name}: expected a tensor, got {type(value).__name__}")
        if value.dtype not in SUPPORTED:
            raise TypeError(f"{name}: expected one of {SUPPORTED}, got {value.dtype}")
    if x.dtype != y.dtype:
        raise TypeError(f"y: expected dtype {x.dtype}, got {y.dtype}")
    if x.shape != y.shape:
        raise ValueError(f"y: expected shape {tuple(x.shape)}, got {tuple(y.shape)}")
    if x.device != y.device:
        raise ValueError(f"y: expected device {x.device}, got {y.device}")
