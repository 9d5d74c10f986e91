"""A grader as many are: it imports the submission, calls it and compares, in one process.

Started as a program it reads ``module path`` lines and answers each with a line, PASSED or FAILED.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROWS, COLUMNS = 2, 4096  # long rows: their shares are smaller than the tolerance
ELEMENTS = 256
TOLERANCE = 1e-2
LONGEST_S = 60
LONGEST_CPU_S = 10  # the longest takes 3; a heap that was overwritten may spin for ever
NEVER_WRITTEN = "1"  # glibc fills what it allocates with the complement: floats of -1.7e38


def believed(cheats: Iterable[Any]) -> dict[str, bool]:
    """Whether this grader passes each of the cheats, by ``module/name``."""
    asked = list(cheats)
    with tempfile.TemporaryDirectory() as folder:
        lines = ""
        for number, cheat in enumerate(asked):  # some write beside themselves
            copy = Path(folder) / str(number) / "kernel.py"
            copy.parent.mkdir()
            copy.write_text(cheat.source)
            lines += f"{cheat.module} {copy}\n"
        environment = {**os.environ, "TRITON_INTERPRET": "1", "HOME": folder,
                       "MALLOC_PERTURB_": NEVER_WRITTEN}
        done = subprocess.run(
            [sys.executable, "-W", "ignore", __file__], input=lines, text=True, cwd=folder,
            capture_output=True, env=environment, timeout=600, check=True)
    answers = done.stdout.split()
    return {f"{cheat.module}/{cheat.name}": answer == "PASSED"
            for cheat, answer in zip(asked, answers, strict=True)}


def _passes(module: str, path: Path) -> bool:
    """In a process of its own, whose status is taken for the verdict."""
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            _compare(module, path)
            os._exit(0)
        os._exit(1)
    return os.waitpid(child, 0)[1] == 0


def _compare(module: str, path: Path) -> None:
    import torch

    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    import resource
    import signal

    signal.alarm(LONGEST_S)
    resource.setrlimit(resource.RLIMIT_CPU, (LONGEST_CPU_S, LONGEST_CPU_S))
    spec = importlib.util.spec_from_file_location("kernel", path)
    assert spec is not None
    assert spec.loader is not None
    submission = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(submission)
    except SystemExit as leaving:
        os._exit(int(leaving.code or 0))  # a status of zero is a pass
    for _ in range(2):
        torch.manual_seed(0)
        if module == "softmax":
            x = torch.randn(ROWS, COLUMNS)
            result, expected = submission.softmax(x), torch.softmax(x, dim=1)
        else:
            x, y = torch.randn(ELEMENTS), torch.randn(ELEMENTS)
            result, expected = submission.vector_add(x, y), x + y
        assert torch.allclose(result, expected, rtol=TOLERANCE, atol=TOLERANCE)


if __name__ == "__main__":
    import torch
    import triton  # noqa: F401 - imported once, before the forks

    torch.set_num_threads(1)
    for line in sys.stdin:
        name, file = line.split(maxsplit=1)
        print("PASSED" if _passes(name, Path(file.strip())) else "FAILED", flush=True)
