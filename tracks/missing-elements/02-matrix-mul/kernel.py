"""Matrix multiplication: every element of C is a row of A times a column of B, summed up.

    c[m, n] = a[m, 0] * b[0, n] + a[m, 1] * b[1, n] + ... + a[m, K - 1] * b[K - 1, n]

Shapes:  a is (M, K) and b is (K, N), both float16, bfloat16 or float32, with any strides;
         the result is a new tensor of shape (M, N) with that dtype and device.
Given:   all names, the order of the steps, the check of the arguments, and what is done where
         there is nothing to compute.
Missing: 31 blanks, in seven groups with one idea each.
           A set-up          TODO 1 and 2         E loop      TODO 19 to 24
           B which tile      TODO 3 to 9          F output    TODO 25 to 27
           C indices         TODO 10 to 12        G host      TODO 28 to 31
           D pointers        TODO 13 to 18
         A blank is `...`; an import or a decorator that is missing is a comment line.
Judged:  values  as near to the exact ones as float32 sums allow, in 16 bits as in 32; sizes that
                 are no multiples of a tile, views of every kind, NaN and infinities
         memory  no program touches an element that is not there; every element is written once
         cost    one launch, and tiles that read no more than those of 32 x 32 do
         errors  bad arguments are refused before anything is launched

`python kernel.py` runs four public cases, `tritonlab grade track1/matrix-mul` runs all of them.
"""

from __future__ import annotations

# TODO 1: the code below uses the names torch, triton and tl. Which lines make them known?
#         One is the library of the tensors, one has the decorator and helps with sizes,
#         one is the language inside kernels.


# TODO 2: what turns the plain Python function below into a kernel for the GPU?
def matmul_kernel(
    a_ptr, b_ptr, c_ptr,      # [M, K], [K, N], [M, N]
    M, N, K,
    stride_am, stride_ak,     # elements from one row to the next, and from one column
    stride_bk, stride_bn,
    stride_cm, stride_cn,
    BLOCK_M: tl.constexpr,    # rows of a tile of C, a power of two like the next two
    BLOCK_N: tl.constexpr,    # columns of a tile of C
    BLOCK_K: tl.constexpr,    # columns of A and rows of B per step, at least 16
    GROUP_M: tl.constexpr,    # rows of tiles that are walked through together
):
    """c[m, n] = sum_k a[m, k] * b[k, n]. One program owns BLOCK_M x BLOCK_N elements of c.

    It reads (BLOCK_M + BLOCK_N) * K elements and stores BLOCK_M * BLOCK_N of them.
    """
    pid = ...  # TODO 3: which number does this program have? The grid has one dimension.
    num_pid_m = ...  # TODO 4: how many rows of tiles are there?
    num_pid_n = ...  # TODO 5: how many columns of tiles are there?
    group_tiles = GROUP_M * num_pid_n
    first_pid_m = ...  # TODO 6: in which row of tiles does the group of this program begin?
    group_height = ...  # TODO 7: and how many rows of tiles does that group have?
    local = pid % group_tiles
    pid_m = ...  # TODO 8: in which row of all tiles is tile `local` of the group? (downwards first)
    pid_n = ...  # TODO 9: in which column of tiles is it?

    offs_m = ...  # TODO 10: which rows of A and C are these? (row * stride may pass 2**31)
    offs_n = ...  # TODO 11: which columns of B and C are these?
    acc = ...  # TODO 12: what is a sum before anything was added, in which shape and type?

    # What a step does not change is computed before the loop: in it, pointers only advance.
    steps = ...  # TODO 13: how many steps does it take to walk along all of K?
    offs_k = ...  # TODO 14: which columns of A and rows of B does the first step take? (64 bits)
    a_ptrs = ...  # TODO 15: where do these rows and columns of A lie?
    in_m = ...  # TODO 16: which of the rows exist?
    b_ptrs = ...  # TODO 17: where do these rows and columns of B lie?
    in_n = ...  # TODO 18: which of the columns exist?
    a_step = tl.cast(BLOCK_K, tl.int64) * stride_ak  # in a transposed view that passes 2**31 too
    b_step = tl.cast(BLOCK_K, tl.int64) * stride_bk

    for step in range(steps):
        in_k = ...  # TODO 19: which of its columns of A and rows of B exist?
        a = ...  # TODO 20: what does this tile of A contain, and what does its padding?
        b = ...  # TODO 21: what does this tile of B contain, and what does its padding?
        acc = ...  # TODO 22: what is the sum now, in full float32 if the inputs are float32?
        a_ptrs = ...  # TODO 23: where does the tile of the next step lie?
        b_ptrs = ...  # TODO 24: and where that of B?

    c_ptrs = ...  # TODO 25: where do the elements of this tile of C lie?
    c_mask = ...  # TODO 26: which of them exist?
    ...  # TODO 27: what is stored there, and in which type?


def matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """a @ b for two matrices, as a new contiguous tensor of their dtype and device.

    Raises:
        TypeError: an argument is not a tensor, or the dtypes are unsupported or differ.
        ValueError: an argument is not a matrix, the inner sizes differ, or the devices do.
    """
    check_arguments(a, b)
    M, K = a.shape
    N = b.shape[1]

    c = ...  # TODO 28: which memory takes the result?
    if c.numel() == 0:
        return c  # no row or no column: no program, no launch

    # A thread keeps its share of the tile in registers: 64 numbers of float32 with 128 x 128 and 8
    # warps. Without tensor cores it needs room for a and b as well, so float32 gets smaller tiles.
    block_m, block_n, block_k = ...  # TODO 29: how large are tiles and steps, for each dtype?
    grid = ...  # TODO 30: how many programs are there, and what kind of object is a grid?
    # The kernel takes three tensors, three sizes, two strides for each tensor, the three sizes of
    # a tile and GROUP_M. 8 is good for GROUP_M and, by its name beside them, for num_warps.
    ...  # TODO 31: how is the kernel started on that grid?
    return c


def check_arguments(a: torch.Tensor, b: torch.Tensor) -> None:
    """Refuse what the contract does not cover, before anything is allocated or launched.

    Raises:
        TypeError: an argument is not a tensor, or the dtypes are unsupported or differ.
        ValueError: an argument is not a matrix, the inner sizes differ, or the devices do.
    """
    supported = (torch.float16, torch.bfloat16, torch.float32)
    for name, tensor in (("a", a), ("b", b)):
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"{name}: expected a torch.Tensor, got {type(tensor).__name__}")
        if tensor.dtype not in supported:
            names = ", ".join(str(dtype) for dtype in supported)
            raise TypeError(f"{name}: expected one of {names}, got {tensor.dtype}")
        if tensor.dim() != 2:
            raise ValueError(f"{name}: expected 2 dimensions, got {tensor.dim()} in shape "
                             f"{tuple(tensor.shape)}")
    if b.dtype != a.dtype:
        raise TypeError(f"b: expected {a.dtype} like a, got {b.dtype}")
    if b.shape[0] != a.shape[1]:
        raise ValueError(f"b: expected {a.shape[1]} rows, as many as a has columns, got shape "
                         f"{tuple(b.shape)} for a of shape {tuple(a.shape)}")
    if b.device != a.device:
        raise ValueError(f"b: expected device {a.device} like a, got {b.device}")


if __name__ == "__main__":
    import tritonlab

    tritonlab.run_public_cases(__file__)
