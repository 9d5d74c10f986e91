"""How far predicted times were from measured ones, by the unit that was predicted to be the bound.

Counted from tests/benchmarks/results/h200-2026-11-27-performance.json, which a test compares.
"""

from typing import NamedTuple

DEVICE = "H200"


class Accuracy(NamedTuple):
    """Of so many kernels, those measured within 25 % and a factor of two of their prediction."""

    kernels: int
    within_quarter: int
    within_double: int


ACCURACY = {
    "dram": Accuracy(73, 66, 73),
    "tensor": Accuracy(21, 18, 21),
    "issue": Accuracy(13, 9, 11),
    "l2": Accuracy(12, 7, 11),
    "latency": Accuracy(8, 4, 8),
    "lsu": Accuracy(8, 4, 8),
    "alu": Accuracy(5, 4, 5),
    "atomics": Accuracy(5, 3, 5),
    "programs": Accuracy(5, 5, 5),
    "launch": Accuracy(3, 1, 2),
    "xu": Accuracy(3, 3, 3),
    "fp64": Accuracy(1, 1, 1),
}
"""The model was fitted to some of these kernels: of others, expect somewhat more."""
