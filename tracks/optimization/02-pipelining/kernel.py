"""Loads that run ahead of the arithmetic: right already, and no load runs ahead of anything.

    matmul_pipelined(a, b)[m, n] = sum_k a[m, k] * b[k, n]        in tiles of 128 x 128 x 32
    row_sum(x)[r]                = sum_c x[r, c]                   in float32

Shapes:  a (M, K), b (K, N) and x (R, C) in float16, bfloat16 or float32 with any strides; new
         contiguous results of shape (M, N) and (R,).
Given:   two kernels that are right for every `num_stages` and never do what it asks for, and a
         picker of stages that is right and timid. The checks of arguments are fine, and so are the
         grids: what is slow are the loops.
Yours:   first `PREDICT`: numbers that you work out before you run anything. Then the places marked
         `DECIDE`, each with a question. Write these parts anew as you like.
           matmul_pipelined  DECIDE 1 and 4    row_sum  DECIDE 2 and 3    pick_num_stages  DECIDE 5
Judged:  values  products and sums within the rounding of float32, the same bits for every number
                 of stages; this holds from the start
         code    the pipeline of each loop is as deep as `num_stages` asks for, the product is fed
                 by copies of 16 bytes, and nothing is reduced inside the loop of a sum
         cost    no byte is loaded twice; one launch for a product and for short rows, two for long
         plans   what the docstring of `pick_num_stages` says
         numbers in `PREDICT` within 15 %, counts exactly; a wrong one is explained and fails
                 nothing

`python kernel.py` runs public cases, `tritonlab grade track2/pipelining` runs all of them.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

BLOCK_M, BLOCK_N, BLOCK_K = 128, 128, 32  # of the tiles of the product
BLOCK_SIZE = 1024  # columns of a row that one round adds
PROGRAMS = 256  # of a sum, where rows are long: about two for each SM
LEAST_ROUNDS = 16  # of a program of a sum: filling a pipeline has to pay
MAX_STAGES = 5

SUPPORTED = (torch.float16, torch.bfloat16, torch.float32)

# Write a number in place of each None, before you measure. The GPU is an H100.
PREDICT = {
    # How many bytes are the tiles of A and B of one round of the product (128 x 128 x 32, float16)?
    "stage_bytes": None,
    # How many times as much shared memory does the product below take, as it is, with
    # num_stages=5 as with num_stages=2?
    "unused_ratio": None,
    # How many bytes of shared memory does it take with 5 stages, once num_stages has an effect? On
    # an H100 each stage has a buffer.
    "matmul_bytes": None,
    # And a sum of float32 with 4 stages and BLOCK_SIZE = 1024? Here the round that computes has its
    # numbers in registers, and needs no buffer.
    "row_sum_bytes": None,
    # How often does one program of the sum below make one number of a block, over 65,536 columns?
    "reductions": None,
    # How many stages of tiles of 128 x 256 x 64 in float16 fit 232,448 bytes of shared memory?
    "most_stages": None,
}


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr,      # [M, K], [K, N], [M, N]
    M, N, K,
    stride_am, stride_ak,     # elements from one row to the next, and from one column
    stride_bk, stride_bn,
    stride_cm, stride_cn,
    BLOCK_M: tl.constexpr,    # rows of a tile of C, a power of two like the next two
    BLOCK_N: tl.constexpr,    # columns of a tile of C
    BLOCK_K: tl.constexpr,    # columns of A and rows of B per round, at least 16
    GROUP_M: tl.constexpr,    # rows of tiles that are walked through together
    NUM_STAGES: tl.constexpr,
):
    """c[m, n] = sum_k a[m, k] * b[k, n]. One program owns BLOCK_M x BLOCK_N elements of c.

    It reads (BLOCK_M + BLOCK_N) * K elements and stores BLOCK_M * BLOCK_N of them.
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
        # DECIDE 4: past the end of K each element is the last column again, replaced by zero after
        #           the load. The compiler cannot prove that 8 columns of a thread are contiguous.
        #           What says that an element has no column, and leaves addresses contiguous? What
        #           do such elements hold?
        cols = tl.minimum(start + offs_k, K - 1).to(tl.int64)  # col * stride passes 2**31
        in_k = start + offs_k < K
        a = tl.load(a_rows + cols[None, :] * stride_ak, mask=in_m[:, None], other=0.0)
        b = tl.load(b_cols + cols[:, None] * stride_bk, mask=in_n[None, :], other=0.0)
        a = tl.where(in_k[None, :], a, 0.0)
        b = tl.where(in_k[:, None], b, 0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")  # no TF32; no matter in 16 bits

    c_ptrs = c_ptr + offs_m[:, None] * stride_cm + offs_n[None, :] * stride_cn
    c_mask = in_m[:, None] & in_n[None, :]
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=c_mask)


