"""Attention in one pass over the keys, with an online softmax: the forward half of FlashAttention.

    out[m] = sum_n p[m, n] v[n],   p[m, n] = exp(s[m, n] - lse[m]),   s[m, n] = scale * q[m] . k[n]
    lse[m] = log(sum_n exp(s[m, n]))

One program owns a tile of queries of one head and loops over the keys in tiles. For each query it
keeps the running maximum m_i of the scores, the sum l_i of the weights relative to it, and the
weighted sum acc of the values. When a tile raises the maximum, alpha rescales l_i and acc. Scores
qk and weights p exist for one tile at a time, in registers: no tensor of size Sq * Sk is allocated.

Cost: 4 * B * Hq * Sq * Sk * D FLOP, half of that for causal attention. Queries and results move
once, keys and values once per tile of queries: with tiles of 64, 4,096 queries of a head read its
keys 64 times, almost always from L2. On Hopper, long 16-bit sequences are loaded by TMA through
tensor descriptors, which frees the registers of addresses for larger tiles. Short sequences,
unaligned layouts and other GPUs use pointers.

Precision: scores, l_i and acc are float32 until the store. Weights are rounded to the dtype of v
for the second product, after they have been summed. The hardware computes powers of 2:
exp(x) = exp2(x * log2(e)), and that factor is part of the scale.

Source: Dao, Fu, Ermon, Rudra, Ré, arXiv:2205.14135, and Dao, arXiv:2307.08691; online softmax:
Milakov and Gimelshein, arXiv:1805.02867. The loops with and without masks follow the "Fused
Attention" tutorial of Triton.
"""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

SUPPORTED = (torch.float16, torch.bfloat16, torch.float32)
MAX_WIDTH = 128  # elements of a head; with 256, acc would fill the registers
LONG = 512  # queries; from here on, TMA loads 16-bit tiles
QUERIES, KEYS = 64, 128  # per tile of long sequences

LOG2_E = math.log2(math.e)
LN_2: tl.constexpr = tl.constexpr(math.log(2))

DESIGN = {
    "attention": {
        "flops": "4 * B * Hq * Sq * Sk * D",
        "bytes": "(2 * Hq * Sq + 2 * Hk * Sk) * B * D * e",
        "bound": "compute",
        "grid": "B * Hq * cdiv(Sq, QUERIES)",
        "tile": "QUERIES * max(16, next_power_of_2(D))",
    },
    "causal attention": {
        "flops": "2 * B * Hq * Sq * Sq * D",
        "bytes": "(2 * Hq + 2 * Hk) * B * Sq * D * e",
        "bound": "compute",
        "grid": "B * Hq * cdiv(Sq, QUERIES)",
        "tile": "QUERIES * max(16, next_power_of_2(D))",
    },
}


