"""The classes of the contract, and what turns the failure of a launch into one of them."""

from __future__ import annotations


class TritonKernelError(Exception):
    """The root of all errors of this package."""


class InputValidationError(TritonKernelError, ValueError):
    """Arguments that the contract excludes; ``problems`` has one sentence for each."""

    def __init__(self, problems: list[str]) -> None:
        ...


class InputTypeError(InputValidationError, TypeError):
    """As above, where every problem is a Python type or a dtype."""


class KernelCompilationError(TritonKernelError):
    """Triton's compiler refused the kernel."""


class KernelResourceError(TritonKernelError):
    """The device has too little; ``required``, ``limit`` and ``resource`` say of what."""

    def __init__(self, message: str, required: int, limit: int, resource: str) -> None:
        ...


class KernelExecutionError(TritonKernelError):
    """The device failed while the kernel ran, or a result is not finite."""
