"""Matrix multiplication: every element of C is the dot product of a row of A and a column of B.

    c[m, n] = a[m, 0] * b[0, n] + a[m, 1] * b[1, n] + ... + a[m, K - 1] * b[K - 1, n]

Shapes:  a is (M, K) and b is (K, N), both float16, bfloat16 or float32, with any strides;
         the result is a new tensor of shape (M, N) with that dtype and device.
Given:   all names, the order of the steps, the argument checks, and the code for empty results.
Missing: 31 blanks, in seven steps with one idea each.
           A setup           TODO 1 and 2         E loop      TODO 19 to 24
           B which tile      TODO 3 to 9          F output    TODO 25 to 27
           C indices         TODO 10 to 12        G host      TODO 28 to 31
           D pointers        TODO 13 to 18
         A blank is three dots, `...`; a comment marks each missing import or decorator.
Graded:  values  accurate to float32 accumulation in all three dtypes; sizes that are not multiples
                 of a tile, views of every kind, NaN and infinities
         memory  no access is out of bounds, and every element of the result is stored once
         cost    one launch, and no more traffic than tiles of 32 x 32 cause
         errors  invalid arguments raise an exception before anything is launched

`python kernel.py` runs four public cases, `tritonlab grade track1/matrix-mul` runs all of them.
"""

from __future__ import annotations

# TODO 1: which imports define the names torch, triton and tl that the code below uses?


# TODO 2: what turns the plain Python function below into a kernel for the GPU?
def matmul_kernel(
    a_ptr, b_ptr, c_ptr,      # [M, K], [K, N], [M, N]
    M, N, K,
    stride_am, stride_ak,     # elements from one row, or column, to the next
    stride_bk, stride_bn,
    stride_cm, stride_cn,
    BLOCK_M: tl.constexpr,    # rows of a tile of C; all three are powers of two
    BLOCK_N: tl.constexpr,    # columns of a tile of C
    BLOCK_K: tl.constexpr,    # columns of A and rows of B per step, at least 16
    GROUP_M: tl.constexpr,    # rows of tiles per group; programs go down the columns of a group
):
    """c[m, n] = sum_k a[m, k] * b[k, n]. One program owns BLOCK_M x BLOCK_N elements of c.

    It loads (BLOCK_M + BLOCK_N) * K elements and stores BLOCK_M * BLOCK_N.
    """
    pid = ...  # TODO 3: which number identifies this program? The grid has one dimension.
    num_pid_m = ...  # TODO 4: how many rows of tiles are there?
    num_pid_n = ...  # TODO 5: how many columns of tiles are there?
    group_tiles = GROUP_M * num_pid_n
    first_pid_m = ...  # TODO 6: which row of tiles is the first of this program's group?
    group_height = ...  # TODO 7: how many rows of tiles does that group have?
    local = pid % group_tiles
    pid_m = ...  # TODO 8: in which row of tiles is the tile with number `local` in its group?
    pid_n = ...  # TODO 9: in which column of tiles is it?

    offs_m = ...  # TODO 10: which rows of A and C does the tile cover? (in 64 bits)
    offs_n = ...  # TODO 11: which columns of B and C does it cover? (in 64 bits)
    acc = ...  # TODO 12: with which value, shape and dtype does the accumulator start?

    # Everything that all steps share is computed before the loop; the loop only advances pointers.
    steps = ...  # TODO 13: how many steps cover all of K?
    offs_k = ...  # TODO 14: which columns of A and rows of B does step 0 load? (in 64 bits)
    a_ptrs = ...  # TODO 15: at which addresses is the first tile of A?
    in_m = ...  # TODO 16: which rows of the tile exist?
    b_ptrs = ...  # TODO 17: at which addresses is the first tile of B?
    in_n = ...  # TODO 18: which columns of the tile exist?
    a_step = tl.cast(BLOCK_K, tl.int64) * stride_ak  # may exceed 2**31 - 1 in a transposed view
    b_step = tl.cast(BLOCK_K, tl.int64) * stride_bk

    for step in range(steps):
        in_k = ...  # TODO 19: which columns of A and rows of B exist in this step?
        a = ...  # TODO 20: which elements of A are loaded, and what is the value of the padding?
        b = ...  # TODO 21: and which elements of B?
        acc = ...  # TODO 22: what is the sum after this step? (float32 inputs: not in TF32)
        a_ptrs = ...  # TODO 23: at which addresses is the next tile of A?
        b_ptrs = ...  # TODO 24: and the next tile of B?

    c_ptrs = ...  # TODO 25: at which addresses is this tile of C?
    c_mask = ...  # TODO 26: which of its elements exist?
    ...  # TODO 27: what is stored there, and in which dtype?


def matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Returns a @ b for two matrices, as a new contiguous tensor of their dtype and device.

    Raises:
        TypeError: an argument is not a tensor, or the dtypes are unsupported or differ.
        ValueError: an argument is not a matrix, or the inner sizes or the devices differ.
    """
    check_arguments(a, b)
    M, K = a.shape
    N = b.shape[1]

    c = ...  # TODO 28: what tensor holds the result?
    if c.numel() == 0:
        return c  # no rows or no columns, nothing to launch

    # Each thread keeps its part of the accumulator in registers: 64 float32 numbers for a tile of
    # 128 x 128 and 8 warps. Without tensor cores, a and b need registers as well, so the tiles of
    # float32 are smaller.
    block_m, block_n, block_k = ...  # TODO 29: which tile sizes, for each dtype?
    grid = ...  # TODO 30: how many programs are there, and what type is a grid?
    # The kernel takes three tensors, three sizes, two strides per tensor, three tile sizes and
    # GROUP_M. 8 is a good value for GROUP_M and for the launch option num_warps.
    ...  # TODO 31: how is the kernel launched on that grid?
    return c


def check_arguments(a: torch.Tensor, b: torch.Tensor) -> None:
    """Rejects unsupported arguments, before anything is allocated or launched.

    Raises:
        TypeError: an argument is not a tensor, or the dtypes are unsupported or differ.
        ValueError: an argument is not a matrix, or the inner sizes or the devices differ.
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