@triton.jit
def sweep(
    acc, l_i, m_i,       # state per query: [BLOCK_M, BLOCK_D], [BLOCK_M], [BLOCK_M]
    q,                         # [BLOCK_M, BLOCK_D]
    k_ptrs, v_ptrs,            # of the tile at ``start``: [BLOCK_D, BLOCK_N], [BLOCK_N, BLOCK_D]
    k_step, v_step,            # elements between tiles
    k_desc, v_desc, batch, kv_head,  # descriptors and their coordinates
    start, stop, n_keys,
    offs_m, scale,             # scale >= 0
    D: tl.constexpr,
    BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
    MASKED: tl.constexpr,      # whether a tile may have keys that some query does not see
    CAUSAL: tl.constexpr,
    DESCRIBED: tl.constexpr,   # loads tiles by TMA, with zeros out of bounds
):
    """Adds the keys from start to stop; returns the state and the next pointers."""
    offs_n, offs_d = tl.arange(0, BLOCK_N), tl.arange(0, BLOCK_D)
    for first in range(start, stop, BLOCK_N):
        in_n = first + offs_n < n_keys
        in_d = offs_d < D

        if DESCRIBED:
            k = k_desc.load([batch, kv_head, first, 0]).reshape(BLOCK_N, BLOCK_D).T
        elif MASKED or D < BLOCK_D:
            k = tl.load(k_ptrs, mask=in_d[:, None] & in_n[None, :], other=0.0)
        else:
            k = tl.load(k_ptrs)
        qk = tl.dot(q, k, input_precision="tf32x3")  # float32 in three TF32 products
        if MASKED:
            # Causal attention has Sq == Sk, so no query sees padding.
            seen = offs_m[:, None] >= first + offs_n[None, :] if CAUSAL else in_n[None, :]
            qk = tl.where(seen, qk * scale, -float("inf"))  # before the maximum
            m_ij = tl.maximum(m_i, tl.max(qk, axis=1))
            p = tl.exp2(qk - m_ij[:, None])
        else:
            m_ij = tl.maximum(m_i, tl.max(qk, axis=1) * scale)
            p = tl.exp2(qk * scale - m_ij[:, None])  # one FMA

        # Rescales l_i and acc from the old maximum to the new one. In the first tile, m_i is -inf
        # and alpha is 0. Every query sees key 0 in that tile, so m_ij is finite.
        alpha = tl.exp2(m_i - m_ij)
        l_ij = tl.sum(p, axis=1)
        acc = acc * alpha[:, None]
        if DESCRIBED:
            v = v_desc.load([batch, kv_head, first, 0]).reshape(BLOCK_N, BLOCK_D)
        elif MASKED or D < BLOCK_D:
            v = tl.load(v_ptrs, mask=in_n[:, None] & in_d[None, :], other=0.0)
        else:
            v = tl.load(v_ptrs)
        acc = tl.dot(p.to(v.dtype), v, acc, input_precision="tf32x3")
        l_i = l_i * alpha + l_ij
        m_i = m_ij

        k_ptrs += k_step
        v_ptrs += v_step
    return acc, l_i, m_i, k_ptrs, v_ptrs


