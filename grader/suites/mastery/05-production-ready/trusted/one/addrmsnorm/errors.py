"""The classes of the contract, and the failures of a launch that become some of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
import triton


class TritonKernelError(Exception):
    pass


class InputValidationError(TritonKernelError, ValueError):
    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = list(problems)
        super().__init__(self.problems)

    def __str__(self) -> str:
        return "\n".join(self.problems)


class InputTypeError(InputValidationError, TypeError):
    pass


class KernelCompilationError(TritonKernelError):
    pass


class KernelResourceError(TritonKernelError):
    def __init__(self, required: int, limit: int, resource: str) -> None:
        self.required, self.limit, self.resource = required, limit, resource
        super().__init__(required, limit, resource)

    def __str__(self) -> str:
        return f"{self.resource}: {self.required} needed, {self.limit} there"


class KernelExecutionError(TritonKernelError):
    pass


def safe_launch(launch: Callable[[], object]) -> None:
    try:
        launch()
    except triton.CompilationError as error:
        raise KernelCompilationError(str(error)) from error
    except triton.OutOfResources as error:
        raise KernelResourceError(error.required, error.limit, error.name) from error
    except torch.OutOfMemoryError as error:
        raise KernelResourceError(0, 0, "device memory") from error
    except (torch.AcceleratorError, torch.cuda.CudaError) as error:
        raise KernelExecutionError(str(error)) from error
    except RuntimeError as error:
        if str(error).startswith(("CUDA error", "Triton Error [CUDA]")):
            raise KernelExecutionError(str(error)) from error
        raise
