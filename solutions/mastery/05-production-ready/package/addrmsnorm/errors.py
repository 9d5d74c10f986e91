"""What can go wrong, as classes that a caller can tell apart, and who turns what into which."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
import triton

# CUDA's own failures have classes in torch; some arrive as a RuntimeError with one of these texts.
_CUDA_ERRORS = (torch.AcceleratorError, torch.cuda.CudaError)
_CUDA_TEXTS = ("CUDA error", "Triton Error [CUDA]")


class TritonKernelError(Exception):
    """The root of all errors of this package: catch it to catch them all."""


class InputValidationError(TritonKernelError, ValueError):
    """Arguments that the contract excludes; nothing was launched.

    Attributes:
        problems: one sentence for each problem, `name: expected ..., got ...`, in the order of the
            arguments.
    """

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = list(problems)

    def __reduce__(self) -> tuple[type[InputValidationError], tuple[list[str]]]:
        return type(self), (self.problems,)  # by default a copy would get the joined text


class InputTypeError(InputValidationError, TypeError):
    """As above, where every problem is a Python type or a dtype."""


class KernelCompilationError(TritonKernelError):
    """Triton's compiler refused the kernel; the cause says why."""


class KernelResourceError(TritonKernelError):
    """The launch asks for more than the device has.

    Attributes:
        required: how much was asked for; 0 where that is not known.
        limit: how much there is; 0 where that is not known.
        resource: of what, such as "shared memory".
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
    """The device failed while the kernel ran, or `check_outputs` found a result that is not finite.
    """


@contextmanager
def translated(op: str) -> Iterator[None]:
    """Inside the block, failures of a launch become errors of this package.

    Only what a caller can act on is translated. A bug, Ctrl-C and this package's own errors pass
    through as they are; the original stays reachable as ``__cause__``.

    Args:
        op: the operation, for the message.

    Raises:
        KernelCompilationError: for a refusal of Triton's compiler.
        KernelResourceError: for too little memory, shared memory, registers or threads.
        KernelExecutionError: for an error of CUDA.
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