@triton.jit(do_not_specialize=["n_heads"])  # any number of heads runs the same code
def attention_kernel(
    q_ptr, k_ptr, v_ptr,                         # [B, Hq, Sq, D], [B, Hk, Sk, D] twice
    out_ptr, lse_ptr,                            # [B, Hq, Sq, D], and [B, Hq, Sq] or None
    q_desc, k_desc, v_desc, out_desc,            # tensor descriptors, or None
    stride_qb, stride_qh, stride_qm, stride_qd,  # elements between batches, heads, rows and
    stride_kb, stride_kh, stride_kn, stride_kd,  # columns
    stride_vb, stride_vh, stride_vn, stride_vd,
    n_heads, group,                              # Hq, and Hq / Hk heads share their keys
    n_queries, n_keys,
    scale,                                       # magnitude, times log2(e)
    D: tl.constexpr,
    CAUSAL: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,  # queries and keys per tile
    BLOCK_D: tl.constexpr,                       # power of two >= D, at least 16 for tl.dot
    DESCRIBED: tl.constexpr,
    NEGATIVE: tl.constexpr,                      # the sign of the scale
    MASKS: tl.constexpr,                         # whether some tile needs a mask
):
    """out[m] = softmax(scale q[m] k.T) v. One program owns BLOCK_M queries of one head."""
    # Tiles of a head are adjacent and share its keys in L2. In causal attention, the last tile sees
    # the most keys and starts first, which shortens the tail.
    tiles = tl.cdiv(n_queries, BLOCK_M)
    pid = tl.program_id(axis=0)
    pid_m = pid % tiles
    if CAUSAL:
        pid_m = tiles - 1 - pid_m
    head = (pid // tiles % n_heads).to(tl.int64)  # 64 bits: head * stride passes 2**31
    batch = (pid // tiles // n_heads).to(tl.int64)
    kv_head = head // group
    place = batch.to(tl.int32), kv_head.to(tl.int32)

    offs_m, offs_n = pid_m * BLOCK_M + tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, BLOCK_D).to(tl.int64)
    rows = offs_m.to(tl.int64)  # row * stride, too
    in_q = (offs_m < n_queries)[:, None] & (offs_d < D)[None, :]

    q_ptr += batch * stride_qb + head * stride_qh
    k_ptr += batch * stride_kb + kv_head * stride_kh
    v_ptr += batch * stride_vb + kv_head * stride_vh
    keys = offs_n.to(tl.int64)
    if DESCRIBED:
        q = q_desc.load([place[0], head.to(tl.int32), pid_m * BLOCK_M, 0]).reshape(BLOCK_M, BLOCK_D)
    else:
        q = tl.load(q_ptr + rows[:, None] * stride_qm + offs_d[None, :] * stride_qd, mask=in_q,
                    other=0.0)
    k_ptrs = k_ptr + offs_d[:, None] * stride_kd + keys[None, :] * stride_kn  # k transposed
    v_ptrs = v_ptr + keys[:, None] * stride_vn + offs_d[None, :] * stride_vd
    k_step = tl.cast(BLOCK_N, tl.int64) * stride_kn
    v_step = tl.cast(BLOCK_N, tl.int64) * stride_vn
    if NEGATIVE:
        q = -q  # `scale` is the magnitude, so the maximum stays the maximum

    # Every query of the tile sees the keys below ``whole``, none sees keys from ``stop`` on.
    if CAUSAL:
        whole = pid_m * BLOCK_M // BLOCK_N * BLOCK_N
        stop = min(n_keys, (pid_m + 1) * BLOCK_M)
    else:
        whole = n_keys // BLOCK_N * BLOCK_N
        stop = n_keys
    acc = tl.zeros((BLOCK_M, BLOCK_D), dtype=tl.float32)
    l_i = tl.zeros((BLOCK_M,), dtype=tl.float32)
    m_i = tl.full((BLOCK_M,), -float("inf"), dtype=tl.float32)
    acc, l_i, m_i, k_ptrs, v_ptrs = sweep(
        acc, l_i, m_i, q, k_ptrs, v_ptrs, k_step, v_step, k_desc, v_desc, *place, 0, whole,
        n_keys, offs_m, scale, D, BLOCK_N, BLOCK_D, MASKED=False, CAUSAL=CAUSAL,
        DESCRIBED=DESCRIBED)
    if MASKS:  # an empty loop would still cost registers
        acc, l_i, m_i, k_ptrs, v_ptrs = sweep(
            acc, l_i, m_i, q, k_ptrs, v_ptrs, k_step, v_step, k_desc, v_desc, *place, whole,
            stop, n_keys, offs_m, scale, D, BLOCK_N, BLOCK_D, MASKED=True, CAUSAL=CAUSAL,
            DESCRIBED=DESCRIBED)

    at = (batch * n_heads + head) * n_queries + rows  # results are contiguous
    out = (acc / l_i[:, None]).to(out_ptr.dtype.element_ty)
    if DESCRIBED:  # TMA does not store out of bounds
        out_desc.store([place[0], head.to(tl.int32), pid_m * BLOCK_M, 0],
                       out.reshape(1, 1, BLOCK_M, BLOCK_D))
    else:
        tl.store(out_ptr + at[:, None] * D + offs_d[None, :], out, mask=in_q)
    if lse_ptr is not None:
        tl.store(lse_ptr + at, (m_i + tl.log2(l_i)) * LN_2, mask=offs_m < n_queries)


def is_described(x: torch.Tensor) -> bool:
    """Whether TMA can load x: contiguous rows, address and strides multiples of 16 bytes."""
    *strides, step = x.stride()
    return step == 1 and x.data_ptr() % 16 == 0 and all(
        stride > 0 and stride * x.element_size() % 16 == 0 for stride in strides)


def on_hopper() -> bool:
    """Whether the GPU is a Hopper GPU, for which the tiles were tuned; True without a GPU."""
    try:
        return triton.runtime.driver.active.get_current_target().arch == 90
    except RuntimeError:
        return True


def tile_of(width: int, causal: bool, described: bool) -> tuple[int, int, int, int]:
    """Returns queries and keys per tile, warps and stages: the fastest ones tried on an H200.

    A tuner chose others from time to time: best and second best are 2 to 6 % apart.
    """
    if not described:
        return 2 * QUERIES, 64, 8, 3
    if width <= 64:
        return QUERIES, KEYS, 4, 2
    return (QUERIES, 64, 4, 3) if causal else (2 * QUERIES, 64, 4, 2)


def attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool = False,
    scale: float | None = None, return_lse: bool = False,
) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
    """Returns softmax(scale * q @ k.mT) @ v per head, a new contiguous tensor of q's shape.

    Args:
        q: (B, Hq, Sq, D) in float16, bfloat16 or float32, with 1 <= D <= 128; any strides.
        k, v: (B, Hk, Sk, D) of the same dtype. Hq / Hk consecutive heads of q share a head of k.
        causal: whether query m sees only the keys 0 to m.
        scale: factor of the scores from the caller, any finite int or float; None means
            1 / sqrt(D).
        return_lse: whether to return the log-sum-exp of each query's scores, too, (B, Hq, Sq) in
            float32.

    Raises:
        TypeError: an argument is of the wrong type, a dtype is not supported or differs from q's.
        ValueError: shapes or devices do not fit together, Sk is 0, D is out of range, or ``causal``
            is set and Sq != Sk.
    """
    check_tensors(q, k, v)
    check_options(causal, scale, return_lse)
    batches, n_heads, n_queries, width = q.shape
    n_keys = k.shape[2]
    if causal and n_queries != n_keys:
        raise ValueError(f"causal: expected as many queries as keys, got {n_queries} queries and "
                         f"{n_keys} keys")

    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    lse = torch.empty(q.shape[:3], dtype=torch.float32, device=q.device) if return_lse else None
    if out.numel():
        scale = 1 / math.sqrt(width) if scale is None else float(scale)

        block_d = max(16, triton.next_power_of_2(width))
        block_m, block_n, warps, stages = QUERIES, 64, 4, 2
        described = False
        if q.dtype == torch.float32:  # two stages of 128 columns need 112 KB of shared memory
            block_n, stages = 32, 2 if on_hopper() else 1
        elif n_queries >= LONG:
            described = on_hopper() and all(is_described(x) for x in (q, k, v, out))
            block_m, block_n, warps, stages = tile_of(width, causal, described)
        tiles = ((q, block_m), (k, block_n), (v, block_n), (out, block_m))
        attention_kernel[(batches * n_heads * triton.cdiv(n_queries, block_m),)](
            q, k, v, out, lse,
            *(TensorDescriptor.from_tensor(x, [1, 1, rows, block_d]) if described else None
              for x, rows in tiles),
            *q.stride(), *k.stride(), *v.stride(),
            n_heads, n_heads // k.shape[1], n_queries, n_keys, abs(scale) * LOG2_E,
            D=width, CAUSAL=causal, BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_D=block_d,
            DESCRIBED=described, NEGATIVE=scale < 0, MASKS=causal or n_keys % block_n != 0,
            num_warps=warps, num_stages=stages,
        )
    return out if lse is None else (out, lse)


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
            raise ValueError(f"{name}: expected 4 dimensions, got {x.dim()} in shape "
                             f"{tuple(x.shape)}")
        if x.device != q.device:
            raise ValueError(f"{name}: expected device {q.device} like q, got {x.device}")
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
        raise ValueError("k: expected at least one key, got 0")
    if v.shape != k.shape:
        raise ValueError(f"v: expected shape {tuple(k.shape)} like k, got {tuple(v.shape)}")


def check_options(causal: object, scale: object, return_lse: object) -> None:
    """Refuse options of other types; raises what it says."""
    for name, option in (("causal", causal), ("return_lse", return_lse)):
        if not isinstance(option, bool):
            raise TypeError(f"{name}: expected a bool, got {type(option).__name__}")
    if scale is not None and (isinstance(scale, bool) or not isinstance(scale, int | float)):
        raise TypeError(f"scale: expected a number or None, got {type(scale).__name__}")


if __name__ == "__main__":
    import tritonlab

    tritonlab.run_public_cases(__file__)
