"""Right but different: configurations that an autotuner chooses from, all tiles of the matrix."""


@triton.autotune(
    configs=[triton.Config({"BM": 128, "BN": 128, "BK": 32}, num_warps=8, num_stages=3),
             triton.Config({"BM": 128, "BN": 128, "BK": 64}, num_warps=8, num_stages=2)],
    key=["M", "K"])
@triton.jit
def all_tiles_kernel(x_ptr, out_ptr, M, K, sm, sk, PRECISE: tl.constexpr,
                     BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BM + tl.arange(0, BM)[:, None]
    j = tl.program_id(1).to(tl.int64) * BN + tl.arange(0, BN)[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        ka = start + tl.arange(0, BK)[None, :].to(tl.int64)
        kb = start + tl.arange(0, BK)[:, None].to(tl.int64)
        a = tl.load(x_ptr + i * sm + ka * sk, mask=(i < M) & (ka < K), other=0.0)
        b = tl.load(x_ptr + j * sm + kb * sk, mask=(j < M) & (kb < K), other=0.0)
        acc += tl.dot(a, b, input_precision="ieee" if PRECISE else None)
    tl.store(out_ptr + i * M + j, acc, mask=(i < M) & (j < M))


def gram(x: torch.Tensor) -> torch.Tensor:
    check(x)
    m, k = x.shape
    out = x.new_empty((m, m))
    if m > 0:
        all_tiles_kernel[lambda meta: (triton.cdiv(m, meta["BM"]), triton.cdiv(m, meta["BN"]))](
            x, out, m, k, *x.stride(), PRECISE=x.dtype == torch.float32)
    return out



def column_stats(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    check(x)
    rows, cols = x.shape
    if rows == 0:
        raise ValueError("x: expected at least one row, got none")
    out = torch.empty((2, cols), dtype=torch.float32, device=x.device)
    if cols:
        stats_kernel[(triton.cdiv(cols, 64),)](
            x, out, rows, cols, *x.stride(), BR=16, BC=64)
    return out[0], out[1]
