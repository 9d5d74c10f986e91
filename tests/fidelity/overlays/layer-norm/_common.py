"""What the right solutions here share, over the solution."""

del MAX_COLUMNS
del check_arguments


class WrongShape(ValueError):
    """An argument does not fit the others."""


SUPPORTED = (torch.float32, torch.float16, torch.bfloat16)


def check(x, weight, bias, eps):
    for name, value in {"x": x, "weight": weight, "bias": bias}.items():
        if not isinstance(value, torch.Tensor):
            raise TypeError(f"{name}: expected a tensor, got {type(value).__name__}")
    if not isinstance(eps, float | int):
        raise TypeError(f"eps: expected a number, got {type(eps).__name__}")
    if x.dtype not in SUPPORTED:
        raise TypeError(f"x: expected one of {SUPPORTED}, got {x.dtype}")
    for name, value in {"weight": weight, "bias": bias}.items():
        if value.dtype != x.dtype:
            raise TypeError(f"{name}: expected {x.dtype} as x has, got {value.dtype}")
        if value.device != x.device:
            raise ValueError(f"{name}: expected device {x.device}, got {value.device}")
    if x.ndim != 2:
        raise ValueError(f"x: expected a matrix (2 dimensions), got {x.ndim}: {tuple(x.shape)}")
    if not 0 < x.size(1) <= 65536:
        raise ValueError(f"x: expected 1 to 65536 columns, got {x.size(1)}")
    for name, value in {"weight": weight, "bias": bias}.items():
        if list(value.shape) != [x.size(1)]:
            raise ValueError(f"{name}: expected shape ({x.size(1)},), got {tuple(value.shape)}")
    if eps <= 0 or eps != eps:
        raise ValueError(f"eps: expected a number above 0, got {eps}")
