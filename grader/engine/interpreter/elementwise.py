"""``tl.map_elementwise``: a function of scalars, called with all elements that go the same way."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter

from grader.engine.interpreter.block_value import Array, Handle
from grader.engine.interpreter.errors import NotInterpreted
from grader.engine.interpreter.transaction import Diverged


def map_elementwise(scalar_fn: Any, *args: Any, pack: Any = 1, **_: Any) -> Any:
    """Triton's ``map_elementwise``: each element is to the function what a program is elsewhere."""
    if int(getattr(pack, "value", pack)) != 1:
        raise NotInterpreted("tl.map_elementwise with a pack of several elements")
    blocks = args[:1]
    for block in args[1:]:
        pairs = [interpreter.interpreter_semantic.broadcast_impl_value(known, block)
                 for known in blocks]
        blocks = (*(known for known, _ in pairs), pairs[0][1])
    shape = blocks[0].handle.shape
    programs = max(len(block.handle.data) for block in blocks)
    elements = [block.handle.full(programs).reshape(-1) for block in blocks]
    kinds = [block.dtype for block in blocks]
    results: list[Array] = []
    types: list[Any] = []

    def run(chosen: Array) -> None:
        scalars = [tl.tensor(Handle(data[chosen], kind), kind)
                   for data, kind in zip(elements, kinds, strict=True)]
        try:
            made = scalar_fn(*scalars)
        except Diverged as apart:
            for label in np.unique(apart.labels):
                run(chosen[apart.labels == label])
            return
        items = tuple(made) if isinstance(made, (tuple, tl.tuple)) else (made,)
        tensors = [interpreter.interpreter_semantic.to_tensor(item) for item in items]
        if not results:
            types.extend(item.dtype for item in tensors)
            results.extend(np.zeros(len(elements[0]), item.handle.data.dtype) for item in tensors)
            single.append(not isinstance(made, (tuple, tl.tuple)))
        for result, item in zip(results, tensors, strict=True):
            result[chosen] = item.handle.data

    single: list[bool] = []
    run(np.arange(len(elements[0])))
    made = tuple(
        tl.tensor(Handle(data.reshape(programs, *shape), kind, shape),
                  tl.block_type(kind, list(shape)) if shape else kind)
        for data, kind in zip(results, types, strict=True))
    return made[0] if single[0] else made
