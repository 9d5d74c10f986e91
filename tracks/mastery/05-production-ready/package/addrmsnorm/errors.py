"""The exceptions of the contract, and the translation of launch failures."""

from __future__ import annotations


class TritonKernelError(Exception):
    """Base class of all exceptions of this package."""


class InputValidationError(TritonKernelError, ValueError):
    """Invalid arguments; ``problems`` has one sentence per problem."""

    def __init__(self, problems: list[str]) -> None:
        ...


class InputTypeError(InputValidationError, TypeError):
    """Invalid arguments whose problems are all Python types or dtypes."""


class KernelCompilationError(TritonKernelError):
    """Triton's compiler rejected the kernel."""


class KernelResourceError(TritonKernelError):
    """The device lacks ``resource``: the launch needs ``required`` and has ``limit``."""

    def __init__(self, message: str, required: int, limit: int, resource: str) -> None:
        ...


class KernelExecutionError(TritonKernelError):
    """The device failed while the kernel ran, or a result is not finite."""
