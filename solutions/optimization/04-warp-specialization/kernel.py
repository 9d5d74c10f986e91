"""A linear layer and a product: tile order, an epilogue in registers, specialized warps.

    linear_relu(x, w, b)[m, n] = max(0, sum_k x[m, k] * w[n, k] + b[n])
    matmul_ws(a, b_t)[m, n]    =        sum_k a[m, k] * b_t[n, k]

Each program owns one tile of the result. Three decisions concern it. *Order*: programs that run at
the same time own adjacent tiles, so they load the same panels of both operands, which are then in
the L2 cache. *Epilogue*: bias, ReLU and cast are applied to the accumulator in registers, and no
intermediate matrix exists. *Roles*: with tensor descriptors, TMA (the Tensor Memory Accelerator)
copies whole tiles; with `warp_specialize`, a producer warp requests them and the other warps only
multiply.

Cost: 2 * M * N * K FLOP. The first operand is loaded once per column of tiles, the second operand
and the bias once per row of tiles, and the result is stored once.

Inputs of `linear_relu`: float16, bfloat16 or float32 with any strides. Inputs of `matmul_ws`:
float16 with contiguous rows that start at multiples of 16 bytes, as its descriptors require.

Source: grouped order, from the third tutorial in Triton's documentation; producer and consumer
warps, from M. Bauer, H. Cook, B. Khailany, "CudaDMA", SC 2011, and J. Shah and others,
"FlashAttention-3", 2024.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

PREDICT = {
    "panels_row_major": 5 + 32,
    "panels_group_8": 8 + 17,
    "panels_group_4": 8 + 32,  # one whole group of 4 rows, and 4 tiles of the next group
    "epilogue_bytes": 2 * 4096 * 4096 * 2,
    "warps": 12,  # one group of 4 loads, two groups of 4 multiply
    "stages_a100": 0,
}


@triton.jit
def grouped_pid(pid, num_pid_m, num_pid_n, GROUP_M: tl.constexpr):
    """Returns the tile (row, column) of program ``pid`` in a field of num_pid_m x num_pid_n tiles.

    GROUP_M rows of tiles form a group. Within a group, consecutive programs go down a column of
    tiles, then to the next column: P of them cover about P / GROUP_M columns and GROUP_M rows.
    """
    first_pid_m = pid // (GROUP_M * num_pid_n) * GROUP_M
    group_height = min(num_pid_m - first_pid_m, GROUP_M)  # the last group may be lower
    local = pid % (GROUP_M * num_pid_n)
    return first_pid_m + local % group_height, local // group_height


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
def linear_relu_kernel(
    x_ptr, w_ptr, b_ptr, out_ptr,  # [M, K], [N, K], [N], and contiguous [M, N]
    stride_xm, stride_xk,          # in elements: from row to row, from column to column
    stride_wn, stride_wk,
    stride_b,
    M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,         # rows of tiles per group
):
    """out = relu(x @ w.T + b). One program owns BLOCK_M x BLOCK_N elements of out.

    It loads (BLOCK_M + BLOCK_N) * K elements and BLOCK_N of the bias, and stores its tile once.
    """
    pid_m, pid_n = grouped_pid(
        tl.program_id(axis=0), tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N), GROUP_M)
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
        acc = tl.dot(x, w, acc, input_precision="ieee")  # no TF32; no effect in 16 bits
        x_ptrs += x_step
        w_ptrs += w_step

    # The epilogue: the sum stays in registers, in float32, until it is finished.
    bias = tl.load(b_ptr + offs_n * stride_b, mask=in_n, other=0.0)
    acc += bias.to(tl.float32)[None, :]
    acc = tl.maximum(acc, 0.0, propagate_nan=tl.PropagateNan.ALL)  # otherwise NaN becomes 0
    out_ptrs = out_ptr + offs_m[:, None] * N + offs_n[None, :]
    tl.store(out_ptrs, acc.to(out_ptr.dtype.element_ty), mask=in_m[:, None] & in_n[None, :])


def linear_relu(
    x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, *, group_m: int = 8
) -> torch.Tensor:
    """Returns relu(x @ w.T + b), contiguous (M, N), for x (M, K), w (N, K) and b (N,).

    Raises:
        TypeError: an argument is not a tensor, or the dtypes are unsupported or differ.
        ValueError: the shapes do not fit, the devices differ, or group_m is below 1.
    """
    check_linear(x, w, b, group_m)
    (M, K), N = x.shape, w.shape[0]
    out = torch.empty((M, N), dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out

    # float32 without TF32 uses no tensor cores, and the tensor cores of most GPUs, unlike those of
    # Hopper, read operands from registers, which threads need beside the accumulator.
    block_m, block_n, block_k = (128, 64, 16) if x.dtype == torch.float32 else (128, 128, 64)
    grid = (triton.cdiv(M, block_m) * triton.cdiv(N, block_n),)
    linear_relu_kernel[grid](
        x, w, b, out,
        x.stride(0), x.stride(1), w.stride(0), w.stride(1), b.stride(0), M, N, K,
        BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k, GROUP_M=group_m,
        num_warps=8 if x.dtype == torch.float32 or not on_hopper() else 4, num_stages=3,
    )
    return out


def on_hopper() -> bool:
    """Returns whether the GPU is Hopper, for which tiles were chosen; True without a GPU."""
    try:
        return triton.runtime.driver.active.get_current_target().arch == 90
    except RuntimeError:
        return True


@triton.jit
def matmul_ws_kernel(
    a_ptr, b_ptr, c_ptr,  # [M, K], [N, K], and contiguous [M, N]
    stride_am, stride_bn,  # in elements, multiples of 8
    M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
    WARP_SPECIALIZE: tl.constexpr,  # some warps load, the others multiply
):
    """c = a @ b.T. One program owns BLOCK_M x BLOCK_N elements of c.

    Descriptors contain the shapes: elements outside are loaded as zero and not stored.
    """
    pid_m, pid_n = grouped_pid(
        tl.program_id(axis=0), tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N), GROUP_M)
    row, col = pid_m * BLOCK_M, pid_n * BLOCK_N

    a_desc = tl.make_tensor_descriptor(
        a_ptr, shape=[M, K], strides=[stride_am, 1], block_shape=[BLOCK_M, BLOCK_K])
    b_desc = tl.make_tensor_descriptor(
        b_ptr, shape=[N, K], strides=[stride_bn, 1], block_shape=[BLOCK_N, BLOCK_K])
    c_desc = tl.make_tensor_descriptor(
        c_ptr, shape=[M, N], strides=[N, 1], block_shape=[BLOCK_M, BLOCK_N])

    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in tl.range(0, tl.cdiv(K, BLOCK_K), warp_specialize=WARP_SPECIALIZE):
        a = a_desc.load([row, step * BLOCK_K])
        b = b_desc.load([col, step * BLOCK_K])
        acc = tl.dot(a, b.T, acc)  # a view: tensor cores read the tile in either orientation

    c_desc.store([row, col], acc.to(tl.float16))


def matmul_ws(
    a: torch.Tensor, b_t: torch.Tensor, *, warp_specialize: bool = False
) -> torch.Tensor:
    """Returns a @ b_t.T, contiguous (M, N), for a (M, K) and b_t (N, K) in float16.

    ``warp_specialize`` is for GPUs for which ``use_warp_specialization`` returns True. With a large
    result, tiles take up to 214 KB of shared memory, which H100, H200 and B200 have.

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

    # Two groups of warps share the accumulator of a specialized program, so a tile twice as wide
    # fits in their registers. Four warps alone would spill it.
    wide = warp_specialize and M * N >= 2048 * 2048
    block_m, block_n, block_k = (128, 256, 64) if wide else (128, 128, 64)
    triton.set_allocator(scratch)
    grid = (triton.cdiv(M, block_m) * triton.cdiv(N, block_n),)
    matmul_ws_kernel[grid](
        a, b_t, c, a.stride(0), b_t.stride(0), M, N, K,
        BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k, GROUP_M=8,
        WARP_SPECIALIZE=warp_specialize,
        num_warps=4, num_stages=3,  # with 8 warps, Hopper's compiler ignores the option
    )
    return c


