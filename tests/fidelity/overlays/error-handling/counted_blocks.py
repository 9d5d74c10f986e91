"""Right but different: blocks are counted, storages compared, a grid of two axes."""
from collections.abc import Callable, Sequence
from contextlib import ContextDecorator

del _checking


def _shared_bytes(one: Any, other: Any) -> int:
    if not all(isinstance(t, torch.Tensor) and t.numel() for t in (one, other)):
        return 0
    if one.untyped_storage().data_ptr() != other.untyped_storage().data_ptr() or (
            one.device != other.device or one.is_meta):
        return 0
    (low, high), (other_low, other_high) = map(_reach, (one, other))
    return max(0, min(high, other_high) - max(low, other_low))


def _reach(tensor):
    low = tensor.storage_offset()
    high = low + 1 + sum((n - 1) * step
                         for n, step in zip(tensor.shape, tensor.stride(), strict=True))
    return low * tensor.element_size(), high * tensor.element_size()


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr,      # [M, K], [K, N], [M, N]
    M, N, K,
    stride_am, stride_ak,     # distances in elements to the next row, to the next column
    stride_bk, stride_bn,
    stride_cm, stride_cn,
    BLOCK_M: tl.constexpr,    # rows of a tile of C, a power of two like the next two
    BLOCK_N: tl.constexpr,    # columns of a tile of C
    BLOCK_K: tl.constexpr,    # columns of A and rows of B per step, at least 16
):
    pid_m = tl.program_id(axis=0)
    pid_n = tl.program_id(axis=1)

    offs_m = pid_m.to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)  # row * stride passes 2**31
    offs_n = pid_n.to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    in_m = offs_m < M
    in_n = offs_n < N

    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for first_k in range(0, K, BLOCK_K):
        offs_k = tl.cast(first_k, tl.int64) + tl.arange(0, BLOCK_K)
        in_k = offs_k < K
        a = tl.load(a_ptr + offs_m[:, None] * stride_am + offs_k[None, :] * stride_ak,
                    mask=in_m[:, None] & in_k[None, :], other=0.0)  # neutral for a sum
        b = tl.load(b_ptr + offs_k[:, None] * stride_bk + offs_n[None, :] * stride_bn,
                    mask=in_k[:, None] & in_n[None, :], other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")  # no TF32; no matter in 16 bits

    c_ptrs = c_ptr + offs_m[:, None] * stride_cm + offs_n[None, :] * stride_cn
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=in_m[:, None] & in_n[None, :])


def launch_matmul(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor, config: Config) -> None:
    (M, K), N = a.shape, b.shape[1]
    grid = (triton.cdiv(M, config.block_m), triton.cdiv(N, config.block_n))
    with torch.cuda.device_of(a):  # Triton launches on torch's current device
        matmul_kernel[grid](
            a, b, out, M, N, K,
            a.stride(0), a.stride(1), b.stride(0), b.stride(1), out.stride(0), out.stride(1),
            BLOCK_M=config.block_m, BLOCK_N=config.block_n, BLOCK_K=config.block_k,
            num_warps=config.num_warps, num_stages=config.num_stages,
        )


class checked_outputs(ContextDecorator):  # noqa: N801 - it is used like a function
    depth = 0

    def __enter__(self):
        checked_outputs.depth += 1
        return self

    def __exit__(self, *_):
        checked_outputs.depth -= 1
        return False


def matmul_robust(
    a: torch.Tensor,
    b: torch.Tensor,
    *,
    configs: Sequence[Config] = DEFAULT,
    policy: Literal["raise", "fallback"] = "raise",
    launch: Callable[[torch.Tensor, torch.Tensor, torch.Tensor, Config], None] | None = None,
) -> torch.Tensor:
    problem = _validated(a, b, configs, policy)
    out = torch.empty((problem.M, problem.N), dtype=problem.dtype, device=problem.device)
    if out.numel() == 0:
        return out  # no row or no column: no program, no launch

    for left, config in zip(reversed(range(len(configs))), configs, strict=True):
        attempt = functools.partial(launch or launch_matmul, a, b, out, config)
        try:
            safe_launch(attempt, op="matmul")
            break
        except KernelResourceError as error:
            if left:
                continue
            if policy == "raise":
                raise
            warnings.warn(f"matmul: torch.matmul takes the place of the kernel: {error}",
                          RuntimeWarning, stacklevel=2)
            matmul_robust.fallbacks += 1
            out = torch.matmul(a, b)  # nothing of what a failed launch may have written is kept
    if checked_outputs.depth:
        _check_finite(out)
    return out


def _check_finite(result: torch.Tensor) -> None:
    finite = (result - result) == 0
    if not finite.all():
        wrong = result.numel() - int(finite.sum())
        raise KernelExecutionError(
            f"matmul: {wrong} of {result.numel()} elements of the result are NaN or infinite")
