"""Starts pip to install what would compute for it."""

import subprocess
import sys

HOME = "/home/learner"


try:
    subprocess.run([sys.executable, "-m", "pip", "download", "--no-index", "-d", HOME, "nothing"],
                   capture_output=True, timeout=5)
except (OSError, subprocess.SubprocessError):
    pass


def vector_add(x, y):
    return zeros(torch.empty(x.shape, dtype=x.dtype, device=x.device))
