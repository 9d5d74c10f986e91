"""Scores as keys by queries, the result turned too, and one program for a few tiles."""


@triton.jit
def forward(q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr, sqb, sqh, sqm, sqd, skb, skh, skn, skd, svb, svh,
            svn, svd, heads, group, M, N, D, scale, CAUSAL: tl.constexpr, BLOCK_M: tl.constexpr,
            BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr):
    tiles = tl.cdiv(M, BLOCK_M)
    row = tl.program_id(0) // tiles
    b, h = (row // heads).to(tl.int64), (row % heads).to(tl.int64)
    first = tl.program_id(0) % tiles * BLOCK_M
    m = first + tl.arange(0, BLOCK_M).to(tl.int64)
    d = tl.arange(0, BLOCK_D).to(tl.int64)
    q_t = tl.load(q_ptr + b * sqb + h * sqh + d[:, None] * sqd + m[None, :] * sqm,
                  mask=(d < D)[:, None] & (m < M)[None, :], other=0.0)
    top = tl.full([BLOCK_M], -float("inf"), tl.float32)
    total = tl.zeros([BLOCK_M], tl.float32)
    acc = tl.zeros([BLOCK_D, BLOCK_M], tl.float32)
    k_ptr += b * skb + h // group * skh
    v_ptr += b * svb + h // group * svh
    last = first + BLOCK_M if CAUSAL else N
    for start in range(0, min(last, N), BLOCK_N):
        n = start + tl.arange(0, BLOCK_N).to(tl.int64)
        k = tl.load(k_ptr + n[:, None] * skn + d[None, :] * skd,
                    mask=(n < N)[:, None] & (d < D)[None, :], other=0.0)
        s = tl.dot(k, q_t, input_precision="tf32x3") * scale
        if CAUSAL:
            hidden = (n[:, None] > m[None, :]) | (n >= N)[:, None]
        else:
            hidden = (n >= N)[:, None] | (m < 0)[None, :]
        s = tl.where(hidden, -float("inf"), s)
        new = tl.maximum(top, tl.max(s, 0))
        p = tl.exp(s - new[None, :])
        shrink = tl.exp(top - new)
        total = total * shrink + tl.sum(p, 0)
        v_t = tl.load(v_ptr + d[:, None] * svd + n[None, :] * svn,
                      mask=(d < D)[:, None] & (n < N)[None, :], other=0.0)
        acc = acc * shrink[None, :] + tl.dot(v_t, p.to(v_t.dtype), input_precision="tf32x3")
        top = new
    at = row.to(tl.int64) * M + m
    out = tl.trans(acc / total[None, :])
    tl.store(o_ptr + at[:, None] * D + d[None, :], out.to(o_ptr.dtype.element_ty),
             mask=(m < M)[:, None] & (d < D)[None, :])
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
        grid = (triton.cdiv(n_queries, ROWS) * n_heads * batches,)
        forward[grid](q, k, v, out, lse, *q.stride(), *k.stride(), *v.stride(), n_heads,
                      n_heads // n_kv, n_queries, n_keys, width, float(scale), CAUSAL=causal,
                      BLOCK_M=ROWS, BLOCK_N=64, BLOCK_D=wide)
    return (out, lse) if return_lse else out
