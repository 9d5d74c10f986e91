"""What the right solutions here share, over the solution."""

del SUPPORTED
del BLOCK_SIZE
del MOST_PROGRAMS
del MOST_GROUPS
del own_sum
del sum_atomic_kernel
del partial_sums_kernel
del add_partials_kernel
del programs_of_a_sum
del locked_sums_kernel
del add_groups_kernel
del check_dtype

PREDICT = {
    "lane_atomics": 10**6, "program_atomics": 245, "two_phase_extra": 2 * 4 * 256, "row_ratio": 3,
    "groups": 128,
}


def check(x: torch.Tensor, dims: int | None = None) -> None:
    if not isinstance(x, torch.Tensor) or x.dtype not in (
            torch.float16, torch.bfloat16, torch.float32):
        raise TypeError(f"x: expected floats of 16 or 32 bits, got {getattr(x, 'dtype', type(x))}")
    if dims is not None and x.dim() != dims:
        raise ValueError(f"x: expected {dims} dimensions, got {x.dim()} in {tuple(x.shape)}")


@triton.jit
def groups_kernel(buffer_ptr, out_ptr, N, groups, SOME: tl.constexpr, BLOCK: tl.constexpr):
    cols = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[None, :]
    acc = tl.zeros((SOME, BLOCK), tl.float32)
    for first in range(0, groups, SOME):
        group = first + tl.arange(0, SOME)[:, None]
        acc += tl.load(buffer_ptr + group.to(tl.int64) * N + cols,
                       mask=(group < groups) & (cols < N), other=0)
    tl.store(out_ptr + cols, tl.sum(acc, 0, keep_dims=True), mask=cols < N)


def choose_groups(n: int, l2_bytes: int, num_programs: int) -> int:
    most = min(num_programs, 256, l2_bytes // (8 * n))
    return 1 << (most.bit_length() - 1) if most > 1 else 1
