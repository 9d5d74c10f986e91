"""The exceptions of the package, and the translation of launch failures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
import triton

# torch has classes for CUDA errors; some arrive as a RuntimeError with one of these prefixes.
_CUDA_ERRORS = (torch.AcceleratorError, torch.cuda.CudaError)
_CUDA_TEXTS = ("CUDA error", "Triton Error [CUDA]")


class TritonKernelError(Exception):
    """Base class of all exceptions of this package."""


class InputValidationError(TritonKernelError, ValueError):
    """Invalid arguments; nothing was launched.

    Attributes:
        problems: one sentence per problem, `name: expected ..., got ...`, in the order of the
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
    """The launch requires more resources than the device has.

    Attributes:
        required: the amount that the launch needs; 0 if unknown.
        limit: the amount that the device has; 0 if unknown.
        resource: the name of the resource, such as "shared memory".
    """

    def __init__(self, message: str, required: int = 0, limit: int = 0,
                 resource: str = "memory") -> None:
        super().__init__(message)
        self.required = required
        self.limit = limit
        self.resource = resource

    def __reduce__(self) -> tuple[type[KernelResourceError], tuple[str, int, int, str]]:
        return type(self), (str(self), self.required, self.limit, self.resource)


class KernelExecutionError(TritonKernelError):
    """The device failed while the kernel ran, or `check_outputs` found NaN or infinity."""


@contextmanager
def translated(op: str) -> Iterator[None]:
    """Inside the block, launch failures become exceptions of this package.

    Only failures that a caller can act on are translated; the original is the ``__cause__``. Bugs,
    Ctrl-C and this package's own exceptions pass through unchanged.

    Args:
        op: the operation, for the message.

    Raises:
        KernelCompilationError: Triton's compiler rejected the kernel.
        KernelResourceError: memory, shared memory, registers or threads do not suffice.
        KernelExecutionError: CUDA reported an error.
    """
    try:
        yield
    except triton.CompilationError as error:
        raise KernelCompilationError(f"{op}: the kernel does not compile: {error}") from error
    except triton.OutOfResources as error:
        message = f"{op}: {error.required} of {error.name} required, {error.limit} available"
        raise KernelResourceError(message, error.required, error.limit, error.name) from error
    except torch.OutOfMemoryError as error:
        raise KernelResourceError(f"{op}: out of device memory: {error}") from error
    except _CUDA_ERRORS as error:
        raise KernelExecutionError(f"{op}: the device failed: {error}") from error
    except RuntimeError as error:
        if isinstance(error, TritonKernelError) or not str(error).startswith(_CUDA_TEXTS):
            raise
        raise KernelExecutionError(f"{op}: the device failed: {error}") from error
