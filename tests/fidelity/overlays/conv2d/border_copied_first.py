"""Right but different: the host gives the image its border, and no window leaves it."""

del two


@triton.jit
def conv2d_kernel(
    x_ptr, w_ptr, bias_ptr, out_ptr,
    M, K, OC, OH, OW, KH, KW, sh, sw, dh, dw, sx_n, sx_c, sx_h,
    HAS_BIAS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    """x is contiguous and has its border, w is [OC, K] and contiguous."""
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    o = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    n, y, x = m // (OH * OW), m // OW % OH, m % OW
    corner = n.to(tl.int64) * sx_n + y * sh * sx_h + x * sw
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for first in range(0, K, BLOCK_K):
        k = first + tl.arange(0, BLOCK_K)
        tap = (k // (KH * KW)).to(tl.int64) * sx_c + k // KW % KH * dh * sx_h + k % KW * dw
        k = k[:, None]
        a = tl.load(x_ptr + corner + tap[None, :], mask=(m < M) & (k.trans() < K), other=0.0)
        b = tl.load(w_ptr + o * K + k, mask=(o < OC) & (k < K), other=0.0)
        acc += tl.dot(a, b, input_precision="ieee")
    if HAS_BIAS:
        acc += tl.load(bias_ptr + o, mask=o < OC, other=0.0)
    tl.store(out_ptr + (n * OC * OH + y) * OW + x + o * OH * OW, acc, mask=(m < M) & (o < OC))


def conv2d(x, weight, bias=None, stride=1, padding=0, dilation=1):
    (sh, sw), (ph, pw), (dh, dw), (oh, ow) = geometry(x, weight, bias, stride, padding, dilation)
    n, c, h, w = x.shape
    oc, _, kh, kw = weight.shape
    out = x.new_empty(n, oc, oh, ow)
    if n == 0:
        return out
    bordered = x.new_zeros(n, c, h + 2 * ph, w + 2 * pw)
    bordered[:, :, ph:ph + h, pw:pw + w] = x
    conv2d_kernel[(triton.cdiv(n * oh * ow, 64), triton.cdiv(oc, 32))](
        bordered, weight.contiguous(), bias if bias is None else bias.contiguous(), out,
        n * oh * ow, c * kh * kw, oc, oh, ow, kh, kw, sh, sw, dh, dw, *bordered.stride()[:3],
        HAS_BIAS=bias is not None, BLOCK_M=64, BLOCK_N=32, BLOCK_K=16,
    )
    return out


def geometry(x, weight, bias, stride, padding, dilation):
    tensors = [("x", x, 4), ("weight", weight, 4)] + [("bias", bias, 1)] * (bias is not None)
    for name, tensor, rank in tensors:
        if not torch.is_tensor(tensor):
            raise TypeError(f"expected a tensor as {name}, got {type(tensor).__name__}")
        if tensor.dtype not in {torch.float32, torch.float16, torch.bfloat16}:
            raise TypeError(f"{name}: {tensor.dtype} is not supported")
        if x.dtype != tensor.dtype:
            raise TypeError(f"x is {x.dtype}, {name} is {tensor.dtype}")
        if x.device != tensor.device:
            raise Misfit(f"x is on {x.device}, {name} on {tensor.device}")
        if tensor.dim() != rank:
            raise Misfit(f"{name}: {rank} dimensions expected, got {tensor.dim()}: "
                         f"{list(tensor.shape)}")
    c, *image = x.shape[1:]
    oc, ic, *window = weight.shape
    if c != ic:
        raise Misfit(f"x has {c} channels, weight takes {ic}")
    if bias is not None and bias.numel() != oc:
        raise Misfit(f"bias: expected {oc} numbers, got {bias.numel()}")
    steps = []
    for name, value, least in (("stride", stride, 1), ("padding", padding, 0),
                               ("dilation", dilation, 1)):
        pair = list(value) if isinstance(value, (tuple, list)) else [value] * 2
        if not all(isinstance(one, int) for one in pair):
            raise TypeError(f"{name}: {value!r} is no whole number")
        if len(pair) != 2:
            raise Misfit(f"{name}: {len(pair)} numbers instead of 2")
        if any(one < least for one in pair):
            raise Misfit(f"{name}: {value!r} is below {least}")
        steps.append(pair)
    places = [1 + (image[i] + 2 * steps[1][i] - 1 - steps[2][i] * (window[i] - 1)) // steps[0][i]
              for i in range(2)]
    if places[0] < 1 or places[1] < 1:
        raise Misfit(f"weight: the window leaves {places} places in the image")
    return *steps, places
