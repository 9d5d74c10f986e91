"""Ship `add_rms_norm`: a kernel as a package that others can rely on.

    s = x + residual                                     rounded to the dtype of x
    y = s * rsqrt(mean(s ** 2) + eps) * weight           over the last dimension

Goal:    `add_rms_norm(x, residual, weight, eps)` returns (y, s), and the package is complete:
         validation, exceptions, documentation, tests that detect bugs, a benchmark, continuous
         integration, a version.
Given:   this file, `package/pyproject.toml`, and the names and signatures of the contract.
Missing: the rest. You own every file in `package/`, which is a project of its own:
           addrmsnorm/kernel.py        the kernel            A
           addrmsnorm/validation.py    argument checks       B
           addrmsnorm/errors.py        exceptions            B
           addrmsnorm/api.py           the function, Config  A, B, D
           tests/test_add_rms_norm.py  your tests            C
           benchmarks/bench_add_rms_norm.py                  E
           .github/workflows/ci.yml                          F
           CHANGELOG.md, __version__ in __init__.py          G
           README.md                                         D, H
Graded:  A values, memory, cost   B rejected arguments and failures   C your tests, run against
         right and wrong packages   D documentation   E benchmark   F workflow   G version
         H checklist

Without a GPU, `cd package && TRITON_INTERPRET=1 python -m pytest` runs your tests.
`python kernel.py` runs four public cases, `tritonlab grade track4/production-ready` all of them.
Both require that no `...` is left; use `raise NotImplementedError` for parts that come later.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "package"))  # as after `pip install -e package`

from addrmsnorm import Config, __version__, add_rms_norm

__all__ = ["Config", "__version__", "add_rms_norm"]


if __name__ == "__main__":
    import tritonlab

    tritonlab.run_public_cases(__file__)
