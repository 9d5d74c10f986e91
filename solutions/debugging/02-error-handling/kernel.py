"""A matrix product that survives a small GPU and hides no error: validate, launch, fall back.

    c[m, n] = sum_k a[m, k] * b[k, n]

Four layers, each with one task. `validate_matmul` reports all problems of the arguments at once.
`launch_matmul` launches the kernel and handles no failure. `safe_launch` translates failures of the
compiler and the device, and no other exceptions. `matmul_robust` decides what is tried after a
failure, and reports a fallback.

Inputs: a of shape (M, K) and b of shape (K, N) in float16, bfloat16 or float32, with any strides,
on one device. Result: a new contiguous tensor of shape (M, N) in that dtype, on that device.

Cost: 2 * M * N * K FLOP. Tiles of BLOCK_M x BLOCK_N read (M * K * ceil(N / BLOCK_N) + K * N *
ceil(M / BLOCK_M)) * itemsize bytes and write M * N * itemsize.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import torch
import triton
import triton.language as tl

T = TypeVar("T")
FLOATS = (torch.float16, torch.bfloat16, torch.float32)

# torch has classes for CUDA errors; some arrive as a RuntimeError with one of these prefixes.
CUDA_ERRORS = (torch.AcceleratorError, torch.cuda.CudaError)
CUDA_TEXTS = ("CUDA error", "Triton Error [CUDA]")


# ---------------------------------------------------------------------------------------------
# Exceptions


class TritonKernelError(Exception):
    """Base class of every exception that this file raises."""


class InputValidationError(TritonKernelError, ValueError):
    """Invalid arguments; nothing was launched.

    Attributes:
        problems: one string per problem, `name: expected ..., got ...`, in the order of the
            arguments.
    """

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = list(problems)

    def __reduce__(self) -> tuple[type[InputValidationError], tuple[list[str]]]:
        return type(self), (self.problems,)  # otherwise unpickling passes the joined text


class InputTypeError(InputValidationError, TypeError):
    """Invalid arguments whose problems are all Python types or dtypes."""


class KernelCompilationError(TritonKernelError):
    """Triton's compiler rejected the kernel; ``__cause__`` is its error."""


class KernelResourceError(TritonKernelError):
    """A launch requires more resources than the device has.

    Attributes:
        required: the amount that the launch needs; 0 if unknown.
        limit: the amount that the device has; 0 if unknown.
        resource: the name of the resource, such as "shared memory".
    """

    def __init__(self, message: str, required: int = 0, limit: int = 0,
                 resource: str = "device memory") -> None:
        super().__init__(message)
        self.required = required
        self.limit = limit
        self.resource = resource


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


