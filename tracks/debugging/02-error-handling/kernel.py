"""A matrix product in a service: the kernel works, and the code around it hides errors.

Goal:    report all invalid arguments at once, give launch failures their own exceptions, survive a
         GPU that is too small, and do none of that silently.
Shapes:  a (M, K) times b (K, N) gives (M, N); float16, bfloat16, float32; any strides, one device.
Given:   `matmul_kernel`, `launch_matmul`, `Config`, `DEFAULT` and `MatmulProblem` are right.
         Everything else runs, and each part has bugs. The comment above each part describes what
         the operators of the service observed; nobody has looked for the cause.
Graded:  values      the product stays as accurate and as fast as it is
         arguments   invalid ones, alone and several at once, also under `python -O`
         failures    each kind that Triton, torch and CUDA have, at the first, second or every
                     launch; and bugs, Ctrl-C and SystemExit, which are not failures of a launch
         fallbacks   which configurations are tried, the warning, the counter
         checks      results that are not finite, in nested blocks

The README has the contract. `python kernel.py` runs eight public cases, `tritonlab grade
track3/error-handling` all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, TypeVar

import torch
import triton
import triton.language as tl

T = TypeVar("T")
FLOATS = (torch.float16, torch.bfloat16, torch.float32)


# ---------------------------------------------------------------------------------------------
# Exceptions


# Symptom: callers that catch ValueError, as they do for torch, do not catch these exceptions. A job
# with worker processes loses fields of the exceptions that its workers raise.
class TritonKernelError(Exception):
    """Base class of every exception that this file raises."""


class InputValidationError(TritonKernelError):
    """Invalid arguments; nothing was launched."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__(f"{len(problems)} problems")
        self.problem = problems[0]


class InputTypeError(TritonKernelError, TypeError):
    """Invalid arguments whose problems are all Python types or dtypes."""


class KernelCompilationError(TritonKernelError):
    """Triton's compiler rejected the kernel."""


class KernelResourceError(TritonKernelError):
    """A launch requires more resources than the device has."""


class KernelExecutionError(TritonKernelError):
    """The device failed, or a checked result is not finite."""


# ---------------------------------------------------------------------------------------------
# Arguments


@dataclass(frozen=True)
class MatmulProblem:
    """A valid product: a (M, K) times b (K, N), of one dtype on one device."""

    M: int
    N: int
    K: int
    dtype: torch.dtype
    device: torch.device


# Symptom: "we fixed the shape, then it complained about the dtype, then about the device". In
# production, which runs with `python -O`, it reports nothing. With `out=a`, the result changes from
# run to run.
def validate_matmul(
    a: torch.Tensor,
    b: torch.Tensor,
    out: torch.Tensor | None = None,
    *,
    allowed: tuple[torch.dtype, ...] = FLOATS,
) -> MatmulProblem:
    """Checks all arguments of a matrix product before anything is allocated or launched."""
    assert isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor), f"no tensors: {a}, {b}"
    assert a.dim() == 2 and b.dim() == 2, "two matrices are needed"
    assert a.shape[1] == b.shape[0], "sizes differ"
    if a.dtype not in FLOATS:
        raise InputValidationError([f"dtype {a.dtype}"])
    if out:
        assert out.shape == (a.shape[0], b.shape[1]), "the result has another shape"
    return MatmulProblem(a.shape[0], b.shape[1], a.shape[1], a.dtype, a.device)


# Symptom: 1,000 and 100,000 elements get the smaller of two blocks. "12" and -1 get a block, too.
def pick_block(n: int) -> int:
    """Returns a block size for n elements: 64 below 1,000, 256 below 100,000, otherwise 1,024."""
    n = int(n)
    return 64 if n <= 1_000 else 256 if n <= 100_000 else 1_024


# ---------------------------------------------------------------------------------------------
# The kernel and its launch, which are right and stay unchanged


@dataclass(frozen=True)
class Config:
    """The tile of one program, its warps and its pipeline stages."""

    block_m: int
    block_n: int
    block_k: int
    num_warps: int
    num_stages: int


