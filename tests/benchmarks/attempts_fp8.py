"""Other ways to multiply float8: tiles, who loads them, and where sums go on in float32.

``every K``: sums leave the tensor cores after so many numbers; ``added``: after every step, by a
sum that the kernel writes itself; ``fast``: not before the end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from tests.benchmarks.attempts import MULTIPROCESSORS, Attempts
from tests.benchmarks.attempts_tiles import Tiles, named, tile_of
from tests.benchmarks.modules import solution


@triton.jit
def fp8_descriptor_kernel(
    a_desc, b_desc, c_desc, scale_a_ptr, scale_b_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
    IMPRECISE: tl.constexpr,
):
    """Tiles by the memory accelerator. IMPRECISE of 0: every product begins at zero, and is added.
    """
    pid_m, pid_n = tile_of(tl.program_id(0), M, N, BLOCK_M, BLOCK_N, GROUP_M)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        a = a_desc.load([pid_m * BLOCK_M, k])
        b = b_desc.load([pid_n * BLOCK_N, k])
        if IMPRECISE == 0:
            acc += tl.dot(a, b.T)
        else:
            acc = tl.dot(a, b.T, acc, max_num_imprecise_acc=IMPRECISE)
    acc = acc * tl.load(scale_a_ptr) * tl.load(scale_b_ptr)
    c_desc.store([pid_m * BLOCK_M, pid_n * BLOCK_N], acc.to(c_desc.dtype))


@triton.jit
def fp8_chunks_kernel(
    a_desc, b_desc, c_desc, scale_a_ptr, scale_b_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
    IMPRECISE: tl.constexpr,
):
    """Sums leave the tensor cores after several steps: their adding up costs a part of the time."""
    pid_m, pid_n = tile_of(tl.program_id(0), M, N, BLOCK_M, BLOCK_N, GROUP_M)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    part = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        a = a_desc.load([pid_m * BLOCK_M, k])
        b = b_desc.load([pid_n * BLOCK_N, k])
        part = tl.dot(a, b.T, part)
        if (k + BLOCK_K) % IMPRECISE == 0:
            acc += part
            part = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    acc = (acc + part) * tl.load(scale_a_ptr) * tl.load(scale_b_ptr)
    c_desc.store([pid_m * BLOCK_M, pid_n * BLOCK_N], acc.to(c_desc.dtype))


@triton.jit
def fp8_halves_kernel(
    a_desc, b_desc, c_desc, scale_a_ptr, scale_b_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
    IMPRECISE: tl.constexpr,
):
    """A tile twice as wide, as two products in a step: sums of one half at a time need a second
    set of registers. BLOCK_N is that of a half."""
    pid_m, pid_n = tile_of(tl.program_id(0), M, N, BLOCK_M, 2 * BLOCK_N, GROUP_M)
    row, col = pid_m * BLOCK_M, pid_n * 2 * BLOCK_N
    left = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    right = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        a = a_desc.load([row, k])
        b = b_desc.load([col, k])
        left = tl.dot(a, b.T, left, max_num_imprecise_acc=IMPRECISE)
        b = b_desc.load([col + BLOCK_N, k])
        right = tl.dot(a, b.T, right, max_num_imprecise_acc=IMPRECISE)
    scale_a, scale_b = tl.load(scale_a_ptr), tl.load(scale_b_ptr)
    c_desc.store([row, col], (left * scale_a * scale_b).to(c_desc.dtype))
    c_desc.store([row, col + BLOCK_N], (right * scale_a * scale_b).to(c_desc.dtype))


@triton.jit
def fp8_specialised_kernel(
    a_ptr, b_ptr, c_ptr, scale_a_ptr, scale_b_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
    IMPRECISE: tl.constexpr,
):
    """One warp loads, two groups of warps multiply half of the tile each."""
    pid_m, pid_n = tile_of(tl.program_id(0), M, N, BLOCK_M, BLOCK_N, GROUP_M)
    row, col = pid_m * BLOCK_M, pid_n * BLOCK_N
    a_desc = tl.make_tensor_descriptor(
        a_ptr, shape=[M, K], strides=[K, 1], block_shape=[BLOCK_M, BLOCK_K])
    b_desc = tl.make_tensor_descriptor(
        b_ptr, shape=[N, K], strides=[K, 1], block_shape=[BLOCK_N, BLOCK_K])
    c_desc = tl.make_tensor_descriptor(
        c_ptr, shape=[M, N], strides=[N, 1], block_shape=[BLOCK_M, BLOCK_N])
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in tl.range(0, tl.cdiv(K, BLOCK_K), warp_specialize=True):
        a = a_desc.load([row, step * BLOCK_K])
        b = b_desc.load([col, step * BLOCK_K])
        acc = tl.dot(a, b.T, acc, max_num_imprecise_acc=IMPRECISE)
    acc = acc * tl.load(scale_a_ptr) * tl.load(scale_b_ptr)
    c_desc.store([row, col], acc.to(tl.float16))


@triton.jit
def fp8_persistent_kernel(
    a_desc, b_desc, c_desc, scale_a_ptr, scale_b_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
    IMPRECISE: tl.constexpr,
):
    """As many programs as there are places for them on the multiprocessors."""
    tiles = tl.cdiv(M, BLOCK_M) * tl.cdiv(N, BLOCK_N)
    for pid in tl.range(tl.program_id(0), tiles, tl.num_programs(0), flatten=True):
        pid_m, pid_n = tile_of(pid, M, N, BLOCK_M, BLOCK_N, GROUP_M)
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for k in range(0, K, BLOCK_K):
            a = a_desc.load([pid_m * BLOCK_M, k])
            b = b_desc.load([pid_n * BLOCK_N, k])
            acc = tl.dot(a, b.T, acc, max_num_imprecise_acc=IMPRECISE)
        acc = acc * tl.load(scale_a_ptr) * tl.load(scale_b_ptr)
        c_desc.store([pid_m * BLOCK_M, pid_n * BLOCK_N], acc.to(c_desc.dtype))


Product = Callable[..., torch.Tensor]


def by_pointers(tiles: Tiles, imprecise: int | None,
                out_dtype: torch.dtype = torch.float16) -> Product:
    """The solution's kernel. ``imprecise``: numbers between two sums in float32, None for all."""
    block_m, block_n, block_k, warps, stages, group = tiles

    def run(a: torch.Tensor, b_t: torch.Tensor, scale_a: torch.Tensor, scale_b: torch.Tensor
            ) -> torch.Tensor:
        (m, k), n = a.shape, b_t.shape[0]
        c = torch.empty((m, n), dtype=out_dtype, device=a.device)
        solution("fp8-matmul").matmul_fp8_kernel[
            (triton.cdiv(m, block_m) * triton.cdiv(n, block_n),)](
            a, b_t, c, scale_a, scale_b, None, None, a.stride(0), b_t.stride(0), 0, 0, m, n, k,
            BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k, GROUP_M=group,
            IMPRECISE=imprecise, DESCRIBED=False, num_warps=warps, num_stages=stages)
        return c
    return run


