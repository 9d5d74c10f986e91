"""One loop whose tiles are all masked, base e, a grid of three axes, messages in other words."""


@triton.jit
def forward(q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr, sqb, sqh, sqm, sqd, skb, skh, skn, skd, svb, svh,
            svn, svd, group, M, N, D, scale, CAUSAL: tl.constexpr, BLOCK_M: tl.constexpr,
            BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr):
    m = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    h, b = tl.program_id(1).to(tl.int64), tl.program_id(2).to(tl.int64)
    d = tl.arange(0, BLOCK_D).to(tl.int64)
    kh = h // group
    inside = (m < M)[:, None] & (d < D)[None, :]
    q = tl.load(q_ptr + b * sqb + h * sqh + m[:, None] * sqm + d[None, :] * sqd, mask=inside,
                other=0)
    top = tl.full([BLOCK_M], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK_M], tl.float32)
    acc = tl.zeros([BLOCK_M, BLOCK_D], tl.float32)
    end = N
    if CAUSAL:
        end = tl.minimum(N, (tl.program_id(0) + 1) * BLOCK_M)
    for start in range(0, end, BLOCK_N):
        n = start + tl.arange(0, BLOCK_N).to(tl.int64)
        here = (n < N)[:, None] & (d < D)[None, :]
        k = tl.load(k_ptr + b * skb + kh * skh + n[:, None] * skn + d[None, :] * skd, mask=here,
                    other=0)
        v = tl.load(v_ptr + b * svb + kh * svh + n[:, None] * svn + d[None, :] * svd, mask=here,
                    other=0)
        s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        s += tl.where((n < N)[None, :], 0.0, float("-inf"))
        if CAUSAL:
            s = tl.where(n[None, :] <= m[:, None], s, float("-inf"))
        new = tl.maximum(top, tl.max(s, 1))
        p = tl.exp(s - new[:, None])
        old = tl.exp(top - new)
        total = total * old + tl.sum(p, 1)
        acc = acc * old[:, None] + tl.dot(p.to(v.dtype), v, input_precision="ieee")
        top = new
    heads = tl.num_programs(1)
    at = (b * heads + h) * M + m
    tl.store(o_ptr + at[:, None] * D + d[None, :], (acc / total[:, None]).to(o_ptr.type.element_ty),
             mask=inside)
    tl.store(lse_ptr + at, top + tl.log(total), mask=m < M)


def attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool = False,
    scale: float | None = None, return_lse: bool = False,
) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
    """softmax(scale * q @ k.mT) @ v for each head."""
    check_tensors(q, k, v)
    check_options(causal, scale, return_lse)
    if causal and q.shape[2] != k.shape[2]:
        raise ValueError(f"causal: expected as many queries as keys, got {q.shape[2]} and "
                         f"{k.shape[2]}")
    scale = q.shape[3] ** -0.5 if scale is None else scale
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    lse = torch.empty(q.shape[:3], dtype=torch.float32, device=q.device)
    batches, n_heads, n_queries, width = q.shape
    n_kv, n_keys = k.shape[1:3]
    wide = max(16, triton.next_power_of_2(width))
    if out.numel():
        grid = (triton.cdiv(n_queries, ROWS), n_heads, batches)
        forward[grid](q, k, v, out, lse, *q.stride(), *k.stride(), *v.stride(), n_heads // n_kv,
                      n_queries, n_keys, width, float(scale), CAUSAL=causal, BLOCK_M=ROWS,
                      BLOCK_N=32, BLOCK_D=wide)
    return (out, lse) if return_lse else out


def check_tensors(q: object, k: object, v: object) -> None:
    """Refuse what ``attention`` does not cover; raises what it says."""
    for name, x in (("q", q), ("k", k), ("v", v)):
        if not isinstance(x, torch.Tensor):
            raise TypeError(f"{name}: expected a torch.Tensor, got {type(x).__name__}")
        if x.dtype not in SUPPORTED:
            names = ", ".join(str(dtype) for dtype in SUPPORTED)
            raise TypeError(f"{name}: expected one of {names}, got {x.dtype}")
        if x.dtype != q.dtype:
            raise TypeError(f"{name}: expected {q.dtype} like q, got {x.dtype}")
        if x.dim() != 4:
            raise ValueError(f"{name} must be (B, H, S, D), got shape {tuple(x.shape)}")
        if x.device != q.device:
            raise ValueError(f"{name} is on {x.device}, q is on {q.device}")
    batches, n_heads, _, width = q.shape
    if not 1 <= width <= MAX_WIDTH:
        raise ValueError(f"q: expected 1 to {MAX_WIDTH} numbers in its last dimension, got {width}")
    if k.shape[0] != batches or k.shape[3] != width:
        raise ValueError(f"k: expected shape ({batches}, heads, keys, {width}) beside q, got "
                         f"{tuple(k.shape)}")
    if k.shape[1] == 0 or n_heads % k.shape[1]:
        raise ValueError(f"k: expected a number of heads that divides the {n_heads} of q, got "
                         f"{k.shape[1]}")
    if k.shape[2] == 0:
        raise ValueError("k: expected at least one key, got none")
    if v.shape != k.shape:
        raise ValueError(f"v: expected shape {tuple(k.shape)} like k, got {tuple(v.shape)}")


def check_options(causal: object, scale: object, return_lse: object) -> None:
    """Refuse options of other types; raises what it says."""
    for name, option in (("causal", causal), ("return_lse", return_lse)):
        if not isinstance(option, bool):
            raise TypeError(f"{name}: expected a bool, got {type(option).__name__}")
    if scale is not None and (isinstance(scale, bool) or not isinstance(scale, int | float)):
        raise TypeError(f"scale must be a number or None, not {scale!r}")