def use_warp_specialization(capability: tuple[int, int]) -> bool:
    """Returns whether Triton specializes warps for a compute capability such as (9, 0).

    True for Hopper (9) and Blackwell (10 and 12). Older GPUs have no TMA for a producer warp to
    drive, and the option removes the pipeline of the loop there.
    """
    major, _ = capability
    return major in (9, 10, 12)


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


# ---------------------------------------------------------------------------------------------
# Going further: two persistent programs per SM
#
# Two programs of `linear_relu` share an SM, and each ends after one tile: the next one starts with
# an empty pipeline. A persistent program requests the first loads of its next tile before it stores
# the last one, in a loop that track2/advanced-optimizations explains. Meanwhile, the other program
# of the SM multiplies.


@triton.jit
def persistent_relu_kernel(
    x_desc, w_desc, b_ptr, out_desc,  # descriptors of x, w and half a tile of out; b has N elements
    M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):
    """out = relu(x @ w.T + b). One program owns every num_programs-th tile of out."""
    HALF: tl.constexpr = BLOCK_N // 2
    num_pid_m, num_pid_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    for tile in tl.range(tl.program_id(0), num_pid_m * num_pid_n, tl.num_programs(0), flatten=True):
        pid_m, pid_n = grouped_pid(tile, num_pid_m, num_pid_n, GROUP_M)
        row, col = pid_m * BLOCK_M, pid_n * BLOCK_N

        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for step in range(tl.cdiv(K, BLOCK_K)):
            x = x_desc.load([row, step * BLOCK_K])
            w = w_desc.load([col, step * BLOCK_K]).T
            acc = tl.dot(x, w, acc)

        halves = acc.reshape(BLOCK_M, 2, HALF).permute(0, 2, 1).split()
        for half in tl.static_range(2):  # a whole tile would not fit beside the stages of two
            cols = col + half * HALF + tl.arange(0, HALF)
            bias = tl.load(b_ptr + cols, mask=cols < N, other=0.0)
            y = halves[half] + bias.to(tl.float32)[None, :]
            y = tl.maximum(y, 0.0, propagate_nan=tl.PropagateNan.ALL)
            out_desc.store([row, col + half * HALF], y.to(out_desc.dtype))


