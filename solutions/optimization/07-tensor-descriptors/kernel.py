"""A product and a scaling with tensor descriptors: TMA copies whole tiles.

    matmul_desc(a, b_t)[m, n]             = sum_k a[m, k] * b_t[n, k]
    nhwc_channel_scale(x, scale)[n, h, w, c] = x[n, h, w, c] * scale[c]

A tensor descriptor has four facts: base, sizes, strides, and the block to copy. A tile is then
given by the indices of its first element. Threads compute no addresses and no masks; elements
outside the sizes are loaded as zero and not stored.

Cost: the FLOP of a product through pointers, 2 * M * N * K; the scaling loads x and stores the
result once, 2 * N * H * W * C * itemsize bytes. A descriptor saves instructions and registers,
not bytes.

Inputs: float16, bfloat16 or float32 that `desc_problem` accepts: they start at a multiple of 16
bytes, the last dimension is contiguous, and all other strides are multiples of 16 bytes.

Source: the constraints are those of CUDA's driver function cuTensorMapEncodeTiled, which Triton's
TensorDescriptor is encoded by.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

SUPPORTED = (torch.float16, torch.bfloat16, torch.float32)
ALIGNED = 16  # bytes: alignment of base and strides, and minimum row of a block
MOST_DIMENSIONS = 5

PREDICT = {
    "loads_of_a_thread": 128 * 64 * 2 // (128 * 16),
    "columns": 56,
    "sum_at_the_corner": 4 * 32,
    "scratch_bytes": 3 * 128 * 64,
    "issued_bytes": (2 * 2 * 256 * 256 + 256 * 256) * 2,
}


def desc_problem(t: torch.Tensor, block: Sequence[int]) -> str | None:
    """Returns why no descriptor can describe a tensor in such blocks, or None if one can.

    Args:
        t: the tensor, of any dtype.
        block: sides of a tile, one per dimension.
    """
    size = t.element_size()
    if not 1 <= t.dim() <= MOST_DIMENSIONS:
        return f"it has {t.dim()} dimensions, expected 1 to {MOST_DIMENSIONS}"
    if len(block) != t.dim():
        return f"the block has {len(block)} sides for a tensor of {t.dim()} dimensions"
    for side in block:
        if side < 1 or side & (side - 1):
            return f"a side of the block is {side}, expected a power of two"
    if block[-1] * size < ALIGNED:
        return (f"the last side of the block has {block[-1] * size} bytes, expected at least "
                f"{ALIGNED}")
    if t.numel() == 0:
        return f"a size is 0, in shape {tuple(t.shape)}"
    if t.stride(-1) != 1:
        return f"the last dimension has a stride of {t.stride(-1)} elements, expected 1"
    for dim, stride in enumerate(t.stride()[:-1]):
        if stride == 0:
            return f"dimension {dim} has a stride of 0: its elements share memory"
        if stride * size % ALIGNED:
            return (f"dimension {dim} has a stride of {stride * size} bytes, expected a multiple "
                    f"of {ALIGNED}")
    if t.data_ptr() % ALIGNED:
        return f"it starts {t.data_ptr() % ALIGNED} bytes after a multiple of {ALIGNED}"
    return None


@triton.jit
def multiply_tile(
    a_desc, b_desc, c_desc,  # [M, K], [N, K], [M, N], in blocks of the sizes below
    M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):
    """One tile of c = a @ b.T, for descriptors created by the host or the kernel."""
    num_pid_m, num_pid_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    pid = tl.program_id(axis=0)
    pid_m, pid_n = tl.swizzle2d(
        pid // num_pid_n, pid % num_pid_n, num_pid_m, num_pid_n, GROUP_M)
    row, col = pid_m * BLOCK_M, pid_n * BLOCK_N  # in elements, like all offsets of descriptors

    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in tl.range(0, K, BLOCK_K):
        a = a_desc.load([row, k])  # zeros beyond K
        b = b_desc.load([col, k])
        acc = tl.dot(a, b.T, acc, input_precision="ieee")

    c_desc.store([row, col], acc.to(c_desc.dtype))


@triton.jit
def matmul_device_kernel(
    a_ptr, b_ptr, c_ptr,   # [M, K], [N, K], and contiguous [M, N]
    stride_am, stride_bn,  # in elements, from row to row
    M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):
    """c = a @ b.T. Each program writes three descriptors of 128 bytes to scratch memory."""
    a_desc = tl.make_tensor_descriptor(
        a_ptr, shape=[M, K], strides=[stride_am, 1], block_shape=[BLOCK_M, BLOCK_K])
    b_desc = tl.make_tensor_descriptor(
        b_ptr, shape=[N, K], strides=[stride_bn, 1], block_shape=[BLOCK_N, BLOCK_K])
    c_desc = tl.make_tensor_descriptor(
        c_ptr, shape=[M, N], strides=[N, 1], block_shape=[BLOCK_M, BLOCK_N])
    multiply_tile(a_desc, b_desc, c_desc, M, N, K, BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M)


@triton.jit
def matmul_host_kernel(
    a_desc, b_desc, c_desc,  # [M, K], [N, K], [M, N]
    M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):
    """c = a @ b.T. The descriptors are arguments of the launch."""
    multiply_tile(a_desc, b_desc, c_desc, M, N, K, BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M)


def matmul_desc(a: torch.Tensor, b_t: torch.Tensor, *, host: bool) -> torch.Tensor:
    """Returns a @ b_t.T as a new contiguous tensor (M, N), for a (M, K) and b_t (N, K).

    Args:
        host: create the descriptors on the host instead of in the kernel.

    Raises:
        TypeError: an argument is not a tensor, or the dtypes are unsupported or differ.
        ValueError: an argument is not a matrix, the inner sizes or the devices differ, or an
            argument or the result cannot be described; the message contains the reason.
    """
    check_product(a, b_t)
    (M, K), N = a.shape, b_t.shape[0]
    # float32 without TF32 uses no tensor cores, and threads hold the operands in registers.
    single = a.dtype == torch.float32
    block_m, block_n, block_k = (64, 64, 32) if single else (128, 128, 64)
    describable("a", a, [block_m, block_k])
    describable("b_t", b_t, [block_n, block_k])
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    describable("the result", c, [block_m, block_n])

    grid = (triton.cdiv(M, block_m) * triton.cdiv(N, block_n),)
    sizes = {"BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_K": block_k, "GROUP_M": 8}
    if host:
        matmul_host_kernel[grid](
            TensorDescriptor.from_tensor(a, [block_m, block_k]),
            TensorDescriptor.from_tensor(b_t, [block_n, block_k]),
            TensorDescriptor.from_tensor(c, [block_m, block_n]),
            M, N, K, **sizes, num_warps=8 if single else 4,
        )
    else:
        triton.set_allocator(scratch)
        matmul_device_kernel[grid](
            a, b_t, c, a.stride(0), b_t.stride(0), M, N, K, **sizes, num_warps=8 if single else 4,
        )
    return c


@triton.jit
def channel_scale_kernel(
    x_desc, out_desc,        # [N, H, W, C], in blocks of [1, 1, BLOCK_W, BLOCK_C]
    scale_ptr,               # [C]
    H, W, C,
    BLOCK_W: tl.constexpr, BLOCK_C: tl.constexpr,
):
    """out[n, h, w, c] = x[n, h, w, c] * scale[c]. One program owns a piece of one row of pixels."""
    image_row = tl.program_id(axis=0)
    n, h = image_row // H, image_row % H
    w, c = tl.program_id(axis=1) * BLOCK_W, tl.program_id(axis=2) * BLOCK_C

    x = x_desc.load([n, h, w, c]).reshape(BLOCK_W, BLOCK_C)
    offs_c = c + tl.arange(0, BLOCK_C)
    scale = tl.load(scale_ptr + offs_c, mask=offs_c < C, other=0.0)

    scaled = x.to(tl.float32) * scale.to(tl.float32)[None, :]
    out_desc.store([n, h, w, c], scaled.to(out_desc.dtype).reshape(1, 1, BLOCK_W, BLOCK_C))


def nhwc_channel_scale(x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """Returns x * scale for contiguous images (N, H, W, C) and one factor per channel, (C,).

    Raises:
        TypeError: an argument is not a tensor, or the dtypes are unsupported or differ.
        ValueError: the shapes do not match, an argument is not contiguous, the devices differ, or x
            cannot be described; the message contains the reason.
    """
    check_images(x, scale)
    n, h, w, c = x.shape
    # Channels are the contiguous dimension; a tile is up to 16 KB of a row of pixels.
    block_c = min(max(triton.next_power_of_2(c), ALIGNED // x.element_size()), 128)
    block_w = min(triton.next_power_of_2(w), 64)
    block = [1, 1, block_w, block_c]
    describable("x", x, block)
    out = torch.empty_like(x)

    grid = (n * h, triton.cdiv(w, block_w), triton.cdiv(c, block_c))
    channel_scale_kernel[grid](
        TensorDescriptor.from_tensor(x, block), TensorDescriptor.from_tensor(out, block), scale,
        h, w, c, BLOCK_W=block_w, BLOCK_C=block_c, num_warps=4,
    )
    return out


def describable(name: str, t: torch.Tensor, block: Sequence[int]) -> None:
    """Refuses a tensor that cannot be described; the driver's own check gives no reason."""
    problem = desc_problem(t, block)
    if problem:
        raise ValueError(f"{name} cannot be described: {problem}")


