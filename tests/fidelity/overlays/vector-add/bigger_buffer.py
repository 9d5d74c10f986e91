"""Right but different: the buffer is rounded up to whole tiles, stored in full, cut and viewed."""

del DTYPES
del WrongShape
del name_of


@triton.jit
def vector_add_kernel(x_ptr, y_ptr, out_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n_elements
    x = tl.load(x_ptr + offs, mask=mask, other=0)
    y = tl.load(y_ptr + offs, mask=mask, other=0)
    tl.store(out_ptr + offs, x + y)  # no mask: the buffer ends with a whole tile


def vector_add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    check(x, y)
    n = x.numel()
    tiles = triton.cdiv(n, 1024)
    buffer = torch.empty(tiles * 1024, dtype=x.dtype, device=x.device)
    if tiles:
        vector_add_kernel[(tiles,)](x.contiguous(), y.contiguous(), buffer, n, BLOCK_SIZE=1024)
    return buffer[:n].view(x.shape)


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
