"""Two-dimensional convolution as an implicit matrix product: the window matrix is never stored.

    out[n, o, y, x] = bias[o] + sum over c, i, j of
        x[n, c, y * stride_h - pad_h + i * dil_h, x * stride_w - pad_w + j * dil_w] * w[o, c, i, j]

with 0 outside of the image. With the output pixels (n, y, x) numbered as m and the taps (c, i, j)
as k, it becomes out[m, o] = bias[o] + sum over k of A[m, k] * B[k, o]. Row m of A is the flattened
window of pixel m ("im2col"), and B is the weight. A contains most pixels KH * KW times; here each
tile of A is loaded from the image when it is needed.

Cost: 2 * M * K * OC FLOP, with M = N * OH * OW and K = C * KH * KW. Programs that share windows or
weights load them again: at most K * M * ceil(OC / BLOCK_N) + K * OC * ceil(M / BLOCK_M) elements
are loaded, and M * OC are stored. The minimum is every element of x, weight and out once.

Inputs: image, weight and bias of one dtype, float32, float16 or bfloat16, with any strides.
Result: a new contiguous tensor (N, OC, OH, OW) of that dtype; the inputs are unchanged.

Precision: products are accumulated in float32. "ieee" keeps tl.dot from rounding float32 operands
to TF32, which has 11 of their 24 bits. It has no effect on 16-bit operands: their products are
exact.

Source: the implicit matrix product of cuDNN (Chetlur and others, arXiv:1410.0759, 2014).
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def conv2d_kernel(
    x_ptr, w_ptr, bias_ptr, out_ptr,  # [N, C, H, W], [OC, C, KH, KW], [OC], [N, OC, OH, OW]
    N, C, H, W, OC, OH, OW, KH, KW,
    stride_h, stride_w, pad_h, pad_w, dil_h, dil_w,
    sx_n, sx_c, sx_h, sx_w,           # elements from one index of x to the next, by dimension
    sw_o, sw_c, sw_h, sw_w,
    so_n, so_c, so_h, so_w,
    HAS_BIAS: tl.constexpr,
    BLOCK_M: tl.constexpr,            # output pixels per program
    BLOCK_N: tl.constexpr,            # output channels per program
    BLOCK_K: tl.constexpr,            # taps per step, at least 16 for tl.dot
):
    """out[m, o] = bias[o] + sum_k A[m, k] * B[k, o]. One program owns BLOCK_M x BLOCK_N results.

    Loads at most C * KH * KW * (BLOCK_M + BLOCK_N) elements, and BLOCK_N of the bias.
    """
    pid_m = tl.program_id(axis=0).to(tl.int64)  # index * stride may exceed 2**31 - 1
    pid_n = tl.program_id(axis=1).to(tl.int64)
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)

    img = offs_m // (OH * OW)  # N or more for pixels that do not exist
    oh = offs_m // OW % OH
    ow = offs_m % OW
    top = oh * stride_h - pad_h  # negative if the window begins in the padding
    left = ow * stride_w - pad_w
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)

    for k_start in range(0, C * KH * KW, BLOCK_K):
        offs_k = k_start + tl.arange(0, BLOCK_K)
        ic = (offs_k // (KH * KW)).to(tl.int64)  # C or more for taps that do not exist
        kh = (offs_k // KW % KH).to(tl.int64)
        kw = (offs_k % KW).to(tl.int64)

        ih = top[:, None] + kh[None, :] * dil_h
        iw = left[:, None] + kw[None, :] * dil_w
        in_image = (ih >= 0) & (ih < H) & (iw >= 0) & (iw < W)
        x_mask = in_image & (img[:, None] < N) & (ic[None, :] < C)
        x_ptrs = x_ptr + img[:, None] * sx_n + ic[None, :] * sx_c + ih * sx_h + iw * sx_w
        x = tl.load(x_ptrs, mask=x_mask, other=0.0)  # 0 is the padding, and neutral in a sum

        w_ptrs = w_ptr + offs_n[None, :] * sw_o + (ic * sw_c + kh * sw_h + kw * sw_w)[:, None]
        w_mask = (offs_n[None, :] < OC) & (ic[:, None] < C)
        w = tl.load(w_ptrs, mask=w_mask, other=0.0)

        acc = tl.dot(x, w, acc, input_precision="ieee")  # the default for float32 is TF32

    if HAS_BIAS:
        bias = tl.load(bias_ptr + offs_n, mask=offs_n < OC, other=0.0)
        acc += bias[None, :]

    out_rows = img * so_n + oh * so_h + ow * so_w
    out_ptrs = out_ptr + out_rows[:, None] + offs_n[None, :] * so_c
    out_mask = (img[:, None] < N) & (offs_n[None, :] < OC)
    tl.store(out_ptrs, acc.to(out_ptr.dtype.element_ty), mask=out_mask)


Pair = int | tuple[int, int]


def conv2d(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None,
    stride: Pair = 1, padding: Pair = 0, dilation: Pair = 1,
) -> torch.Tensor:
    """Returns torch.nn.functional.conv2d with groups=1, as a new contiguous tensor.

    Args:
        x: images, (N, C, H, W).
        weight: one filter for each output channel, (OC, C, KH, KW).
        bias: one number for each output channel, (OC,).
        stride: distance between windows in pixels; one number, or (height, width).
        padding: rows and columns of zeros around each image.
        dilation: distance between the taps of a window in pixels.

    Raises:
        TypeError: an argument has the wrong type, or the dtypes are unsupported or differ.
        ValueError: ranks, sizes or devices do not match, or a window is larger than the image.
    """
    check_tensors(x, weight, bias)
    stride_h, stride_w = pair("stride", stride, least=1)
    pad_h, pad_w = pair("padding", padding, least=0)
    dil_h, dil_w = pair("dilation", dilation, least=1)
    n, c, h, w = x.shape
    oc, _, kh, kw = weight.shape
    oh = window_positions(h, kh, stride_h, pad_h, dil_h)
    ow = window_positions(w, kw, stride_w, pad_w, dil_w)
    if oh < 1 or ow < 1:
        raise ValueError(f"weight: expected a window that fits into the padded image, got one of "
                         f"{(kh, kw)} for {(h, w)}, which leaves OH = {oh}, OW = {ow}")
    bias = None if bias is None else bias.contiguous()  # the kernel takes no stride of the bias

    out = x.new_empty((n, oc, oh, ow))  # contiguous, whatever the strides of x
    if out.numel() == 0:
        return out  # no images, nothing to launch

    # H200, 32 images of 64 x 56 x 56 to 64 channels, 3 x 3, float16, in ms by pixels x channels:
    # 1.46 at 16 x 16, 0.62 at 32 x 32, 0.54 at 64 x 32, 0.30 at 64 x 64. With 32 taps per step 0.31
    # there, and 0.33 at 128 x 64, which spills. In float32, 32 taps are faster, 0.73 instead of
    # 0.88, but double the code size, because that product is unrolled into single FMAs.
    block_m, block_n, block_k = 64, 64, 16
    grid = (triton.cdiv(n * oh * ow, block_m), triton.cdiv(oc, block_n))
    conv2d_kernel[grid](
        x, weight, bias, out,
        n, c, h, w, oc, oh, ow, kh, kw,
        stride_h, stride_w, pad_h, pad_w, dil_h, dil_w,
        *x.stride(), *weight.stride(), *out.stride(),
        HAS_BIAS=bias is not None, BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k,
    )
    return out


def window_positions(size: int, taps: int, stride: int, pad: int, dil: int) -> int:
    """Returns the number of positions of a window in ``size`` pixels with ``pad`` at both ends.

    The result is below 1 if the window does not fit.
    """
    return (size + 2 * pad - dil * (taps - 1) - 1) // stride + 1


def pair(name: str, value: Pair, least: int) -> tuple[int, int]:
    """Returns the values for height and width, each at least ``least``.

    Raises:
        TypeError: value is neither a whole number nor a tuple or list of them.
        ValueError: there are not two values, or one is below ``least``.
    """
    both = value if isinstance(value, (tuple, list)) else (value, value)
    if any(not isinstance(number, int) or isinstance(number, bool) for number in both):
        raise TypeError(f"{name}: expected a whole number or two of them, got {value!r}")
    if len(both) != 2:
        raise ValueError(f"{name}: expected one number or two, got {len(both)} in {value!r}")
    if min(both) < least:
        raise ValueError(f"{name}: expected at least {least}, got {value!r}")
    return both[0], both[1]


def check_tensors(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> None:
    """Rejects unsupported tensors, before anything is allocated or launched.

    Raises:
        TypeError: one is not a tensor, or the dtypes are unsupported or differ.
        ValueError: ranks, channels, the size of the bias or the devices do not match.
    """
    tensors = {"x": x, "weight": weight} if bias is None else {
        "x": x, "weight": weight, "bias": bias}
    for name, tensor in tensors.items():
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"{name}: expected a torch.Tensor, got {type(tensor).__name__}")
    supported = (torch.float32, torch.float16, torch.bfloat16)
    for name, tensor in tensors.items():
        if tensor.dtype not in supported:
            names = ", ".join(str(dtype) for dtype in supported)
            raise TypeError(f"{name}: expected one of {names}, got {tensor.dtype}")
        if tensor.dtype != x.dtype:
            raise TypeError(f"{name}: expected {x.dtype}, the dtype of x, got {tensor.dtype}")
        if tensor.device != x.device:
            raise ValueError(f"{name}: expected device {x.device}, the device of x, got "
                             f"{tensor.device}")
    for name, tensor, rank in (("x", x, 4), ("weight", weight, 4)):
        if tensor.dim() != rank:
            raise ValueError(f"{name}: expected {rank} dimensions, got {tensor.dim()} in shape "
                             f"{tuple(tensor.shape)}")
    if weight.shape[1] != x.shape[1]:
        raise ValueError(f"weight: expected {x.shape[1]} input channels, as x has, got "
                         f"{weight.shape[1]} in shape {tuple(weight.shape)}")
    if bias is not None and bias.shape != weight.shape[:1]:
        raise ValueError(f"bias: expected shape {tuple(weight.shape[:1])}, one number for each "
                         f"output channel, got {tuple(bias.shape)}")


# ---------------------------------------------------------------------------------------------
# Going further: channels last
#
# In channels_last memory, an image is [H, W, C] and a filter [KH, KW, C]. The C elements of a pixel
# are contiguous, and those of its right neighbor follow. So a row of a window is one run of KW * C
# contiguous elements, as is a row of a filter: no tap is decoded. If C is a multiple of 8, a thread
# copies 16 bytes at once, asynchronously. With 64 channels in 16 bits, a window of 3 x 3 is 3 runs
# of 192 elements, or 72 copies of 16 bytes; in NCHW it is 576 loads of 2 bytes.


@triton.jit
def channels_last_kernel(
    x_ptr, w_ptr, bias_ptr, out_ptr,  # [N, H, W, C], [OC, KH, KW, C], [OC] or None, [N, OH, OW, OC]
    N, H, W, OC, OH, OW,
    stride_h, stride_w, pad_h, pad_w,
    C: tl.constexpr, KH: tl.constexpr, KW: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    """The product of conv2d_kernel, with taps in the order (i, j, c). Offsets have 32 bits."""
    tiles_n = tl.cdiv(OC, BLOCK_N)
    number = tl.program_id(0)  # programs that share windows are adjacent
    pixels = number // tiles_n * BLOCK_M + tl.arange(0, BLOCK_M)
    filters = number % tiles_n * BLOCK_N + tl.arange(0, BLOCK_N)
    n = pixels // (OH * OW)
    first_row = pixels // OW % OH * stride_h - pad_h
    first = (pixels % OW * stride_w - pad_w) * C  # of a run, within a row of W * C elements
    windows = (n * H + first_row) * W * C + first

    run = KW * C
    steps = tl.cdiv(run, BLOCK_K)
    sums = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(KH * steps):  # one loop, so that loads stay ahead across runs
        i = step // steps
        k = step % steps * BLOCK_K + tl.arange(0, BLOCK_K)
        row = first_row + i
        at = first[:, None] + k[None, :]
        row_in = (n < N) & (row >= 0) & (row < H)
        x_in = row_in[:, None] & (at >= 0) & (at < W * C) & (k < run)[None, :]
        x = tl.load(x_ptr + (windows + i * W * C)[:, None] + k[None, :], mask=x_in, other=0.0)

        w_in = (filters < OC)[:, None] & (k < run)[None, :]
        w = tl.load(w_ptr + filters[:, None] * (KH * run) + (i * run + k)[None, :], mask=w_in,
                    other=0.0)

        sums = tl.dot(x, w.T, sums)

    if bias_ptr is not None:
        sums += tl.load(bias_ptr + filters, mask=filters < OC, other=0.0)[None, :]
    tl.store(out_ptr + pixels[:, None] * OC + filters[None, :], sums.to(out_ptr.dtype.element_ty),
             mask=(n < N)[:, None] & (filters < OC)[None, :])


def conv2d_channels_last(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None,
    stride: Pair = 1, padding: Pair = 0,
) -> torch.Tensor:
    """Returns ``conv2d(...)`` in channels_last memory, fast for 16-bit tensors.

    Shapes, strides and errors are those of ``conv2d``; there is no dilation. Tensors with other
    strides than channels_last are copied. float32 and tensors of 2**31 elements take ``conv2d``.

    Share of the speed of cuDNN in channels_last, H200, float16, windows of 3 x 3: 32 images of 64 x
    56 x 56 to 64 channels, 15 % with ``conv2d`` and 143 % with this kernel; 16 images of 256 x 14 x
    14 to 256 channels, 9 % and 93 %.
    """
    check_tensors(x, weight, bias)
    stride_h, stride_w = pair("stride", stride, least=1)
    pad_h, pad_w = pair("padding", padding, least=0)
    n, c, h, w = x.shape
    oc, _, kh, kw = weight.shape
    oh = window_positions(h, kh, stride_h, pad_h, 1)
    ow = window_positions(w, kw, stride_w, pad_w, 1)
    most = max(x.numel(), weight.numel(), n * oc * oh * ow)
    if x.dtype == torch.float32 or min(n, oc, oh, ow) < 1 or most >= 2**31:
        out = conv2d(x, weight, bias, stride, padding)
        return out.contiguous(memory_format=torch.channels_last)
    x, weight = (tensor.contiguous(memory_format=torch.channels_last) for tensor in (x, weight))
    bias = None if bias is None else bias.contiguous()

    out = torch.empty((n, oc, oh, ow), dtype=x.dtype, device=x.device,
                      memory_format=torch.channels_last)
    # H200: with 128 pixels, the first layer of the docstring takes 7 % less time, the second 16 %
    # more.
    block_m, block_n = 64, 64
    block_k = min(64, max(16, triton.next_power_of_2(kw * c)))
    channels_last_kernel[(triton.cdiv(n * oh * ow, block_m) * triton.cdiv(oc, block_n),)](
        x, weight, bias, out, n, h, w, oc, oh, ow, stride_h, stride_w, pad_h, pad_w,
        C=c, KH=kh, KW=kw, BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k,
    )
    return out


if __name__ == "__main__":
    import tritonlab

    tritonlab.run_public_cases(__file__)
