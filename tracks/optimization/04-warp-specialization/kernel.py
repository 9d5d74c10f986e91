"""A layer and a matrix product, correct and slow: tile order, fused epilogue, warp roles.

    linear_relu(x, w, b)[m, n] = max(0, sum_k x[m, k] * w[n, k] + b[n])
    matmul_ws(a, b_t)[m, n]    =        sum_k a[m, k] * b_t[n, k]

Shapes:  x (M, K), w (N, K), b (N,) in float16, bfloat16 or float32, with any strides;
         a (M, K) and b_t (N, K) in float16, with rows that a tensor descriptor can describe.
         Results are new contiguous tensors (M, N).
Given:   correct kernels and complete argument checks. But tiles are in row-major order; a layer
         takes two launches, with a matrix in memory between them; the second product computes the
         address of every element that it loads, all of its warps do the same work, and its
         parameter `warp_specialize` has no effect.
Yours:   first `PREDICT`: numbers that you work out before you run anything. Then the places marked
         `DECIDE`, each with a question. Rewrite these parts as you like.
           order of tiles  DECIDE 1, 2 and 4      epilogue  DECIDE 3 and 5
           descriptors     DECIDE 6 and 8         warp roles  DECIDE 7, 9 and 10
Graded:  values  both formulas, within the rounding of a float32 sum, as in the given code
         order   132 programs that run at the same time load at most three quarters of the panels
                 of row-major order
         cost    one launch for a layer, and the traffic of 64 x 64 tiles; compiled for an H100, TMA
                 copies the tiles, and warps get roles on request; compiled for an A100, the loop of
                 the product is pipelined
         numbers in `PREDICT` exactly, bytes within 15 %; a wrong number is explained and fails
                 nothing

`python kernel.py` runs the public cases, `tritonlab grade track2/warp-specialization` all of them.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

# Replace each None by a number before you measure.
PREDICT = {
    # A panel is the part of the first operand that a row of tiles needs, or of the second operand
    # that a column of tiles needs. In a field of 32 x 32 tiles, how many different panels of both
    # operands do the first 132 programs need: row by row, in groups of 8 rows of tiles, and of 4?
    "panels_row_major": None,
    "panels_group_8": None,
    "panels_group_4": None,
    # How many bytes does it take to store a 4,096 x 4,096 matrix of float16 in one kernel and to
    # load it in the next one, which adds the bias?
    "epilogue_bytes": None,
    # How many warps does a program have on an H100 if it is launched with 4 and its loop is
    # specialized? There are groups of 4 warps: two groups multiply, and one loads.
    "warps": None,
    # How many pipeline stages does that loop have on an A100 with the same option? Without a
    # pipeline, the number is 0.
    "stages_a100": None,
}


@triton.jit
def grouped_pid(pid, num_pid_m, num_pid_n, GROUP_M: tl.constexpr):
    """Returns the tile (row, column) of program ``pid`` in a field of num_pid_m x num_pid_n tiles.

    GROUP_M rows of tiles form a group; the last group may have fewer. With GROUP_M = 1 the order is
    row-major.
    """
    # DECIDE 1: this is row-major order for every GROUP_M. Programs with consecutive ids run at the
    #           same time: which tiles should 132 of them own to need few panels of both operands?
    #           What if the number of rows is not a multiple of GROUP_M?
    return pid // num_pid_n, pid % num_pid_n


@triton.jit
def walk_tiles_kernel(field_ptr, out_ptr, num_pid_m, num_pid_n, GROUP_M: tl.constexpr):
    """out[i] = field[tile of program i]. One program owns one element."""
    pid = tl.program_id(axis=0)
    pid_m, pid_n = grouped_pid(pid, num_pid_m, num_pid_n, GROUP_M)
    tl.store(out_ptr + pid, tl.load(field_ptr + pid_m * num_pid_n + pid_n))


def walk_tiles(field: torch.Tensor, *, group_m: int = 8) -> torch.Tensor:
    """Returns the elements of a contiguous int32 field (rows, columns), in program order.

    It shows the order of ``grouped_pid``: number the tiles, and see which program owns which.
    """
    num_pid_m, num_pid_n = field.shape
    out = torch.empty(field.numel(), dtype=field.dtype, device=field.device)
    if out.numel():
        walk_tiles_kernel[(field.numel(),)](field, out, num_pid_m, num_pid_n, GROUP_M=group_m)
    return out


@triton.jit
def product_kernel(
    x_ptr, w_ptr, out_ptr,         # [M, K], [N, K], and contiguous [M, N]
    stride_xm, stride_xk,          # in elements: from row to row, from column to column
    stride_wn, stride_wk,
    M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    """out = x @ w.T in the dtype of out. One program owns BLOCK_M x BLOCK_N elements of out."""
    # DECIDE 2: the grid has two axes, and the GPU chooses the order of their programs. How does a
    #           program of a grid with one axis get its tile from `grouped_pid`?
    pid_m, pid_n = tl.program_id(axis=1), tl.program_id(axis=0)
    offs_m = pid_m.to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)  # row * stride passes 2**31
    offs_n = pid_n.to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K).to(tl.int64)
    in_m, in_n = offs_m < M, offs_n < N

    # A tile of w.T: k along rows and n along columns, for any strides of w.
    x_ptrs = x_ptr + offs_m[:, None] * stride_xm + offs_k[None, :] * stride_xk
    w_ptrs = w_ptr + offs_k[:, None] * stride_wk + offs_n[None, :] * stride_wn
    x_step = tl.cast(BLOCK_K, tl.int64) * stride_xk
    w_step = tl.cast(BLOCK_K, tl.int64) * stride_wk

    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(tl.cdiv(K, BLOCK_K)):
        in_k = offs_k < K - step * BLOCK_K
        x = tl.load(x_ptrs, mask=in_m[:, None] & in_k[None, :], other=0.0)
        w = tl.load(w_ptrs, mask=in_k[:, None] & in_n[None, :], other=0.0)
        acc = tl.dot(x, w, acc, input_precision="ieee")
        x_ptrs += x_step
        w_ptrs += w_step

    # DECIDE 3: the sum is stored unfinished. Which operations finish it here, in which order and
    #           precision, so that the tile is stored once and the kernel below is not needed?
    out_ptrs = out_ptr + offs_m[:, None] * N + offs_n[None, :]
    tl.store(out_ptrs, acc.to(out_ptr.dtype.element_ty), mask=in_m[:, None] & in_n[None, :])


@triton.jit
def bias_relu_kernel(
    product_ptr, b_ptr, out_ptr,   # [M, N], [N], [M, N]; the matrices are contiguous
    stride_b, M, N,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):
    """out = relu(product + b). One program owns BLOCK_M x BLOCK_N elements."""
    offs_m = tl.program_id(axis=1).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.program_id(axis=0).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    offs = offs_m[:, None] * N + offs_n[None, :]
    mask = (offs_m < M)[:, None] & (offs_n < N)[None, :]

    product = tl.load(product_ptr + offs, mask=mask)
    bias = tl.load(b_ptr + offs_n * stride_b, mask=offs_n < N).to(tl.float32)

    summed = product + bias[None, :]
    positive = tl.where(summed < 0, 0.0, summed)  # NaN < 0 is false: NaN stays
    tl.store(out_ptr + offs, positive.to(out_ptr.dtype.element_ty), mask=mask)


def linear_relu(
    x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, *, group_m: int = 8
) -> torch.Tensor:
    """Returns relu(x @ w.T + b), contiguous (M, N), for x (M, K), w (N, K) and b (N,).

    Args:
        group_m: rows of tiles per group of the program order.

    Raises:
        TypeError: an argument is not a tensor, or the dtypes are unsupported or differ.
        ValueError: the shapes do not fit, the devices differ, or group_m is below 1.
    """
    check_linear(x, w, b, group_m)
    (M, K), N = x.shape, w.shape[0]
    out = torch.empty((M, N), dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out

    product = torch.empty((M, N), dtype=torch.float32, device=x.device)
    # DECIDE 4: one axis for all tiles. How many programs does it have?
    grid = (triton.cdiv(N, 64), triton.cdiv(M, 64))
    product_kernel[grid](
        x, w, product,
        x.stride(0), x.stride(1), w.stride(0), w.stride(1), M, N, K,
        BLOCK_M=64, BLOCK_N=64, BLOCK_K=32,
    )
    # DECIDE 5: the second launch reads every sum again. What is left for it to do once DECIDE 3 is
    #           done?
    bias_relu_kernel[grid](product, b, out, b.stride(0), M, N, BLOCK_M=64, BLOCK_N=64)
    return out


@triton.jit
def matmul_ws_kernel(
    a_ptr, b_ptr, c_ptr,   # [M, K], [N, K], and contiguous [M, N]
    stride_am, stride_bn,  # in elements, multiples of 8
    M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    """c = a @ b.T. One program owns BLOCK_M x BLOCK_N elements of c."""
    row = tl.program_id(axis=1) * BLOCK_M
    col = tl.program_id(axis=0) * BLOCK_N

    # DECIDE 6: a tensor descriptor states four facts about a matrix: its base, shape, strides and
    #           the block to copy. What are they for a, b and c? Which masks are still necessary,
    #           and in which unit are the offsets of a tile?
    offs_m = row.to(tl.int64) + tl.arange(0, BLOCK_M)
    offs_n = col.to(tl.int64) + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + offs_m[:, None] * stride_am + offs_k[None, :]
    b_ptrs = b_ptr + offs_k[:, None] + offs_n[None, :] * stride_bn
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)

    # DECIDE 7: Python's `range` takes no options. Which loop takes the request for warp roles?
    for step in range(tl.cdiv(K, BLOCK_K)):
        in_k = offs_k < K - step * BLOCK_K
        a = tl.load(a_ptrs, mask=(offs_m < M)[:, None] & in_k[None, :], other=0.0)
        # DECIDE 8: these pointers transpose b as they load it. The last dimension of a descriptor
        #           must be contiguous. In which orientation does its tile arrive, and what
        #           transposes it?
        b = tl.load(b_ptrs, mask=in_k[:, None] & (offs_n < N)[None, :], other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K

    c_ptrs = c_ptr + offs_m[:, None] * N + offs_n[None, :]
    tl.store(c_ptrs, acc.to(tl.float16), mask=(offs_m < M)[:, None] & (offs_n < N)[None, :])


def matmul_ws(
    a: torch.Tensor, b_t: torch.Tensor, *, warp_specialize: bool = False
) -> torch.Tensor:
    """Returns a @ b_t.T, contiguous (M, N), for a (M, K) and b_t (N, K) in float16.

    Args:
        warp_specialize: some warps load and the others multiply, on GPUs for which
            ``use_warp_specialization`` returns True.

    Raises:
        TypeError: an argument is not a tensor of float16.
        ValueError: the shapes do not fit, the devices differ, or a descriptor cannot describe an
            argument or the result: rows must be multiples of 16 bytes and start at such a multiple.
    """
    check_matmul(a, b_t)
    (M, K), N = a.shape, b_t.shape[0]
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    if c.numel() == 0:
        return c
    if K == 0:
        return c.zero_()  # a descriptor cannot have an empty dimension

    triton.set_allocator(scratch)  # a kernel that creates descriptors needs memory for them
    grid = (triton.cdiv(N, 64), triton.cdiv(M, 64))
    # DECIDE 9: the kernel has to get `warp_specialize`, a compile-time constant. With how many
    #           warps can Triton split a program?
    matmul_ws_kernel[grid](
        a, b_t, c, a.stride(0), b_t.stride(0), M, N, K, BLOCK_M=64, BLOCK_N=64, BLOCK_K=32,
    )
    return c


def use_warp_specialization(capability: tuple[int, int]) -> bool:
    """Returns whether Triton specializes warps for a compute capability such as (9, 0)."""
    # DECIDE 10: "nowhere" is safe. Which GPUs have TMA and support for warp roles in Triton, and
    #            what does the option do to a loop on the other GPUs?
    return False


def scratch(size: int, alignment: int, stream: int | None) -> torch.Tensor:
    """Allocates GPU memory for the descriptors that a kernel creates."""
    return torch.empty(size, dtype=torch.int8, device="cuda")


def check_linear(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, group_m: int) -> None:
    """Refuses arguments outside the contract of ``linear_relu``."""
    supported = (torch.float16, torch.bfloat16, torch.float32)
    for name, tensor, dims in (("x", x, 2), ("w", w, 2), ("b", b, 1)):
        check_tensor(name, tensor, dims, supported)
        if tensor.dtype != x.dtype:
            raise TypeError(f"{name}: expected {x.dtype} like x, got {tensor.dtype}")
        if tensor.device != x.device:
            raise ValueError(f"{name}: expected device {x.device} like x, got {tensor.device}")
    if w.shape[1] != x.shape[1]:
        raise ValueError(f"w: expected {x.shape[1]} columns like x, got shape {tuple(w.shape)}")
    if b.shape[0] != w.shape[0]:
        raise ValueError(f"b: expected {w.shape[0]} elements, one for each row of w, got "
                         f"{b.shape[0]}")
    if group_m < 1:
        raise ValueError(f"group_m: expected at least 1, got {group_m}")


def check_matmul(a: torch.Tensor, b_t: torch.Tensor) -> None:
    """Refuses arguments outside the contract of ``matmul_ws``."""
    for name, tensor in (("a", a), ("b_t", b_t)):
        check_tensor(name, tensor, 2, (torch.float16,))
    if b_t.device != a.device:
        raise ValueError(f"b_t: expected device {a.device} like a, got {b_t.device}")
    if b_t.shape[1] != a.shape[1]:
        raise ValueError(f"b_t: expected {a.shape[1]} columns like a, got shape "
                         f"{tuple(b_t.shape)}")
    for name, tensor in (("a", a), ("b_t", b_t)):
        columns = tensor.shape[1]
        if columns % 8:
            raise ValueError(f"{name}: expected rows that are a multiple of 16 bytes, got "
                             f"{2 * columns} bytes in shape {tuple(tensor.shape)}")
        if tensor.numel() and (tensor.stride(1) != 1 or tensor.stride(0) % 8):
            raise ValueError(f"{name}: expected contiguous rows whose starts are a multiple of "
                             f"16 bytes apart, got strides {tensor.stride()}")
        if tensor.data_ptr() % 16:
            raise ValueError(f"{name}: expected data that starts at a multiple of 16 bytes, got "
                             f"{tensor.data_ptr() % 16} bytes after one")
    if b_t.shape[0] % 8:
        raise ValueError(f"b_t: expected a multiple of 8 rows, so that rows of the result are a "
                         f"multiple of 16 bytes, got shape {tuple(b_t.shape)}")


def check_tensor(
    name: str, tensor: torch.Tensor, dims: int, dtypes: tuple[torch.dtype, ...]
) -> None:
    """Refuses arguments that are not a tensor with ``dims`` dimensions and one of the dtypes."""
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"{name}: expected a torch.Tensor, got {type(tensor).__name__}")
    if tensor.dtype not in dtypes:
        names = ", ".join(str(dtype) for dtype in dtypes)
        raise TypeError(f"{name}: expected {names}, got {tensor.dtype}")
    if tensor.dim() != dims:
        raise ValueError(f"{name}: expected {dims} dimension{'s' * (dims > 1)}, got {tensor.dim()} "
                         f"in shape {tuple(tensor.shape)}")


if __name__ == "__main__":
    import tritonlab

    tritonlab.run_public_cases(__file__)
