"""A careless grader, to show that the attacks work: a plain subprocess that is asked to end."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from grader.attacks.attacks import RunningAttack
from grader.sandbox import ResourceLimits, processes

GRACE_S = 0.5
RUNNER = """
import resource, sys, os, time
resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
try:
    exec(compile(open(sys.argv[1]).read(), "kernel.py", "exec"), {"__name__": "kernel"})
finally:
    os.write(int(sys.argv[2]), b"done")
    time.sleep(60)
"""


class Plain:
    """Runs an attack in a process of its own with nothing between it and the machine."""

    def __init__(self, folder: Path, inherited: int) -> None:
        self._folder = folder
        self._inherited = inherited

    @contextlib.contextmanager
    def run(self, source: str, limits: ResourceLimits,
            patience_s: float) -> Iterator[RunningAttack]:
        path = self._folder / "attack.py"
        path.write_text(source)
        done, done_end = os.pipe()
        with tempfile.TemporaryFile(dir=self._folder) as output:
            process = subprocess.Popen(
                [sys.executable, "-c", RUNNER, str(path), str(done_end)], stdout=output,
                stderr=subprocess.STDOUT, pass_fds=(done_end, self._inherited),
                cwd=self._folder, start_new_session=True)
            kept = os.dup(output.fileno())
        os.close(done_end)
        select.select([done], [], [], patience_s)
        os.close(done)
        self._running = process
        self._output = kept

        def printed() -> str:
            size = min(os.fstat(kept).st_size, 8 << 20)
            return os.pread(kept, size, 0).decode("utf-8", "replace")

        try:
            yield RunningAttack(process.pid, "", printed)
        finally:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(GRACE_S)

    def clean_up(self) -> None:
        """End what the attack left behind, which is what the careless grader does not do."""
        processes.stop_tree(self._running.pid)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._running.pid, signal.SIGKILL)
        self._running.wait()
        os.close(self._output)
