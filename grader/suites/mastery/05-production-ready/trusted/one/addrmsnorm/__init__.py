"""Trusted code for the learner's tests: right, or wrong in one known way."""

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

__version__ = "1.0.0"

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
