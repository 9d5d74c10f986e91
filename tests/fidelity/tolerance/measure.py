"""Counts what each rule says of right and of wrong results."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from grader.judge import compare
from grader.suite import Tolerance
from grader.suite.inputs import Input
from tests.fidelity.tally import Tally

from . import products, rows, training
from .kernel import Kernel

KERNELS = (*rows.KERNELS, *products.KERNELS, *training.KERNELS)


@dataclass(frozen=True)
class Question:
    """Some inputs of a kernel, with the exact results and amplitudes, computed once."""

    kernel: Kernel
    inputs: Sequence[Any]
    exact: tuple[Tensor, ...]
    tolerance: Tolerance

    @classmethod
    def of(cls, kernel: Kernel, inputs: Sequence[Any]) -> Question:
        exact = _tuple(kernel.reference(*inputs))
        amplitude = kernel.tolerance.amplitude
        known = amplitude(*inputs)

        def known_or_new(*given: Any) -> Any:  # inputs in TF32 are other inputs
            return known if given[0] is inputs[0] else amplitude(*given)

        return cls(kernel, inputs, exact, replace(kernel.tolerance, amplitude=known_or_new))

    def reference(self, *given: Any) -> Any:
        return self.exact if given[0] is self.inputs[0] else self.kernel.reference(*given)


Accepts = Callable[[Question, Sequence[Tensor]], bool]


def by_the_rule(question: Question, results: Sequence[Tensor]) -> bool:
    return not compare.judge(results, question.inputs, question.reference, question.tolerance)


def by_allclose(tolerance: float) -> Accepts:
    def accepts(question: Question, results: Sequence[Tensor]) -> bool:
        return all(
            torch.allclose(result.double(), exact.to(result.dtype).double(), rtol=tolerance,
                           atol=tolerance, equal_nan=True)
            for result, exact in zip(results, question.exact, strict=True))

    return accepts


def by_torch_testing(question: Question, results: Sequence[Tensor]) -> bool:
    for result, exact in zip(results, question.exact, strict=True):
        try:
            torch.testing.assert_close(result, exact.to(result.dtype), equal_nan=True)
        except AssertionError:
            return False
    return True


RULES: dict[str, Accepts] = {
    "the rule": by_the_rule,
    "allclose 1e-2": by_allclose(1e-2),
    "allclose 1e-3": by_allclose(1e-3),
    "torch.testing": by_torch_testing,
}


@dataclass
class Count:
    """What one rule said. Keys are (kernel, variant, dtype)."""

    right: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    failed: list[str] = field(default_factory=list)
    wrong: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    caught: Counter[tuple[str, str, str]] = field(default_factory=Counter)

    def never_caught(self) -> list[tuple[str, str, str]]:
        return [key for key in self.wrong if not self.caught[key]]

    def variants_never_caught(self) -> list[tuple[str, str]]:
        """Wrong variants that pass in all dtypes."""
        every = {key[:2] for key in self.wrong}
        return sorted(every - {key[:2] for key in self.caught})

    def passed_pairs(self) -> int:
        return sum(self.wrong.values()) - sum(self.caught.values())


def measure(seeds: Sequence[int] = (0,), kernels: Sequence[Kernel] = KERNELS,
            rules: Sequence[str] = tuple(RULES)) -> dict[str, Count]:
    """Every variant of every kernel on every input, once for each seed."""
    counts = {rule: Count() for rule in rules}
    for kernel in kernels:
        for dtype in kernel.dtypes:
            for name, inputs in drawn(kernel, dtype, seeds):
                _try(kernel, dtype, name, inputs, counts)
    return counts


def drawn(kernel: Kernel, dtype: str, seeds: Sequence[int]) -> Iterator[tuple[str, list[Any]]]:
    for seed in seeds:
        for number, (name, specs) in enumerate(kernel.inputs(dtype)):
            generator = torch.Generator().manual_seed(1_000_003 * seed + number)
            yield f"{name}, seed {seed}", [
                spec.draw(generator, 1) if isinstance(spec, Input) else spec for spec in specs]


def _try(kernel: Kernel, dtype: str, name: str, inputs: Sequence[Any],
         counts: dict[str, Count]) -> None:
    question = Question.of(kernel, inputs)
    for variant, run in kernel.right.items():
        results = _tuple(run(*inputs))
        for rule, count in counts.items():
            key = (kernel.name, variant, dtype)
            count.right[key] += 1
            if not RULES[rule](question, results):
                count.failed.append(f"{' / '.join(key)}: {name}")
    for variant, run in kernel.wrong.items():
        if dtype in kernel.blind.get(variant, ()):
            continue
        results = _tuple(run(*inputs))
        for rule, count in counts.items():
            key = (kernel.name, variant, dtype)
            count.wrong[key] += 1
            count.caught[key] += not RULES[rule](question, results)
    for count in counts.values():
        count.caught = +count.caught  # without the zeros


def upper_bound(runs: int) -> float:
    """Of the rate of false failures when none was seen, with 95% confidence."""
    return 1 - math.exp(math.log(0.05) / runs)


def _tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def attempted(seeds: int) -> Tally:
    """Right runs have to pass, and every wrong variant has to be caught in each of its dtypes."""
    started = time.monotonic()
    count = measure(range(seeds), rules=["the rule"])["the rule"]
    right, missed = sum(count.right.values()), count.never_caught()
    return Tally(
        "tolerance", len(KERNELS), right + len(count.wrong),
        [*(f"right and failed: {name}" for name in count.failed),
         *(f"wrong and passed everywhere: {' / '.join(key)}" for key in missed)],
        time.monotonic() - started,
        f"{right:,} right runs, {len(count.wrong)} wrong variants")
