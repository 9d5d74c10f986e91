"""Inputs of a later grade, prepared while idle, with their decoys and references.

They depend on the suite and on a seed alone, which is drawn here, used for one grade and published
in its report only. All stays in the judge's memory, which no child can read; a child gets its part
when its turn comes, as ever.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from typing import Any

import torch

from grader.diagnosis.difference import as_tuple
from grader.judge import oversized
from grader.judge.draws import DEFAULT_BLOCK, Draws
from grader.processes.decoy_inputs import Drawn, decoys
from grader.suite import Case, Function, Suite

MOST_BYTES = 24 << 20  # of all tensors that are kept; further cases are drawn when they are judged


@dataclass
class _Ready:
    """The prepared inputs and references of one case."""

    inputs: Drawn
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
        self._in_use: list[_Ready] = []
        self._room = MOST_BYTES
        self._used = False

    def is_for(self, suite: Suite) -> bool:
        """Whether a grade with this suite may use it; one may, and no further one."""
        fits = not self._used and (self._whole.name, self._whole.sha256) == (
            suite.name, suite.sha256)
        self._used |= fits
        return fits

    def steps(self) -> Iterator[None]:
        """Prepare case after case; between two of them it can be left."""
        parts = {part.entry: part for part in self._whole.parts}
        first = next(iter(parts.values()))
        for listed in self._whole.ordered():
            cases = [listed] if isinstance(listed, Case) else []
            if cases and cases[0].sizes:
                cases = [cases[0].at(size) for size in self.sizes(listed.name, cases[0].sizes)]
            for case in cases:
                if oversized.runs_whole(case) and not (case.raises or oversized.has_holes(case)):
                    self._prepare(case, parts.get(case.function, first))
                    yield
                if self._room < 0:
                    return

    def _prepare(self, case: Case, part: Function) -> None:
        block = self.sized_by.get(case.name, DEFAULT_BLOCK) if case.follows_block else None
        inputs = super().draw(case.name, case.inputs, block or DEFAULT_BLOCK)
        ready = _Ready(Drawn(inputs, decoys(inputs)), block, {
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
        self._in_use.append(ready)
        return ready.inputs

    def known(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """A reference or an amplitude; what it gives for prepared inputs is there already."""
        def value(*inputs: Any) -> Any:
            for number, ready in enumerate(self._in_use):
                if name in ready.values and len(inputs) == len(ready.inputs) and all(
                        one is other for one, other in zip(inputs, ready.inputs, strict=True)):
                    prepared = ready.values.pop(name)
                    if not ready.values:
                        del self._in_use[number]
                    return prepared
            return function(*inputs)

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
