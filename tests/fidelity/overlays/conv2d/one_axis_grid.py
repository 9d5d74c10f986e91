"""Right but different: a grid of one axis, and pixels beyond the end wrap around."""

del Misfit


@triton.jit
def conv2d_kernel(
    x_ptr, w_ptr, bias_ptr, out_ptr,
    M, K, OC, H, W, PIXELS, OW, TAPS, KW,
    stride_h, stride_w, pad_h, pad_w, dil_h, dil_w,
    sx_n, sx_c, sx_h, sx_w, sw_o, sw_c, sw_h, sw_w,
    HAS_BIAS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    tiles_n = tl.cdiv(OC, BLOCK_N)
    pid = tl.program_id(0)
    rows = (pid // tiles_n) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = (pid % tiles_n) * BLOCK_N + tl.arange(0, BLOCK_N)
    pixel, channel = rows % M, cols % OC
    img, place = pixel // PIXELS, pixel % PIXELS
    top = place // OW * stride_h - pad_h
    left = place % OW * stride_w - pad_w
    base = img.to(tl.int64) * sx_n
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for step in range(tl.cdiv(K, BLOCK_K)):
        k = step * BLOCK_K + tl.arange(0, BLOCK_K)
        c, tap = k // TAPS, k % TAPS
        i, j = tap // KW, tap % KW
        ih = top[:, None] + (i * dil_h)[None, :]
        iw = left[:, None] + (j * dil_w)[None, :]
        seen = (k < K)[None, :] & (ih >= 0) & (iw >= 0) & (ih < H) & (iw < W)
        place_x = base[:, None] + (c.to(tl.int64) * sx_c)[None, :] + ih * sx_h + iw * sx_w
        a = tl.load(x_ptr + place_x, mask=seen, other=0.0)
        place_w = (c * sw_c + i * sw_h + j * sw_w)[:, None] + (channel * sw_o)[None, :]
        b = tl.load(w_ptr + place_w, mask=(k < K)[:, None], other=0.0)
        acc += tl.dot(a, b, input_precision="ieee")
    if HAS_BIAS:
        acc += tl.load(bias_ptr + channel)[None, :]
    at = (img.to(tl.int64) * OC * PIXELS + place)[:, None] + channel[None, :] * PIXELS
    tl.store(out_ptr + at, acc, mask=(rows < M)[:, None] & (cols < OC)[None, :])


def conv2d(x, weight, bias=None, stride=1, padding=0, dilation=1):
    (sh, sw), (ph, pw), (dh, dw), (oh, ow) = geometry(x, weight, bias, stride, padding, dilation)
    n, c, h, w = x.shape
    oc, _, kh, kw = weight.shape
    out = torch.empty(n, oc, oh, ow, dtype=x.dtype, device=x.device)
    pixels = n * oh * ow
    if pixels == 0:
        return out
    conv2d_kernel[
        lambda meta: (triton.cdiv(pixels, meta["BLOCK_M"]) * triton.cdiv(oc, meta["BLOCK_N"]),)
    ](
        x, weight, None if bias is None else bias.contiguous(), out,
        pixels, c * kh * kw, oc, h, w, oh * ow, ow, kh * kw, kw, sh, sw, ph, pw, dh, dw,
        *x.stride(), *weight.stride(), bias is not None, BLOCK_M=64, BLOCK_N=32, BLOCK_K=32,
    )
    return out