def scratch(size: int, alignment: int, stream: int | None) -> torch.Tensor:
    """Allocates GPU memory for the descriptors that a kernel creates."""
    return torch.empty(size, dtype=torch.int8, device="cuda")


def check_product(a: torch.Tensor, b_t: torch.Tensor) -> None:
    """Refuses arguments that are not two matrices with equally long rows."""
    for name, tensor in (("a", a), ("b_t", b_t)):
        check_tensor(name, tensor, 2, a)
    if b_t.shape[1] != a.shape[1]:
        raise ValueError(f"b_t: expected {a.shape[1]} columns like a, got shape "
                         f"{tuple(b_t.shape)}")


def check_images(x: torch.Tensor, scale: torch.Tensor) -> None:
    """Refuses arguments that are not contiguous images and one factor per channel."""
    for name, tensor, dims in (("x", x, 4), ("scale", scale, 1)):
        check_tensor(name, tensor, dims, x)
        if not tensor.is_contiguous():
            raise ValueError(f"{name}: expected a contiguous tensor, got strides "
                             f"{tensor.stride()} for shape {tuple(tensor.shape)}")
    if scale.shape[0] != x.shape[3]:
        raise ValueError(f"scale: expected {x.shape[3]} elements, one per channel, got "
                         f"{scale.shape[0]}")


def check_tensor(name: str, tensor: torch.Tensor, dims: int, like: torch.Tensor) -> None:
    """Refuses arguments with other dimensions, or unlike the first one in dtype or device."""
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"{name}: expected a torch.Tensor, got {type(tensor).__name__}")
    if tensor.dtype not in SUPPORTED:
        names = ", ".join(str(dtype) for dtype in SUPPORTED)
        raise TypeError(f"{name}: expected one of {names}, got {tensor.dtype}")
    if tensor.dtype != like.dtype:
        raise TypeError(f"{name}: expected {like.dtype} like the first argument, got "
                        f"{tensor.dtype}")
    if tensor.device != like.device:
        raise ValueError(f"{name}: expected device {like.device} like the first argument, got "
                         f"{tensor.device}")
    if tensor.dim() != dims:
        raise ValueError(f"{name}: expected {dims} dimension{'s' * (dims > 1)}, got {tensor.dim()} "
                         f"in shape {tuple(tensor.shape)}")


if __name__ == "__main__":
    import tritonlab

    tritonlab.run_public_cases(__file__)
