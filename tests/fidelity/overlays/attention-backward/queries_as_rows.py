"""The sweep by keys has queries as rows and turns p and ds for the products that follow."""


@triton.jit
def sweep_queries(dk, dv, k, v, q_ptr, do_ptr, lse_ptr, delta_ptr, sqm, sqd, sgm, sgd, start, stop,
                  M, offs_n, scale, D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_D: tl.constexpr,
                  MASKED: tl.constexpr, CAUSAL: tl.constexpr):
    d = tl.arange(0, BLOCK_D)
    for first in range(start, stop, BLOCK_M):
        m = first + tl.arange(0, BLOCK_M)
        rows = m.to(tl.int64)[:, None]
        inside = (m < M)[:, None] & (d < D)[None, :]
        q = tl.load(q_ptr + rows * sqm + d.to(tl.int64)[None, :] * sqd, mask=inside, other=0.0)
        do = tl.load(do_ptr + rows * sgm + d.to(tl.int64)[None, :] * sgd, mask=inside, other=0.0)
        lse = tl.load(lse_ptr + m, mask=m < M, other=float("inf"))
        delta = tl.load(delta_ptr + m, mask=m < M, other=0.0)
        score = tl.dot(q, k.T, input_precision="tf32x3") * scale
        if CAUSAL:
            score += tl.where(m[:, None] < offs_n[None, :], -float("inf"), 0.0)
        p = tl.exp2(score - (lse * LOG2_E)[:, None])
        dp = tl.dot(do, v.T, input_precision="tf32x3")
        ds = p * dp - p * delta[:, None]
        dv += tl.dot(tl.trans(p.to(do.dtype)), do, input_precision="tf32x3")
        dk += tl.dot(tl.trans(ds.to(q.dtype)), q, input_precision="tf32x3")
    return dk, dv
