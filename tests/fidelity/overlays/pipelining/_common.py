"""What the right solutions here share, over the solution."""

del (BLOCK_M, BLOCK_N, BLOCK_K)
del BLOCK_SIZE
del PROGRAMS
del LEAST_ITERATIONS
del MAX_STAGES
del SUPPORTED
del matmul_kernel
del row_sum_kernel
del launch_row_sum
del check_matrix
del check_pair
del check_stages

PREDICT = {
    "stage_bytes": 16_384, "unused_ratio": 1, "matmul_bytes": 80_000, "row_sum_bytes": 12_288,
    "reductions": 64, "most_stages": 4,
}
FLOATS = (torch.float16, torch.bfloat16, torch.float32)


@triton.jit
def product_kernel(a_ptr, b_ptr, c_ptr, M, N, K, am, ak, bk, bn,
                   BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    rows = (tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M))[:, None]
    cols = (tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N))[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K).to(tl.int64)
        a = tl.load(a_ptr + rows * am + k[None, :] * ak, (rows < M) & (k[None, :] < K), 0.0)
        b = tl.load(b_ptr + k[:, None] * bk + cols * bn, (k[:, None] < K) & (cols < N), 0.0)
        acc += tl.dot(a, b, input_precision="ieee")
    tl.store(c_ptr + rows * N + cols, acc.to(c_ptr.dtype.element_ty), (rows < M) & (cols < N))



def matmul_pipelined(a: torch.Tensor, b: torch.Tensor, *, num_stages: int = 3) -> torch.Tensor:
    refuse_pair(a, b, num_stages)
    (M, K), N = a.shape, b.shape[1]
    c = a.new_empty((M, N))
    if M and N:
        grid = (triton.cdiv(M, 128), triton.cdiv(N, 128))
        product_kernel[grid](a, b, c, M, N, K, *a.stride(), *b.stride(), 128, 128, 32, num_warps=8,
                             num_stages=num_stages)
    return c



@triton.jit
def strided_sum_kernel(x_ptr, out_ptr, xm, xn, C, STAGES: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(1).to(tl.int64)
    acc = tl.zeros((BLOCK,), tl.float32)
    step = tl.num_programs(0) * BLOCK
    for start in tl.range(tl.program_id(0) * BLOCK, C, step, num_stages=STAGES):
        cols = start + tl.arange(0, BLOCK).to(tl.int64)
        acc += tl.load(x_ptr + row * xm + cols * xn, cols < C, 0.0)
    tl.store(out_ptr + row * tl.num_programs(0) + tl.program_id(0), tl.sum(acc, 0))


@triton.jit
def finish_kernel(parts_ptr, out_ptr, n_parts, BLOCK: tl.constexpr):
    row, lanes = tl.program_id(0), tl.arange(0, BLOCK)
    parts = tl.load(parts_ptr + row * n_parts + lanes, lanes < n_parts, 0.0)
    tl.store(out_ptr + row, tl.sum(parts, 0))


def row_sum(x: torch.Tensor, *, num_stages: int = 4) -> torch.Tensor:
    refuse(num_stages, x=x)
    R, C = x.shape
    out = torch.empty(R, dtype=torch.float32, device=x.device)
    if R == 0:
        return out
    n_parts = max(1, min(264 // R, C // 32_768))
    parts = out if n_parts == 1 else out.new_empty((R, n_parts))
    strided_sum_kernel[n_parts, R](x, parts, *x.stride(), C, num_stages, 1024)
    if n_parts > 1:
        finish_kernel[(R,)](parts, out, n_parts, triton.next_power_of_2(n_parts), num_warps=1)
    return out



def pick_num_stages(tile_bytes, smem_limit, k_iters, *, max_stages=5):
    numbers = {"tile_bytes": tile_bytes, "smem_limit": smem_limit, "k_iters": k_iters,
               "max_stages": max_stages}
    for name, number in numbers.items():
        if number <= 0:
            raise ValueError(f"{name} is {number}")
    if tile_bytes > smem_limit:
        raise ValueError(f"tile_bytes: {tile_bytes} do not fit {smem_limit}")
    stages = 1
    while stages < min(max_stages, k_iters) and (stages + 1) * tile_bytes <= smem_limit:
        stages += 1
    return stages


def refuse(num_stages, **tensors):
    if type(num_stages) is not int:
        raise TypeError(f"num_stages: expected an int, got {type(num_stages)}")
    if num_stages not in range(1, 6):
        raise ValueError(f"num_stages: expected 1 to 5, got {num_stages}")
    for name, tensor in tensors.items():
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"{name}: expected a tensor, got {type(tensor)} {tensor!r}")
        if tensor.dtype not in FLOATS:
            raise TypeError(f"{name}: expected one of {FLOATS}, got {tensor.dtype}")
        if tensor.dim() != 2:
            raise ValueError(f"{name}: expected 2 dimensions, got {tensor.dim()}")


def refuse_pair(a, b, num_stages):
    refuse(num_stages, a=a, b=b)
    if a.dtype != b.dtype:
        raise TypeError(f"b: expected {a.dtype}, got {b.dtype}")
    if a.shape[1] != b.shape[0]:
        raise ValueError(f"b: expected {a.shape[1]} rows, got {tuple(b.shape)}")
    if a.device != b.device:
        raise ValueError(f"b: expected device {a.device}, got {b.device}")
