"""One sentence about the package."""

from __future__ import annotations

from addrmsnorm.api import Config, add_rms_norm
from addrmsnorm.errors import (
    InputTypeError,
    InputValidationError,
    KernelCompilationError,
    KernelExecutionError,
    KernelResourceError,
    TritonKernelError,
)
from addrmsnorm.kernel import add_rms_norm_kernel

__version__ = "0.0.0"  # not released yet

__all__ = [
    "Config",
    "InputTypeError",
    "InputValidationError",
    "KernelCompilationError",
    "KernelExecutionError",
    "KernelResourceError",
    "TritonKernelError",
    "__version__",
    "add_rms_norm",
    "add_rms_norm_kernel",
]
