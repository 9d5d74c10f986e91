"""Softmax over the rows of a matrix: each row becomes probabilities that sum to 1.

    out[m, n] = exp(x[m, n] - max_k x[m, k]) / sum_j exp(x[m, j] - max_k x[m, k])

Shapes:  x has two dimensions (R rows, up to 65,536 columns), in float32, float16 or bfloat16;
         the result is a new tensor of that shape, dtype and device.
Given:   all names, the order of the steps, the argument check, the copy for a column stride other
         than 1, and the code for empty matrices.
Missing: 19 blanks, in five steps with one idea each.
           A setup     TODO 1 and 2       D arithmetic    TODO 9 to 14
           B row       TODO 3 to 6        E host          TODO 15 to 19
           C load      TODO 7 and 8
         A blank is three dots, `...`; a comment marks each missing import or decorator.
Graded:  values  accurate to float32: widths that are not powers of two, inputs whose exp would
                 overflow, NaN and infinities, any row stride
         memory  no access is out of bounds, and every element of the result is stored once
         cost    one launch, 2 * R * C * itemsize bytes: each row is loaded once and stored once
         errors  invalid arguments raise an exception before anything is launched

`python kernel.py` runs four public cases, `tritonlab grade track1/softmax` runs all of them.
"""

from __future__ import annotations

# TODO 1: which imports define the names torch, triton and tl that the code below uses?

MAX_COLUMNS = 65_536  # a row of float32 fills the registers of one SM, 256 KiB


# TODO 2: what turns the plain Python function below into a kernel for the GPU?
def softmax_kernel(
    x_ptr, out_ptr,            # [n_rows, n_cols], each row contiguous
    n_cols,
    stride_x, stride_out,      # elements from one row to the next
    BLOCK_SIZE: tl.constexpr,  # elements per block, a power of two >= n_cols
):
    """out[m] = exp(x[m] - max(x[m])) / sum(exp(x[m] - max(x[m]))). One program owns row m.

    Moves 2 * n_rows * n_cols * itemsize bytes: each element is loaded once and stored once.
    """
    row = ...  # TODO 3: which row does this program own? (as int64: TODO 4 must not overflow)
    row_start = ...  # TODO 4: at which address does that row begin?
    cols = ...  # TODO 5: which column does each element of the block have?
    mask = ...  # TODO 6: which of these columns exist?

    x = ...  # TODO 7: which elements are loaded, and what is the value of the padding?
    x = ...  # TODO 8: in which dtype is the arithmetic done?

    row_max = ...  # TODO 9: what is the largest number of the row?
    shifted = ...  # TODO 10: what is subtracted from each number so that exp cannot overflow?
    numerator = ...  # TODO 11: what is the numerator of the formula?
    denominator = ...  # TODO 12: what is the denominator?
    y = ...  # TODO 13: what is the softmax of each element?

    ...  # TODO 14: at which addresses is it stored, in which dtype, and which elements?


def softmax(x: torch.Tensor) -> torch.Tensor:
    """Returns the softmax over dim 1 of a matrix, as a new contiguous tensor.

    Raises:
        TypeError: x is not a tensor, or its dtype is not supported.
        ValueError: x does not have two dimensions, or has more columns than ``MAX_COLUMNS``.
    """
    check_argument(x)
    if x.stride(1) != 1:
        x = x.contiguous()  # the kernel takes only the row stride
    n_rows, n_cols = x.shape

    block_size = ...  # TODO 15: how wide is a block that holds a whole row?
    out = ...  # TODO 16: what tensor holds the result? It must be contiguous even if x is not.
    if out.numel() == 0:
        return out  # no rows or no columns, nothing to launch

    grid = ...  # TODO 17: how many programs are there, and what type is a grid?
    # A program has 32 * num_warps threads, which share its block; the default is 4 warps. With too
    # few, a thread holds more elements than it has registers for. With too many, the threads mostly
    # wait for each other, and with more than 16 warps a thread has at most 64 registers.
    num_warps = ...  # TODO 18: how many warps for a block of this width: 2, 4, 8, 16 or 32?
    # The kernel takes two tensors, a width, two strides and a block size. num_warps is passed by
    # name with them: it is an option of the compiler, not a parameter of the kernel.
    ...  # TODO 19: how is the kernel launched on that grid?
    return out


def check_argument(x: torch.Tensor) -> None:
    """Rejects unsupported arguments, before anything is allocated or launched.

    Raises:
        TypeError: x is not a tensor, or its dtype is not supported.
        ValueError: x does not have two dimensions, or has more columns than ``MAX_COLUMNS``.
    """
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"x: expected a torch.Tensor, got {type(x).__name__}")
    supported = (torch.float32, torch.float16, torch.bfloat16)
    if x.dtype not in supported:
        names = ", ".join(str(dtype) for dtype in supported)
        raise TypeError(f"x: expected one of {names}, got {x.dtype}")
    if x.dim() != 2:
        raise ValueError(f"x: expected 2 dimensions, got {x.dim()} in shape {tuple(x.shape)}")
    if x.shape[1] > MAX_COLUMNS:
        raise ValueError(f"x: expected at most {MAX_COLUMNS} columns, got {x.shape[1]}")


if __name__ == "__main__":
    import tritonlab

    tritonlab.run_public_cases(__file__)
