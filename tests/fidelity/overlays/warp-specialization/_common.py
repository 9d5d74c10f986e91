"""What the right solutions here share, over the solution."""

del walk_tiles_kernel
del linear_relu_kernel
del on_hopper
del matmul_ws_kernel
del scratch
del check_linear
del check_matmul
del check_tensor

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
def product_kernel(a_ptr, b_ptr, c_ptr, am, bn, M, N, K, BM: tl.constexpr, BN: tl.constexpr,
                   BK: tl.constexpr, ROLES: tl.constexpr):
    a_desc = tl.make_tensor_descriptor(a_ptr, [M, K], [am, 1], [BM, BK])
    b_desc = tl.make_tensor_descriptor(b_ptr, [N, K], [bn, 1], [BN, BK])
    pid_m, pid_n = grouped_pid(tl.program_id(0), tl.cdiv(M, BM), tl.cdiv(N, BN), 4)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in tl.range(0, K, BK, warp_specialize=ROLES):
        acc = tl.dot(a_desc.load([pid_m * BM, k]), tl.trans(b_desc.load([pid_n * BN, k])), acc)
    rows = pid_m.to(tl.int64) * BM + tl.arange(0, BM)[:, None]
    cols = pid_n * BN + tl.arange(0, BN)[None, :]
    tl.store(c_ptr + rows * N + cols, acc.to(tl.float16), mask=(rows < M) & (cols < N))


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