def linear_relu_persistent(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Returns ``linear_relu(x, w, b)`` by persistent programs, for large 16-bit layers on Hopper.

    4,096 x 1,024 into 4,096 in float16 on an H200: 0.053 ms, 0.061 in `linear_relu`, and 0.054 in
    torch._addmm_activation.
    """
    check_linear(x, w, b, group_m=8)
    (M, K), N = x.shape, w.shape[0]
    out = torch.empty((M, N), dtype=x.dtype, device=x.device)
    fits = min(M, N, K) >= 512 and all(map(is_described, (x, w, out)))
    if x.dtype == torch.float32 or not fits or not on_hopper():
        return linear_relu(x, w, b)

    sms = torch.cuda.get_device_properties(x.device).multi_processor_count if x.is_cuda else 132
    tiles = triton.cdiv(M, 128) * triton.cdiv(N, 128)
    persistent_relu_kernel[(min(tiles, 2 * sms),)](
        TensorDescriptor.from_tensor(x, [128, 64]), TensorDescriptor.from_tensor(w, [128, 64]),
        b.contiguous(), TensorDescriptor.from_tensor(out, [128, 64]), M, N, K,
        BLOCK_M=128, BLOCK_N=128, BLOCK_K=64, GROUP_M=8, num_warps=4, num_stages=3,
    )
    return out


def is_described(x: torch.Tensor) -> bool:
    """Returns whether TMA can copy x: contiguous rows, aligned to 16 bytes."""
    return x.stride(1) == 1 and x.data_ptr() % 16 == 0 and (
        x.stride(0) > 0 and x.stride(0) * x.element_size() % 16 == 0)


if __name__ == "__main__":
    import tritonlab

    tritonlab.run_public_cases(__file__)
