"""Residual addition and RMS normalization in one kernel: the step between two transformer layers.

This file exports the public interface; changes to it decide the next version number.
"""

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
