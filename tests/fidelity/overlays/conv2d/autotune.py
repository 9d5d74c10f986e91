"""Right but different: an autotuner picks the tile, and the launch names its arguments."""

del Misfit


@triton.autotune(
    configs=[
        triton.Config({"BLOCK_M": 64, "BLOCK_N": 32, "BLOCK_K": 16}, num_warps=4),
        triton.Config({"BLOCK_M": 32, "BLOCK_N": 64, "BLOCK_K": 32}, num_warps=4),
    ],
    key=["M", "OC", "K"],
)
@triton.jit
def conv2d_kernel(
    x, w, bias, out,
    M, OC, K, H, W, OH, OW, KH, KW, sh, sw, ph, pw, dh, dw, xn, xc, xh, xw, wo, wc, wh, ww,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    o = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    top, left = m // OW % OH * sh - ph, m % OW * sw - pw
    image = x + (m // (OH * OW)).to(tl.int64) * xn
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for first in tl.range(0, K, BLOCK_K, num_stages=2):
        k = first + tl.arange(0, BLOCK_K)
        ih = top[:, None] + k // KW % KH * dh
        iw = left[:, None] + k % KW * dw
        c = k // (KH * KW)
        legal = ((m < M)[:, None] & (k < K)) & ((ih >= 0) & (ih < H)) & ((iw >= 0) & (iw < W))
        a = tl.load(image[:, None] + c.to(tl.int64) * xc + ih * xh + iw * xw, mask=legal, other=0.0)
        b = tl.load(w + o.to(tl.int64) * wo + (c * wc + k // KW % KH * wh + k % KW * ww)[:, None],
                    mask=(o < OC) & (k < K)[:, None], other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
    if bias is not None:
        acc += tl.load(bias + o, mask=o < OC, other=0.0)
    to = (m // (OH * OW) * OC * OH * OW + m % (OH * OW))[:, None] + o * (OH * OW)
    tl.store(out + to, acc, mask=(m < M)[:, None] & (o < OC))


def conv2d(x, weight, bias=None, stride=1, padding=0, dilation=1):
    (sh, sw), (ph, pw), (dh, dw), (oh, ow) = geometry(x, weight, bias, stride, padding, dilation)
    (xn, xc, xh, xw), (wo, wc, wh, ww) = x.stride(), weight.stride()
    oc, c, kh, kw = weight.shape
    out = x.new_empty((len(x), oc, oh, ow))
    pixels = len(x) * oh * ow
    if pixels:
        conv2d_kernel[lambda at: (triton.cdiv(pixels, at["BLOCK_M"]),
                                  triton.cdiv(oc, at["BLOCK_N"]))](
            x=x, w=weight, bias=bias if bias is None else bias.contiguous(), out=out,
            M=pixels, OC=oc, K=c * kh * kw, H=x.shape[2], W=x.shape[3], OH=oh, OW=ow, KH=kh, KW=kw,
            sh=sh, sw=sw, ph=ph, pw=pw, dh=dh, dw=dw,
            xn=xn, xc=xc, xh=xh, xw=xw, wo=wo, wc=wc, wh=wh, ww=ww,
        )
    return out
