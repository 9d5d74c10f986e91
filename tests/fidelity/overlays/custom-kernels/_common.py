"""What the right solutions here share, over the solution."""

del BLOCK
del MAX_COEFFICIENTS
del MAX_COLUMNS
del SUPPORTED
del poly_kernel
del swish_kernel
del glu_kernel
del complex_mul_kernel
del l2_norm_kernel
del flat
del check_tensor
del check_alike
del check_number

SIZE = 1024

ROWS = {
    "flops": "5 * R * C", "bytes": "R * C * e + 4 * R", "bound": "memory",
    "grid": "R", "tile": "next_power_of_2(max(C, 1))",
}


def along(flops: str, nbytes: str) -> dict[str, str]:
    return {"flops": flops, "bytes": nbytes, "bound": "memory",
            "grid": "cdiv(n, SIZE)", "tile": "SIZE"}


DESIGN = {
    "poly_act": along("2 * (k - 1) * n", "n * e * 2"),
    "swish": along("4 * n", "2 * n * e"),
    "glu": along("3 * n", "3 * n * e"),
    "complex_mul": along("n * 6", "n * 8 * 3"),
    "l2_norm": ROWS,
}


REAL = (torch.float32, torch.float16, torch.bfloat16)


def checked(kinds, **tensors):
    """The tensors, if all are alike and of one of these dtypes."""
    first = None
    for name, tensor in tensors.items():
        if not torch.is_tensor(tensor):
            raise TypeError(f"{name} must be a torch.Tensor, not {type(tensor).__name__}")
        if tensor.dtype not in kinds:
            raise TypeError(f"{name} must be one of {kinds}, not {tensor.dtype}")
        if first is None:
            first = tensor
        if tensor.dtype is not first.dtype:
            raise TypeError(f"{name} must be {first.dtype} as well, not {tensor.dtype}")
        if tensor.shape != first.shape:
            raise ValueError(f"{name} must be {tuple(first.shape)}, not {tuple(tensor.shape)}")
        if tensor.device != first.device:
            raise ValueError(f"{name} must be on {first.device}, not {tensor.device}")


def number(name, value):
    if type(value) not in (int, float):
        raise TypeError(f"{name} must be a number, not a {type(value).__name__}")
    return float(value)


def numbers(coeffs):
    if not isinstance(coeffs, (list, tuple)):
        raise TypeError(f"coeffs must be a list or a tuple, not {type(coeffs).__name__}")
    if not 0 < len(coeffs) < 10:
        raise ValueError(f"coeffs must be 1 to 9 numbers, not {len(coeffs)}")
    return tuple(number("coeffs", one) for one in coeffs)


def matrix(x):
    checked(REAL, x=x)
    if x.ndim != 2:
        raise ValueError(f"x must have 2 dimensions, not {x.ndim}: {tuple(x.shape)}")
    if x.size(1) > 65536:
        raise ValueError(f"x must have 65536 columns at most, not {x.size(1)}")
