"""A product and a scaling by pointers: right already, every address and mask computed by threads.

    matmul_desc(a, b_t)[m, n]                = sum_k a[m, k] * b_t[n, k]
    nhwc_channel_scale(x, scale)[n, h, w, c] = x[n, h, w, c] * scale[c]

Shapes:  a (M, K) and b_t (N, K), x (N, H, W, C) without gaps and scale (C,), in float16, bfloat16
         or float32. Results are new contiguous tensors of that dtype.
Given:   kernels that compute the right numbers, and checks of arguments. Nothing is described to
         TMA: `host` is without effect, `desc_problem` refuses more than it has to.
Yours:   first `PREDICT`: numbers that you work out before you run anything. Then the places marked
         `DECIDE`, each with a question. Write these parts anew as you like.
           what can be described  DECIDE 1     the product  DECIDE 2, 3 and 4
           images                 DECIDE 5 and 6
Judged:  values  both formulas; whatever cannot be described is refused; this holds from the start
         reasons what `desc_problem` says of 31 tensors: None where a descriptor describes it
         cost    compiled for an H100 and a B200, tiles come by TMA; one launch
         numbers in `PREDICT` exactly, bytes within 15 %; a wrong one is explained and fails nothing

`python kernel.py` runs the public cases, `tritonlab grade track2/tensor-descriptors` all of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import triton
import triton.language as tl  # and, for DECIDE 4: triton.tools.tensor_descriptor

SUPPORTED = (torch.float16, torch.bfloat16, torch.float32)
ALIGNED = 16  # bytes, of a base, of strides and of the shortest row of a block
MOST_DIMENSIONS = 5

# Write a number in place of each None, before you measure.
PREDICT = {
    # How many loads of 16 bytes does each of 128 threads make for a tile of 128 x 64 float16, when
    # they are loaded by pointers? (By a descriptor, one thread makes one request.)
    "loads_of_a_thread": None,
    # A matrix of float16 has 50 columns, which no descriptor describes. What is the next larger
    # number of columns that one does?
    "columns": None,
    # A matrix of 100 x 64 ones is described, in blocks of 64 x 64. What is the sum of the block
    # that is loaded at [96, 32]?
    "sum_at_the_corner": None,
    # A kernel makes three descriptors of 128 bytes in each program. How many bytes is that for 64
    # programs?
    "scratch_bytes": None,
    # How many bytes do the programs of a product of 256 x 256 x 256 in float16 load and store, in
    # tiles of 128 x 128?
    "issued_bytes": None,
}


def desc_problem(t: torch.Tensor, block: Sequence[int]) -> str | None:
    """Why no descriptor can describe a tensor in such blocks, or None where one can.

    A reason names the number that is wrong and the one that is asked for, strides and sizes of rows
    in bytes, others in elements.

    Args:
        t: the tensor, of any dtype.
        block: sides of a tile, one for each dimension.
    """
    size = t.element_size()
    if not 1 <= t.dim() <= MOST_DIMENSIONS:
        return f"it has {t.dim()} dimensions, and a descriptor has 1 to {MOST_DIMENSIONS}"
    if len(block) != t.dim():
        return f"the block has {len(block)} sides for a tensor of {t.dim()} dimensions"
    for side in block:
        if side < 1 or side & (side - 1):
            return f"a block has sides that are powers of two, and one of these is {side}"
    if block[-1] * size < ALIGNED:
        return (f"the last side of the block has {block[-1] * size} bytes, and {ALIGNED} are the "
                f"least")
    if t.numel() == 0:
        return f"a size is 0, in shape {tuple(t.shape)}"
    if t.data_ptr() % ALIGNED:
        return f"it starts {t.data_ptr() % ALIGNED} bytes after a multiple of {ALIGNED}"
    if t.stride(-1) != 1:
        return f"the last dimension has a stride of {t.stride(-1)} elements instead of 1"
    for dim, stride in enumerate(t.stride()[:-1]):
        if stride == 0:
            return f"dimension {dim} has a stride of 0: one piece of memory, many times"
        if stride * size % ALIGNED:
            return (f"dimension {dim} has a stride of {stride * size} bytes, which is no multiple "
                    f"of {ALIGNED}")
    # DECIDE 1: all of the above is what TMA asks for. What follows is on the safe side
    #           of it, and refuses views that it would take. Which of these three questions are
    #           about numbers that TMA is given, and which about none?
    if t.shape[-1] * size % ALIGNED:
        return f"a row has {t.shape[-1] * size} bytes, which is no multiple of {ALIGNED}"
    if list(t.stride()) != sorted(t.stride(), reverse=True):
        return f"strides of {t.stride()} elements do not go down from dimension to dimension"
    if t.dim() not in (2, 4):
        return f"{t.dim()} dimensions are neither those of a matrix nor those of images"
    return None


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr,   # [M, K], [N, K], and [M, N] without gaps
    stride_am, stride_bn,  # elements from one row to the next
    M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):
    """c = a @ b.T. One program owns BLOCK_M x BLOCK_N elements of c."""
    num_pid_m, num_pid_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    pid = tl.program_id(axis=0)
    pid_m, pid_n = tl.swizzle2d(
        pid // num_pid_n, pid % num_pid_n, num_pid_m, num_pid_n, GROUP_M)

    # DECIDE 2: 128 x 64 addresses for a, as many for b, a mask for each, and all of them again for
    #           the next step. Which four facts say the same, once? In which order do the last two
    #           dimensions of a block stand, and which tile has to be turned for the product?
    offs_m = pid_m.to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid_n.to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    in_m, in_n = offs_m < M, offs_n < N
    a_ptrs = a_ptr + offs_m[:, None] * stride_am + offs_k[None, :]
    b_ptrs = b_ptr + offs_n[None, :] * stride_bn + offs_k[:, None]

    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in tl.range(0, K, BLOCK_K):
        # DECIDE 3: a descriptor is asked for a tile by the place where it begins. In which unit
        #           does it count, and what comes from beyond K?
        a = tl.load(a_ptrs, mask=in_m[:, None] & (k + offs_k < K)[None, :], other=0.0)
        b = tl.load(b_ptrs, mask=(k + offs_k < K)[:, None] & in_n[None, :], other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K

    c_ptrs = c_ptr + offs_m[:, None] * N + offs_n[None, :]
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=in_m[:, None] & in_n[None, :])


def matmul_desc(a: torch.Tensor, b_t: torch.Tensor, *, host: bool) -> torch.Tensor:
    """a @ b_t.T as a new contiguous tensor (M, N), for a (M, K) and b_t (N, K).

    Args:
        host: make the descriptors on the host, or else in the kernel.

    Raises:
        TypeError: an argument is no tensor, or the dtypes are unsupported or differ.
        ValueError: an argument is no matrix, the inner sizes or the devices differ, or an argument
            or the result cannot be described; the message says why.
    """
    check_product(a, b_t)
    (M, K), N = a.shape, b_t.shape[0]
    single = a.dtype == torch.float32
    block_m, block_n, block_k = (64, 64, 32) if single else (128, 128, 64)
    describable("a", a, [block_m, block_k])
    describable("b_t", b_t, [block_n, block_k])
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    describable("the result", c, [block_m, block_n])

    # DECIDE 4: with `host`, the launch gets three descriptors in place of pointers and strides.
    #           Without, the kernel makes them. It then writes each to memory, before TMA
    #           reads it there: the next line says who provides it. What can both share?
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
    x_ptr, out_ptr,          # [N, H, W, C] without gaps
    scale_ptr,               # [C]
    H, W, C,
    BLOCK_W: tl.constexpr, BLOCK_C: tl.constexpr,
):
    """out[n, h, w, c] = x[n, h, w, c] * scale[c]. One program owns a piece of one row of pixels."""
    # DECIDE 6: image and row are put together in one number here, as pointers do not mind. How many
    #           offsets does a descriptor of four dimensions want, and which shape has its block?
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
    """x * scale for images (N, H, W, C) without gaps and a factor for each channel, (C,).

    Raises:
        TypeError: an argument is no tensor, or the dtypes are unsupported or differ.
        ValueError: the shapes do not fit, an argument has gaps, the devices differ, or x cannot be
            described; the message says why.
    """
    check_images(x, scale)
    n, h, w, c = x.shape
    # DECIDE 5: a tile of one row of pixels. Which of the four dimensions is the one without gaps,
    #           how short may its side of the block be, and what are the sides of the others?
    block_w, block_c = 16, max(16, ALIGNED // x.element_size())
    describable("x", x, [1, 1, block_w, block_c])
    out = torch.empty_like(x)

    grid = (n * h, triton.cdiv(w, block_w), triton.cdiv(c, block_c))
    channel_scale_kernel[grid](x, out, scale, h, w, c, BLOCK_W=block_w, BLOCK_C=block_c)
    return out


def describable(name: str, t: torch.Tensor, block: Sequence[int]) -> None:
    """Refuse a tensor that no descriptor describes: the GPU's own check comes without a reason."""
    problem = desc_problem(t, block)
    if problem:
        raise ValueError(f"{name} cannot be described: {problem}")


