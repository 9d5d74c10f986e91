"""Tests of the contract of `add_rms_norm`.

Each carries one of the markers of pyproject.toml: unit, edge, property, regression, and gpu for
what is skipped without one. They import from `addrmsnorm` what its `__init__.py` exports, nothing
else: the grader runs them against other packages with the same interface.
"""

from __future__ import annotations

import os

import torch

if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")  # before Triton is imported

# Unit: what the contract promises for ordinary inputs

# Edge: where inputs end

# Property: what holds for any input

# Regression: mistakes that were made once

# GPU: what no interpreter can show
