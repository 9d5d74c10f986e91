"""What the right solutions here share, over the solution."""

del BLOCK_SIZE
del asin_kernel
del gelu_tanh_kernel
del powi_kernel
del apply
del check_argument


def checked(x, *dtypes):
    if not torch.is_tensor(x):
        raise TypeError(f"x: a tensor was expected, and {type(x).__name__} came")
    if x.dtype not in dtypes:
        raise TypeError(f"x: one of {dtypes} was expected, and {x.dtype} came")
    return x


def number(p):
    try:
        return float(p + 0)
    except TypeError as error:
        raise TypeError(f"p: a number was expected, and {type(p).__name__} came") from error
