"""How far predicted times were from measured ones, by the unit that was predicted to be the bound.

Counted from h200-2026-11-27-performance.json and the three h200-2026-11-28-held-out files in
tests/benchmarks/results/, which a test compares.
"""

from typing import NamedTuple

DEVICE = "H200"


class Accuracy(NamedTuple):
    """Of so many kernels, those measured within 25 % and a factor of two of their prediction."""

    kernels: int
    within_quarter: int
    within_double: int


ACCURACY = {
    "dram": Accuracy(106, 95, 106),
    "issue": Accuracy(32, 24, 28),
    "tensor": Accuracy(31, 27, 31),
    "latency": Accuracy(27, 14, 26),
    "lsu": Accuracy(27, 15, 24),
    "l2": Accuracy(26, 18, 23),
    "alu": Accuracy(12, 10, 12),
    "programs": Accuracy(6, 6, 6),
    "atomics": Accuracy(6, 4, 6),
    "xu": Accuracy(4, 4, 4),
    "launch": Accuracy(3, 1, 2),
    "fma": Accuracy(2, 1, 2),
}
"""The model was fitted to the first of these files. Of the others it counts what was predicted
before it was changed by what they showed. Units that bound a single kernel are left out."""


_MOST = 0.8  # share of kernels that an error has to cover


def stated_error(unit: str) -> float:
    """The factor between predicted and measured times to reckon with, by the unit of the bound."""
    counted = ACCURACY.get(unit)
    near = counted is not None and counted.within_quarter >= _MOST * counted.kernels
    return 1.25 if near else 2.0
