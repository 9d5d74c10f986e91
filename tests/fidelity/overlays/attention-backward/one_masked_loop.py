"""One loop whose tiles are all masked, base e, grids of two axes, products without TF32."""

del LOG2_E
del sweep_queries
del keys_kernel
del sweep_keys
del queries_kernel
del on_hopper
del tile_of_keys
del tile_of_queries

KEYS, QUERIES = 32, 32


@triton.jit
def tile(ptr, head, rows, length, s1, s2, s3, D: tl.constexpr, WIDE: tl.constexpr):
    d = tl.arange(0, WIDE).to(tl.int64)
    return tl.load(ptr + head * s1 + rows[:, None] * s2 + d[None, :] * s3,
                   mask=(rows < length)[:, None] & (d < D)[None, :], other=0)


@triton.jit
def weights(q, k, m, n, M, N, lse, scale, CAUSAL: tl.constexpr):
    s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
    seen = (m < M)[:, None] & (n < N)[None, :]
    if CAUSAL:
        seen = seen & (n[None, :] <= m[:, None])
    return tl.exp(tl.where(seen, s - lse[:, None], float("-inf")))


@triton.jit
def dkdv(q_ptr, k_ptr, v_ptr, g_ptr, lse_ptr, delta_ptr, dk_ptr, dv_ptr, sqb, sqh, sqm, sqd, skb,
         skh, skn, skd, svb, svh, svn, svd, sgb, sgh, sgm, sgd, kv_heads, group, M, N, scale,
         D: tl.constexpr, CAUSAL: tl.constexpr, BLOCK: tl.constexpr, WIDE: tl.constexpr):
    n = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    b, kh = (tl.program_id(1) // kv_heads).to(tl.int64), (tl.program_id(1) % kv_heads).to(tl.int64)
    k = tile(k_ptr + b * skb, kh, n, N, skh, skn, skd, D, WIDE)
    v = tile(v_ptr + b * svb, kh, n, N, svh, svn, svd, D, WIDE)
    dk = tl.zeros([BLOCK, WIDE], tl.float32)
    dv = tl.zeros([BLOCK, WIDE], tl.float32)
    begin = tl.program_id(0) * BLOCK if CAUSAL else 0
    for one in range(group):
        h = kh * group + one
        for start in range(begin, M, BLOCK):
            m = start + tl.arange(0, BLOCK).to(tl.int64)
            q = tile(q_ptr + b * sqb, h, m, M, sqh, sqm, sqd, D, WIDE)
            g = tile(g_ptr + b * sgb, h, m, M, sgh, sgm, sgd, D, WIDE)
            at = (b * kv_heads * group + h) * M + m
            p = weights(q, k, m, n, M, N, tl.load(lse_ptr + at, mask=m < M, other=0.0), scale,
                        CAUSAL)
            dv += tl.dot(tl.trans(p).to(g.dtype), g, input_precision="ieee")
            dp = tl.dot(g, tl.trans(v), input_precision="ieee")
            ds = p * (dp - tl.load(delta_ptr + at, mask=m < M, other=0.0)[:, None])
            dk += tl.dot(tl.trans(ds).to(q.dtype), q, input_precision="ieee")
    d = tl.arange(0, WIDE)
    at = ((b * kv_heads + kh) * N + n)[:, None] * D + d[None, :]
    inside = (n < N)[:, None] & (d < D)[None, :]
    tl.store(dk_ptr + at, (scale * dk).to(dk_ptr.dtype.element_ty), mask=inside)
    tl.store(dv_ptr + at, dv.to(dv_ptr.dtype.element_ty), mask=inside)


@triton.jit
def dq_only(q_ptr, k_ptr, v_ptr, g_ptr, lse_ptr, delta_ptr, dq_ptr, sqb, sqh, sqm, sqd, skb, skh,
            skn, skd, svb, svh, svn, svd, sgb, sgh, sgm, sgd, heads, group, M, N, scale,
            D: tl.constexpr, CAUSAL: tl.constexpr, BLOCK: tl.constexpr, WIDE: tl.constexpr):
    m = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    b, h = (tl.program_id(1) // heads).to(tl.int64), (tl.program_id(1) % heads).to(tl.int64)
    q = tile(q_ptr + b * sqb, h, m, M, sqh, sqm, sqd, D, WIDE)
    g = tile(g_ptr + b * sgb, h, m, M, sgh, sgm, sgd, D, WIDE)
    at = (b * heads + h) * M + m
    lse = tl.load(lse_ptr + at, mask=m < M, other=0.0)
    delta = tl.load(delta_ptr + at, mask=m < M, other=0.0)
    dq = tl.zeros([BLOCK, WIDE], tl.float32)
    end = tl.minimum(N, (tl.program_id(0) + 1) * BLOCK) if CAUSAL else N
    for start in range(0, end, BLOCK):
        n = start + tl.arange(0, BLOCK).to(tl.int64)
        k = tile(k_ptr + b * skb, h // group, n, N, skh, skn, skd, D, WIDE)
        v = tile(v_ptr + b * svb, h // group, n, N, svh, svn, svd, D, WIDE)
        p = weights(q, k, m, n, M, N, lse, scale, CAUSAL)
        ds = p * (tl.dot(g, tl.trans(v), input_precision="ieee") - delta[:, None])
        dq += tl.dot(ds.to(k.dtype), k, input_precision="ieee")
    d = tl.arange(0, WIDE)
    tl.store(dq_ptr + at[:, None] * D + d[None, :], (scale * dq).to(dq_ptr.dtype.element_ty),
             mask=(m < M)[:, None] & (d < D)[None, :])


def backward_keys(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, d_out: torch.Tensor, lse: torch.Tensor,
    delta: torch.Tensor, *, causal: bool = False, scale: float | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """dk and dv."""
    check_arguments(q, k, v, causal, scale, d_out=d_out, lse=lse, delta=delta)
    batches, kv_heads, n_keys, width = k.shape
    dk, dv = (torch.empty(k.shape, dtype=k.dtype, device=k.device) for _ in range(2))
    if dk.numel():
        dkdv[(triton.cdiv(n_keys, KEYS), batches * kv_heads)](
            q, k, v, d_out, lse.contiguous(), delta.contiguous(), dk, dv, *q.stride(), *k.stride(),
            *v.stride(), *d_out.stride(), kv_heads, q.shape[1] // kv_heads, q.shape[2], n_keys,
            scale_of(scale, width), D=width, CAUSAL=causal, BLOCK=KEYS,
            WIDE=max(16, triton.next_power_of_2(width)))
    return dk, dv


def backward_queries(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, d_out: torch.Tensor, lse: torch.Tensor,
    delta: torch.Tensor, *, causal: bool = False, scale: float | None = None,
) -> torch.Tensor:
    """dq."""
    check_arguments(q, k, v, causal, scale, d_out=d_out, lse=lse, delta=delta)
    batches, heads, n_queries, width = q.shape
    dq = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    if dq.numel():
        dq_only[(triton.cdiv(n_queries, QUERIES), batches * heads)](
            q, k, v, d_out, lse.contiguous(), delta.contiguous(), dq, *q.stride(), *k.stride(),
            *v.stride(), *d_out.stride(), heads, heads // k.shape[1], n_queries, k.shape[2],
            scale_of(scale, width), D=width, CAUSAL=causal, BLOCK=QUERIES,
            WIDE=max(16, triton.next_power_of_2(width)))
    return dq
