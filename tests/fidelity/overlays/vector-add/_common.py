"""What the right solutions here share, over the solution."""

del check_arguments

SUPPORTED = (torch.float32, torch.float16, torch.bfloat16, torch.int32, torch.int64)


@triton.jit
def vector_add_kernel(x_ptr, y_ptr, out_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n_elements
    x = tl.load(x_ptr + offs, mask=mask)
    y = tl.load(y_ptr + offs, mask=mask)
    tl.store(out_ptr + offs, x + y, mask=mask)


def vector_add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    check(x, y)
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    n = out.numel()
    if n == 0:
        return out
    vector_add_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK_SIZE"]),)](x, y, out, n)
    return out


DTYPES = {"float32", "float16", "bfloat16", "int32", "int64"}


class WrongShape(ValueError):
    """The shapes of x and y differ."""


def name_of(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def check(x: torch.Tensor, y: torch.Tensor) -> None:
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"x must be a torch.Tensor, not {type(x).__name__}")
    if not isinstance(y, torch.Tensor):
        raise TypeError(f"y must be a torch.Tensor, not {type(y).__name__}")
    if name_of(x.dtype) not in DTYPES or x.dtype != y.dtype:
        raise TypeError(
            f"x and y must share one dtype of {sorted(DTYPES)}, "
            f"not {name_of(x.dtype)} and {name_of(y.dtype)}"
        )
    if x.device != y.device:
        raise ValueError(f"x and y must be on one device, not on {x.device} and {y.device}")
    if x.size() != y.size():
        raise WrongShape(f"x and y must have one shape, not {list(x.size())} and {list(y.size())}")