class _Problems:
    """Collects the problems of arguments and raises them together."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._only_types = True

    def of_type(self, name: str, expected: object, got: object) -> None:
        self._texts.append(f"{name}: expected {expected}, got {got}")

    def of_value(self, name: str, expected: object, got: object) -> None:
        self._texts.append(f"{name}: expected {expected}, got {got}")
        self._only_types = False

    def raise_if_any(self) -> None:
        if self._texts:
            raise (InputTypeError if self._only_types else InputValidationError)(self._texts)


def validate_matmul(
    a: torch.Tensor,
    b: torch.Tensor,
    out: torch.Tensor | None = None,
    *,
    allowed: tuple[torch.dtype, ...] = FLOATS,
) -> MatmulProblem:
    """Checks all arguments of a matrix product before anything is allocated or launched.

    Any strides and sizes of zero are valid. All tensors must be on one device.

    Args:
        a: (M, K), of an allowed dtype.
        b: (K, N), of a's dtype, on a's device.
        out: (M, N), likewise, or None. It may not share memory with a or b: programs run in any
            order, and one could read what another has written.
        allowed: the supported dtypes.

    Raises:
        InputTypeError: every problem is a Python type or a dtype.
        InputValidationError: otherwise. Both list all problems in ``problems``.
    """
    problems = _Problems()
    _check_tensor(problems, "a", a, allowed)
    _check_tensor(problems, "b", b, allowed, like=a)
    if _is_matrix(a) and _is_matrix(b) and a.shape[1] != b.shape[0]:
        problems.of_value("b", f"{a.shape[1]} rows, as many as a has columns", _shape(b))
    if out is not None:
        _check_tensor(problems, "out", out, allowed, like=a)
        if _is_matrix(a) and _is_matrix(b) and _is_matrix(out):
            shape = (a.shape[0], b.shape[1])
            if tuple(out.shape) != shape:
                problems.of_value("out", f"shape {shape}", _shape(out))
        for name, tensor in (("a", a), ("b", b)):
            if shared := _shared_bytes(out, tensor):
                problems.of_value("out", "memory of its own", f"{shared} bytes shared with {name}")
    problems.raise_if_any()
    return MatmulProblem(a.shape[0], b.shape[1], a.shape[1], a.dtype, a.device)


def _check_tensor(problems: _Problems, name: str, value: Any, allowed: tuple[torch.dtype, ...],
                  like: Any = None) -> None:
    """Checks one argument alone, and against ``like``, the argument a."""
    if not isinstance(value, torch.Tensor):
        problems.of_type(name, "a torch.Tensor", _kind(value))
        return
    if isinstance(like, torch.Tensor) and like.dtype in allowed:
        if value.dtype != like.dtype:
            problems.of_type(name, f"{like.dtype} like a", value.dtype)
    elif value.dtype not in allowed:
        problems.of_type(name, " or ".join(map(str, allowed)), value.dtype)
    if value.dim() != 2:
        problems.of_value(name, "2 dimensions", f"{value.dim()} in {_shape(value)}")
    if isinstance(like, torch.Tensor) and value.device != like.device:
        problems.of_value(name, f"device {like.device} like a", value.device)


def _is_matrix(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.dim() == 2


def _shape(tensor: torch.Tensor) -> str:
    return f"shape {tuple(tensor.shape)}"


def _kind(value: Any) -> str:
    """The type's name. An object's repr may contain its address or be very long."""
    return "None" if value is None else type(value).__name__


def _shared_bytes(one: Any, other: Any) -> int:
    """Bytes in the intersection of two address ranges, from first to last element of each."""
    spans = []
    for tensor in (one, other):
        if not isinstance(tensor, torch.Tensor) or not tensor.numel() or tensor.is_meta:
            return 0
        last = sum((size - 1) * stride
                   for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
        start = tensor.data_ptr()
        spans.append((tensor.device, start, start + (last + 1) * tensor.element_size()))
    (device, start, end), (other_device, other_start, other_end) = spans
    return max(0, min(end, other_end) - max(start, other_start)) if device == other_device else 0


def pick_block(n: int) -> int:
    """Returns a block size for n elements: 64 below 1,000, 256 below 100,000, otherwise 1,024.

    Large blocks for few elements leave most SMs idle; small blocks for many elements spend the time
    on starting programs.

    Raises:
        InputTypeError: n is not an int.
        InputValidationError: n is negative.
    """
    problems = _Problems()
    if isinstance(n, bool) or not isinstance(n, int):
        problems.of_type("n", "an int", _kind(n))
    elif n < 0:
        problems.of_value("n", "0 or more", n)
    problems.raise_if_any()
    return 64 if n < 1_000 else 256 if n < 100_000 else 1_024


# ---------------------------------------------------------------------------------------------
# The kernel and its launch


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


def safe_launch(
    launch: Callable[[], T],
    *,
    op: str,
    synchronize: Callable[[], None] | None = None,
) -> T:
    """Returns ``launch()``, and translates its failures to exceptions of this file.

    Only failures that a caller can act on are translated; the original is the ``__cause__``. Bugs,
    Ctrl-C and exceptions of this file pass through unchanged.

    Args:
        launch: launches kernels.
        op: the operation, for messages.
        synchronize: waits for the device, so that its errors are raised here and not by a later
            call. For debugging, since nothing overlaps if the host waits after each launch.

    Raises:
        KernelCompilationError: Triton's compiler rejected a kernel.
        KernelResourceError: shared memory, registers, threads or device memory do not suffice.
        KernelExecutionError: CUDA reported an error.
    """
    try:
        result = launch()
        if synchronize is not None:
            synchronize()
        return result
    except TritonKernelError:
        raise
    except triton.CompilationError as error:
        raise KernelCompilationError(f"{op}: the kernel does not compile: {error}") from error
    except triton.OutOfResources as error:
        message = f"{op}: {error.required} of {error.name} required, {error.limit} available"
        raise KernelResourceError(message, error.required, error.limit, error.name) from error
    except torch.OutOfMemoryError as error:
        raise KernelResourceError(f"{op}: out of device memory: {error}") from error
    except CUDA_ERRORS as error:
        raise KernelExecutionError(f"{op}: the device failed: {error}") from error
    except RuntimeError as error:
        if not str(error).startswith(CUDA_TEXTS):
            raise
        raise KernelExecutionError(f"{op}: the device failed: {error}") from error


_checking: ContextVar[bool] = ContextVar("_checking", default=False)  # one value per thread


@contextmanager
def checked_outputs() -> Iterator[None]:
    """Inside it, `matmul_robust` raises KernelExecutionError if a result is not finite.

    For debugging: it reads each result once more and waits for the device. Blocks may be nested.
    When an inner block ends, normally or by an exception, the outer one stays in effect.
    """
    token = _checking.set(True)
    try:
        yield
    finally:
        _checking.reset(token)


# ---------------------------------------------------------------------------------------------
# The robust product


def matmul_robust(
    a: torch.Tensor,
    b: torch.Tensor,
    *,
    configs: Sequence[Config] = DEFAULT,
    policy: Literal["raise", "fallback"] = "raise",
    launch: Callable[[torch.Tensor, torch.Tensor, torch.Tensor, Config], None] | None = None,
) -> torch.Tensor:
    """Returns a @ b as a new contiguous tensor, with the first configuration that fits the GPU.

    Each configuration is launched at most once. Only a lack of resources leads to the next one: a
    smaller tile does not fix a bug, and after a device error no result can be trusted.

    Args:
        a: (M, K), of float16, bfloat16 or float32.
        b: (K, N), of a's dtype, on a's device.
        configs: the configurations to try, the largest first.
        policy: the reaction if none of them fits. "raise" raises; "fallback" calls
            `torch.matmul`, warns once, and increments ``matmul_robust.fallbacks``.
        launch: called with a, b, the result and a configuration; None means `launch_matmul`.

    Raises:
        InputValidationError, InputTypeError: before any launch, with either policy.
        KernelResourceError: no configuration fits, and ``policy`` is "raise".
        KernelCompilationError, KernelExecutionError: a launch failed in this way.
    """
    problem = _validated(a, b, configs, policy)
    out = torch.empty((problem.M, problem.N), dtype=problem.dtype, device=problem.device)
    if out.numel() == 0:
        return out  # nothing to compute, so nothing is launched

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
            warnings.warn(f"matmul: torch.matmul replaces the kernel: {error}",
                          RuntimeWarning, stacklevel=2)
            matmul_robust.fallbacks += 1
            out = torch.matmul(a, b)  # drops whatever a failed launch may have written
    if _checking.get():
        _check_finite(out)
    return out


matmul_robust.fallbacks = 0  # how often torch.matmul replaced the kernel


def _validated(a: torch.Tensor, b: torch.Tensor, configs: Sequence[Config],
               policy: str) -> MatmulProblem:
    if not configs:
        raise InputValidationError(["configs: expected at least one Config, got none"])
    if policy not in ("raise", "fallback"):
        raise InputValidationError([f"policy: expected 'raise' or 'fallback', got {policy!r}"])
    return validate_matmul(a, b)


def _check_finite(result: torch.Tensor) -> None:
    finite = result.isfinite()
    if not finite.all():
        wrong = result.numel() - int(finite.sum())
        raise KernelExecutionError(
            f"matmul: {wrong} of {result.numel()} elements of the result are NaN or infinite")


if __name__ == "__main__":
    import tritonlab

    tritonlab.run_public_cases(__file__)
