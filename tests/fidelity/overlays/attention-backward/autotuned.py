"""An autotuner above the kernel of the queries, which sweeps keys backwards; flat rows of delta."""

del delta_kernel
del sweep_keys
del queries_kernel
del tile_of_queries


@triton.jit
def row_dot_kernel(a_ptr, b_ptr, c_ptr, n_rows, D: tl.constexpr, ROWS: tl.constexpr,
                   WIDE: tl.constexpr):
    r = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    d = tl.arange(0, WIDE)
    inside = (r < n_rows)[:, None] & (d < D)[None, :]
    at = r[:, None] * D + d[None, :]
    a = tl.load(a_ptr + at, mask=inside, other=0.0).to(tl.float32)
    b = tl.load(b_ptr + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(c_ptr + r, tl.sum(a * b, 1), mask=r < n_rows)


def backward_delta(out: torch.Tensor, d_out: torch.Tensor) -> torch.Tensor:
    """Dot products of rows, of copies without gaps."""
    check_tensors(out=out, d_out=d_out)
    check_shapes("out", out, d_out=d_out)
    delta = torch.empty(out.shape[:3], dtype=torch.float32, device=out.device)
    if delta.numel():
        width = out.shape[3]
        row_dot_kernel[(triton.cdiv(delta.numel(), ROWS),)](
            out.contiguous(), d_out.contiguous(), delta, delta.numel(), D=width, ROWS=ROWS,
            WIDE=triton.next_power_of_2(width))
    return delta


@triton.autotune(
    configs=[triton.Config({"BM": bm, "BN": bn}, num_warps=warps, num_stages=1)
             for bm, bn, warps in ((64, 32, 4), (32, 64, 4), (128, 32, 8))],
    key=["D", "CAUSAL"],
)
@triton.heuristics({"WIDE": lambda args: max(16, triton.next_power_of_2(args["D"]))})
@triton.jit
def dq_tuned(q_ptr, k_ptr, v_ptr, g_ptr, lse_ptr, delta_ptr, dq_ptr, q0, q1, q2, q3, k0, k1, k2, k3,
             v0, v1, v2, v3, g0, g1, g2, g3, heads, group, M, N, scale, D: tl.constexpr,
             CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, WIDE: tl.constexpr):
    which = tl.program_id(1).to(tl.int64)
    b, h = which // heads, which % heads
    m = tl.program_id(0).to(tl.int64) * BM + tl.arange(0, BM)
    d = tl.arange(0, WIDE).to(tl.int64)
    inside = (m < M)[:, None] & (d < D)[None, :]
    q = tl.load(q_ptr + b * q0 + h * q1 + m[:, None] * q2 + d[None, :] * q3, mask=inside, other=0.0)
    g = tl.load(g_ptr + b * g0 + h * g1 + m[:, None] * g2 + d[None, :] * g3, mask=inside, other=0.0)
    lse = tl.load(lse_ptr + which * M + m, mask=m < M, other=0.0)
    delta = tl.load(delta_ptr + which * M + m, mask=m < M, other=0.0)
    acc = tl.zeros([BM, WIDE], tl.float32)
    end = N
    if CAUSAL:
        end = tl.minimum(N, (tl.program_id(0) + 1) * BM)
    steps = tl.cdiv(end, BN)
    for step in range(steps):
        n = (steps - 1 - step).to(tl.int64) * BN + tl.arange(0, BN)
        mine = (d < D)[:, None] & (n < N)[None, :]
        k = tl.load(k_ptr + b * k0 + h // group * k1 + d[:, None] * k3 + n[None, :] * k2, mask=mine,
                    other=0.0)
        v = tl.load(v_ptr + b * v0 + h // group * v1 + d[:, None] * v3 + n[None, :] * v2, mask=mine,
                    other=0.0)
        s = scale * tl.dot(q, k, input_precision="tf32x3")
        seen = (n < N)[None, :]
        if CAUSAL:
            seen = seen & (m[:, None] >= n[None, :])
        p = tl.exp(tl.where(seen, s, -float("inf")) - lse[:, None])
        ds = p * (tl.dot(g, v, input_precision="tf32x3") - delta[:, None])
        acc = tl.dot(ds.to(k.dtype), tl.trans(k), acc, input_precision="tf32x3")
    tl.store(dq_ptr + (which * M + m)[:, None] * D + d[None, :],
             (acc * scale).to(dq_ptr.dtype.element_ty), mask=inside)


def backward_queries(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, d_out: torch.Tensor, lse: torch.Tensor,
    delta: torch.Tensor, *, causal: bool = False, scale: float | None = None,
) -> torch.Tensor:
    """dq."""
    check_arguments(q, k, v, causal, scale, d_out=d_out, lse=lse, delta=delta)
    batches, heads, n_queries, width = q.shape
    dq = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    if dq.numel():
        dq_tuned[lambda meta: (triton.cdiv(n_queries, meta["BM"]), batches * heads)](
            q, k, v, d_out, lse.contiguous(), delta.contiguous(), dq, *q.stride(), *k.stride(),
            *v.stride(), *d_out.stride(), heads, heads // k.shape[1], n_queries, k.shape[2],
            scale_of(scale, width), D=width, CAUSAL=causal)
    return dq
