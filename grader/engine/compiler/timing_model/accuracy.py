"""How far predicted times were from measured ones, by the unit that was predicted to be the bound.

Counted from tests/benchmarks/results/h200-2026-11-21-performance.json, which a test compares.
"""

from typing import NamedTuple

DEVICE = "H200"


class Accuracy(NamedTuple):
    """Of so many kernels, those measured within 25 % and a factor of two of their prediction."""

    kernels: int
    within_quarter: int
    within_double: int


ACCURACY = {
    "dram": Accuracy(53, 50, 53),
    "tensor": Accuracy(15, 13, 15),
    "l2": Accuracy(9, 2, 8),
    "latency": Accuracy(7, 2, 6),
    "lsu": Accuracy(5, 3, 5),
    "programs": Accuracy(4, 4, 4),
    "launch": Accuracy(3, 1, 2),
    "atomics": Accuracy(3, 2, 2),
    "issue": Accuracy(2, 1, 2),
}
"""The model was fitted to some of these kernels: of others, expect somewhat more."""
