"""Inputs of a suite, drawn by the judge from a fresh random seed."""

from __future__ import annotations

import functools
import mmap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from grader.suite.mistakes import SuiteMistake, nearest

if TYPE_CHECKING:  # a course is listed without loading torch
    import torch

__all__ = ["FLOATS", "Input", "Size", "Sparse", "equal_rows", "extremes", "full", "integers",
           "rand", "row", "row_with", "rows", "special", "spike", "wide"]

Size = int | Callable[[int], int]  # a function gets the BLOCK_SIZE of the learner's own launch
FLOATS = ("float32", "float16", "bfloat16")  # the dtypes that most modules take
DTYPES = (*FLOATS, "float64", "float8_e4m3fn", "float8_e5m2", "int8", "int16", "int32", "int64",
          "uint8", "uint16", "uint32", "uint64", "bool", "complex64", "complex128")
DEFAULT_BLOCK = 1024  # where a launch names no BLOCK size


@dataclass(frozen=True)
class Input:
    """A tensor to be drawn: a family of values, sizes, a dtype, and the view that is handed over.

    ``rand(2, 64, 96)[:, ::2]`` draws a contiguous tensor and hands over the view, with the strides
    that indexing gives it.
    """

    make: Callable[[torch.Generator, tuple[int, ...]], torch.Tensor]
    sizes: tuple[Size, ...]
    dtype: str = "float32"
    view: tuple[Callable[[torch.Tensor], torch.Tensor], ...] = ()
    device: str = "cpu"
    strides: tuple[int, ...] = ()  # in elements, where they are not what the view has

    __iter__ = None  # otherwise `*rand(4)` would index for ever

    def __post_init__(self) -> None:
        if self.dtype not in DTYPES:
            raise SuiteMistake(f"'{self.dtype}' is not a dtype.{nearest(str(self.dtype), DTYPES)}",
                               "Write the name that torch has for it, such as 'float16'.")
        for size in self.sizes:
            if isinstance(size, list | tuple):
                raise SuiteMistake(f"an input has the {type(size).__name__} {size!r} for a size.",
                                   "Write the sizes one by one, or * before it.")
            if not callable(size) and (not isinstance(size, int) or size < 0):
                raise SuiteMistake(f"an input has the size {size!r}.", "A size is a whole number "
                                   "from 0 on, or a function of the learner's block.")

    def draw(self, generator: torch.Generator, block: int) -> torch.Tensor:
        """The tensor: values rounded to ``dtype``, ``block`` elements being the learner's block."""
        import torch

        tensor = self._seen(self.make(generator, self._shape(block)).to(getattr(torch, self.dtype)))
        if self.strides:
            tensor = laid_out(tensor, self.strides)
        return tensor.to("meta") if self.device == "meta" else tensor

    def outline(self, block: int) -> torch.Tensor | None:
        """The tensor without its values, on torch's meta device: shape, strides and dtype.

        None where it cannot do without: integers may be places in another tensor, and some inputs
        take their shape from their values.
        """
        import torch

        dtype = getattr(torch, self.dtype)
        if not self.sizes or not dtype.is_floating_point:
            return None
        tensor = self._seen(torch.empty(self._shape(block), dtype=dtype, device="meta"))
        if self.strides:
            tensor = torch.empty_strided(tensor.shape, self.strides, dtype=dtype, device="meta")
        return tensor

    def _shape(self, block: int) -> tuple[int, ...]:
        return tuple(size(block) if callable(size) else size for size in self.sizes)

    def _seen(self, tensor: torch.Tensor) -> torch.Tensor:
        """The view of the drawn tensor that is handed over."""
        return functools.reduce(lambda view, step: step(view), self.view, tensor)

    def then(self, step: Callable[[torch.Tensor], torch.Tensor]) -> Input:
        """The same input seen through a view, such as ``.then(lambda t: t.expand(4, -1))``."""
        return replace(self, view=(*self.view, step))

    def __getitem__(self, index: Any) -> Input:
        return self.then(lambda tensor: tensor[index])

    @property
    def mT(self) -> Input:  # noqa: N802 - torch's own name
        return self.then(lambda tensor: tensor.mT)

    def apart(self, *strides: int) -> Input:
        """The same values with these strides, in elements, however far apart that puts them.

        What lies between them takes no memory.
        """
        return replace(self, strides=strides)

    def on_meta(self) -> Input:
        """The same shape on torch's ``meta`` device: stands for a second device without a GPU."""
        return replace(self, device="meta")


_NORESERVE = 0x4000  # MAP_NORESERVE, which the mmap module names only from Python 3.13 on


def laid_out(tensor: torch.Tensor, strides: Sequence[int]) -> torch.Tensor:
    """A copy with these strides, in elements. Its memory begins and ends with the tensor.

    Pages that hold no element take no memory.
    """
    import torch

    elements = 1 + sum((size - 1) * step for size, step in zip(tensor.shape, strides, strict=True))
    pages = mmap.mmap(-1, elements * tensor.element_size(),
                      flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE)
    whole = torch.frombuffer(pages, dtype=tensor.dtype)
    return whole.as_strided(tensor.shape, tuple(strides)).copy_(tensor)


