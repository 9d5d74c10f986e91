"""Runs scripts as `python SCRIPT` does, each in a fork of one process that has loaded torch.

Started as a program it reads a path a line, writes what that prints to PATHS/NUMBER.out and
NUMBER.err, where PATHS is the folder that it is started in, and answers with the exit status.
"""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path


def ran(paths: Sequence[Path]) -> dict[Path, tuple[int, str, str]]:
    """Exit status, output and error output of each; a warning is an error."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([sys.executable, "-W", "error", __file__], check=True, cwd=folder,
                              input="".join(f"{path}\n" for path in paths), text=True,
                              stdout=subprocess.PIPE)

        def printed(number: int, end: str) -> str:
            return (Path(folder) / f"{number}.{end}").read_text()

        return {path: (int(status), printed(number, "out"), printed(number, "err"))
                for number, (path, status) in enumerate(
                    zip(paths, done.stdout.split(), strict=True))}


def _run(path: str, number: int) -> None:
    """End this process as Python ends after a script."""
    for descriptor, end in ((1, "out"), (2, "err")):
        os.dup2(os.open(f"{number}.{end}", os.O_WRONLY | os.O_CREAT), descriptor)
    sys.argv, sys.path[0] = [path], str(Path(path).parent)
    status = 0
    try:
        runpy.run_path(path, run_name="__main__")
    except SystemExit as leaving:
        status = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    except BaseException:
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    import torch  # once, before the forks; Triton is a script's own to load, or to interpret with

    assert "triton" not in sys.modules
    torch.set_num_threads(1)
    for number, line in enumerate(sys.stdin):
        child = os.fork()
        if child == 0:
            _run(line.strip(), number)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
