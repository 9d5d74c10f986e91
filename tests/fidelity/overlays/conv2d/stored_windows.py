"""Right but different: one launch stores the matrix of windows, one multiplies."""

from .border_copied_first import geometry

del conv2d_kernel
del two


@triton.jit
def windows_kernel(
    x_ptr, a_ptr, C, H, W, M, OH, OW, KH, KW, sh, sw, ph, pw, dh, dw, sx_n, sx_c, sx_h, sx_w,
    BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr,
):
    m = (tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M))[:, None]
    k = (tl.program_id(1) * BLOCK_K + tl.arange(0, BLOCK_K))[None, :]
    K = C * KH * KW
    ih = m // OW % OH * sh - ph + k // KW % KH * dh
    iw = m % OW * sw - pw + k % KW * dw
    own = (m < M) & (k < K)
    at = (m // (OH * OW)).to(tl.int64) * sx_n + k // (KH * KW) * sx_c + ih * sx_h + iw * sx_w
    window = tl.load(x_ptr + at, mask=own & (ih >= 0) & (ih < H) & (iw >= 0) & (iw < W), other=0.0)
    tl.store(a_ptr + m.to(tl.int64) * K + k, window, mask=own)


@triton.jit
def product_kernel(
    a_ptr, w_ptr, bias_ptr, out_ptr, M, K, OC, PIXELS,
    HAS_BIAS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    m = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    o = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for first in range(0, K, BLOCK_K):
        k = first + tl.arange(0, BLOCK_K)
        a = tl.load(a_ptr + m[:, None] * K + k[None, :],
                    mask=(m < M)[:, None] & (k < K)[None, :], other=0.0)
        b = tl.load(w_ptr + o[None, :] * K + k[:, None],
                    mask=(o < OC)[None, :] & (k < K)[:, None], other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
    if HAS_BIAS:
        acc += tl.load(bias_ptr + o, mask=o < OC, other=0.0)[None, :]
    to = (m // PIXELS * OC * PIXELS + m % PIXELS)[:, None] + (o * PIXELS)[None, :]
    tl.store(out_ptr + to, acc, mask=(m < M)[:, None] & (o < OC)[None, :])


def conv2d(x, weight, bias=None, stride=1, padding=0, dilation=1):
    strides, paddings, dilations, (oh, ow) = geometry(x, weight, bias, stride, padding, dilation)
    n, c, h, w = x.shape
    oc, _, kh, kw = weight.shape
    out = x.new_empty(n, oc, oh, ow)
    rows, taps = n * oh * ow, c * kh * kw
    if rows == 0:
        return out
    windows = x.new_empty(rows, taps)
    windows_kernel[(triton.cdiv(rows, 32), triton.cdiv(taps, 64))](
        x, windows, c, h, w, rows, oh, ow, kh, kw, *strides, *paddings, *dilations, *x.stride(),
        BLOCK_M=32, BLOCK_K=64,
    )
    product_kernel[(triton.cdiv(rows, 64), triton.cdiv(oc, 64))](
        windows, weight.contiguous(), None if bias is None else bias.contiguous(), out,
        rows, taps, oc, oh * ow, HAS_BIAS=bias is not None, BLOCK_M=64, BLOCK_N=64, BLOCK_K=16,
    )
    return out
