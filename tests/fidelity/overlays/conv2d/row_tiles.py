"""Right but different: a program owns a piece of one row of one image, on a grid of three axes."""

del Misfit


@triton.jit
def conv2d_kernel(
    x_ptr, w_ptr, bias_ptr, out_ptr,
    H, W, OC, OH, OW, K, sh, sw, ph, pw, dh, dw,
    sx_n, sx_c, sx_h, sx_w, sw_o, sw_c, sw_h, sw_w,
    KH: tl.constexpr, KW: tl.constexpr, HAS_BIAS: tl.constexpr,
    BLOCK_W: tl.constexpr, BLOCK_O: tl.constexpr, BLOCK_K: tl.constexpr,
):
    n = tl.program_id(2).to(tl.int64) // OH
    y = tl.program_id(2) % OH
    x = tl.program_id(0) * BLOCK_W + tl.arange(0, BLOCK_W)
    o = tl.program_id(1) * BLOCK_O + tl.arange(0, BLOCK_O)
    image = x_ptr + n * sx_n
    acc = tl.zeros((BLOCK_W, BLOCK_O), tl.float32)
    for first in range(0, K, BLOCK_K):
        k = first + tl.arange(0, BLOCK_K)
        c, i, j = k // (KH * KW), k // KW % KH, k % KW
        ih = y * sh - ph + i * dh
        iw = x[:, None] * sw - pw + (j * dw)[None, :]
        rows = ((k < K) & (ih >= 0) & (ih < H))[None, :]
        a = tl.load(image + (c.to(tl.int64) * sx_c + ih * sx_h)[None, :] + iw * sx_w,
                    mask=rows & (x < OW)[:, None] & (iw >= 0) & (iw < W), other=0)
        b = tl.load(w_ptr + (c * sw_c + i * sw_h + j * sw_w)[:, None] + (o * sw_o)[None, :],
                    mask=(k < K)[:, None] & (o < OC)[None, :], other=0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
    if HAS_BIAS:
        acc += tl.load(bias_ptr + o, mask=o < OC, other=0).to(tl.float32)
    out = out_ptr + (n * OC * OH + y) * OW
    tl.store(out + x[:, None] + (o * OH * OW)[None, :], acc,
             mask=(x < OW)[:, None] & (o < OC)[None, :])


def conv2d(x, weight, bias=None, stride=1, padding=0, dilation=1):
    (sh, sw), (ph, pw), (dh, dw), (oh, ow) = geometry(x, weight, bias, stride, padding, dilation)
    n, c, h, w = x.shape
    oc, _, kh, kw = weight.shape
    out = x.new_empty((n, oc, oh, ow))
    if n:
        bias = None if bias is None else bias.contiguous()
        conv2d_kernel[(triton.cdiv(ow, 16), triton.cdiv(oc, 64), n * oh)](
            x, weight, bias, out, h, w, oc, oh, ow, c * kh * kw, sh, sw, ph, pw, dh, dw,
            *x.stride(), *weight.stride(), KH=kh, KW=kw, HAS_BIAS=bias is not None,
            BLOCK_W=16, BLOCK_O=64, BLOCK_K=32,
        )
    return out
