"""Pytest plugin that runs kernels on the grader's interpreter: ``pytest -p tritonlab.interpreter``.

Unlike Triton's own interpreter it rounds bfloat16 as a GPU does, and a launch that accesses memory
outside its tensors fails the test in which it happens. Everything runs on the CPU.
"""

import os

# Before torch and Triton are imported: kernels are compiled functions, which the plugin runs, and
# tests that ask for a GPU find none.
os.environ["TRITON_INTERPRET"] = "0"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import pytest

from grader.worker.pytest_runner import OnEngine


def pytest_configure(config: pytest.Config) -> None:
    """Runs the launches of this session on the grader's interpreter."""
    config.pluginmanager.register(OnEngine())
