"""Gradients of attention without a tensor of scores: the backward half of FlashAttention-2.

    p[m, n]  = exp(s[m, n] - lse[m])            s[m, n] = scale * q[m] . k[n]
    dp[m, n] = do[m] . v[n]                     delta[m] = out[m] . do[m]
    ds[m, n] = p[m, n] * (dp[m, n] - delta[m])

    dv[n] = sum_m p[m, n] do[m]
    dk[n] = scale * sum_m ds[m, n] q[m]         dq[m] = scale * sum_n ds[m, n] k[n]

The forward pass saves lse, so every tile of p can be recomputed alone: no running maximum, no
rescaling. delta replaces the sum over n of p * dp in the derivative of the softmax, because
out[m] = sum_n p[m, n] v[n]. Three launches: delta, one program per tile of keys for dk and dv, one
program per tile of queries for dq. Each result has one owner, so nothing is added by atomics, and
results are the same in every run. The price is that both loops recompute p and dp.

Cost: four products in the loop of the keys (s, dp, dv, dk) and three in that of the queries (s, dp,
dq): 14 * B * Hq * Sq * Sk * D FLOP, half of that for causal attention; five would do, with sums
across programs. q, do, k and v are read once per tile of the other side, almost always from L2.

Precision: s, p, dp, ds, delta and all sums are float32. p and ds are rounded to the dtype of the
inputs for the products that follow them. The hardware computes powers of 2: exp(x) =
exp2(x * log2(e)), and that factor is part of the scale of s, but not of the scale of dk and dq.

Source: Dao, arXiv:2307.08691, algorithm 2; delta as in Dao, Fu, Ermon, Rudra, Ré, arXiv:2205.14135,
appendix B. Separate loops for keys and queries follow the "Fused Attention" tutorial of Triton.
"""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl

SUPPORTED = (torch.float16, torch.bfloat16, torch.float32)
MAX_WIDTH = 128  # elements of a head; with 256, dk and dv would fill the registers
ROWS = 64  # per program of delta
KEYS, QUERIES = 64, 128  # that a program owns, in 16 bits

LOG2_E: tl.constexpr = tl.constexpr(math.log2(math.e))

DESIGN = {
    "backward_delta": {
        "flops": "2 * B * Hq * Sq * D",
        "bytes": "B * Hq * Sq * (2 * D * e + 4)",
        "bound": "memory",
        "grid": "B * Hq * cdiv(Sq, ROWS)",
        "tile": "ROWS * max(16, next_power_of_2(D))",
    },
    "backward_keys": {
        "flops": "8 * B * Hq * Sq * Sk * D",
        "bytes": "B * (2 * Hq * Sq + 4 * Hk * Sk) * D * e + 8 * B * Hq * Sq",
        "bound": "compute",
        "grid": "B * Hk * cdiv(Sk, KEYS if e == 2 else 32)",
        "tile": "(KEYS if e == 2 else 32) * max(16, next_power_of_2(D))",
    },
    "backward_queries": {
        "flops": "6 * B * Hq * Sq * Sk * D",
        "bytes": "B * (3 * Hq * Sq + 2 * Hk * Sk) * D * e + 8 * B * Hq * Sq",
        "bound": "compute",
        "grid": "B * Hq * cdiv(Sq, QUERIES if e == 2 else 32)",
        "tile": "(QUERIES if e == 2 else 32) * max(16, next_power_of_2(D))",
    },
}


# ---------------------------------------------------------------------------------------------
# delta: one number per query