def by_descriptors(kernel: Any, tiles: Tiles, imprecise: int | None, *, halves: int = 1,
                   programs: int | None = None, host: bool = True) -> Product:
    """``halves``: how many blocks of columns a tile has. ``host``: who makes the descriptors."""
    block_m, block_n, block_k, warps, stages, group = tiles

    def run(a: torch.Tensor, b_t: torch.Tensor, scale_a: torch.Tensor, scale_b: torch.Tensor
            ) -> torch.Tensor:
        (m, k), n = a.shape, b_t.shape[0]
        c = torch.empty((m, n), dtype=torch.float16, device=a.device)
        tiles = triton.cdiv(m, block_m) * triton.cdiv(n, halves * block_n)
        matrices = [TensorDescriptor.from_tensor(t, block) if host else t for t, block in (
            (a, [block_m, block_k]), (b_t, [block_n, block_k]), (c, [block_m, block_n]))]
        if not host:
            triton.set_allocator(scratch)
        kernel[(min(tiles, programs or tiles),)](
            *matrices, scale_a, scale_b, m, n, k, BLOCK_M=block_m, BLOCK_N=block_n,
            BLOCK_K=block_k, GROUP_M=group, IMPRECISE=imprecise, num_warps=warps,
            num_stages=stages)
        return c
    return run


