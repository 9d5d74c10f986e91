"""A product and a scaling through pointers, correct, with every address computed by threads.

    matmul_desc(a, b_t)[m, n]                = sum_k a[m, k] * b_t[n, k]
    nhwc_channel_scale(x, scale)[n, h, w, c] = x[n, h, w, c] * scale[c]

Shapes:  a (M, K) and b_t (N, K), contiguous x (N, H, W, C) and scale (C,), in float16, bfloat16 or
         float32. Results are new contiguous tensors of that dtype.
Given:   correct kernels and argument checks. The kernels do not use TMA, `host` has no effect, and
         `desc_problem` refuses more than necessary.
Yours:   first `PREDICT`: numbers that you work out before you run anything. Then the places marked
         `DECIDE`, each with a question. Rewrite these parts as you like.
           what can be described  DECIDE 1     the product  DECIDE 2 to 4
           images                 DECIDE 5 and 6
Graded:  values  both formulas, and refusals of tensors that cannot be described, as in the given
                 code
         reasons the results of `desc_problem` for 32 tensors: None if a descriptor can describe it
         cost    compiled for an H100 and a B200, TMA copies the tiles; one launch
         numbers in `PREDICT` exactly, bytes within 15 %; a wrong number is explained and fails
                 nothing

`python kernel.py` runs the public cases, `tritonlab grade track2/tensor-descriptors` all of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import triton
import triton.language as tl  # and, for DECIDE 4: triton.tools.tensor_descriptor

SUPPORTED = (torch.float16, torch.bfloat16, torch.float32)
ALIGNED = 16  # bytes: alignment of base and strides, and minimum row of a block
MOST_DIMENSIONS = 5

# Replace each None by a number before you measure.
PREDICT = {
    # How many 16-byte loads does each of 128 threads execute for a tile of 128 x 64 float16, loaded
    # through pointers? (With a descriptor, one thread issues one request.)
    "loads_of_a_thread": None,
    # No descriptor can describe a contiguous float16 matrix with 50 columns. What is the next
    # larger number of columns for which one can?
    "columns": None,
    # A descriptor describes a matrix of 100 x 64 ones in blocks of 64 x 64. What is the sum of the
    # block that `load([96, 32])` returns?
    "sum_at_the_corner": None,
    # Each program of a kernel creates three descriptors of 128 bytes. How many bytes is that for 64
    # programs?
    "scratch_bytes": None,
    # How many bytes do the programs of a 256 x 256 x 256 product in float16 load and store, with
    # tiles of 128 x 128?
    "issued_bytes": None,
}


def desc_problem(t: torch.Tensor, block: Sequence[int]) -> str | None:
    """Returns why no descriptor can describe a tensor in such blocks, or None if one can.

    A reason has the wrong number and the required one; strides and row sizes are in bytes, others
    in elements.

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
    if t.data_ptr() % ALIGNED:
        return f"it starts {t.data_ptr() % ALIGNED} bytes after a multiple of {ALIGNED}"
    if t.stride(-1) != 1:
        return f"the last dimension has a stride of {t.stride(-1)} elements, expected 1"
    for dim, stride in enumerate(t.stride()[:-1]):
        if stride == 0:
            return f"dimension {dim} has a stride of 0: its elements share memory"
        if stride * size % ALIGNED:
            return (f"dimension {dim} has a stride of {stride * size} bytes, expected a multiple "
                    f"of {ALIGNED}")
    # DECIDE 1: everything above is required by TMA. What follows is stricter and refuses views that
    #           TMA accepts. Which of these three checks concern numbers that are part of a
    #           descriptor?
    if t.shape[-1] * size % ALIGNED:
        return f"a row has {t.shape[-1] * size} bytes, expected a multiple of {ALIGNED}"
    if list(t.stride()) != sorted(t.stride(), reverse=True):
        return f"strides of {t.stride()} elements do not decrease from dimension to dimension"
    if t.dim() not in (2, 4):
        return f"it has {t.dim()} dimensions, expected 2 for a matrix or 4 for images"
    return None


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr,   # [M, K], [N, K], and contiguous [M, N]
    stride_am, stride_bn,  # in elements, from row to row
    M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):
    """c = a @ b.T. One program owns BLOCK_M x BLOCK_N elements of c."""
    num_pid_m, num_pid_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    pid = tl.program_id(axis=0)
    pid_m, pid_n = tl.swizzle2d(
        pid // num_pid_n, pid % num_pid_n, num_pid_m, num_pid_n, GROUP_M)

    # DECIDE 2: each step computes 128 x 64 addresses for a, as many for b, and a mask for each.
    #           Which four facts replace them, once? In which order are the last two dimensions of a
    #           block, and which tile has to be transposed for the product?
    offs_m = pid_m.to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid_n.to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    in_m, in_n = offs_m < M, offs_n < N
    a_ptrs = a_ptr + offs_m[:, None] * stride_am + offs_k[None, :]
    b_ptrs = b_ptr + offs_n[None, :] * stride_bn + offs_k[:, None]

    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in tl.range(0, K, BLOCK_K):
        # DECIDE 3: a descriptor loads the tile at given offsets. In which unit are they, and which
        #           values does it return beyond K?
        a = tl.load(a_ptrs, mask=in_m[:, None] & (k + offs_k < K)[None, :], other=0.0)
        b = tl.load(b_ptrs, mask=(k + offs_k < K)[:, None] & in_n[None, :], other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K

    c_ptrs = c_ptr + offs_m[:, None] * N + offs_n[None, :]
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=in_m[:, None] & in_n[None, :])


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
    single = a.dtype == torch.float32
    block_m, block_n, block_k = (64, 64, 32) if single else (128, 128, 64)
    describable("a", a, [block_m, block_k])
    describable("b_t", b_t, [block_n, block_k])
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    describable("the result", c, [block_m, block_n])

    # DECIDE 4: with `host`, the launch passes three descriptors instead of pointers and strides.
    #           Otherwise the kernel creates them, and writes them to memory that the next line
    #           provides. Which code can both kernels share?
    triton.set_allocator(scratch)
    grid = (triton.cdiv(M, block_m) * triton.cdiv(N, block_n),)
    matmul_kernel[grid](
        a, b_t, c, a.stride(0), b_t.stride(0), M, N, K,
        BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k, GROUP_M=8,
        num_warps=8 if single else 4,
    )
    return c


@triton.jit
def channel_scale_kernel(
    x_ptr, out_ptr,          # [N, H, W, C] contiguous
    scale_ptr,               # [C]
    H, W, C,
    BLOCK_W: tl.constexpr, BLOCK_C: tl.constexpr,
):
    """out[n, h, w, c] = x[n, h, w, c] * scale[c]. One program owns a piece of one row of pixels."""
    # DECIDE 5: image and row form one index here, which pointers allow. How many offsets does a
    #           descriptor of four dimensions take, and which shape does its block have?
    image_row = tl.program_id(axis=0).to(tl.int64)
    offs_w = tl.program_id(axis=1) * BLOCK_W + tl.arange(0, BLOCK_W)
    offs_c = tl.program_id(axis=2) * BLOCK_C + tl.arange(0, BLOCK_C)
    offs = (image_row * W + offs_w[:, None]) * C + offs_c[None, :]
    mask = (offs_w < W)[:, None] & (offs_c < C)[None, :]

    x = tl.load(x_ptr + offs, mask=mask)
    scale = tl.load(scale_ptr + offs_c, mask=offs_c < C, other=0.0)

    scaled = x.to(tl.float32) * scale.to(tl.float32)[None, :]
    tl.store(out_ptr + offs, scaled.to(out_ptr.dtype.element_ty), mask=mask)


def nhwc_channel_scale(x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """Returns x * scale for contiguous images (N, H, W, C) and one factor per channel, (C,).

    Raises:
        TypeError: an argument is not a tensor, or the dtypes are unsupported or differ.
        ValueError: the shapes do not match, an argument is not contiguous, the devices differ, or x
            cannot be described; the message contains the reason.
    """
    check_images(x, scale)
    n, h, w, c = x.shape
    # DECIDE 6: a tile is a piece of one row of pixels. Which of the four dimensions is contiguous,
    #           how short may its side of the block be, and what are the other three sides?
    block_w, block_c = 16, max(16, ALIGNED // x.element_size())
    describable("x", x, [1, 1, block_w, block_c])
    out = torch.empty_like(x)

    grid = (n * h, triton.cdiv(w, block_w), triton.cdiv(c, block_c))
    channel_scale_kernel[grid](x, out, scale, h, w, c, BLOCK_W=block_w, BLOCK_C=block_c)
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
