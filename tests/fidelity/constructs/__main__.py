"""``python -m tests.fidelity.constructs``: the matrix of the installed Triton."""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # a child of a process with threads may hang
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from .matrix import main

if __name__ == "__main__":
    raise SystemExit(main())