def scratch(size: int, alignment: int, stream: int | None) -> torch.Tensor:
    """Where a kernel writes descriptors that it makes itself."""
    return torch.empty(size, dtype=torch.int8, device="cuda")


def of(imprecise: int | None) -> str:
    return {None: "fast", 0: "added"}.get(imprecise, f"every {imprecise}")


def pointers() -> Attempts:
    """Other tiles of the solution's kernel."""
    settings: tuple[tuple[Tiles, int | None], ...] = (
        ((128, 128, 128, 8, 4, 8), 128), ((128, 128, 128, 4, 3, 8), 128),
        ((64, 128, 128, 4, 3, 8), 128), ((128, 256, 128, 8, 3, 8), 128),
        ((128, 128, 64, 8, 4, 8), 64), ((128, 128, 256, 8, 3, 8), 256),
        ((128, 128, 128, 8, 4, 8), None), ((128, 256, 128, 8, 3, 8), None))
    return {f"pointers {named(tiles)} {of(every)}": by_pointers(tiles, every)
            for tiles, every in settings}


def descriptors() -> Attempts:
    """One program for a tile."""
    plain: tuple[tuple[Tiles, int | None], ...] = (
        ((128, 128, 128, 8, 3, 8), 128), ((128, 128, 128, 8, 4, 8), 128),
        ((128, 128, 128, 4, 3, 8), 128), ((64, 128, 128, 4, 3, 8), 128),
        ((256, 128, 128, 8, 3, 8), 128), ((256, 128, 128, 8, 4, 8), 128),
        ((128, 128, 128, 4, 3, 4), 128), ((128, 128, 128, 4, 3, 16), 128),
        ((128, 128, 128, 4, 2, 8), 128), ((128, 128, 128, 4, 3, 8), None),
        ((128, 128, 128, 8, 3, 8), 0),
        ((128, 256, 128, 8, 3, 8), None), ((128, 256, 128, 8, 4, 8), None))
    chunks: tuple[tuple[Tiles, int], ...] = (
        ((128, 256, 128, 8, 4, 8), 512), ((128, 256, 128, 8, 3, 8), 1024),
        ((128, 128, 128, 8, 4, 8), 512), ((128, 128, 128, 4, 3, 8), 512),
        ((128, 128, 128, 4, 3, 8), 1024), ((128, 128, 128, 4, 3, 8), 2048))
    return {f"descriptors {named(tiles)} {of(every)}": by_descriptors(
        fp8_descriptor_kernel, tiles, every) for tiles, every in plain} | {
        f"chunks {named(tiles)} {of(every)}": by_descriptors(fp8_chunks_kernel, tiles, every)
        for tiles, every in chunks} | {
        f"halves {named(tiles)} every 128": by_descriptors(
            fp8_halves_kernel, tiles, 128, halves=2)
        for tiles in ((128, 128, 128, 8, 3, 8), (128, 128, 128, 8, 4, 8))}


def persistent() -> Attempts:
    """As many programs as there are places for them, or warps with roles."""
    settings: tuple[tuple[Tiles, int | None, int], ...] = (
        ((128, 128, 128, 8, 4, 8), 128, 1), ((128, 128, 128, 4, 2, 8), 128, 2),
        ((256, 128, 128, 8, 4, 8), 128, 1), ((256, 128, 128, 8, 3, 8), 128, 1),
        ((128, 128, 128, 4, 3, 8), 128, 2), ((128, 256, 128, 8, 3, 8), None, 1))
    specialised: tuple[tuple[Tiles, int | None], ...] = (
        ((128, 128, 128, 4, 4, 8), 128), ((256, 128, 128, 4, 3, 8), 128),
        ((128, 256, 128, 4, 3, 8), None))
    return {f"persistent {named(tiles)} {of(every)}": by_descriptors(
        fp8_persistent_kernel, tiles, every, programs=places * MULTIPROCESSORS)
        for tiles, every, places in settings} | {
        f"specialised {named(tiles)} {of(every)}": by_descriptors(
            fp8_specialised_kernel, tiles, every, host=False) for tiles, every in specialised}