def matmul_pipelined(
    a: torch.Tensor, b: torch.Tensor, *, num_stages: int = 3
) -> torch.Tensor:
    """a @ b for two matrices, as a new contiguous tensor of their dtype and device.

    Args:
        num_stages: rounds whose tiles are in flight or in use, 1 to ``MAX_STAGES``. It changes how
            much shared memory a program takes, and no bit of the result.

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
    # DECIDE 1: the kernel gets the number of stages as a parameter, and makes nothing of it. Who
    #           builds a pipeline, and where does it look for its depth?
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
    x_ptr, out_ptr,            # [n_rows, n_cols] with any strides; [n_rows, n_parts] without gaps
    stride_xm, stride_xn,
    n_cols,
    part,                      # columns of one program; whole rounds, and 16 bytes stay together
    n_parts,
    BLOCK_SIZE: tl.constexpr,  # columns of one round, a power of two
):
    """out[r, p] = sum of x[r, p * part : (p + 1) * part]. One program owns one part of one row."""
    row = tl.program_id(axis=0).to(tl.int64)  # row * stride passes 2**31
    number = tl.program_id(axis=1)
    first = number * part
    last = min(first + part, n_cols)
    offs = tl.arange(0, BLOCK_SIZE)
    total = 0.0

    # DECIDE 2: nothing here feeds a product, so no option of the launch will reach this loop. Which
    #           form of a loop says itself how far its loads run ahead?
    for start in range(first, last, BLOCK_SIZE):
        cols = start + offs
        x = tl.load(x_ptr + row * stride_xm + cols.to(tl.int64) * stride_xn,
                    mask=cols < last, other=0.0)
        # DECIDE 3: to make one number of a block, all threads of a program have to meet. How many
        #           numbers could they keep until the loop has ended, and in which type?
        total += tl.sum(x.to(tl.float32))

    tl.store(out_ptr + row * n_parts + number, total)


def row_sum(x: torch.Tensor, *, num_stages: int = 4) -> torch.Tensor:
    """The sum of every row of a matrix, as a new vector in float32.

    A few long rows are cut into parts, so that there are programs for all SMs; a second
    launch of the same kernel adds the parts. Rows without columns add up to zero.

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

    most = max(1, min(PROGRAMS // n_rows, n_cols // (LEAST_ROUNDS * BLOCK_SIZE)))
    part = triton.cdiv(max(1, n_cols), most * BLOCK_SIZE) * BLOCK_SIZE
    parts = triton.cdiv(max(1, n_cols), part)

    sums = launch_row_sum(x, parts, part, num_stages)
    if parts > 1:
        sums = launch_row_sum(sums, 1, parts, num_stages)
    return sums.view(n_rows)


def launch_row_sum(x: torch.Tensor, parts: int, part: int, num_stages: int) -> torch.Tensor:
    """The sums of ``parts`` parts of each row of x, (R, parts), in one launch."""
    out = torch.empty((x.shape[0], parts), dtype=torch.float32, device=x.device)
    row_sum_kernel[(x.shape[0], parts)](
        x, out, x.stride(0), x.stride(1), x.shape[1], part, parts,
        BLOCK_SIZE=BLOCK_SIZE, num_stages=num_stages,  # DECIDE 2: who asks for this number?
    )
    return out


def pick_num_stages(
    tile_bytes: int, smem_limit: int, k_iters: int, *, max_stages: int = MAX_STAGES
) -> int:
    """The most stages, up to ``max_stages``, that fit shared memory and have a round to load for.

    Args:
        tile_bytes: bytes that one round loads: a tile of A and a tile of B.
        smem_limit: bytes of shared memory that a program may have.
        k_iters: rounds of the loop.

    Raises:
        ValueError: an argument is below 1, or the tiles of a single round do not fit.
    """
    for name, value in (("tile_bytes", tile_bytes), ("smem_limit", smem_limit),
                        ("k_iters", k_iters), ("max_stages", max_stages)):
        if value < 1:
            raise ValueError(f"{name}: expected at least 1, got {value}")
    if tile_bytes > smem_limit:
        raise ValueError(f"tile_bytes: expected at most smem_limit = {smem_limit}, got "
                         f"{tile_bytes}: the tiles of one round do not fit")
    # DECIDE 5: one stage always fits. With s of them, how many bytes are in flight or in use at a
    #           time, and which loop has no use for s?
    return 1


def check_matrix(name: str, tensor: torch.Tensor) -> None:
    """Refuse what is not a matrix of a supported dtype.

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
    """Refuse two matrices that cannot be multiplied.

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
    """Refuse a number of stages that no pipeline of this file has.

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
