"""Tiles by descriptors that the host makes, of tensors without gaps."""

ROWS = 64


@triton.jit
def forward(q_desc, k_desc, v_desc, o_desc, lse_ptr, heads, group, M, N, scale,
            CAUSAL: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
            WIDE: tl.constexpr):
    first, head = tl.program_id(0) * BLOCK_M, tl.program_id(1)
    kv = head // heads * (heads // group) + head % heads // group
    m = first + tl.arange(0, BLOCK_M)
    q = q_desc.load([head, first, 0]).reshape(BLOCK_M, WIDE)
    top = tl.full([BLOCK_M], -float("inf"), tl.float32)
    total = tl.zeros([BLOCK_M], tl.float32)
    acc = tl.zeros([BLOCK_M, WIDE], tl.float32)
    end = tl.minimum(N, first + BLOCK_M) if CAUSAL else N
    for start in range(0, end, BLOCK_N):
        n = start + tl.arange(0, BLOCK_N)
        k = k_desc.load([kv, start, 0]).reshape(BLOCK_N, WIDE)
        v = v_desc.load([kv, start, 0]).reshape(BLOCK_N, WIDE)
        s = tl.dot(q, k.T, input_precision="tf32x3") * scale
        seen = (n < N)[None, :] & ((n[None, :] <= m[:, None]) | (not CAUSAL))
        s = tl.where(seen, s, -float("inf"))
        new = tl.maximum(top, tl.max(s, 1))
        p = tl.exp(s - new[:, None])
        old = tl.exp(top - new)
        total = total * old + tl.sum(p, 1)
        acc = tl.dot(p.to(v.dtype), v, acc * old[:, None], input_precision="tf32x3")
        top = new
    o_desc.store([head, first, 0], (acc / total[:, None]).to(q.dtype).reshape(1, BLOCK_M, WIDE))
    tl.store(lse_ptr + head.to(tl.int64) * M + m, top + tl.log(total), mask=m < M)


def described(x: torch.Tensor, rows: int, wide: int) -> TensorDescriptor:
    """All heads of a tensor without gaps, whose rows begin at multiples of 16 bytes."""
    count = x.shape[0] * x.shape[1]
    flat = x.view(count, x.shape[2], x.shape[3])
    return TensorDescriptor(flat, list(flat.shape), list(flat.stride()), [1, rows, wide])


def padded(x: torch.Tensor, width: int) -> torch.Tensor:
    """A tensor without gaps whose rows are ``width`` long, the rest of them zeros."""
    if x.shape[3] == width:
        return x.contiguous()
    whole = torch.zeros((*x.shape[:3], width), dtype=x.dtype, device=x.device)
    whole[..., :x.shape[3]].copy_(x)
    return whole


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
        step = 16 // q.element_size()
        even = -(-width // step) * step
        q, k, v = (padded(x, even) for x in (q, k, v))
        made = out if even == width else torch.empty(
            (*out.shape[:3], even), dtype=out.dtype, device=out.device)
        grid = (triton.cdiv(n_queries, ROWS), batches * n_heads)
        forward[grid](described(q, ROWS, wide), described(k, 32, wide), described(v, 32, wide),
                      described(made, ROWS, wide), lse, n_heads, n_heads // n_kv, n_queries, n_keys,
                      float(scale), CAUSAL=causal, BLOCK_M=ROWS, BLOCK_N=32, WIDE=wide)
        if even != width:
            out.copy_(made[..., :width])
    return (out, lse) if return_lse else out
