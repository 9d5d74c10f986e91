"""What the right solutions here share, over the solution."""

del Pair
del window_positions
del pair
del check_tensors


class Misfit(ValueError):
    """Tensors or steps that do not fit each other."""


def two(name, value, least):
    pair = tuple(value) if isinstance(value, (tuple, list)) else (value, value)
    for number in pair:
        if type(number) is not int:
            raise TypeError(f"{name} must be a whole number or a pair of them, not {value!r}")
    if len(pair) != 2 or min(pair) < least:
        raise ValueError(f"{name} must be one or two numbers of at least {least}, not {value!r} "
                         f"({len(pair)} numbers)")
    return pair


def geometry(x, weight, bias, stride, padding, dilation):
    for name, tensor in (("x", x), ("weight", weight), ("bias", bias)):
        if tensor is None and name == "bias":
            continue
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"{name} must be a tensor, not {type(tensor).__name__}")
        if tensor.dtype not in (torch.float32, torch.float16, torch.bfloat16):
            raise TypeError(f"{name} must be float32, float16 or bfloat16, not {tensor.dtype}")
        if tensor.dtype != x.dtype:
            raise TypeError(f"{name} must be {x.dtype} as x is, not {tensor.dtype}")
        if tensor.device != x.device:
            raise ValueError(f"{name} must be on {x.device}, not on {tensor.device}")
        rank = 1 if name == "bias" else 4
        if tensor.ndim != rank:
            raise ValueError(f"{name} must have {rank} dimensions, not {tensor.ndim}; a bias has "
                             f"one number for each of {weight.shape[0]} filters")
    if weight.shape[1] != x.shape[1]:
        raise ValueError(f"weight is for {weight.shape[1]} channels and x has {x.shape[1]}")
    if bias is not None and len(bias) != len(weight):
        raise ValueError(f"bias has {len(bias)} numbers for {len(weight)} filters")
    steps = two("stride", stride, 1), two("padding", padding, 0), two("dilation", dilation, 1)
    places = [(size + 2 * p - d * (k - 1) - 1) // s + 1
              for size, k, s, p, d in zip(x.shape[2:], weight.shape[2:], *steps, strict=True)]
    if min(places) < 1:
        raise ValueError(f"weight is too large for x: {places[0]} x {places[1]} places are left")
    return *steps, places