@triton.jit(do_not_specialize=["n_heads"])  # any number of heads runs the same code
def delta_kernel(
    out_ptr, do_ptr,                             # [B, Hq, Sq, D] twice
    delta_ptr,                                   # [B, Hq, Sq], contiguous
    stride_ob, stride_oh, stride_om, stride_od,  # elements between batches, heads, rows and
    stride_gb, stride_gh, stride_gm, stride_gd,  # columns, of out and of do
    n_heads, n_queries,
    D: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    """delta[m] = out[m] . do[m]. One program owns BLOCK_M queries of one head.

    Moves B * Hq * Sq * (2 * D * itemsize + 4) bytes.
    """
    tiles = tl.cdiv(n_queries, BLOCK_M)
    pid = tl.program_id(axis=0)
    head = (pid // tiles % n_heads).to(tl.int64)  # 64 bits: head * stride passes 2**31
    batch = (pid // tiles // n_heads).to(tl.int64)
    offs_m = (pid % tiles * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)
    offs_d = tl.arange(0, BLOCK_D).to(tl.int64)
    in_q = (offs_m < n_queries)[:, None] & (offs_d < D)[None, :]

    out_ptr += batch * stride_ob + head * stride_oh
    do_ptr += batch * stride_gb + head * stride_gh
    out = tl.load(out_ptr + offs_m[:, None] * stride_om + offs_d[None, :] * stride_od, mask=in_q,
                  other=0.0).to(tl.float32)
    do = tl.load(do_ptr + offs_m[:, None] * stride_gm + offs_d[None, :] * stride_gd, mask=in_q,
                 other=0.0).to(tl.float32)

    delta = tl.sum(out * do, axis=1)

    tl.store(delta_ptr + (batch * n_heads + head) * n_queries + offs_m, delta,
             mask=offs_m < n_queries)


# ---------------------------------------------------------------------------------------------
# dk and dv: a program owns keys and sweeps the queries


@triton.jit
def sweep_queries(
    dk, dv,                    # sums of this tile of keys: [BLOCK_N, BLOCK_D] twice
    k, v,                      # [BLOCK_N, BLOCK_D] twice
    q_ptr, do_ptr,             # of one head: [Sq, D] twice
    lse_ptr, delta_ptr,        # of that head: [Sq] twice
    stride_qm, stride_qd, stride_gm, stride_gd,
    start, stop, n_queries,
    offs_n,
    scale,                     # times log2(e)
    D: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_D: tl.constexpr,
    MASKED: tl.constexpr,      # whether a tile may pass the end of the queries or the diagonal
    CAUSAL: tl.constexpr,
):
    """Adds the queries from start to stop; returns dk and dv."""
    rows, offs_d = tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_D).to(tl.int64)
    for first in range(start, stop, BLOCK_M):
        offs_m = first + rows
        in_m = offs_m < n_queries
        at = offs_m.to(tl.int64)[:, None]
        q_ptrs = q_ptr + at * stride_qm + offs_d[None, :] * stride_qd
        do_ptrs = do_ptr + at * stride_gm + offs_d[None, :] * stride_gd
        if MASKED or D < BLOCK_D:
            in_q = in_m[:, None] & (offs_d < D)[None, :]
            q = tl.load(q_ptrs, mask=in_q, other=0.0)
            do = tl.load(do_ptrs, mask=in_q, other=0.0)
        else:
            q, do = tl.load(q_ptrs), tl.load(do_ptrs)
        # Queries past the end have p = exp2(0 - 0) = 1 and zeros in q and do: they add nothing.
        lse = tl.load(lse_ptr + offs_m, mask=in_m, other=0.0) * LOG2_E
        delta = tl.load(delta_ptr + offs_m, mask=in_m, other=0.0)

        # Keys are the rows: p and ds are the left operands of the products that follow.
        qk = tl.dot(k, q.T, input_precision="tf32x3")
        p = tl.exp2(qk * scale - lse[None, :])
        if MASKED and CAUSAL:
            p = tl.where(offs_m[None, :] >= offs_n[:, None], p, 0.0)
        dv = tl.dot(p.to(do.dtype), do, dv, input_precision="tf32x3")
        dp = tl.dot(v, do.T, input_precision="tf32x3")
        ds = p * (dp - delta[None, :])
        dk = tl.dot(ds.to(q.dtype), q, dk, input_precision="tf32x3")
    return dk, dv


@triton.jit(do_not_specialize=["n_kv_heads"])  # any number of heads runs the same code
def keys_kernel(
    q_ptr, k_ptr, v_ptr, do_ptr,                 # [B, Hq, Sq, D] and [B, Hk, Sk, D]
    lse_ptr, delta_ptr,                          # [B, Hq, Sq] twice, contiguous
    dk_ptr, dv_ptr,                              # [B, Hk, Sk, D] twice, contiguous
    stride_qb, stride_qh, stride_qm, stride_qd,  # elements between batches, heads, rows and
    stride_kb, stride_kh, stride_kn, stride_kd,  # columns
    stride_vb, stride_vh, stride_vn, stride_vd,
    stride_gb, stride_gh, stride_gm, stride_gd,  # of do
    n_kv_heads, group,                           # Hk, and Hq / Hk heads share their keys
    n_queries, n_keys,
    scale,
    D: tl.constexpr,
    CAUSAL: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,  # queries and keys per tile
    BLOCK_D: tl.constexpr,                       # power of two >= D, at least 16 for tl.dot
    RAGGED: tl.constexpr,                        # whether the last tile of queries is incomplete
):
    """dv = p.T do, dk = scale ds.T q. One program owns BLOCK_N keys of one head of keys.

    It visits the queries of all heads that share these keys, so dk and dv need no second launch.
    """
    # In causal attention the first tile sees the most queries and starts first.
    tiles = tl.cdiv(n_keys, BLOCK_N)
    pid = tl.program_id(axis=0)
    pid_n = pid % tiles
    kv_head = (pid // tiles % n_kv_heads).to(tl.int64)  # 64 bits: head * stride passes 2**31
    batch = (pid // tiles // n_kv_heads).to(tl.int64)

    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, BLOCK_D).to(tl.int64)
    keys = offs_n.to(tl.int64)
    in_k = (offs_n < n_keys)[:, None] & (offs_d < D)[None, :]
    k_ptr += batch * stride_kb + kv_head * stride_kh
    v_ptr += batch * stride_vb + kv_head * stride_vh
    k = tl.load(k_ptr + keys[:, None] * stride_kn + offs_d[None, :] * stride_kd, mask=in_k,
                other=0.0)
    v = tl.load(v_ptr + keys[:, None] * stride_vn + offs_d[None, :] * stride_vd, mask=in_k,
                other=0.0)

    # Queries from ``whole`` to ``even`` form complete tiles and see all keys of this program.
    even = n_queries // BLOCK_M * BLOCK_M
    start = 0
    whole = 0
    if CAUSAL:
        start = pid_n * BLOCK_N // BLOCK_M * BLOCK_M
        whole = min(tl.cdiv((pid_n + 1) * BLOCK_N, BLOCK_M) * BLOCK_M, even)
    dk = tl.zeros((BLOCK_N, BLOCK_D), dtype=tl.float32)
    dv = tl.zeros((BLOCK_N, BLOCK_D), dtype=tl.float32)
    for member in range(group):
        head = kv_head * group + member
        q_head = q_ptr + batch * stride_qb + head * stride_qh
        do_head = do_ptr + batch * stride_gb + head * stride_gh
        row = (batch * n_kv_heads * group + head) * n_queries
        if CAUSAL:
            dk, dv = sweep_queries(
                dk, dv, k, v, q_head, do_head, lse_ptr + row, delta_ptr + row, stride_qm, stride_qd,
                stride_gm, stride_gd, start, whole, n_queries, offs_n, scale * LOG2_E, D, BLOCK_M,
                BLOCK_D, MASKED=True, CAUSAL=True)
        dk, dv = sweep_queries(
            dk, dv, k, v, q_head, do_head, lse_ptr + row, delta_ptr + row, stride_qm, stride_qd,
            stride_gm, stride_gd, whole, even, n_queries, offs_n, scale * LOG2_E, D, BLOCK_M,
            BLOCK_D, MASKED=False, CAUSAL=CAUSAL)
        if RAGGED:  # an empty loop would still cost registers
            dk, dv = sweep_queries(
                dk, dv, k, v, q_head, do_head, lse_ptr + row, delta_ptr + row, stride_qm, stride_qd,
                stride_gm, stride_gd, even, n_queries, n_queries, offs_n, scale * LOG2_E, D,
                BLOCK_M, BLOCK_D, MASKED=True, CAUSAL=CAUSAL)

    at = ((batch * n_kv_heads + kv_head) * n_keys + keys)[:, None] * D + offs_d[None, :]
    tl.store(dv_ptr + at, dv.to(dv_ptr.dtype.element_ty), mask=in_k)
    tl.store(dk_ptr + at, (dk * scale).to(dk_ptr.dtype.element_ty), mask=in_k)


# ---------------------------------------------------------------------------------------------
# dq: a program owns queries and sweeps the keys


@triton.jit
def sweep_keys(
    dq,                        # sum of this tile of queries: [BLOCK_M, BLOCK_D]
    q, do, lse, delta,         # [BLOCK_M, BLOCK_D] twice, [BLOCK_M] twice
    k_ptr, v_ptr,              # of one head: [Sk, D] twice
    stride_kn, stride_kd, stride_vn, stride_vd,
    start, stop, n_keys,
    offs_m,
    scale,                     # times log2(e)
    D: tl.constexpr,
    BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
    MASKED: tl.constexpr,      # whether a tile may have keys that some query does not see
    CAUSAL: tl.constexpr,
):
    """Adds the keys from start to stop; returns dq."""
    cols, offs_d = tl.arange(0, BLOCK_N), tl.arange(0, BLOCK_D).to(tl.int64)
    for first in range(start, stop, BLOCK_N):
        offs_n = first + cols
        in_n = offs_n < n_keys
        at = offs_n.to(tl.int64)[:, None]
        k_ptrs = k_ptr + at * stride_kn + offs_d[None, :] * stride_kd
        v_ptrs = v_ptr + at * stride_vn + offs_d[None, :] * stride_vd
        if MASKED or D < BLOCK_D:
            in_k = in_n[:, None] & (offs_d < D)[None, :]
            k = tl.load(k_ptrs, mask=in_k, other=0.0)
            v = tl.load(v_ptrs, mask=in_k, other=0.0)
        else:
            k, v = tl.load(k_ptrs), tl.load(v_ptrs)

        qk = tl.dot(q, k.T, input_precision="tf32x3")
        p = tl.exp2(qk * scale - lse[:, None])
        if MASKED:
            # Causal attention has Sq == Sk, so no query sees padding. p = exp2(0 - lse) of padding
            # may be infinite, and infinity times the zeros of k is NaN.
            seen = offs_m[:, None] >= offs_n[None, :] if CAUSAL else in_n[None, :]
            p = tl.where(seen, p, 0.0)
        dp = tl.dot(do, v.T, input_precision="tf32x3")
        ds = p * (dp - delta[:, None])
        dq = tl.dot(ds.to(k.dtype), k, dq, input_precision="tf32x3")
    return dq


@triton.jit(do_not_specialize=["n_heads"])  # any number of heads runs the same code
def queries_kernel(
    q_ptr, k_ptr, v_ptr, do_ptr,                 # [B, Hq, Sq, D] and [B, Hk, Sk, D]
    lse_ptr, delta_ptr,                          # [B, Hq, Sq] twice, contiguous
    dq_ptr,                                      # [B, Hq, Sq, D], contiguous
    stride_qb, stride_qh, stride_qm, stride_qd,  # elements between batches, heads, rows and
    stride_kb, stride_kh, stride_kn, stride_kd,  # columns
    stride_vb, stride_vh, stride_vn, stride_vd,
    stride_gb, stride_gh, stride_gm, stride_gd,  # of do
    n_heads, group,                              # Hq, and Hq / Hk heads share their keys
    n_queries, n_keys,
    scale,
    D: tl.constexpr,
    CAUSAL: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,  # queries and keys per tile
    BLOCK_D: tl.constexpr,                       # power of two >= D, at least 16 for tl.dot
    MASKS: tl.constexpr,                         # whether some tile needs a mask
):
    """dq = scale ds k. One program owns BLOCK_M queries of one head."""
    # In causal attention the last tile sees the most keys and starts first, to shorten the tail.
    tiles = tl.cdiv(n_queries, BLOCK_M)
    pid = tl.program_id(axis=0)
    pid_m = pid % tiles
    if CAUSAL:
        pid_m = tiles - 1 - pid_m
    head = (pid // tiles % n_heads).to(tl.int64)  # 64 bits: head * stride passes 2**31
    batch = (pid // tiles // n_heads).to(tl.int64)
    kv_head = head // group

    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_d = tl.arange(0, BLOCK_D).to(tl.int64)
    rows = offs_m.to(tl.int64)
    in_m = offs_m < n_queries
    in_q = in_m[:, None] & (offs_d < D)[None, :]
    q_ptr += batch * stride_qb + head * stride_qh
    do_ptr += batch * stride_gb + head * stride_gh
    k_ptr += batch * stride_kb + kv_head * stride_kh
    v_ptr += batch * stride_vb + kv_head * stride_vh
    row = (batch * n_heads + head) * n_queries + rows
    q = tl.load(q_ptr + rows[:, None] * stride_qm + offs_d[None, :] * stride_qd, mask=in_q,
                other=0.0)
    do = tl.load(do_ptr + rows[:, None] * stride_gm + offs_d[None, :] * stride_gd, mask=in_q,
                 other=0.0)
    lse = tl.load(lse_ptr + row, mask=in_m, other=0.0) * LOG2_E
    delta = tl.load(delta_ptr + row, mask=in_m, other=0.0)

    # Every query of the tile sees the keys below ``whole``, none sees keys from ``stop`` on.
    if CAUSAL:
        whole = pid_m * BLOCK_M // BLOCK_N * BLOCK_N
        stop = min(n_keys, (pid_m + 1) * BLOCK_M)
    else:
        whole = n_keys // BLOCK_N * BLOCK_N
        stop = n_keys
    dq = tl.zeros((BLOCK_M, BLOCK_D), dtype=tl.float32)
    dq = sweep_keys(
        dq, q, do, lse, delta, k_ptr, v_ptr, stride_kn, stride_kd, stride_vn, stride_vd, 0, whole,
        n_keys, offs_m, scale * LOG2_E, D, BLOCK_N, BLOCK_D, MASKED=False, CAUSAL=CAUSAL)
    if MASKS:  # an empty loop would still cost registers
        dq = sweep_keys(
            dq, q, do, lse, delta, k_ptr, v_ptr, stride_kn, stride_kd, stride_vn, stride_vd, whole,
            stop, n_keys, offs_m, scale * LOG2_E, D, BLOCK_N, BLOCK_D, MASKED=True, CAUSAL=CAUSAL)

    tl.store(dq_ptr + row[:, None] * D + offs_d[None, :],
             (dq * scale).to(dq_ptr.dtype.element_ty), mask=in_q)


# ---------------------------------------------------------------------------------------------
# Host functions


def on_hopper() -> bool:
    """Whether the GPU is a Hopper GPU, for which the tiles were tuned; True without a GPU."""
    try:
        return triton.runtime.driver.active.get_current_target().arch == 90
    except RuntimeError:
        return True


def tile_of_keys(q: torch.Tensor, causal: bool) -> tuple[int, int, int, int]:
    """Returns keys per program, queries per step, warps and stages: the fastest of ten on an H200.

    For heads of 128 it spills 24 bytes per thread. With 32 queries per step nothing is spilled, and
    the kernel takes 14 % longer; with 128 keys it takes 18 to 22 % longer.
    """
    if q.dtype == torch.float32:
        return 32, 32, 4, 1
    if not on_hopper():
        return KEYS, 32, 4, 2
    return (KEYS, 32, 4, 3) if q.shape[3] <= 64 and not causal else (KEYS, 64, 4, 2)


def tile_of_queries(q: torch.Tensor, causal: bool) -> tuple[int, int, int, int]:
    """Returns queries per program, keys per step, warps and stages: the fastest of nine."""
    if q.dtype == torch.float32:
        return 32, 32, 4, 1
    if not on_hopper():
        return QUERIES, 32, 8, 2
    return (64, 64, 4, 3) if q.shape[3] <= 64 and causal else (QUERIES, 64, 8, 3)


def backward_delta(out: torch.Tensor, d_out: torch.Tensor) -> torch.Tensor:
    """Returns the dot product of each row of out with that of d_out: (B, Hq, Sq) in float32.

    Args:
        out, d_out: (B, Hq, Sq, D) in float16, bfloat16 or float32, with 1 <= D <= 128; any strides.

    Raises:
        TypeError: an argument is not a tensor, or dtypes are not supported or differ.
        ValueError: shapes or devices differ, or D is out of range.
    """
    check_tensors(out=out, d_out=d_out)
    check_shapes("out", out, d_out=d_out)
    batches, n_heads, n_queries, width = out.shape
    delta = torch.empty(out.shape[:3], dtype=torch.float32, device=out.device)
    if delta.numel():
        delta_kernel[(batches * n_heads * triton.cdiv(n_queries, ROWS),)](
            out, d_out, delta, *out.stride(), *d_out.stride(), n_heads, n_queries, D=width,
            BLOCK_M=ROWS, BLOCK_D=max(16, triton.next_power_of_2(width)))
    return delta


def backward_keys(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, d_out: torch.Tensor, lse: torch.Tensor,
    delta: torch.Tensor, *, causal: bool = False, scale: float | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns dk and dv, new contiguous tensors of the shape and dtype of k.

    Args:
        delta: of ``backward_delta``; everything else as in ``attention_backward``.

    Raises:
        TypeError, ValueError: as in ``attention_backward``.
    """
    check_arguments(q, k, v, causal, scale, d_out=d_out, lse=lse, delta=delta)
    batches, n_heads, n_queries, width = q.shape
    n_kv_heads, n_keys = k.shape[1:3]
    dk = torch.empty(k.shape, dtype=k.dtype, device=k.device)
    dv = torch.empty(v.shape, dtype=v.dtype, device=v.device)
    if dk.numel():
        block_n, block_m, warps, stages = tile_of_keys(q, causal)
        keys_kernel[(batches * n_kv_heads * triton.cdiv(n_keys, block_n),)](
            q, k, v, d_out, lse.contiguous(), delta.contiguous(), dk, dv,
            *q.stride(), *k.stride(), *v.stride(), *d_out.stride(),
            n_kv_heads, n_heads // n_kv_heads, n_queries, n_keys, scale_of(scale, width), D=width,
            CAUSAL=causal, BLOCK_M=block_m, BLOCK_N=block_n,
            BLOCK_D=max(16, triton.next_power_of_2(width)), RAGGED=n_queries % block_m != 0,
            num_warps=warps, num_stages=stages,
        )
    return dk, dv


def backward_queries(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, d_out: torch.Tensor, lse: torch.Tensor,
    delta: torch.Tensor, *, causal: bool = False, scale: float | None = None,
) -> torch.Tensor:
    """Returns dq, a new contiguous tensor of the shape and dtype of q.

    Args:
        delta: of ``backward_delta``; everything else as in ``attention_backward``.

    Raises:
        TypeError, ValueError: as in ``attention_backward``.
    """
    check_arguments(q, k, v, causal, scale, d_out=d_out, lse=lse, delta=delta)
    batches, n_heads, n_queries, width = q.shape
    n_kv_heads, n_keys = k.shape[1:3]
    dq = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    if dq.numel():
        block_m, block_n, warps, stages = tile_of_queries(q, causal)
        queries_kernel[(batches * n_heads * triton.cdiv(n_queries, block_m),)](
            q, k, v, d_out, lse.contiguous(), delta.contiguous(), dq,
            *q.stride(), *k.stride(), *v.stride(), *d_out.stride(),
            n_heads, n_heads // n_kv_heads, n_queries, n_keys, scale_of(scale, width), D=width,
            CAUSAL=causal, BLOCK_M=block_m, BLOCK_N=block_n,
            BLOCK_D=max(16, triton.next_power_of_2(width)),
            MASKS=causal or n_keys % block_n != 0, num_warps=warps, num_stages=stages,
        )
    return dq


def attention_backward(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor, lse: torch.Tensor,
    d_out: torch.Tensor, *, causal: bool = False, scale: float | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Returns the gradients dq, dk and dv of out = softmax(scale * q @ k.mT) @ v per head.

    Args:
        q: (B, Hq, Sq, D) in float16, bfloat16 or float32, with 1 <= D <= 128; any strides.
        k, v: (B, Hk, Sk, D) of the same dtype. Hq / Hk consecutive heads of q share a head of k.
        out: (B, Hq, Sq, D), the result of the forward pass.
        lse: (B, Hq, Sq) in float32, the log-sum-exp of each query's scores, natural logarithm.
        d_out: (B, Hq, Sq, D), the gradient of out; any strides.
        causal: whether query m sees only the keys 0 to m.
        scale: factor of the scores in the forward pass; None means 1 / sqrt(D).

    Returns:
        New contiguous tensors of the shapes and dtype of q, k and v.

    Raises:
        TypeError: an argument is of the wrong type, a dtype is not supported or differs from q's.
        ValueError: shapes or devices do not fit together, Sq or Sk is 0, D is out of range, or
            ``causal`` is set and Sq != Sk.
    """
    check_arguments(q, k, v, causal, scale, out=out, lse=lse, d_out=d_out)
    delta = backward_delta(out, d_out)
    dk, dv = backward_keys(q, k, v, d_out, lse, delta, causal=causal, scale=scale)
    dq = backward_queries(q, k, v, d_out, lse, delta, causal=causal, scale=scale)
    return dq, dk, dv


def scale_of(scale: float | None, width: int) -> float:
    """Returns the factor of the scores."""
    return 1 / math.sqrt(width) if scale is None else float(scale)


def check_tensors(**tensors: object) -> None:
    """Refuses arguments that are not tensors of four dimensions, of one dtype and device.

    Raises:
        TypeError: an argument is not a tensor, or its dtype is not supported or not the first's.
        ValueError: it has another number of dimensions, or another device than the first.
    """
    (first, like), *_ = tensors.items()
    for name, x in tensors.items():
        if not isinstance(x, torch.Tensor):
            raise TypeError(f"{name}: expected a torch.Tensor, got {type(x).__name__}")
        if x.dtype not in SUPPORTED:
            names = ", ".join(str(dtype) for dtype in SUPPORTED)
            raise TypeError(f"{name}: expected one of {names}, got {x.dtype}")
        if x.dtype != like.dtype:
            raise TypeError(f"{name}: expected {like.dtype} like {first}, got {x.dtype}")
        if x.dim() != 4:
            raise ValueError(f"{name}: expected 4 dimensions, got {x.dim()} in shape "
                             f"{tuple(x.shape)}")
        if x.device != like.device:
            raise ValueError(f"{name}: expected device {like.device} like {first}, got {x.device}")
    if not 1 <= like.shape[3] <= MAX_WIDTH:
        raise ValueError(f"{first}: expected 1 to {MAX_WIDTH} numbers in its last dimension, got "
                         f"{like.shape[3]}")


def check_shapes(first: str, like: torch.Tensor, **tensors: torch.Tensor) -> None:
    """Refuses tensors of another shape than ``like``, with a ValueError."""
    for name, x in tensors.items():
        if x.shape != like.shape:
            raise ValueError(f"{name}: expected shape {tuple(like.shape)} like {first}, got "
                             f"{tuple(x.shape)}")


def check_arguments(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: object, scale: object,
    **saved: torch.Tensor,
) -> None:
    """Refuses what the gradients do not cover.

    Args:
        saved: out and d_out like q, and lse and delta with one number per query, by their names.

    Raises:
        TypeError, ValueError: as in ``attention_backward``.
    """
    rows = {name: x for name, x in saved.items() if name in ("lse", "delta")}
    like_q = {name: x for name, x in saved.items() if name not in rows}
    check_tensors(q=q, k=k, v=v, **like_q)
    for name, x in rows.items():
        if not isinstance(x, torch.Tensor):
            raise TypeError(f"{name}: expected a torch.Tensor, got {type(x).__name__}")
        if x.dtype != torch.float32:
            raise TypeError(f"{name}: expected torch.float32, got {x.dtype}")
        if x.shape != q.shape[:3]:
            raise ValueError(f"{name}: expected shape {tuple(q.shape[:3])} beside q, got "
                             f"{tuple(x.shape)}")
        if x.device != q.device:
            raise ValueError(f"{name}: expected device {q.device} like q, got {x.device}")
    check_shapes("q", q, **like_q)
    check_shapes("k", k, v=v)
    batches, n_heads, n_queries, width = q.shape
    if k.shape[0] != batches or k.shape[3] != width:
        raise ValueError(f"k: expected shape ({batches}, heads, keys, {width}) beside q, got "
                         f"{tuple(k.shape)}")
    if n_heads == 0 or k.shape[1] == 0 or n_heads % k.shape[1]:
        raise ValueError(f"k: expected a number of heads that divides the {n_heads} of q, got "
                         f"{k.shape[1]}")
    for name, length in (("q", n_queries), ("k", k.shape[2])):
        if length == 0:
            raise ValueError(f"{name}: expected at least one row, got 0")
    if not isinstance(causal, bool):
        raise TypeError(f"causal: expected a bool, got {type(causal).__name__}")
    if scale is not None and (isinstance(scale, bool) or not isinstance(scale, int | float)):
        raise TypeError(f"scale: expected a number or None, got {type(scale).__name__}")
    if causal and n_queries != k.shape[2]:
        raise ValueError(f"causal: expected as many queries as keys, got {n_queries} queries and "
                         f"{k.shape[2]} keys")


if __name__ == "__main__":
    import tritonlab

    tritonlab.run_public_cases(__file__)
