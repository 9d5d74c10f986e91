"""Attention in one pass over keys and values: large tiles, small ones, causal, and decoding."""

from __future__ import annotations

import triton
import triton.language as tl

from .case import Family, Given

family = Family("attention")
HEADS, LENGTH = 64, 4096


@triton.jit
def attention_kernel(q_ptr, k_ptr, v_ptr, out_ptr, stride_h, stride_s, length, scale,
                     BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, D: tl.constexpr,
                     CAUSAL: tl.constexpr):
    base = tl.program_id(1).to(tl.int64) * stride_h
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_d = tl.arange(0, D)
    q = tl.load(q_ptr + base + offs_m[:, None] * stride_s + offs_d[None, :],
                mask=(offs_m < length)[:, None], other=0.0)
    most = tl.full([BLOCK_M], -float("inf"), dtype=tl.float32)
    total = tl.zeros([BLOCK_M], dtype=tl.float32)
    acc = tl.zeros([BLOCK_M, D], dtype=tl.float32)
    end = length
    if CAUSAL:
        end = min(length, (tl.program_id(0) + 1) * BLOCK_M)
    for start in range(0, end, BLOCK_N):
        offs_n = start + tl.arange(0, BLOCK_N)
        k = tl.load(k_ptr + base + offs_n[None, :] * stride_s + offs_d[:, None],
                    mask=(offs_n < length)[None, :], other=0.0)
        scores = tl.dot(q, k) * scale
        if CAUSAL:
            scores = tl.where(offs_m[:, None] >= offs_n[None, :], scores, -float("inf"))
        newer = tl.maximum(most, tl.max(scores, axis=1))
        weights = tl.exp2(scores - newer[:, None])
        shrink = tl.exp2(most - newer)
        total = total * shrink + tl.sum(weights, axis=1)
        v = tl.load(v_ptr + base + offs_n[:, None] * stride_s + offs_d[None, :],
                    mask=(offs_n < length)[:, None], other=0.0)
        acc = tl.dot(weights.to(tl.float16), v, acc * shrink[:, None])
        most = newer
    acc = acc / total[:, None]
    tl.store(out_ptr + base + offs_m[:, None] * stride_s + offs_d[None, :], acc.to(tl.float16),
             mask=(offs_m < length)[:, None])


def _attention(q, k, v, out, tile, *, warps=4, stages=3, causal=False):
    heads, length, d = q.shape
    attention_kernel[(triton.cdiv(length, tile[0]), heads)](
        q, k, v, out, q.stride(0), q.stride(1), length, d**-0.5 * 1.4427, BLOCK_M=tile[0],
        BLOCK_N=tile[1], D=d, CAUSAL=causal, num_warps=warps, num_stages=stages)


def _heads(d):
    return (Given((HEADS, LENGTH, d), "float16"),) * 4


@family("attention, 128x64, 64 wide", _heads(64), flops=4 * HEADS * LENGTH**2 * 64)
def _(q, k, v, out):
    _attention(q, k, v, out, (128, 64))


@family("attention, 128x64, 128 wide, 8 warps", _heads(128), flops=4 * HEADS * LENGTH**2 * 128)
def _(q, k, v, out):
    _attention(q, k, v, out, (128, 64), warps=8)


@family("causal attention, 128x64, 64 wide", _heads(64), flops=2 * HEADS * LENGTH**2 * 64)
def _(q, k, v, out):
    _attention(q, k, v, out, (128, 64), causal=True)


@family("attention, 32x32", _heads(64), "small tiles", flops=4 * HEADS * LENGTH**2 * 64)
def _(q, k, v, out):
    _attention(q, k, v, out, (32, 32))


@family("attention of one query for each of many heads",
        (Given((2048, 16, 128), "float16"), Given((2048, 2048, 128), "float16"),
         Given((2048, 2048, 128), "float16"), Given((2048, 16, 128), "float16")))
def _(q, k, v, out):
    decoding_kernel[(q.shape[0],)](q, k, v, out, q.stride(0), k.stride(0), k.shape[1], 0.088,
                                   BLOCK_M=16, BLOCK_N=64, D=128, num_warps=4, num_stages=3)


@triton.jit
def decoding_kernel(q_ptr, k_ptr, v_ptr, out_ptr, stride_qh, stride_kh, length, scale,
                    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, D: tl.constexpr):
    """Few queries read all keys: memory is the bound, so small products cost nothing."""
    head = tl.program_id(0).to(tl.int64)
    offs_m = tl.arange(0, BLOCK_M)
    offs_d = tl.arange(0, D)
    q = tl.load(q_ptr + head * stride_qh + offs_m[:, None] * D + offs_d[None, :])
    most = tl.full([BLOCK_M], -float("inf"), dtype=tl.float32)
    total = tl.zeros([BLOCK_M], dtype=tl.float32)
    acc = tl.zeros([BLOCK_M, D], dtype=tl.float32)
    for start in range(0, length, BLOCK_N):
        offs_n = start + tl.arange(0, BLOCK_N)
        k = tl.load(k_ptr + head * stride_kh + offs_n[None, :] * D + offs_d[:, None])
        scores = tl.dot(q, k) * scale
        newer = tl.maximum(most, tl.max(scores, axis=1))
        weights = tl.exp2(scores - newer[:, None])
        shrink = tl.exp2(most - newer)
        total = total * shrink + tl.sum(weights, axis=1)
        v = tl.load(v_ptr + head * stride_kh + offs_n[:, None] * D + offs_d[None, :])
        acc = tl.dot(weights.to(tl.float16), v, acc * shrink[:, None])
        most = newer
    tl.store(out_ptr + head * stride_qh + offs_m[:, None] * D + offs_d[None, :],
             (acc / total[:, None]).to(tl.float16))
