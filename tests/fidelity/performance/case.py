"""One case of the performance set: host code at real size, and the defects that it was given."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch

Body = Callable[..., Any]
MANY = 1 << 27  # elements of a streaming tensor: far beyond what any L2 holds


@dataclass(frozen=True)
class Given:
    """A tensor that a case works on.

    ``below``: it holds indices, drawn under this number. ``offset``: elements between the start of
    its memory and its first.
    """

    shape: tuple[int, ...]
    dtype: str = "float32"
    below: int = 0
    offset: int = 0

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * getattr(torch, self.dtype).itemsize

    def make(self, device: str) -> torch.Tensor:
        """On a CPU its pages stay untouched, so that its size costs nothing."""
        dtype = getattr(torch, self.dtype)
        count = math.prod(self.shape)
        if self.below:
            random = torch.Generator(device).manual_seed(0)
            flat = torch.randint(self.below, (count,), generator=random, dtype=dtype,
                                 device=device)
        else:
            flat = torch.empty(count + self.offset, dtype=dtype, device=device)[self.offset:]
            if device != "cpu":
                if dtype.is_floating_point:
                    flat.copy_(torch.randn(count, device=device))
                else:
                    flat.zero_()
        return flat.view(self.shape)


def vectors(count: int, n: int = MANY, dtype: str = "float32") -> tuple[Given, ...]:
    return (Given((n,), dtype),) * count


def matrices(count: int, rows: int, columns: int, dtype: str = "float32") -> tuple[Given, ...]:
    return (Given((rows, columns), dtype),) * count


@dataclass(frozen=True)
class Case:
    """A kernel in one variant.

    ``finds``: the names of exactly those defects that it has; a good variant has none.
    ``moves``: the least bytes of the job; ``flops``: those of its products, two a multiplication.
    """

    name: str
    family: str
    given: tuple[Given, ...]
    body: Body
    finds: frozenset[str]
    moves: int
    flops: int

    @property
    def good(self) -> bool:
        return not self.finds

    def tensors(self, device: str) -> list[torch.Tensor]:
        return [given.make(device) for given in self.given]


class Family:
    """Cases that belong together; calling it makes a decorator that adds one."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.cases: list[Case] = []

    def __call__(self, name: str, given: Iterable[Given], finds: Iterable[str] | str = (), *,
                 moves: int = 0, flops: int = 0) -> Callable[[Body], Body]:
        tensors = tuple(given)
        found = frozenset((finds,) if isinstance(finds, str) else finds)
        least = moves or sum(tensor.nbytes for tensor in tensors)

        def add(body: Body) -> Body:
            self.cases.append(Case(name, self.name, tensors, body, found, least, flops))
            return body

        return add
