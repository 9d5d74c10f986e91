"""Right but different: an autotuner with two configurations."""

del DTYPES
del WrongShape
del name_of


@triton.autotune(
    configs=[
        triton.Config({"BLOCK_SIZE": 1024}, num_warps=4),
        triton.Config({"BLOCK_SIZE": 2048}, num_warps=8),
    ],
    key=["n_elements"],
)
@triton.jit
def vector_add_kernel(x_ptr, y_ptr, out_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n_elements
    x = tl.load(x_ptr + offs, mask=mask)
    y = tl.load(y_ptr + offs, mask=mask)
    tl.store(out_ptr + offs, x + y, mask=mask)


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
