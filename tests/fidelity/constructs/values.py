"""Seeded inputs, outputs that nobody wrote, and the shortest way to launch a kernel on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch


def floats(*shape: int, low: float = -4.0, high: float = 4.0, seed: int = 0,
           dtype: torch.dtype = torch.float32) -> torch.Tensor:
    values = np.random.default_rng(seed).uniform(low, high, shape)
    return torch.from_numpy(values).to(dtype)


def integers(*shape: int, low: int = -100, high: int = 100, seed: int = 0,
             dtype: torch.dtype = torch.int32) -> torch.Tensor:
    """Whole numbers, ``high`` included; a float type holds them exactly if it can."""
    values = np.random.default_rng(seed).integers(low, high, shape, np.int64, endpoint=True)
    return _from_numpy(values, dtype)


def whole(values: Any, dtype: torch.dtype = torch.int32) -> torch.Tensor:
    """Given whole numbers, those above the signed range included."""
    return _from_numpy(np.array(values, dtype=object), dtype)


def given(values: Any, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64).to(dtype)


def bits(of: torch.dtype, every: torch.dtype) -> torch.Tensor:
    """Every value of an 8- or 16-bit type, by its bits: ``bits(torch.int16, torch.float16)``."""
    size = 8 * of.itemsize
    patterns = np.arange(2**size).astype(f"u{of.itemsize}").view(f"i{of.itemsize}")
    return torch.from_numpy(patterns).view(every)


def exact(tensor: torch.Tensor) -> Any:
    """float64 or int64 values for computing what is expected."""
    if tensor.dtype.is_floating_point:
        narrow = tensor.to(torch.float32) if tensor.itemsize == 1 else tensor
        return narrow.double().numpy()
    if tensor.dtype == torch.uint64:
        return tensor.numpy()
    return tensor.numpy().astype(np.int64)


def wrapped(values: Any, dtype: torch.dtype) -> torch.Tensor:
    """Integers cut down to a type's bits."""
    return _from_numpy(np.asarray(values), dtype)


def _from_numpy(values: Any, dtype: torch.dtype) -> torch.Tensor:
    if dtype.is_floating_point or dtype == torch.bool:
        return torch.from_numpy(values).to(dtype)
    name = str(dtype).removeprefix("torch.")
    if values.dtype == object:
        size = 8 * dtype.itemsize
        values = np.array([int(v) % 2**size for v in values.reshape(-1)], np.uint64
                          ).reshape(values.shape)
    return torch.from_numpy(values.astype(np.dtype(name)))


@dataclass(frozen=True)
class Out:
    """A tensor that the kernel is to write: memory that nobody wrote, or filled with a value."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    fill: float | None

    def made(self, device: str) -> torch.Tensor:
        if self.fill is None:
            return torch.empty(self.shape, dtype=self.dtype, device=device)
        return torch.full(self.shape, self.fill, dtype=self.dtype, device=device)


def out(*shape: int, dtype: torch.dtype = torch.float32, fill: float | None = None) -> Out:
    return Out(shape, dtype, fill)


def launch(kernel: Any, device: str, *arguments: Any, grid: Any = (1,), **options: Any) -> Any:
    """Launch on the device; the outputs among the arguments, a tuple if there are several."""
    placed = [_placed(argument, device) for argument in arguments]
    named = {name: _placed(value, device) for name, value in options.items()}
    kernel[grid](*placed, **named)
    pairs = zip((*arguments, *options.values()), (*placed, *named.values()), strict=True)
    made = tuple(value for argument, value in pairs if isinstance(argument, Out))
    return made[0] if len(made) == 1 else made


def _placed(argument: Any, device: str) -> Any:
    if isinstance(argument, Out):
        return argument.made(device)
    return argument.to(device) if isinstance(argument, torch.Tensor) else argument
