"""Layer normalization of the rows of a matrix: mean 0, standard deviation 1, scale and shift.

    out[m, n] = (x[m, n] - mean[m]) * rstd[m] * weight[n] + bias[n]

    mean[m] = sum_k x[m, k] / C          rstd[m] = 1 / sqrt(sum_k (x[m, k] - mean[m])**2 / C + eps)

Shapes:  x has two dimensions (R rows, C columns, 1 to 65,536), weight and bias have one (C);
         all three in float32, float16 or bfloat16. The result is a new tensor of the shape, dtype
         and device of x; on request, mean and rstd are returned too, [R] in float32.
Given:   all names, the order of the steps, the argument checks, and the code for non-contiguous
         matrices and vectors.
Missing: 24 blanks, in five steps with one idea each.
           A setup         TODO 1 and 2       B row           TODO 3 to 6
           C statistics    TODO 7 to 12       D parameters    TODO 13 to 18
           E host          TODO 19 to 24
         A blank is three dots, `...`; a comment marks each missing import or decorator.
Graded:  values  accurate to float32: widths that are not powers of two, rows with a large mean, a
                 small variance or equal numbers, NaN and infinities
         memory  no access is out of bounds, and every element of the result is stored once
         cost    one launch, 4 * R * C * itemsize + 8 * R bytes: a row is loaded and stored once,
                 the two parameter vectors are loaded once per row
         errors  invalid arguments raise an exception before anything is launched

`python kernel.py` runs four public cases, `tritonlab grade track1/layer-norm` runs all of them.
"""

from __future__ import annotations

# TODO 1: which imports define the names torch, triton and tl that the code below uses?

MAX_COLUMNS = 65_536  # a row of float32 fills the registers of one SM, 256 KiB


# TODO 2: what turns the plain Python function below into a kernel for the GPU?
def layer_norm_kernel(
    x_ptr, out_ptr,            # [n_rows, n_cols], each row contiguous
    weight_ptr, bias_ptr,      # [n_cols]
    mean_ptr, rstd_ptr,        # [n_rows], float32
    n_cols,
    stride_x, stride_out,      # elements from one row to the next
    eps,
    BLOCK_SIZE: tl.constexpr,  # elements per block, a power of two >= n_cols
):
    """out[m] = (x[m] - mean[m]) * rstd[m] * weight + bias. One program owns row m.

    Moves 4 * n_rows * n_cols * itemsize + 8 * n_rows bytes: each element is loaded and stored once,
    and every program loads both parameter vectors, which stay in the caches.
    """
    row = ...  # TODO 3: which row does this program own? (as int64: TODO 4 must not overflow)
    row_start = ...  # TODO 4: at which address does that row begin?
    cols = ...  # TODO 5: which column does each element of the block have?
    mask = ...  # TODO 6: which of these columns exist?

    x = ...  # TODO 7: what is loaded, with which padding, and converted to which dtype?

    mean = ...  # TODO 8: what is the mean of the row? (how many elements does the row have?)
    centered = ...  # TODO 9: how far is each element from the mean, and what is the padding now?
    var = ...  # TODO 10: what is the mean of the squares of these differences?
    rstd = ...  # TODO 11: what is the reciprocal standard deviation? (where is eps added?)
    x_hat = ...  # TODO 12: what is the normalized row?

    weight = ...  # TODO 13: which weights belong to these columns?
    bias = ...  # TODO 14: which biases?
    y = ...  # TODO 15: how do weight and bias change the normalized row?

    ...  # TODO 16: at which addresses is it stored, in which dtype, and which elements?
    ...  # TODO 17: where is the mean of this row stored?
    ...  # TODO 18: where is its reciprocal standard deviation stored?


def layer_norm(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float = 1e-5, *,
    return_stats: bool = False,
) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Normalizes each row of x, then scales and shifts each column by weight and bias.

    Args:
        x: [R, C] with 1 <= C <= 65,536.
        weight, bias: [C], same dtype as x.
        eps: added to the variance, above 0.
        return_stats: also return what a backward pass needs.

    Returns:
        A new contiguous tensor of the shape, dtype and device of x. With ``return_stats``, a tuple
        of it, the mean and the reciprocal standard deviation of each row, both [R] in float32.

    Raises:
        TypeError: an argument has a wrong type, or a dtype that is unsupported or not that of x.
        ValueError: a shape, the device of a vector or the value of eps is invalid.
    """
    check_arguments(x, weight, bias, eps)
    if x.stride(1) != 1:
        x = x.contiguous()  # the kernel takes only the row stride
    weight, bias = weight.contiguous(), bias.contiguous()
    n_rows, n_cols = x.shape

    block_size = ...  # TODO 19: how wide is a block that holds a whole row?
    out = ...  # TODO 20: what tensor holds the result? It must be contiguous even if x is not.
    mean = ...  # TODO 21: how many means are there, and in which dtype?
    rstd = ...  # TODO 22: how many reciprocal standard deviations?

    if n_rows > 0:  # without rows, nothing to launch
        grid = ...  # TODO 23: how many programs are there, and what type is a grid?
        # A thread should hold neither hundreds of elements nor only a few.
        num_warps = 4 if block_size <= 2048 else 8 if block_size <= 8192 else 16
        # With 64 registers per thread, two programs of 16 warps fit into the 65,536 registers of an
        # SM, and one loads while the other computes. Wider rows would spill; narrower rows need no
        # limit.
        maxnreg = 64 if block_size == 16_384 else None
        # The kernel takes six tensors, a width, two strides, eps and a block size, in the order of
        # its signature; num_warps and maxnreg are passed by name.
        ...  # TODO 24: how is the kernel launched on that grid?
    return (out, mean, rstd) if return_stats else out


def check_arguments(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float
) -> None:
    """Rejects unsupported arguments, before anything is allocated or launched.

    Raises:
        TypeError: an argument has a wrong type, or a dtype that is unsupported or not that of x.
        ValueError: a shape, the device of a vector or the value of eps is invalid.
    """
    for name, tensor in (("x", x), ("weight", weight), ("bias", bias)):
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"{name}: expected a torch.Tensor, got {type(tensor).__name__}")
    supported = (torch.float32, torch.float16, torch.bfloat16)
    if x.dtype not in supported:
        names = ", ".join(str(dtype) for dtype in supported)
        raise TypeError(f"x: expected one of {names}, got {x.dtype}")
    if x.dim() != 2:
        raise ValueError(f"x: expected 2 dimensions, got {x.dim()} in shape {tuple(x.shape)}")
    n_cols = x.shape[1]
    if not 1 <= n_cols <= MAX_COLUMNS:
        raise ValueError(f"x: expected 1 to {MAX_COLUMNS} columns, got {n_cols}")
    for name, tensor in (("weight", weight), ("bias", bias)):
        if tensor.dtype != x.dtype:
            raise TypeError(f"{name}: expected {x.dtype}, the dtype of x, got {tensor.dtype}")
        if tensor.shape != (n_cols,):
            got = tuple(tensor.shape)
            raise ValueError(f"{name}: expected shape ({n_cols},), one for each column, got {got}")
        if tensor.device != x.device:
            expected = x.device
            raise ValueError(f"{name}: expected device {expected}, as of x, got {tensor.device}")
    if not isinstance(eps, (int, float)):
        raise TypeError(f"eps: expected a number, got {type(eps).__name__}")
    if not eps > 0:
        raise ValueError(f"eps: expected a number above 0, got {eps}")


if __name__ == "__main__":
    import tritonlab

    tritonlab.run_public_cases(__file__)
