"""The inputs of a grade, drawn from its seed: every case has random numbers of its own.

While idle, inputs of a later grade are prepared, with their decoys and references. They depend on
the suite and on a seed alone, which is drawn here, used for one grade and published in its report
only. All stays in the judge's memory, which no child can read; a child gets its part when its turn
comes, as ever.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, is_dataclass
from random import Random
from typing import Any

import torch

from grader.diagnosis.difference import as_tuple
from grader.judge import oversized
from grader.processes import decoy_inputs
from grader.recording.arena import SparseTensor
from grader.recording.model import Recording
from grader.suite import Case, Function, Input, Sparse, Suite
from grader.suite.inputs import DEFAULT_BLOCK
from grader.suite.sizes import Drawn, Sizes

LARGEST_BLOCK = 1 << 16  # that a case is sized by
MOST_BYTES = 24 << 20  # of all tensors that are kept; further cases are drawn when they are judged


class Draws:
    """The seed, and the blocks that sizes may follow: those of the learner's own launches."""

    def __init__(self, suite: str, seed: str = "") -> None:
        """``suite`` is its name. Without a hexadecimal seed, one is drawn with the first inputs."""
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
            if isinstance(spec, Sparse):
                drawn.append(_sparse(spec, generator))
            elif not isinstance(spec, Input):
                drawn.append(spec)
            elif outlines and (outline := spec.outline(block)) is not None:
                drawn.append(SparseTensor(outline))
            else:
                with torch.device(device) if device != "cpu" else nullcontext():
                    drawn.append(spec.draw(generator, block))
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


# ---------------------------------------------------------------------------------------------
# Prepared inputs


@dataclass
class _Ready:
    """The prepared inputs and references of one case."""

    inputs: decoy_inputs.Drawn
    block: int | None  # that its sizes follow; None where they follow none
    values: dict[str, Any]  # of the reference and the amplitude, by their names


class Prepared(Draws):
    """Draws of which some are there already."""

    def __init__(self, suite: Suite, blocks: Mapping[str, int] | None = None) -> None:
        """Nothing is drawn yet; ``blocks`` are those that cases were sized by the last time."""
        super().__init__(suite.name, secrets.token_hex(16))
        self.sized_by = dict(blocks or {})  # by case
        self._whole = suite
        self._ready: dict[str, _Ready] = {}
        self._in_use: dict[tuple[int, ...], _Ready] = {}  # by the ids of its inputs
        self._room = MOST_BYTES
        self._used = False

    def is_for(self, suite: Suite) -> bool:
        """Whether a grade with this suite may use it; one may, and no further one."""
        fits = not self._used and (self._whole.name, self._whole.sha256) == (
            suite.name, suite.sha256)
        self._used |= fits
        return fits

    def steps(self) -> Iterator[None]:
        """Prepares case after case; between two of them it can be left."""
        parts = {part.entry: part for part in self._whole.parts}
        first = next(iter(parts.values()))
        for listed in self._whole.ordered():
            sizes = listed.sizes and self.sizes(listed.name, listed.sizes)
            for case in map(listed.at, sizes) if sizes else [listed]:
                if oversized.runs_whole(case) and not (case.raises or oversized.has_holes(case)):
                    self._prepare(case, parts.get(case.function, first))
                    yield
                if self._room < 0:
                    return

    def _prepare(self, case: Case, part: Function) -> None:
        block = self.sized_by.get(case.name, DEFAULT_BLOCK) if case.follows_block else None
        inputs = super().draw(case.name, case.inputs, block or DEFAULT_BLOCK)
        ready = _Ready(decoy_inputs.Drawn(inputs, decoy_inputs.decoys(inputs)), block, {
            name: function(*inputs) for name, function in functions_of(part).items()})
        self._ready[case.name] = ready
        values = (*ready.inputs, *ready.inputs.decoys, *_tensors(tuple(ready.values.values())))
        self._room -= sum(value.untyped_storage().nbytes() for value in values
                          if isinstance(value, torch.Tensor))

    def draw(self, name: str, specs: Sequence[Any], block: int = DEFAULT_BLOCK, *,
             outlines: bool = False, device: str = "cpu") -> list[Any]:
        self.sized_by[name] = block
        ready = self._ready.pop(name, None)
        if ready is None or outlines or device != "cpu" or ready.block not in (None, block):
            return super().draw(name, specs, block, outlines=outlines, device=device)
        self._in_use[tuple(map(id, ready.inputs))] = ready
        return ready.inputs

    def known(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """A reference or an amplitude; what it gives for prepared inputs is there already."""
        def value(*inputs: Any) -> Any:
            key = tuple(map(id, inputs))
            ready = self._in_use.get(key)
            if ready is None or name not in ready.values:
                return function(*inputs)
            prepared = ready.values.pop(name)
            if not ready.values:
                del self._in_use[key]
            return prepared

        return value


def functions_of(part: Function) -> dict[str, Callable[..., Any]]:
    """The reference and the amplitude of a function, by name."""
    amplitude = part.tolerance.amplitude
    return {f"reference of {part.entry}": part.reference,
            **({f"amplitude of {part.entry}": amplitude} if amplitude else {})}


def _tensors(value: Any) -> Iterator[Any]:
    """All that a reference or an amplitude holds."""
    if is_dataclass(value):
        value = tuple(vars(value).values())
    for part in as_tuple(value):
        yield from _tensors(part) if is_dataclass(part) else (part,)
