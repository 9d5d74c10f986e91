"""How far predicted times were from measured ones, by the unit that was predicted to be the bound.

Counted from h200-2026-11-27-performance.json and h200-2026-11-28-held-out.json in
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
    "dram": Accuracy(87, 76, 87),
    "tensor": Accuracy(25, 22, 25),
    "issue": Accuracy(23, 15, 20),
    "l2": Accuracy(17, 9, 15),
    "lsu": Accuracy(15, 8, 14),
    "latency": Accuracy(12, 4, 12),
    "alu": Accuracy(7, 6, 7),
    "atomics": Accuracy(6, 4, 6),
    "programs": Accuracy(5, 5, 5),
    "launch": Accuracy(3, 1, 2),
    "xu": Accuracy(3, 3, 3),
}
"""The model was fitted to some of these kernels, and to none of the 48 held out. Units that bound
a single one are left out."""
