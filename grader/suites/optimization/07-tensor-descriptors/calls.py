"""Calls `desc_problem`, and detects whether scratch memory is provided."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from triton.runtime import _allocation


def reason(module: Any, view: str, dtype: str, shape: Sequence[int], strides: Sequence[int],
           offset: int, block: Sequence[int]) -> Any:
    """Returns the result of ``desc_problem`` for a view; ``view`` is its name."""
    reach = offset + sum((size - 1) * step for size, step in zip(shape, strides, strict=True))
    memory = torch.zeros(max(1, reach + 1), dtype=getattr(torch, dtype))
    return module.desc_problem(memory.as_strided(shape, strides, offset), list(block))


def provides_scratch(module: Any) -> bool:
    """Returns whether an allocator is set after the launch of a kernel with descriptors."""
    a, b_t = torch.ones(16, 32, dtype=torch.float16), torch.ones(24, 32, dtype=torch.float16)
    module.matmul_desc(a, b_t, host=False)
    return not isinstance(_allocation._allocator.get(), _allocation.NullAllocator)
