"""Right but different: a helper makes descriptors, and steps are counted in columns."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

PREDICT = {
    "panels_row_major": 37, "panels_group_8": 25, "panels_group_4": 40,
    "epilogue_bytes": 2**26, "warps": 12, "stages_a100": 0,
}


@triton.jit
def grouped_pid(pid, num_pid_m, num_pid_n, GROUP_M: tl.constexpr):
    return tl.swizzle2d(pid // num_pid_n, pid % num_pid_n, num_pid_m, num_pid_n, GROUP_M)


@triton.jit
def walk_kernel(field_ptr, out_ptr, R, C, GROUP_M: tl.constexpr):
    i = tl.program_id(0)
    row, col = grouped_pid(i, R, C, GROUP_M)
    tl.store(out_ptr + i, tl.load(field_ptr + row * C + col))


def walk_tiles(field, *, group_m=8):
    out = torch.empty(field.numel(), dtype=field.dtype, device=field.device)
    if out.numel():
        walk_kernel[(out.numel(),)](field, out, *field.shape, GROUP_M=group_m)
    return out


@triton.jit
def layer_kernel(x_ptr, w_ptr, b_ptr, out_ptr, xm, xk, wn, wk, bn, M, N, K,
                 BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP_M: tl.constexpr):
    pid_m, pid_n = grouped_pid(tl.program_id(0), tl.cdiv(M, BM), tl.cdiv(N, BN), GROUP_M)
    rows = pid_m.to(tl.int64) * BM + tl.arange(0, BM)
    cols = pid_n.to(tl.int64) * BN + tl.arange(0, BN)
    bias = tl.load(b_ptr + cols * bn, mask=cols < N, other=0.0).to(tl.float32)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in tl.range(0, K, BK):
        ks = k + tl.arange(0, BK).to(tl.int64)
        x = tl.load(x_ptr + rows[:, None] * xm + ks[None, :] * xk,
                    mask=(rows < M)[:, None] & (ks < K)[None, :], other=0.0)
        w = tl.load(w_ptr + cols[:, None] * wn + ks[None, :] * wk,
                    mask=(cols < N)[:, None] & (ks < K)[None, :], other=0.0)
        acc = tl.dot(x, tl.trans(w), acc, input_precision="ieee")
    y = tl.maximum(acc + bias[None, :], 0.0, propagate_nan=tl.PropagateNan.ALL)
    tl.store(out_ptr + rows[:, None] * N + cols[None, :], y.to(out_ptr.dtype.element_ty),
             mask=(rows < M)[:, None] & (cols < N)[None, :])


def linear_relu(x, w, b, *, group_m=8):
    check_layer(x, w, b, group_m)
    (M, K), N = x.shape, len(w)
    out = torch.empty((M, N), dtype=x.dtype, device=x.device)
    if out.numel():
        bm, bn, bk = (128, 64, 16) if x.dtype == torch.float32 else (128, 128, 64)
        layer_kernel[(triton.cdiv(M, bm) * triton.cdiv(N, bn),)](
            x, w, b, out, *x.stride(), *w.stride(), *b.stride(), M, N, K,
            BM=bm, BN=bn, BK=bk, GROUP_M=group_m, num_warps=8)
    return out


@triton.jit
def tiles_of(ptr, rows, cols, step, R: tl.constexpr, C: tl.constexpr):
    return tl.make_tensor_descriptor(ptr, [rows, cols], [step, 1], [R, C])


@triton.jit
def product_kernel(a_ptr, b_ptr, c_ptr, M, N, K, a_step, b_step,
                   BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, ROLES: tl.constexpr):
    pid_m, pid_n = grouped_pid(tl.program_id(0), tl.cdiv(M, BM), tl.cdiv(N, BN), 8)
    a_tiles = tiles_of(a_ptr, M, K, a_step, BM, BK)
    b_tiles = tiles_of(b_ptr, N, K, b_step, BN, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in tl.range(0, K, BK, warp_specialize=ROLES):
        a = a_tiles.load([pid_m * BM, k])
        b = b_tiles.load([pid_n * BN, k])
        acc = tl.dot(a, b.T, acc)
    tiles_of(c_ptr, M, N, N, BM, BN).store([pid_m * BM, pid_n * BN], acc.to(tl.float16))


def matmul_ws(a, b_t, *, warp_specialize=False):
    check_product(a, b_t)
    (M, K), N = a.shape, len(b_t)
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    if 0 in c.shape or K == 0:
        return c.zero_() if c.numel() else c
    triton.set_allocator(lambda size, align, stream: torch.empty(size, dtype=torch.int8,
                                                                 device="cuda"))
    product_kernel[(triton.cdiv(M, 128) * triton.cdiv(N, 128),)](
        a, b_t, c, M, N, K, a.stride(0), b_t.stride(0), BM=128, BN=128, BK=64,
        ROLES=bool(warp_specialize), num_warps=4, num_stages=3)
    return c


def use_warp_specialization(capability):
    return capability[0] in {9, 10, 12}


def check(tensors, dims, dtypes):
    first, (name, tensor) = tensors[0][1], tensors[0]
    for (name, tensor), size in zip(tensors, dims, strict=True):
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"{name} has to be a tensor and is a {type(tensor).__name__}")
        if tensor.dtype not in dtypes or tensor.dtype != first.dtype:
            raise TypeError(f"{name} is {tensor.dtype}, not {first.dtype} or not supported")
        if tensor.dim() != size:
            raise ValueError(f"{name} has {tensor.dim()} dimensions and needs {size}")
        if tensor.device != first.device:
            raise ValueError(f"{name} is on another device: {tensor.device}")
    if tensors[1][1].shape[1] != first.shape[1]:
        raise ValueError(f"{tensors[1][0]} has {tensors[1][1].shape[1]} columns, not "
                         f"{first.shape[1]}: {tuple(tensors[1][1].shape)}")


def check_layer(x, w, b, group_m):
    check([("x", x), ("w", w), ("b", b)], (2, 2, 1),
          (torch.float16, torch.bfloat16, torch.float32))
    if len(b) != len(w):
        raise ValueError(f"b has {len(b)} elements and needs {len(w)}")
    if group_m < 1:
        raise ValueError(f"group_m is {group_m}")


def check_product(a, b_t):
    check([("a", a), ("b_t", b_t)], (2, 2), (torch.float16,))
    for name, t in (("a", a), ("b_t", b_t)):
        if t.shape[1] % 8:
            raise ValueError(f"{name}: {2 * t.shape[1]} bytes are no multiple of 16 bytes")
        if t.numel() and (t.stride(1) != 1 or t.stride(0) % 8):
            raise ValueError(f"{name}: strides {t.stride()} do not keep to 16 bytes")
        if t.data_ptr() % 16:
            raise ValueError(f"{name} does not start at a multiple of 16 bytes")
    if len(b_t) % 8:
        raise ValueError(f"b_t: {len(b_t)} columns of the result are no multiple of 16 bytes")


if __name__ == "__main__":
    import tritonlab

    tritonlab.run_public_cases(__file__)
