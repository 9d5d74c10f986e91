"""How far predicted times were from measured ones, by the unit that was predicted to be the bound.

Counted from h200-2026-11-27-performance.json, h200-2026-11-28-held-out.json and
h200-2026-11-28-held-out-2.json in tests/benchmarks/results/, which a test compares.
"""

from typing import NamedTuple

DEVICE = "H200"


class Accuracy(NamedTuple):
    """Of so many kernels, those measured within 25 % and a factor of two of their prediction."""

    kernels: int
    within_quarter: int
    within_double: int


ACCURACY = {
    "dram": Accuracy(97, 87, 97),
    "tensor": Accuracy(27, 24, 27),
    "issue": Accuracy(25, 17, 21),
    "l2": Accuracy(23, 15, 20),
    "lsu": Accuracy(23, 13, 20),
    "latency": Accuracy(21, 10, 20),
    "alu": Accuracy(8, 7, 8),
    "atomics": Accuracy(6, 4, 6),
    "programs": Accuracy(5, 5, 5),
    "launch": Accuracy(3, 1, 2),
    "xu": Accuracy(3, 3, 3),
    "fma": Accuracy(2, 1, 2),
}
"""The model was fitted to the first of these files. Of the others it counts what was predicted
before it was changed by what they showed. Units that bound a single kernel are left out."""
