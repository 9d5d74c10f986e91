"""Two loops to pipeline. Both are correct, and no load runs ahead of the arithmetic.

    matmul_pipelined(a, b)[m, n] = sum_k a[m, k] * b[k, n]        in tiles of 128 x 128 x 32
    row_sum(x)[r]                = sum_c x[r, c]                   in float32

Shapes:  a (M, K), b (K, N) and x (R, C) in float16, bfloat16 or float32 with any strides; new
         contiguous results of shape (M, N) and (R,).
Given:   two kernels that are correct for every `num_stages` and ignore it, and a function that
         always picks one stage. The argument checks and the grids are complete; the loops are slow.
Yours:   first `PREDICT`: numbers that you work out before you run anything. Then the places marked
         `DECIDE`, each with a question. Rewrite these parts as you like.
           matmul_pipelined  DECIDE 1 and 2   row_sum  DECIDE 3 to 5   pick_num_stages  DECIDE 6
Graded:  values  products and sums within the rounding of float32, with the same bits for every
                 number of stages, as in the given code
         code    the pipeline of each loop is as deep as `num_stages`, the product loads its tiles
                 by copies of 16 bytes, and the loop of a sum contains no reduction
         cost    no byte is loaded twice; one launch for a product and for short rows, two for long
         plans   the docstring of `pick_num_stages`
         numbers in `PREDICT` within 15 %, counts exactly; a wrong number is explained and fails
                 nothing

`python kernel.py` runs public cases, `tritonlab grade track2/pipelining` runs all of them.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

BLOCK_M, BLOCK_N, BLOCK_K = 128, 128, 32  # of the tiles of the product
BLOCK_SIZE = 1024  # columns of a row per iteration
PROGRAMS = 256  # of a sum of long rows: about two per SM
LEAST_ITERATIONS = 16  # per program of a sum; fewer would not pay for filling a pipeline
MAX_STAGES = 5

SUPPORTED = (torch.float16, torch.bfloat16, torch.float32)

# Replace each None by a number before you measure. The GPU is an H100.
PREDICT = {
    # How many bytes do the tiles of A and B in one iteration have (128 x 128 x 32, float16)?
    "stage_bytes": None,
    # By which factor does the shared memory of the product below grow from num_stages=2 to
    # num_stages=5, as the file is given?
    "unused_ratio": None,
    # How many bytes of shared memory does the product use with 5 stages, once num_stages has an
    # effect? On an H100 each stage has a buffer.
    "matmul_bytes": None,
    # And the sum of float32 with 4 stages and BLOCK_SIZE = 1024? The iteration that computes has
    # its values in registers and needs no buffer.
    "row_sum_bytes": None,
    # How many reductions of a block does one program of the sum below do for 65,536 columns?
    "reductions": None,
    # How many stages of 128 x 256 x 64 tiles in float16 fit in 232,448 bytes of shared memory?
    "most_stages": None,
}


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr,      # [M, K], [K, N], [M, N]
    M, N, K,
    stride_am, stride_ak,     # in elements: from row to row, from column to column
    stride_bk, stride_bn,
    stride_cm, stride_cn,
    BLOCK_M: tl.constexpr,    # rows of a tile of C, a power of two like the next two
    BLOCK_N: tl.constexpr,    # columns of a tile of C
    BLOCK_K: tl.constexpr,    # columns of A and rows of B per iteration, at least 16
    GROUP_M: tl.constexpr,    # rows of tiles per group of the program order
    NUM_STAGES: tl.constexpr,
):
    """c[m, n] = sum_k a[m, k] * b[k, n]. One program owns BLOCK_M x BLOCK_N elements of c.

    It loads (BLOCK_M + BLOCK_N) * K elements and stores BLOCK_M * BLOCK_N.
    """
    pid = tl.program_id(axis=0)
    num_pid_m = tl.cdiv(M, BLOCK_M)
    num_pid_n = tl.cdiv(N, BLOCK_N)
    group_tiles = GROUP_M * num_pid_n
    first_pid_m = pid // group_tiles * GROUP_M
    group_height = min(num_pid_m - first_pid_m, GROUP_M)  # the last group may be lower
    local = pid % group_tiles
    pid_m = first_pid_m + local % group_height
    pid_n = local // group_height

    offs_m = pid_m.to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)  # row * stride passes 2**31
    offs_n = pid_n.to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    in_m = offs_m < M
    in_n = offs_n < N
    a_rows = a_ptr + offs_m[:, None] * stride_am
    b_cols = b_ptr + offs_n[None, :] * stride_bn
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)

    for start in range(0, K, BLOCK_K):
        # DECIDE 1: past the end of K, each element loads the last column again, and the load is
        #           followed by a replacement with zero. The compiler cannot prove that 8 columns of
        #           a thread are contiguous. How does a load leave elements out and keep its
        #           addresses contiguous? Which value do the left-out elements need?
        cols = tl.minimum(start + offs_k, K - 1).to(tl.int64)  # col * stride passes 2**31
        in_k = start + offs_k < K
        a = tl.load(a_rows + cols[None, :] * stride_ak, mask=in_m[:, None], other=0.0)
        b = tl.load(b_cols + cols[:, None] * stride_bk, mask=in_n[None, :], other=0.0)
        a = tl.where(in_k[None, :], a, 0.0)
        b = tl.where(in_k[:, None], b, 0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")  # no TF32; no effect in 16 bits

    c_ptrs = c_ptr + offs_m[:, None] * stride_cm + offs_n[None, :] * stride_cn
    c_mask = in_m[:, None] & in_n[None, :]
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=c_mask)


def matmul_pipelined(
    a: torch.Tensor, b: torch.Tensor, *, num_stages: int = 3
) -> torch.Tensor:
    """Returns a @ b for two matrices, as a new contiguous tensor of their dtype and device.

    Args:
        num_stages: iterations whose tiles are in flight or in use, 1 to ``MAX_STAGES``. It changes
            the shared memory of a program and no bit of the result.

    Raises:
        TypeError: an argument is not a tensor, the dtypes are unsupported or differ, or
            ``num_stages`` is not an int.
        ValueError: an argument is not a matrix, the inner sizes or the devices differ, or
            ``num_stages`` is out of range.
    """
    check_matrix("a", a)
    check_matrix("b", b)
    check_pair(a, b)
    check_stages(num_stages)
    M, K = a.shape
    N = b.shape[1]
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    if c.numel() == 0:
        return c

    grid = (triton.cdiv(M, BLOCK_M) * triton.cdiv(N, BLOCK_N),)
    # DECIDE 2: the kernel gets the number of stages as a parameter and does not use it. What builds
    #           a pipeline, and where is its depth read?
    matmul_kernel[grid](
        a, b, c, M, N, K,
        a.stride(0), a.stride(1), b.stride(0), b.stride(1), c.stride(0), c.stride(1),
        BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K, GROUP_M=8,
        NUM_STAGES=num_stages,
        num_warps=8 if a.dtype == torch.float32 else 4,  # without tensor cores, more registers
    )
    return c


@triton.jit
def row_sum_kernel(
    x_ptr, out_ptr,            # [n_rows, n_cols] with any strides; [n_rows, n_parts] contiguous
    stride_xm, stride_xn,
    n_cols,
    part,                      # columns of one program, a multiple of BLOCK_SIZE
    n_parts,
    BLOCK_SIZE: tl.constexpr,  # columns per iteration, a power of two
):
    """out[r, p] = sum of x[r, p * part : (p + 1) * part]. One program owns one part of one row."""
    row = tl.program_id(axis=0).to(tl.int64)  # row * stride passes 2**31
    number = tl.program_id(axis=1)
    first = number * part
    last = min(first + part, n_cols)
    offs = tl.arange(0, BLOCK_SIZE)
    total = 0.0

    # DECIDE 3: no `tl.dot` uses these loads, so no option of the launch affects this loop. Which
    #           form of a loop takes the number of stages itself?
    for start in range(first, last, BLOCK_SIZE):
        cols = start + offs
        x = tl.load(x_ptr + row * stride_xm + cols.to(tl.int64) * stride_xn,
                    mask=cols < last, other=0.0)
        # DECIDE 4: to reduce a block to one number, all threads of a program synchronize. How many
        #           partial sums can they keep until the loop ends, and in which dtype?
        total += tl.sum(x.to(tl.float32))

    tl.store(out_ptr + row * n_parts + number, total)


def row_sum(x: torch.Tensor, *, num_stages: int = 4) -> torch.Tensor:
    """Returns the sum of every row of a matrix, as a new float32 vector.

    Few long rows are split into parts, so that all SMs have programs; a second launch of the same
    kernel adds the parts. The sum of a row without columns is zero.

    Args:
        num_stages: stages of the loop over a row, 1 to ``MAX_STAGES``.

    Raises:
        TypeError: x is not a tensor of a supported dtype, or ``num_stages`` is not an int.
        ValueError: x does not have two dimensions, or ``num_stages`` is out of range.
    """
    check_matrix("x", x)
    check_stages(num_stages)
    n_rows, n_cols = x.shape
    if n_rows == 0:
        return torch.empty(0, dtype=torch.float32, device=x.device)

    most = max(1, min(PROGRAMS // n_rows, n_cols // (LEAST_ITERATIONS * BLOCK_SIZE)))
    part = triton.cdiv(max(1, n_cols), most * BLOCK_SIZE) * BLOCK_SIZE
    parts = triton.cdiv(max(1, n_cols), part)

    sums = launch_row_sum(x, parts, part, num_stages)
    if parts > 1:
        sums = launch_row_sum(sums, 1, parts, num_stages)
    return sums.view(n_rows)


def launch_row_sum(x: torch.Tensor, parts: int, part: int, num_stages: int) -> torch.Tensor:
    """Returns the sums of ``parts`` parts of each row of x, (R, parts), in one launch."""
    out = torch.empty((x.shape[0], parts), dtype=torch.float32, device=x.device)
    row_sum_kernel[(x.shape[0], parts)](
        x, out, x.stride(0), x.stride(1), x.shape[1], part, parts,
        BLOCK_SIZE=BLOCK_SIZE, num_stages=num_stages,  # DECIDE 5: what reads this number?
    )
    return out


def pick_num_stages(
    tile_bytes: int, smem_limit: int, k_iters: int, *, max_stages: int = MAX_STAGES
) -> int:
    """Returns the most stages that fit in shared memory and that the loop can use.

    Args:
        tile_bytes: bytes that one iteration loads: a tile of A and a tile of B.
        smem_limit: bytes of shared memory available to a program.
        k_iters: iterations of the loop.
        max_stages: upper limit of the result.

    Raises:
        ValueError: an argument is below 1, or the tiles of a single iteration do not fit.
    """
    for name, value in (("tile_bytes", tile_bytes), ("smem_limit", smem_limit),
                        ("k_iters", k_iters), ("max_stages", max_stages)):
        if value < 1:
            raise ValueError(f"{name}: expected at least 1, got {value}")
    if tile_bytes > smem_limit:
        raise ValueError(f"tile_bytes: expected at most smem_limit = {smem_limit}, got "
                         f"{tile_bytes}: the tiles of one iteration do not fit")
    # DECIDE 6: one stage always fits. How many bytes do s stages keep in shared memory at a time,
    #           and which loop cannot use s stages?
    return 1


def check_matrix(name: str, tensor: torch.Tensor) -> None:
    """Refuses arguments that are not a matrix of a supported dtype.

    Raises:
        TypeError: it is not a tensor, or its dtype is not in ``SUPPORTED``.
        ValueError: it does not have two dimensions.
    """
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"{name}: expected a torch.Tensor, got {type(tensor).__name__}")
    if tensor.dtype not in SUPPORTED:
        names = ", ".join(str(dtype) for dtype in SUPPORTED)
        raise TypeError(f"{name}: expected one of {names}, got {tensor.dtype}")
    if tensor.dim() != 2:
        raise ValueError(f"{name}: expected 2 dimensions, got {tensor.dim()} in shape "
                         f"{tuple(tensor.shape)}")


def check_pair(a: torch.Tensor, b: torch.Tensor) -> None:
    """Refuses two matrices that cannot be multiplied.

    Raises:
        TypeError: their dtypes differ.
        ValueError: their inner sizes or their devices differ.
    """
    if b.dtype != a.dtype:
        raise TypeError(f"b: expected {a.dtype} like a, got {b.dtype}")
    if b.shape[0] != a.shape[1]:
        raise ValueError(f"b: expected {a.shape[1]} rows, as many as a has columns, got shape "
                         f"{tuple(b.shape)} for a of shape {tuple(a.shape)}")
    if b.device != a.device:
        raise ValueError(f"b: expected device {a.device} like a, got {b.device}")


def check_stages(num_stages: int) -> None:
    """Refuses a number of stages out of range.

    Raises:
        TypeError: it is not an int.
        ValueError: it is not from 1 to ``MAX_STAGES``.
    """
    if not isinstance(num_stages, int):
        raise TypeError(f"num_stages: expected an int, got {type(num_stages).__name__}")
    if not 1 <= num_stages <= MAX_STAGES:
        raise ValueError(f"num_stages: expected 1 to {MAX_STAGES}, got {num_stages}")


if __name__ == "__main__":
    import tritonlab

    tritonlab.run_public_cases(__file__)
