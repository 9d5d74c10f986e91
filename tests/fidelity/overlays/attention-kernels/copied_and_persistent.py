"""Host code removes gaps and repeats heads; a few programs take tiles in turn."""

PROGRAMS = 12
LOG2E = 1.4426950408889634


@triton.jit
def tile_of(q_ptr, k_ptr, v_ptr, out_ptr, lse_ptr, index, tiles, M, N, scale, D: tl.constexpr,
            CAUSAL: tl.constexpr, TILE: tl.constexpr, KEYS: tl.constexpr, WIDE: tl.constexpr):
    """One tile of queries of a head, whose tensors have no gaps."""
    head = (index // tiles).to(tl.int64)
    first = index % tiles * TILE
    m, d = first + tl.arange(0, TILE), tl.arange(0, WIDE)
    spot = (head * M + m)[:, None] * D + d[None, :]
    inside = (m < M)[:, None] & (d < D)[None, :]
    q = tl.load(q_ptr + spot, mask=inside, other=0.0)
    top = tl.full([TILE], -float("inf"), tl.float32)
    total = tl.full([TILE], 0.0, tl.float32)
    acc = tl.zeros([TILE, WIDE], tl.float32)
    start = 0
    end = tl.minimum(first + TILE, N) if CAUSAL else N
    while start < end:
        n = start + tl.arange(0, KEYS)
        there = (head * N + n)[:, None] * D + d[None, :]
        mine = (n < N)[:, None] & (d < D)[None, :]
        k = tl.load(k_ptr + there, mask=mine, other=0.0)
        v = tl.load(v_ptr + there, mask=mine, other=0.0)
        s = tl.dot(q, k.T, input_precision="tf32x3") * scale
        ok = (n < N)[None, :]
        if CAUSAL:
            ok = ok & (n[None, :] <= m[:, None])
        s = tl.where(ok, s, -float("inf"))
        new = tl.maximum(top, tl.max(s, 1))
        safe = tl.where(new == -float("inf"), 0.0, new)
        p = tl.exp2(s - safe[:, None])
        old = tl.exp2(top - safe)
        total = total * old + tl.sum(p, 1)
        acc = tl.dot(p.to(v.dtype), v, acc * old[:, None], input_precision="tf32x3")
        top = new
        start += KEYS
    tl.store(out_ptr + spot, (acc * (1.0 / total)[:, None]).to(q.dtype), mask=inside)
    tl.store(lse_ptr + head * M + m, (top + tl.log2(total)) / 1.4426950408889634, mask=m < M)


@triton.jit
def forward(q_ptr, k_ptr, v_ptr, out_ptr, lse_ptr, count, tiles, M, N, scale, D: tl.constexpr,
            CAUSAL: tl.constexpr, TILE: tl.constexpr, KEYS: tl.constexpr, WIDE: tl.constexpr):
    for index in range(tl.program_id(0), count, tl.num_programs(0)):
        tile_of(q_ptr, k_ptr, v_ptr, out_ptr, lse_ptr, index, tiles, M, N, scale, D, CAUSAL, TILE,
                KEYS, WIDE)


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
        q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
        if n_kv != n_heads:
            k, v = (x[:, :, None].expand(-1, -1, n_heads // n_kv, -1, -1).reshape(
                batches, n_heads, n_keys, width).contiguous() for x in (k, v))
        tiles = triton.cdiv(n_queries, ROWS)
        count = batches * n_heads * tiles
        forward[(min(PROGRAMS, count),)](
            q, k, v, out, lse, count, tiles, n_queries, n_keys, scale * LOG2E, D=width,
            CAUSAL=causal, TILE=ROWS, KEYS=16, WIDE=wide)
    return (out, lse) if return_lse else out
