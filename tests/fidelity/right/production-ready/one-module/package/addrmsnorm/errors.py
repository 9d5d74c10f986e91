"""The errors of the package, all but one of them a line."""

from __future__ import annotations

from typing import Any

import torch
import triton


class TritonKernelError(Exception):
    """Any error of this package."""


class InputValidationError(TritonKernelError, ValueError):
    """What was wrong with the arguments stands in `problems`."""

    @property
    def problems(self) -> list[str]:
        """One text for each."""
        return list(self.args[0])

    def __str__(self) -> str:
        return "Not accepted. " + " | ".join(self.problems)


class InputTypeError(InputValidationError, TypeError):
    """Types and dtypes only."""


class KernelCompilationError(TritonKernelError):
    """The compiler said no."""


class KernelResourceError(TritonKernelError):
    """Too little of `resource`: `required` is more than `limit`."""

    def __init__(self, required: int = 0, limit: int = 0, resource: str = "memory") -> None:
        super().__init__(required, limit, resource)
        self.required, self.limit, self.resource = required, limit, resource


class KernelExecutionError(TritonKernelError):
    """The device said no, or the results are not numbers."""


def translation(error: BaseException) -> TritonKernelError | None:
    """The error of this package that stands for another one, if there is any."""
    text = str(error)
    if isinstance(error, triton.OutOfResources):
        return KernelResourceError(error.required, error.limit, error.name)
    table: tuple[tuple[Any, type[TritonKernelError]], ...] = (
        (triton.CompilationError, KernelCompilationError),
        (torch.OutOfMemoryError, KernelResourceError),
        (torch.AcceleratorError, KernelExecutionError),
    )
    for kind, ours in table:
        if isinstance(error, kind):
            return ours() if ours is KernelResourceError else ours(text)
    if type(error) is RuntimeError and ("CUDA error" in text or "[CUDA]" in text):
        return KernelExecutionError(text)
    return None