def scratch(size: int, alignment: int, stream: int | None) -> torch.Tensor:
    """Memory of a GPU in which a kernel writes the descriptors that it makes itself."""
    return torch.empty(size, dtype=torch.int8, device="cuda")


def check_product(a: torch.Tensor, b_t: torch.Tensor) -> None:
    """Refuse what is no pair of matrices whose rows are equally long."""
    for name, tensor in (("a", a), ("b_t", b_t)):
        check_tensor(name, tensor, 2, a)
    if b_t.shape[1] != a.shape[1]:
        raise ValueError(f"b_t: expected {a.shape[1]} columns like a, got shape "
                         f"{tuple(b_t.shape)}")


def check_images(x: torch.Tensor, scale: torch.Tensor) -> None:
    """Refuse what are no images without gaps and a factor for each of their channels."""
    for name, tensor, dims in (("x", x, 4), ("scale", scale, 1)):
        check_tensor(name, tensor, dims, x)
        if not tensor.is_contiguous():
            raise ValueError(f"{name}: expected a tensor without gaps, got strides "
                             f"{tensor.stride()} for shape {tuple(tensor.shape)}")
    if scale.shape[0] != x.shape[3]:
        raise ValueError(f"scale: expected {x.shape[3]} elements, one for each channel, got "
                         f"{scale.shape[0]}")


def check_tensor(name: str, tensor: torch.Tensor, dims: int, like: torch.Tensor) -> None:
    """Refuse what is no tensor of so many dimensions, or differs from the first argument."""
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
