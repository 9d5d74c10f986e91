"""Softmax over the rows of a matrix: turn each row into shares that are positive and sum to 1.

    out[m, n] = exp(x[m, n] - max_k x[m, k]) / sum_j exp(x[m, j] - max_k x[m, k])

Shapes:  x has two dimensions (R rows, up to 65 536 columns), in float32, float16 or bfloat16;
         the result is a new tensor of that shape, dtype and device.
Given:   all names, the order of the steps, the check of the argument, and what is done for
         matrices whose rows have gaps and for empty ones.
Missing: 19 blanks, in five groups with one idea each.
           A set-up    TODO 1 and 2       D arithmetic    TODO 9 to 14
           B row       TODO 3 to 6        E host          TODO 15 to 19
           C load      TODO 7 and 8
         A blank is `...`; an import or a decorator that is missing is a comment line.
Judged:  values  as near to the exact ones as float32 allows: widths that are no power of two,
                 numbers that exp cannot take as they are, NaN and infinities, rows at any distance
         memory  no program touches an element that is not there; every element is written once
         cost    one launch, 2 * R * C * itemsize bytes: each row is loaded once and stored once
         errors  bad arguments are refused before anything is launched

`python kernel.py` runs four public cases, `tritonlab grade track1/softmax` runs all of them.
"""

from __future__ import annotations

# TODO 1: the code below uses the names torch, triton and tl. Which lines make them known?
#         One is the library of the tensors, one has the decorator and helps with sizes,
#         one is the language inside kernels.

MAX_COLUMNS = 65_536  # as float32 they fill the registers of one SM, 256 KiB


# TODO 2: what turns the plain Python function below into a kernel for the GPU?
def softmax_kernel(
    x_ptr, out_ptr,            # [n_rows, n_cols], each row without gaps
    n_cols,
    stride_x, stride_out,      # elements from one row to the next
    BLOCK_SIZE: tl.constexpr,  # elements per block, a power of two >= n_cols
):
    """out[m] = exp(x[m] - max(x[m])) / sum(exp(x[m] - max(x[m]))). One program owns row m.

    Moves 2 * n_rows * n_cols * itemsize bytes: each element is loaded once and stored once.
    """
    row = ...  # TODO 3: which row does this program own? (TODO 4 may pass 2**31)
    row_start = ...  # TODO 4: at which address does that row begin?
    cols = ...  # TODO 5: how are the elements of one block numbered?
    mask = ...  # TODO 6: which of them have a column?

    x = ...  # TODO 7: what do these elements read, and what does the padding contain?
    x = ...  # TODO 8: in which type is the arithmetic done?

    row_max = ...  # TODO 9: which number is as large as any in the row?
    shifted = ...  # TODO 10: what is taken from each number, so that exp cannot overflow?
    numerator = ...  # TODO 11: what stands above the fraction bar?
    denominator = ...  # TODO 12: what stands below it?
    y = ...  # TODO 13: what is each column's share?

    ...  # TODO 14: where does it go, in which type, and which elements are stored?


def softmax(x: torch.Tensor) -> torch.Tensor:
    """Softmax over dim 1 of a matrix, as a new contiguous tensor of its shape, dtype and device.

    Raises:
        TypeError: x is not a tensor, or its dtype is not supported.
        ValueError: x does not have two dimensions, or has more columns than ``MAX_COLUMNS``.
    """
    check_argument(x)
    if x.stride(1) != 1:
        x = x.contiguous()  # the kernel knows one stride, from row to row
    n_rows, n_cols = x.shape

    block_size = ...  # TODO 15: how wide is the block that holds a whole row?
    out = ...  # TODO 16: which memory takes the result, whatever the strides of x?
    if out.numel() == 0:
        return out  # no row or no column: no program, no launch

    grid = ...  # TODO 17: how many programs are there, and what kind of object is a grid?
    # A program has 32 * num_warps threads, which share its block; 4 warps are usual. With too few,
    # a thread holds more numbers than it has registers. With too many, the threads have little to
    # do but to wait for each other, and above 16 warps a thread has 64 registers at most.
    num_warps = ...  # TODO 18: how many warps, 2, 4, 8, 16 or 32, does a block of this width get?
    # The kernel takes two tensors, a width, two strides and a block size. num_warps goes with them
    # by its name, although the kernel does not list it: it is for the compiler.
    ...  # TODO 19: how is the kernel started on that grid?
    return out


def check_argument(x: torch.Tensor) -> None:
    """Refuse what the contract does not cover, before anything is allocated or launched.

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
