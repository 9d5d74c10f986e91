"""The inputs of a grade, drawn from its seed: every case has random numbers of its own."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from contextlib import nullcontext
from random import Random
from typing import Any

import torch

from grader.recording.arena import SparseTensor
from grader.recording.model import Recording
from grader.suite import Input, Sparse
from grader.suite.sizes import Drawn, Sizes

DEFAULT_BLOCK = 1024  # where a launch names no BLOCK size
LARGEST_BLOCK = 1 << 16  # that a case is sized by


class Draws:
    """The seed, and the blocks that sizes may follow: those of the learner's own launches."""

    def __init__(self, suite: str, seed: str = "") -> None:
        """``suite`` is its name; without a seed (hexadecimal) one is drawn with the first inputs.
        """
        self.seed = seed
        self.blocks: dict[str, int] = {}  # by function, as far as launches were seen
        self._suite = suite

    def block(self, function: str = "") -> int:
        """The block that sizes of one function's cases follow."""
        return self.blocks.get(function, DEFAULT_BLOCK)

    def draw(self, name: str, specs: Sequence[Any], block: int = DEFAULT_BLOCK, *,
             outlines: bool = False, device: str = "cpu") -> list[Any]:
        """The inputs that belong to ``name`` and the seed.

        Args:
            block: the learner's own.
            outlines: tensors that need no values get none, and take no memory.
            device: where they are drawn; each has other values for the same seed.
        """
        generator = torch.Generator(device).manual_seed(self._number(name))
        drawn: list[Any] = []
        for spec in specs:
            outline = spec.outline(block) \
                if outlines and isinstance(spec, Input) else None
            if outline is not None:
                drawn.append(SparseTensor(outline))
            elif isinstance(spec, Input):
                with torch.device(device) if device != "cpu" else nullcontext():
                    drawn.append(spec.draw(generator, block))
            elif isinstance(spec, Sparse):
                drawn.append(_sparse(spec, generator))
            else:
                drawn.append(spec)
        return drawn

    def sizes(self, name: str, sizes: Sizes) -> list[Drawn]:
        """The sizes that belong to the case ``name`` and the seed."""
        return sizes.draw(Random(self._number(name)))

    def _number(self, name: str) -> int:
        """The number that seeds the random numbers of ``name``."""
        self.seed = self.seed or secrets.token_hex(16)
        key = f"{self.seed}/{self._suite}/{name}".encode()
        return int.from_bytes(hashlib.sha256(key).digest()[:8], "big")


def _sparse(spec: Sparse, generator: torch.Generator) -> SparseTensor:
    """Random values at the first and the last elements, zeros between."""
    dtype = getattr(torch, spec.dtype)
    values = torch.randn(2, spec.span, generator=generator, dtype=torch.float64).to(dtype)
    last = spec.elements - spec.span
    like = torch.empty(spec.elements, dtype=dtype, device="meta")
    return SparseTensor(like, ((0, values[0]), (last, values[1])))


def rolled(inputs: Sequence[Any]) -> list[Any]:
    """Another set of inputs of the same shapes and strides, made faster than by drawing.

    Each number has moved on by one place along the last dimension.
    """
    others: list[Any] = []
    for value in inputs:
        if isinstance(value, torch.Tensor) and value.dim():
            other = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype,
                                        device=value.device)
            others.append(other.copy_(value.roll(1, -1)))
        else:
            others.append(value)
    return others


def block_of(recording: Recording) -> int | None:
    """The block size of the first launch that names one, within what a case can be sized by."""
    for launch in recording.launches:
        for name, argument in launch.arguments.items():
            if name.upper().startswith("BLOCK") and argument.kind == "int":
                return min(max(int(argument.value), 1), LARGEST_BLOCK)
    return None