# Largest first. Compiled for an H100 with Triton 3.9, they need 98,304, 32,768 and 4,096 bytes of
# shared memory in float32, and 65,536, 24,576 and 2,048 in 16 bits. A program may use 232,448 bytes
# there, 101,376 on an RTX 4090 and 65,536 on a T4.
DEFAULT = (
    Config(128, 128, 32, num_warps=8, num_stages=4),
    Config(64, 64, 32, num_warps=4, num_stages=3),
    Config(32, 32, 16, num_warps=4, num_stages=1),
)


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr,      # [M, K], [K, N], [M, N]
    M, N, K,
    stride_am, stride_ak,     # elements between rows, and between columns
    stride_bk, stride_bn,
    stride_cm, stride_cn,
    BLOCK_M: tl.constexpr,    # rows of a tile of C; all three are powers of two
    BLOCK_N: tl.constexpr,    # columns of a tile of C
    BLOCK_K: tl.constexpr,    # columns of A and rows of B per step, at least 16
):
    """c[m, n] = sum_k a[m, k] * b[k, n]. One program owns BLOCK_M x BLOCK_N elements of c.

    It reads (BLOCK_M + BLOCK_N) * K elements and stores BLOCK_M * BLOCK_N. M and N may be 1: masked
    loads pad the tile, and `tl.dot` always gets full tiles.
    """
    pid = tl.program_id(axis=0)
    num_pid_n = tl.cdiv(N, BLOCK_N)
    pid_m = pid // num_pid_n
    pid_n = pid % num_pid_n

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
        acc = tl.dot(a, b, acc, input_precision="ieee")  # no TF32; no effect in 16 bits

    c_ptrs = c_ptr + offs_m[:, None] * stride_cm + offs_n[None, :] * stride_cn
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=in_m[:, None] & in_n[None, :])


def launch_matmul(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor, config: Config) -> None:
    """Launches the kernel for valid arguments; exceptions of Triton and CUDA pass through."""
    (M, K), N = a.shape, b.shape[1]
    grid = (triton.cdiv(M, config.block_m) * triton.cdiv(N, config.block_n),)
    with torch.cuda.device_of(a):  # Triton launches on torch's current device
        matmul_kernel[grid](
            a, b, out, M, N, K,
            a.stride(0), a.stride(1), b.stride(0), b.stride(1), out.stride(0), out.stride(1),
            BLOCK_M=config.block_m, BLOCK_N=config.block_n, BLOCK_K=config.block_k,
            num_warps=config.num_warps, num_stages=config.num_stages,
        )


# ---------------------------------------------------------------------------------------------
# Failures


# Symptom: the first out-of-memory error in production ended in an AttributeError. Earlier, every
# bug in a caller's code had been reported as a KernelExecutionError with the text "launch failed",
# and two people spent a week on a driver that was fine. A GPU trace shows a gap after every launch.
def safe_launch(
    launch: Callable[[], T],
    *,
    op: str,
    synchronize: Callable[[], None] | None = None,
) -> T:
    """Returns ``launch()``, and translates its failures to exceptions of this file."""
    try:
        result = launch()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        return result
    except torch.cuda.CUDAError as error:
        raise KernelExecutionError(f"{op}: CUDA error") from error
    except BaseException:
        raise KernelExecutionError(f"launch failed: {launch}")


_checking = False


# Symptom: after a test had failed inside such a block, the whole service became slow.
@contextmanager
def checked_outputs() -> Iterator[None]:
    """Inside it, `matmul_robust` raises KernelExecutionError if a result is not finite."""
    global _checking
    _checking = True
    yield
    _checking = False


# ---------------------------------------------------------------------------------------------
# The robust product


# Symptom: on a smaller GPU, a model gave the same answer to every question: all its products were
# zero, without an entry in any log. On another machine it has been slow since spring. A batch of
# matrices returned a result with policy "fallback", and raises an exception with "raise".
def matmul_robust(
    a: torch.Tensor,
    b: torch.Tensor,
    *,
    configs: Sequence[Config] = DEFAULT,
    policy: Literal["raise", "fallback"] = "raise",
    launch: Callable[[torch.Tensor, torch.Tensor, torch.Tensor, Config], None] | None = None,
) -> torch.Tensor:
    """Returns a @ b as a new contiguous tensor, with the first configuration that fits the GPU."""
    try:
        problem = validate_matmul(a, b)
    except Exception:
        if policy == "fallback":
            return torch.matmul(a, b)
        raise
    out = torch.empty((problem.M, problem.N), dtype=problem.dtype, device=problem.device)
    if out.numel() == 0:
        return out
    for _ in range(len(configs)):
        try:
            safe_launch(lambda: (launch or launch_matmul)(a, b, out, configs[0]), op="matmul")
            break
        except Exception:
            out.zero_()
    else:
        if policy == "fallback":
            return torch.matmul(a, b)
    if _checking and out.isnan().any():
        raise KernelExecutionError("NaN")
    return out


matmul_robust.fallbacks = 0  # how often torch.matmul replaced the kernel


if __name__ == "__main__":
    import tritonlab

    tritonlab.run_public_cases(__file__)
