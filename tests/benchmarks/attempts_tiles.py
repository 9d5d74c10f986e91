"""The same for what works on tiles: transposing, matrix products, convolution."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from tests.benchmarks.attempts import MULTIPROCESSORS, Attempts
from tests.benchmarks.modules import solution

# ---------------------------------------------------------------------------------------------
# Transposing


@triton.jit
def transpose_narrow_kernel(
    x_ptr, out_ptr, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, GROUP: tl.constexpr,
):
    """One matrix, 32-bit offsets; programs that run together own a square of tiles where GROUP > 0,
    and tiles along a row of x where it is 0."""
    pid = tl.program_id(0)
    across = tl.cdiv(N, BLOCK_N)
    if GROUP == 0:
        tile_m, tile_n = pid // across, pid % across
    else:
        first = pid // (GROUP * across) * GROUP
        high = min(tl.cdiv(M, BLOCK_M) - first, GROUP)
        tile_m = first + pid % (GROUP * across) % high
        tile_n = pid % (GROUP * across) // high
    rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    tile = tl.load(x_ptr + rows[:, None] * N + cols[None, :], mask=mask)
    turned = (cols < N)[:, None] & (rows < M)[None, :]
    tl.store(out_ptr + cols[:, None] * M + rows[None, :], tl.trans(tile), mask=turned)


def transpose() -> Attempts:
    own = solution("tiling").transpose_kernel

    def own_tiles(block_m: int, block_n: int, warps: int) -> Callable[..., torch.Tensor]:
        def run(x: torch.Tensor) -> torch.Tensor:
            m, n = x.shape
            out = x.new_empty((1, n, m))
            own[(1, triton.cdiv(m, block_m), triton.cdiv(n, block_n))](
                x, out, x.numel(), x.stride(0), x.stride(1), m, n, BLOCK_M=block_m,
                BLOCK_N=block_n, num_warps=warps)
            return out[0]
        return run

    def narrow(block_m: int, block_n: int, warps: int, group: int) -> Callable[..., torch.Tensor]:
        def run(x: torch.Tensor) -> torch.Tensor:
            m, n = x.shape
            out = x.new_empty((n, m))
            transpose_narrow_kernel[(triton.cdiv(m, block_m) * triton.cdiv(n, block_n),)](
                x, out, m, n, BLOCK_M=block_m, BLOCK_N=block_n, GROUP=group, num_warps=warps)
            return out
        return run

    sides = ((32, 32, 1), (32, 32, 4), (32, 64, 4), (64, 32, 4), (64, 64, 8), (32, 128, 4),
             (128, 32, 4), (64, 128, 8), (128, 64, 8), (128, 128, 8))
    return {f"own {m}x{n} w{w}": own_tiles(m, n, w) for m, n, w in sides} | {
        f"narrow {m}x{n} w{w} g{g}": narrow(m, n, w, g) for m, n, w, g in (
            (64, 64, 4, 0), (64, 64, 8, 0), (64, 64, 4, 8), (32, 32, 4, 8), (64, 128, 8, 4),
            (128, 64, 8, 0))}


# ---------------------------------------------------------------------------------------------
# Matrix products


@triton.jit
def tile_of(pid, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, GROUP_M: tl.constexpr):
    """The tile that is number pid in grouped order."""
    num_pid_m, num_pid_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    first = pid // (GROUP_M * num_pid_n) * GROUP_M
    high = min(num_pid_m - first, GROUP_M)
    return first + pid % (GROUP_M * num_pid_n) % high, pid % (GROUP_M * num_pid_n) // high


@triton.jit
def matmul_advancing_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K,
    stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):
    """Nearly the solution: the loop counts what is left of K, and steps may have 32 bits."""
    pid_m, pid_n = tile_of(tl.program_id(0), M, N, BLOCK_M, BLOCK_N, GROUP_M)
    offs_m = pid_m.to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid_n.to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + offs_m[:, None] * stride_am + offs_k[None, :] * stride_ak
    b_ptrs = b_ptr + offs_k[:, None] * stride_bk + offs_n[None, :] * stride_bn
    in_m, in_n = (offs_m < M)[:, None], (offs_n < N)[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for left in range(K, 0, -BLOCK_K):
        a = tl.load(a_ptrs, mask=in_m & (offs_k < left)[None, :], other=0.0)
        b = tl.load(b_ptrs, mask=in_n & (offs_k < left)[:, None], other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    c_ptrs = c_ptr + offs_m[:, None] * stride_cm + offs_n[None, :] * stride_cn
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=in_m & in_n)


@triton.jit
def matmul_descriptor_kernel(
    a_desc, b_desc, c_desc, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):
    """Tiles by the memory accelerator: no pointers, no masks."""
    pid_m, pid_n = tile_of(tl.program_id(0), M, N, BLOCK_M, BLOCK_N, GROUP_M)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        a = a_desc.load([pid_m * BLOCK_M, k])
        b = b_desc.load([k, pid_n * BLOCK_N])
        acc = tl.dot(a, b, acc)
    c_desc.store([pid_m * BLOCK_M, pid_n * BLOCK_N], acc.to(c_desc.dtype))


@triton.jit
def matmul_persistent_kernel(
    a_desc, b_desc, c_desc, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
    SPECIALISED: tl.constexpr,
):
    """The same, one program for each multiprocessor: one tile is stored while the next is loaded.
    SPECIALISED: some warps do nothing but load."""
    tiles = tl.cdiv(M, BLOCK_M) * tl.cdiv(N, BLOCK_N)
    for pid in tl.range(tl.program_id(0), tiles, tl.num_programs(0), flatten=not SPECIALISED,
                        warp_specialize=SPECIALISED):
        pid_m, pid_n = tile_of(pid, M, N, BLOCK_M, BLOCK_N, GROUP_M)
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for k in range(0, K, BLOCK_K):
            a = a_desc.load([pid_m * BLOCK_M, k])
            b = b_desc.load([k, pid_n * BLOCK_N])
            acc = tl.dot(a, b, acc)
        c_desc.store([pid_m * BLOCK_M, pid_n * BLOCK_N], acc.to(c_desc.dtype))


Tiles = tuple[int, int, int, int, int, int]  # BLOCK_M, BLOCK_N, BLOCK_K, warps, stages, GROUP_M


def by_pointers(kernel: Any, tiles: Tiles) -> Callable[..., torch.Tensor]:
    block_m, block_n, block_k, warps, stages, group = tiles

    def run(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        (m, k), n = a.shape, b.shape[1]
        c = a.new_empty((m, n))
        kernel[(triton.cdiv(m, block_m) * triton.cdiv(n, block_n),)](
            a, b, c, m, n, k, *a.stride(), *b.stride(), *c.stride(),
            BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k, GROUP_M=group,
            num_warps=warps, num_stages=stages)
        return c
    return run


def by_descriptors(kernel: Any, tiles: Tiles, programs: int | None = None, **more: Any
                   ) -> Callable[..., torch.Tensor]:
    block_m, block_n, block_k, warps, stages, group = tiles

    def run(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        (m, k), n = a.shape, b.shape[1]
        c = a.new_empty((m, n))
        tiles = triton.cdiv(m, block_m) * triton.cdiv(n, block_n)
        kernel[(min(tiles, programs or tiles),)](
            TensorDescriptor.from_tensor(a, [block_m, block_k]),
            TensorDescriptor.from_tensor(b, [block_k, block_n]),
            TensorDescriptor.from_tensor(c, [block_m, block_n]), m, n, k,
            BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k, GROUP_M=group,
            num_warps=warps, num_stages=stages, **more)
        return c
    return run


def named(tiles: Tiles) -> str:
    return "{}x{}x{} w{} s{} g{}".format(*tiles)


def matmul(dtype: torch.dtype) -> Attempts:
    own = solution("matrix-mul").matmul_kernel
    if dtype == torch.float32:
        of_own: tuple[Tiles, ...] = (
            (64, 64, 16, 8, 3, 8), (64, 64, 32, 4, 3, 8), (64, 64, 32, 8, 3, 8),
            (128, 64, 16, 4, 3, 8), (128, 64, 16, 8, 4, 8), (128, 128, 16, 8, 3, 8))
        advancing: tuple[Tiles, ...] = ((128, 64, 16, 8, 3, 8),)
        return {f"own {named(t)}": by_pointers(own, t) for t in of_own} | {
            f"advancing {named(t)}": by_pointers(matmul_advancing_kernel, t) for t in advancing}
    of_own = ((128, 256, 64, 8, 4, 8), (256, 128, 64, 8, 3, 8), (128, 128, 64, 8, 3, 8),
              (128, 128, 64, 4, 4, 8), (128, 256, 64, 8, 3, 16))
    advancing = ((128, 256, 64, 8, 3, 8),)
    return {f"own {named(t)}": by_pointers(own, t) for t in of_own} | {
        f"advancing {named(t)}": by_pointers(matmul_advancing_kernel, t) for t in advancing} | {
        f"descriptors {named(t)}": by_descriptors(matmul_descriptor_kernel, t)
        for t in ((128, 256, 64, 8, 3, 8), (128, 256, 64, 8, 4, 8), (128, 128, 64, 8, 4, 8))} | {
        f"{name} {named(t)}": by_descriptors(
            matmul_persistent_kernel, t, MULTIPROCESSORS, SPECIALISED=name == "specialised")
        for name, t in (("persistent", (128, 256, 64, 8, 3, 8)),
                        ("persistent", (128, 128, 64, 8, 4, 8)),
                        ("specialised", (128, 256, 64, 8, 3, 8)))}


def matmul_described() -> Attempts:
    """The solution that has its descriptors from the host, b as (N, K), in other tiles."""
    kernel = solution("tensor-descriptors").matmul_host_kernel

    def of(tiles: Tiles) -> Callable[..., torch.Tensor]:
        block_m, block_n, block_k, warps, stages, group = tiles

        def run(a: torch.Tensor, b_t: torch.Tensor) -> torch.Tensor:
            (m, k), n = a.shape, b_t.shape[0]
            c = a.new_empty((m, n))
            kernel[(triton.cdiv(m, block_m) * triton.cdiv(n, block_n),)](
                TensorDescriptor.from_tensor(a, [block_m, block_k]),
                TensorDescriptor.from_tensor(b_t, [block_n, block_k]),
                TensorDescriptor.from_tensor(c, [block_m, block_n]), m, n, k,
                BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k, GROUP_M=group,
                num_warps=warps, num_stages=stages)
            return c
        return run

    return {f"described {named(t)}": of(t) for t in (
        (128, 128, 64, 4, 3, 8), (128, 128, 64, 8, 4, 8), (128, 256, 64, 8, 4, 8),
        (256, 128, 64, 8, 3, 8))}


# ---------------------------------------------------------------------------------------------
# Convolution


@triton.jit
def conv2d_inner_kernel(
    x_ptr, w_ptr, bias_ptr, out_ptr, N, C, H, W, OC, OH, OW, KH, KW,
    stride_h, stride_w, pad_h, pad_w, dil_h, dil_w,
    sx_n, sx_c, sx_h, sx_w, sw_o, sw_c, sw_h, sw_w, so_n, so_c, so_h, so_w,
    HAS_BIAS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    """The solution's product with the channel as the innermost part of a tap's number: where
    channels are neighbours in memory, those of one tap are loaded 16 bytes at a time. A tile lies
    in one image, and its pixels are neighbours in the result."""
    tiles = tl.cdiv(OH * OW, BLOCK_M)
    img = (tl.program_id(0) // tiles).to(tl.int64)
    offs_m = tl.program_id(0) % tiles * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    oh, ow = offs_m // OW, offs_m % OW
    top, left = oh * stride_h - pad_h, ow * stride_w - pad_w
    window = top.to(tl.int64) * sx_h + left.to(tl.int64) * sx_w
    x_ptr += img * sx_n
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)

    for k_start in range(0, KH * KW * C, BLOCK_K):
        offs_k = k_start + tl.arange(0, BLOCK_K)
        ic, kh, kw = offs_k % C, offs_k // C // KW, offs_k // C % KW
        in_k = kh < KH
        tap = (kh * dil_h).to(tl.int64) * sx_h + (kw * dil_w).to(tl.int64) * sx_w \
            + ic.to(tl.int64) * sx_c
        ih = top[:, None] + kh[None, :] * dil_h
        iw = left[:, None] + kw[None, :] * dil_w
        inside = (ih >= 0) & (ih < H) & (iw >= 0) & (iw < W)
        x_mask = inside & in_k[None, :]
        x = tl.load(x_ptr + (window[:, None] + tap[None, :]), mask=x_mask, other=0.0)
        own = kh.to(tl.int64) * sw_h + kw.to(tl.int64) * sw_w + ic.to(tl.int64) * sw_c
        w_ptrs = w_ptr + (offs_n.to(tl.int64)[None, :] * sw_o + own[:, None])
        w = tl.load(w_ptrs, mask=(offs_n[None, :] < OC) & in_k[:, None], other=0.0)
        acc = tl.dot(x, w, acc, input_precision="ieee")

    if HAS_BIAS:
        acc += tl.load(bias_ptr + offs_n, mask=offs_n < OC, other=0.0)[None, :]
    out_ptrs = out_ptr + img * so_n + (offs_n.to(tl.int64)[:, None] * so_c + offs_m[None, :])
    out_mask = (offs_n[:, None] < OC) & (offs_m[None, :] < OH * OW)
    tl.store(out_ptrs, tl.trans(acc).to(out_ptr.dtype.element_ty), mask=out_mask)


@triton.jit
def conv2d_lines_kernel(
    x_ptr, w_ptr, bias_ptr, out_ptr, C, H, W, OC, OH, OW, KH, KW,
    stride_h, stride_w, pad_h, pad_w, dil_h, dil_w,
    sx_n, sx_c, sx_h, sx_w, sw_o, sw_c, sw_h, sw_w, so_n, so_c, so_h, so_w,
    HAS_BIAS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    """The product the other way round, out[o, m]: pixels are neighbours in a tile as in memory. A
    tile lies in one image, so that only images take 64 bits; an address is window + tap. Filters
    and result have no gaps: their taps and pixels are neighbours."""
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    img = tl.program_id(2).to(tl.int64)
    oh, ow = offs_m // OW, offs_m % OW
    top, left = oh * stride_h - pad_h, ow * stride_w - pad_w
    windows = top * sx_h + left * sx_w
    x_ptr += img * sx_n
    acc = tl.zeros((BLOCK_N, BLOCK_M), dtype=tl.float32)

    for k_start in range(0, C * KH * KW, BLOCK_K):
        offs_k = k_start + tl.arange(0, BLOCK_K)
        ic, kh, kw = offs_k // (KH * KW), offs_k // KW % KH, offs_k % KW
        taps = ic * sx_c + kh * dil_h * sx_h + kw * dil_w * sx_w
        ih = top[None, :] + (kh * dil_h)[:, None]
        iw = left[None, :] + (kw * dil_w)[:, None]
        inside = (ih >= 0) & (ih < H) & (iw >= 0) & (iw < W) & (ic < C)[:, None]
        x = tl.load(x_ptr + (windows[None, :] + taps[:, None]), mask=inside, other=0.0)
        w_ptrs = w_ptr + ((offs_n * sw_o)[:, None] + (offs_k * sw_w)[None, :])
        w = tl.load(w_ptrs, mask=(offs_n < OC)[:, None] & (ic < C)[None, :], other=0.0)
        acc = tl.dot(w, x, acc, input_precision="ieee")

    if HAS_BIAS:
        acc += tl.load(bias_ptr + offs_n, mask=offs_n < OC, other=0.0)[:, None]
    out_ptrs = out_ptr + img * so_n + ((offs_n * so_c)[:, None] + offs_m[None, :])
    out_mask = (offs_n < OC)[:, None] & (offs_m < OH * OW)[None, :]
    tl.store(out_ptrs, acc.to(out_ptr.dtype.element_ty), mask=out_mask)


@triton.jit
def conv2d_taps_kernel(
    x_ptr, w_ptr, bias_ptr, out_ptr, C, H, W, OC, OH, OW, KH, KW,
    stride_h, stride_w, pad_h, pad_w, dil_h, dil_w,
    sx_n, sx_c, sx_h, sx_w, sw_o, sw_c, sw_h, sw_w, so_n, so_c, so_h, so_w,
    HAS_BIAS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    """A step is some channels of one tap: where it lies in the image is a number for each pixel,
    not for each element of the tile. Needs BLOCK_K channels to be worth it, and is at its best
    where channels are neighbours in memory."""
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    img = tl.program_id(2).to(tl.int64)
    oh, ow = offs_m // OW, offs_m % OW
    top, left = oh * stride_h - pad_h, ow * stride_w - pad_w
    windows = top * sx_h + left * sx_w
    x_ptr += img * sx_n
    channels = tl.arange(0, BLOCK_K)
    acc = tl.zeros((BLOCK_N, BLOCK_M), dtype=tl.float32)

    chunks = tl.cdiv(C, BLOCK_K)
    for step in range(KH * KW * chunks):
        tap = step // chunks
        kh, kw = tap // KW, tap % KW
        ic = (step - tap * chunks) * BLOCK_K + channels
        ih, iw = top + kh * dil_h, left + kw * dil_w
        inside = (ih >= 0) & (ih < H) & (iw >= 0) & (iw < W)
        places = windows + (kh * dil_h * sx_h + kw * dil_w * sx_w)
        x_ptrs = x_ptr + (places[None, :] + (ic * sx_c)[:, None])
        x = tl.load(x_ptrs, mask=inside[None, :] & (ic < C)[:, None], other=0.0)
        own = kh * sw_h + kw * sw_w + ic * sw_c
        w_ptrs = w_ptr + ((offs_n * sw_o)[:, None] + own[None, :])
        w = tl.load(w_ptrs, mask=(offs_n < OC)[:, None] & (ic < C)[None, :], other=0.0)
        acc = tl.dot(w, x, acc, input_precision="ieee")

    if HAS_BIAS:
        acc += tl.load(bias_ptr + offs_n, mask=offs_n < OC, other=0.0)[:, None]
    out_ptrs = out_ptr + img * so_n + ((offs_n * so_c)[:, None] + offs_m[None, :])
    out_mask = (offs_n < OC)[:, None] & (offs_m < OH * OW)[None, :]
    tl.store(out_ptrs, acc.to(out_ptr.dtype.element_ty), mask=out_mask)


def conv2d(stride: int, padding: int, dtype: torch.dtype, *, wide: bool = True) -> Attempts:
    """``wide``: there are channels enough for steps of one tap."""
    own = solution("conv2d").conv2d_kernel
    positions = solution("conv2d").window_positions

    def launched(kernel: Any, block_m: int, block_n: int, block_k: int, warps: int, stages: int = 3,
                 turn: tuple[bool, bool] = (False, False)) -> Callable[..., torch.Tensor]:
        """``turn``: whether image and filters are copied first, channels last."""
        def run(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
            n, c, h, w = x.shape
            oc, _, kh, kw = weight.shape
            oh, ow = positions(h, kh, stride, padding, 1), positions(w, kw, stride, padding, 1)
            out = x.new_empty((n, oc, oh, ow))
            if turn[0]:
                x = x.contiguous(memory_format=torch.channels_last)
            if turn[1]:
                weight = weight.contiguous(memory_format=torch.channels_last)
            images: tuple[int, ...] = (n,)
            grid: tuple[int, ...] = (triton.cdiv(n * oh * ow, block_m), triton.cdiv(oc, block_n))
            if kernel is conv2d_inner_kernel:
                grid = (n * triton.cdiv(oh * ow, block_m), triton.cdiv(oc, block_n))
            elif kernel is not own:
                grid, images = (triton.cdiv(oh * ow, block_m), triton.cdiv(oc, block_n), n), ()
            kernel[grid](
                x, weight, bias, out, *images, c, h, w, oc, oh, ow, kh, kw,
                stride, stride, padding, padding, 1, 1,
                *x.stride(), *weight.stride(), *out.stride(), HAS_BIAS=True,
                BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k, num_warps=warps,
                num_stages=stages)
            return out
        return run

    def named(s: tuple[int, ...]) -> str:
        return "{}x{}x{} w{}".format(*s) + (f" s{s[4]}" if s[4:] else "")

    Settings = tuple[tuple[int, ...], ...]
    few: Settings = ((64, 64, 32, 4), (128, 64, 32, 8))
    many: Settings = ((64, 64, 64, 4), (128, 64, 32, 4), (128, 64, 64, 4), (128, 64, 64, 8),
                      (128, 64, 32, 4, 4), (128, 64, 64, 4, 4), (128, 128, 64, 8))
    if dtype == torch.float32:
        few, many = ((64, 64, 16, 4),), ((64, 64, 16, 4), (64, 64, 16, 8), (128, 64, 16, 8))
    made = {"own 64x64x32 w8": launched(own, 64, 64, 32, 8)}
    made |= {f"lines {named(s)}": launched(conv2d_lines_kernel, *s) for s in few}
    if not wide:
        return made | {f"inner {named(s)}{text}": launched(conv2d_inner_kernel, *s, turn=turn)
                       for s in ((64, 64, 16, 4), (64, 64, 32, 8), (128, 64, 32, 8))
                       for text, turn in (("", (False, False)), (" turned", (True, True)))}
    return (made | {f"turned {named(s)}": launched(conv2d_taps_kernel, *s, turn=(True, True))
                    for s in many[1:4]}
            | {f"inner {named(s)}": launched(conv2d_inner_kernel, *s, turn=(True, True))
               for s in many})
