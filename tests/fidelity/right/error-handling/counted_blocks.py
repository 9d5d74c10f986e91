"""Right but different: blocks are counted, storages compared, a grid of two axes."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from contextlib import ContextDecorator
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import torch
import triton
import triton.language as tl

T = TypeVar("T")
FLOATS = (torch.float16, torch.bfloat16, torch.float32)
CUDA_ERRORS = (torch.AcceleratorError, torch.cuda.CudaError)
CUDA_TEXTS = ("CUDA error", "Triton Error [CUDA]")


class TritonKernelError(Exception):
    pass


class InputValidationError(TritonKernelError, ValueError):

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = list(problems)

    def __reduce__(self) -> tuple[type[InputValidationError], tuple[list[str]]]:
        return type(self), (self.problems,)  # a copy would be made of the joined text otherwise


class InputTypeError(InputValidationError, TypeError):
    pass


class KernelCompilationError(TritonKernelError):
    pass


class KernelResourceError(TritonKernelError):

    def __init__(self, message: str, required: int = 0, limit: int = 0,
                 resource: str = "device memory") -> None:
        super().__init__(message)
        self.required = required
        self.limit = limit
        self.resource = resource


class KernelExecutionError(TritonKernelError):
    pass


@dataclass(frozen=True)
class MatmulProblem:

    M: int
    N: int
    K: int
    dtype: torch.dtype
    device: torch.device


class _Problems:

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
    found = _Problems()
    _check_tensor(found, "a", a, allowed)
    _check_tensor(found, "b", b, allowed, like=a)
    if _is_matrix(a) and _is_matrix(b) and a.shape[1] != b.shape[0]:
        found.of_value("b", f"{a.shape[1]} rows, as many as a has columns", _shape(b))
    if out is not None:
        _check_tensor(found, "out", out, allowed, like=a)
        if _is_matrix(a) and _is_matrix(b) and _is_matrix(out):
            shape = (a.shape[0], b.shape[1])
            if tuple(out.shape) != shape:
                found.of_value("out", f"shape {shape}", _shape(out))
        for name, tensor in (("a", a), ("b", b)):
            if shared := _shared_bytes(out, tensor):
                found.of_value("out", "memory of its own", f"{shared} bytes shared with {name}")
    found.raise_if_any()
    return MatmulProblem(a.shape[0], b.shape[1], a.shape[1], a.dtype, a.device)


def _check_tensor(found: _Problems, name: str, value: Any, allowed: tuple[torch.dtype, ...],
                  like: Any = None) -> None:
    if not isinstance(value, torch.Tensor):
        found.of_type(name, "a torch.Tensor", _kind(value))
        return
    if isinstance(like, torch.Tensor) and like.dtype in allowed:
        if value.dtype != like.dtype:
            found.of_type(name, f"{like.dtype} like a", value.dtype)
    elif value.dtype not in allowed:
        found.of_type(name, " or ".join(map(str, allowed)), value.dtype)
    if value.dim() != 2:
        found.of_value(name, "2 dimensions", f"{value.dim()} in {_shape(value)}")
    if isinstance(like, torch.Tensor) and value.device != like.device:
        found.of_value(name, f"device {like.device} like a", value.device)


def _is_matrix(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.dim() == 2


def _shape(tensor: torch.Tensor) -> str:
    return f"shape {tuple(tensor.shape)}"


def _kind(value: Any) -> str:
    return "None" if value is None else type(value).__name__


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


def pick_block(n: int) -> int:
    found = _Problems()
    if isinstance(n, bool) or not isinstance(n, int):
        found.of_type("n", "an int", _kind(n))
    elif n < 0:
        found.of_value("n", "0 or more", n)
    found.raise_if_any()
    return 64 if n < 1_000 else 256 if n < 100_000 else 1_024


@dataclass(frozen=True)
class Config:

    block_m: int
    block_n: int
    block_k: int
    num_warps: int
    num_stages: int


# Largest first. Compiled for an H100 by Triton 3.9, float32 takes 98,304, 32,768 and 4,096 bytes of
# shared memory, and 16 bits 65,536, 24,576 and 2,048. A program may have 232,448 of them there,
# 101,376 on an RTX 4090 and 65,536 on a T4.
DEFAULT = (
    Config(128, 128, 32, num_warps=8, num_stages=4),
    Config(64, 64, 32, num_warps=4, num_stages=3),
    Config(32, 32, 16, num_warps=4, num_stages=1),
)


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr,      # [M, K], [K, N], [M, N]
    M, N, K,
    stride_am, stride_ak,     # elements from one row to the next, and from one column
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


def safe_launch(
    launch: Callable[[], T],
    *,
    op: str,
    synchronize: Callable[[], None] | None = None,
) -> T:
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


matmul_robust.fallbacks = 0  # how often torch.matmul took the kernel's place


def _validated(a: torch.Tensor, b: torch.Tensor, configs: Sequence[Config],
               policy: str) -> MatmulProblem:
    if not configs:
        raise InputValidationError(["configs: expected at least one Config, got none"])
    if policy not in ("raise", "fallback"):
        raise InputValidationError([f"policy: expected 'raise' or 'fallback', got {policy!r}"])
    return validate_matmul(a, b)


def _check_finite(result: torch.Tensor) -> None:
    finite = (result - result) == 0
    if not finite.all():
        wrong = result.numel() - int(finite.sum())
        raise KernelExecutionError(
            f"matmul: {wrong} of {result.numel()} elements of the result are NaN or infinite")


if __name__ == "__main__":
    import tritonlab

    tritonlab.run_public_cases(__file__)
