"""What the right solutions here share, over the solution."""

del check_arguments


def check(a: torch.Tensor, b: torch.Tensor) -> None:
    for name, x in (("a", a), ("b", b)):
        if not torch.is_tensor(x):
            raise TypeError(f"{name} must be a torch.Tensor, not {type(x).__name__}")
        if x.dtype not in {torch.float16, torch.bfloat16, torch.float32}:
            raise TypeError(f"{name} must be float16, bfloat16 or float32, not {x.dtype}")
        if x.ndim != 2:
            raise ValueError(f"{name} must have 2 dimensions, not {x.ndim}: {list(x.shape)}")
    if a.dtype != b.dtype:
        raise TypeError(f"a and b must have one dtype, not {a.dtype} and {b.dtype}")
    if a.shape[1] != b.shape[0]:
        raise ValueError(f"a of {list(a.shape)} and b of {list(b.shape)} cannot be multiplied")
    if a.device != b.device:
        raise ValueError(f"a and b must be on one device, not {a.device} and {b.device}")
