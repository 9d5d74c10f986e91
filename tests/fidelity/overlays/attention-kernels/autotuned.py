"""An autotuner above the kernel, widths by a heuristic, keys from the diagonal backwards."""


@triton.autotune(
    configs=[triton.Config({"BQ": bq, "BK": bk}, num_warps=4, num_stages=stages)
             for bq, bk, stages in ((64, 32, 2), (128, 32, 2), (32, 64, 1))],
    key=["D", "CAUSAL"],
)
@triton.heuristics({"WIDE": lambda args: max(16, triton.next_power_of_2(args["D"]))})
@triton.jit
def forward(q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr, q0, q1, q2, q3, k0, k1, k2, k3, v0, v1, v2, v3,
            heads, group, M, N, D, scale, CAUSAL: tl.constexpr, BQ: tl.constexpr, BK: tl.constexpr,
            WIDE: tl.constexpr):
    which = tl.program_id(0).to(tl.int64)
    b, h = which // heads, which % heads
    g = h // group
    m = tl.program_id(1).to(tl.int64) * BQ + tl.arange(0, BQ)
    d = tl.arange(0, WIDE).to(tl.int64)
    q_at = q_ptr + b * q0 + h * q1 + m[:, None] * q2 + d[None, :] * q3
    inside = (m[:, None] < M) & (d[None, :] < D)
    q = tl.load(q_at, mask=inside, other=0.0)
    top = tl.full([BQ], -1e30, tl.float32)  # below every score, and finite
    total = tl.zeros([BQ], tl.float32)
    acc = tl.zeros([BQ, WIDE], tl.float32)
    end = N
    if CAUSAL:
        end = tl.minimum(N, (tl.program_id(1) + 1) * BQ)
    for step in range(tl.cdiv(end, BK)):
        n = (tl.cdiv(end, BK) - 1 - step).to(tl.int64) * BK + tl.arange(0, BK)
        ok = n < N
        k = tl.load(k_ptr + b * k0 + g * k1 + d[:, None] * k3 + n[None, :] * k2,
                    mask=(d[:, None] < D) & ok[None, :], other=0.0)
        s = scale * tl.dot(q, k, input_precision="tf32x3")
        if CAUSAL:
            s = tl.where((m[:, None] >= n[None, :]) & ok[None, :], s, -float("inf"))
        else:
            s = tl.where(ok[None, :], s, -float("inf"))
        new = tl.maximum(top, tl.max(s, axis=1))
        p = tl.exp(s - new[:, None])
        back = tl.exp(top - new)
        top = new
        total = tl.fma(total, back, tl.sum(p, axis=1))
        v = tl.load(v_ptr + b * v0 + g * v1 + n[:, None] * v2 + d[None, :] * v3,
                    mask=ok[:, None] & (d[None, :] < D), other=0.0)
        acc *= back[:, None]
        acc += tl.dot(p.to(v_ptr.dtype.element_ty), v, input_precision="tf32x3")
    rows = which * M + m
    tl.store(o_ptr + rows[:, None] * D + d[None, :],
             (acc / total[:, None]).to(o_ptr.dtype.element_ty), mask=inside)
    tl.store(lse_ptr + rows, top + tl.log(total), mask=m < M)


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
    if out.numel():
        forward[lambda meta: (batches * n_heads, triton.cdiv(n_queries, meta["BQ"]))](
            q, k, v, out, lse, *q.stride(), *k.stride(), *v.stride(), n_heads, n_heads // n_kv,
            n_queries, n_keys, width, float(scale), CAUSAL=causal)
    return (out, lse) if return_lse else out
