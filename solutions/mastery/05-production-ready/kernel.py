"""The entry point that the grader and `python kernel.py` call.

Everything else is in `package/`, a project of its own that could be published as it is. The
grader calls `add_rms_norm` through this file and takes the kernel from
`package/addrmsnorm/kernel.py`.
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