def _normal(generator: torch.Generator, shape: tuple[int, ...]) -> torch.Tensor:
    """Normally distributed values, float64."""
    import torch

    return torch.randn(shape, generator=generator, dtype=torch.float64)


def rand(*sizes: Size, dtype: str = "float32", mean: float = 0.0, std: float = 1.0) -> Input:
    """Normally distributed values; integers for integer dtypes (uniform in [-1000, 1000])."""
    if dtype.startswith(("int", "uint")):
        return integers(*sizes, low=-1000, high=1000, dtype=dtype)
    return Input(lambda generator, shape: _normal(generator, shape) * std + mean, sizes, dtype)


def integers(*sizes: Size, low: int = -4, high: int = 4, dtype: str = "float32") -> Input:
    """Whole numbers from low to high, whatever the dtype: arithmetic on them is exact."""
    import torch

    return Input(lambda generator, shape: torch.randint(
        low, high + 1, shape, generator=generator, dtype=torch.int64), sizes, dtype)


def wide(*sizes: Size, dtype: str = "float32", decades: float = 3.0) -> Input:
    """Normal values times 10 ** U(-decades, decades): small and large side by side."""
    import torch

    def make(generator: torch.Generator, shape: tuple[int, ...]) -> torch.Tensor:
        values = _normal(generator, shape)
        exponent = torch.rand(shape, generator=generator, dtype=torch.float64)
        return values * 10 ** ((2 * exponent - 1) * decades)

    return Input(make, sizes, dtype)


def special(*sizes: Size, values: Sequence[float], share: float = 0.1, dtype: str = "float32",
            mean: float = 0.0, std: float = 1.0) -> Input:
    """Normal values with a share of the elements replaced by each of ``values`` in turn.

    At least one element gets each value where the tensor is large enough.
    """
    import torch

    def make(generator: torch.Generator, shape: tuple[int, ...]) -> torch.Tensor:
        tensor = _normal(generator, shape) * std + mean
        flat = tensor.view(-1)
        if flat.numel():
            count = min(flat.numel(), max(len(values), int(share * flat.numel())))
            places = torch.randperm(flat.numel(), generator=generator)[:count]
            chosen = torch.tensor(values, dtype=torch.float64).repeat(count // len(values) + 1)
            flat[places] = chosen[:count]
        return tensor

    return Input(make, sizes, dtype)


def rows(*patterns: Sequence[float] | Callable[[torch.Generator], torch.Tensor],
         dtype: str = "float32") -> Input:
    """A matrix with the given rows; a pattern is a list of numbers or draws from the generator."""
    import torch

    return Input(lambda generator, shape: torch.stack([
        pattern(generator).double() if callable(pattern) else
        torch.tensor(pattern, dtype=torch.float64) for pattern in patterns]), (), dtype)


def full(*sizes: Size, value: float, dtype: str = "float32") -> Input:
    """One value everywhere; only ever beside cases with other inputs."""
    import torch

    return Input(lambda generator, shape: torch.full(shape, value, dtype=torch.float64),
                 sizes, dtype)


# Rows for `rows(...)`, and values that make the usual mistakes visible.

Row = Callable[["torch.Generator"], "torch.Tensor"]


def row(columns: int, places: dict[int, float] | None = None, mean: float = 0.0) -> Row:
    """Normal values around ``mean``, with a number at each of ``places``."""
    def draw(generator: torch.Generator) -> torch.Tensor:
        values = _normal(generator, (columns,)) + mean
        for place, value in (places or {}).items():
            values[place] = value
        return values

    return draw


def row_with(columns: int, value: float, start: int, stop: int) -> Row:
    """Normal values, and ``value`` in the columns from start to stop."""
    def draw(generator: torch.Generator) -> torch.Tensor:
        values = _normal(generator, (columns,))
        values[start:stop] = value
        return values

    return draw


def spike(columns: int, dtype: str = "float32") -> Input:
    """One value far above all others: in the middle, in the last column, above negative ones.

    Shows a maximum or a sum that leaves out blocks, and one that starts at 0 instead of -inf.
    """
    return rows(row(columns, {columns // 2: 250.0}), row(columns, {columns - 1: 300.0}),
                row(columns, {columns // 2: 200.0}, mean=-100.0), dtype=dtype)


def equal_rows(count: int, columns: int, dtype: str = "float32") -> Input:
    """Rows of one value each, drawn for each row: the variance is 0, every share is 1 / columns."""
    return rand(count, 1, dtype=dtype).then(lambda t: t.repeat(1, columns))


def extremes(dtype: str) -> list[float]:
    """The largest finite value, half of it, and both below zero: for `special`."""
    import torch

    largest = torch.finfo(getattr(torch, dtype)).max
    return [largest, -largest, largest / 2, -largest / 2]


@dataclass(frozen=True)
class Sparse:
    """A tensor of more elements than this machine could hold: only ``windows`` are ever touched.

    ``windows`` are the ``span`` first and last elements; the rest is a hole in shared memory.
    """

    elements: int
    dtype: str = "float32"
    span: int = 1 << 16
