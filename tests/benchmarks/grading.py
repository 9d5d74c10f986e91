"""From a saved file to its verdict, on a warm sandbox, beside the same work in one process.

    python -m tests.benchmarks.grading [--json FILE] [--repeats 30] [--saves 50] [--only NAME ...]
    python -m tests.benchmarks.grading --course [--gpu] [--json FILE] [--repeats 5] [--only ...]

Times are milliseconds of ``grader.grade`` on the reference solution: fresh seeds, every check on,
sandboxed processes forked for each grade, every launch replayed, until the last case is judged. "In
one process" does the same work with the same judge, worker and executor code, but without forks,
confinement and channels. The two take turns, one repeat each, so that noise hits both alike. "With
compiler" is until the compile gate has spoken too, which runs beside the cases; what one kernel
costs there is in tests.benchmarks.compiling. Then come the saves of ``tests.benchmarks.saves``, and
what `watch` takes while it waits; ``--repeats 0`` or ``--saves 0`` leaves either part out.

With ``--course``, the seconds of a learner instead: see ``tests.benchmarks.course``.

Exits with 1 where a limit is missed: 150 ms for softmax with every fifth case, 100 ms more than in
one process for any of them; from a save to its verdict 500 ms for a module of Track 1 and 250 ms
for softmax, as the median; 1 % of a processor and 500 MB for a `watch` that waits.
"""

from __future__ import annotations

import argparse
import compileall
import contextlib
import datetime
import os
import platform
import statistics
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tests.benchmarks.text import json_text

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[name] = "1"  # before torch is imported: the work in one process is compared with one

import torch  # noqa: E402

import grader  # noqa: E402
from grader import Sandbox, Verdict  # noqa: E402
from grader.judge import oversized  # noqa: E402
from grader.sandbox import Isolation, ResourceLimits, Role  # noqa: E402
from grader.suite import Suite  # noqa: E402
from tests.benchmarks import course, saves  # noqa: E402

ROOT = Path(__file__).parents[2]
WARM_MS = 150.0  # softmax, every fifth case
OVERHEAD_MS = 100.0  # over the same work in one process, with the compiler at work beside it
PAUSE_S = 0.5  # from a verdict to the next save; nobody types faster


@dataclass(frozen=True)
class Job:
    """A solution, the suite that it is graded with, and the most that the median may be."""

    name: str
    kernel: Path
    suite: Suite
    limit_ms: float | None = None


def jobs() -> Iterator[Job]:
    """Every module with its suite, and softmax with every fifth case.

    Cases that ask for compiled code are left out: they wait until all before them is compiled.
    """
    for path in sorted((ROOT / "grader" / "suites").glob("*/*/suite.py")):
        folder = path.parent.relative_to(ROOT / "grader" / "suites")
        kernel = ROOT / "solutions" / folder / "kernel.py"
        slug = folder.name.partition("-")[2]
        suite = grader.load_suite(path)
        suite = replace(suite, cases=[c for c in suite.cases if not oversized.waits_for_code(c)])
        if slug == "softmax":
            few = replace(suite, cases=tuple(suite.cases)[::5], properties=suite.properties[:1])
            yield Job("softmax, every fifth case", kernel, few, WARM_MS)
        yield Job(slug, kernel, suite)


# ---------------------------------------------------------------------------------------------
# The same work in one process


class Here:
    """Answers like a child, in this process and unconfined."""

    def __init__(self, role: Role) -> None:
        if role == "worker":
            from grader.worker.main import WorkerHandler as Worker

            self._handler: Any = Worker()
        elif role == "compiler":
            self._handler = Nothing()
        else:
            from grader.executor.main import ExecutorHandler as Executor

            self._handler = Executor()
        self.alive = True

    def begin(self, request: Mapping[str, Any], fds: Sequence[int] = (),
              timeout_s: float = 10.0, patience: float = 0.0
              ) -> Callable[[], dict[str, Any]]:
        reply = self._handler.handle(dict(request), list(fds))
        return lambda: reply

    def output(self) -> str:
        return ""

    def kill(self, *, wait: bool = True) -> None:
        if hasattr(self._handler, "__exit__"):
            self._handler.__exit__()
        self.alive = False


class Nothing:
    """Compiles nothing."""

    def handle(self, request: Mapping[str, Any], fds: Sequence[int]) -> dict[str, Any]:
        launches = [one for one in request.get("recording", {}).get("events", ())
                    if one[0] == "launch"]
        return {"status": "done" if launches else "ready", "launches": [{} for _ in launches]}


class OneProcess:
    """Stands in for a sandbox."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.isolation = Isolation()

    def fork(self, role: Role, limits: ResourceLimits | None = None) -> Here:
        return Here(role)

    def expect(self, key: str) -> None:
        """Nothing is imported ahead."""


# ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """What one job took: milliseconds, the median and the 20th and 80th percentile of it."""

    name: str
    cases: int
    sandboxed_ms: float
    p20_ms: float
    p80_ms: float
    one_process_ms: float
    with_compiler_ms: float
    limit_ms: float | None

    @property
    def overhead_ms(self) -> float:
        return self.sandboxed_ms - self.one_process_ms

    @property
    def ok(self) -> bool:
        in_time = self.limit_ms is None or self.sandboxed_ms <= self.limit_ms
        return in_time and self.overhead_ms <= OVERHEAD_MS

    def to_dict(self) -> dict[str, Any]:
        return {**self.__dict__, "overhead_ms": self.overhead_ms, "ok": self.ok}


def measure(job: Job, sandbox: Sandbox, here: Any, repeats: int) -> Row:
    """Grade in turn, sandboxed and in one process; the first grade of either is not counted."""
    sandboxed, alone, whole, cases = [], [], [], 0
    for number in range(repeats + 1):
        for box, times in ((sandbox, sandboxed), (here, alone)):
            time.sleep(PAUSE_S)
            judged: list[float] = []
            started = time.perf_counter()
            report = grader.grade(job.kernel, job.suite, sandbox=box,
                                  on_event=lambda _, seen=judged: seen.append(time.perf_counter()))
            ended = (time.perf_counter() - started) * 1e3
            took = (judged[-2] - started) * 1e3  # when the gate, the last one, was waited for
            if report.verdict is not Verdict.PASSED:
                raise RuntimeError(f"{job.name}: {report.verdict}, {report.first_failure}")
            cases = report.count(Verdict.PASSED)
            if number:
                times.append(took)
            if number and box is sandbox:
                whole.append(ended)
    fifths = statistics.quantiles(sandboxed, n=5)
    return Row(job.name, cases, statistics.median(sandboxed), fifths[0], fifths[-1],
               statistics.median(alone), statistics.median(whole), job.limit_ms)


def main() -> int:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--json", type=Path, help="write the rows to this file")
    options.add_argument("--course", action="store_true", help="`grade` and `watch`, all modules")
    options.add_argument("--gpu", action="store_true", help="with --course: `grade` with a GPU")
    options.add_argument("--repeats", type=int)
    options.add_argument("--saves", type=int, default=50)
    options.add_argument("--only", nargs="+", default=[], metavar="NAME")
    chosen = options.parse_args()
    if chosen.course:
        return _course(chosen.repeats or 5, chosen.only, chosen.json, gpu=chosen.gpu)
    repeats = 30 if chosen.repeats is None else chosen.repeats
    rows = list(_grades(repeats, chosen.only)) if repeats else []
    saved, waits = _saves(chosen.saves, chosen.only) if chosen.saves else ([], None)
    if chosen.json:
        _write(chosen.json, {
            "repeats": repeats, "rows": [row.to_dict() for row in rows],
            "saves": [row.to_dict() for row in saved], "idle": waits.to_dict() if waits else None})
    done = [*rows, *saved, *([waits] if waits else [])]
    return 0 if done and all(one.ok for one in done) else 1


def _write(path: Path, results: Mapping[str, Any]) -> None:
    """Writes results with the machine, the versions and the date."""
    path.write_text(json_text({
        "date": datetime.date.today().isoformat(),
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else
        platform.machine(), "cores": os.cpu_count(),
        "versions": {"python": platform.python_version(),
                     **{name: version(name) for name in ("torch", "triton", "numpy")}},
        **results}) + "\n")


def _course(repeats: int, only: Sequence[str], path: Path | None, *, gpu: bool) -> int:
    """Measures and prints the seconds of a learner, module by module."""
    # as pip does; a grade writes no bytecode, nor does any process with PYTHONDONTWRITEBYTECODE
    for place in (ROOT / "grader", ROOT / "tritonlab", sysconfig.get_path("purelib")):
        compileall.compile_dir(place, quiet=2, workers=0)
    columns = course.GPU_COLUMNS if gpu else course.COLUMNS
    names = "".join(f"{name:>14}" for name in columns)
    print(f"{'seconds':23}{names} {'memory':>10}  cold/importing")
    rows: list[course.Row | course.GpuRow] = []
    for row in course.gpu_rows(repeats, only) if gpu else course.rows(repeats, only):
        rows.append(row)
        times = "".join(f"{getattr(row, name):14.2f}" for name in columns)
        print(f"{row.module:23}{times} {row.memory / 1e6:7.0f} MB {row.cold / row.importing:15.1f}",
              flush=True)
        if path:  # a run that is cut off leaves what it has
            _write(path, {"repeats": repeats, "rows": [one.to_dict() for one in rows]})
    return 0


def _grades(repeats: int, only: Sequence[str]) -> Iterator[Row]:
    """Measure and print grades beside the same work in one process."""
    print(f"{'':28} {'cases':>5} {'sandboxed':>10} {'p20':>6} {'p80':>6} {'in one':>8} "
          f"{'overhead':>9} {'with compiler':>13}  limit")
    with contextlib.ExitStack() as stack:
        sandbox = stack.enter_context(Sandbox())
        here = OneProcess(Path(stack.enter_context(tempfile.TemporaryDirectory())))
        for job in jobs():
            if only and job.name not in only:
                continue
            row = measure(job, sandbox, here, repeats)
            limit = f"{row.limit_ms:.0f} ms" if row.limit_ms else ""
            print(f"{row.name:28} {row.cases:5} {row.sandboxed_ms:7.0f} ms {row.p20_ms:6.0f} "
                  f"{row.p80_ms:6.0f} {row.one_process_ms:5.0f} ms {row.overhead_ms:6.0f} ms "
                  f"{row.with_compiler_ms:10.0f} ms  "
                  f"{limit}{'' if row.ok else '  MISSED'}", flush=True)
            yield row


def _saves(count: int, only: Sequence[str]) -> tuple[list[saves.Row], saves.Idle]:
    """Measure and print saves in `watch`, and one that waits."""
    print(f"\n{'save to verdict':28} {'saves':>5} {'median':>10} {'p80':>6} "
          f"{'unfinished':>10} {'wrong':>6} {'right':>6}  limit")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for row in saves.rows(Path(folder), count, tuple(only)):
            rows.append(row)
            print(f"{row.name:28} {row.saves:5} {row.median_ms:7.0f} ms {row.p80_ms:6.0f} "
                  f"{row.unfinished_ms:10.0f} {row.wrong_ms:6.0f} {row.right_ms:6.0f}  "
                  f"{row.limit_ms:.0f} ms"
                  f"{'' if row.ok else '  MISSED'}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        waits = saves.idle(Path(folder))
    print(f"\nwhile it waits: {waits.cpu:.2%} of a processor, {waits.nbytes / 1e6:.0f} MB"
          f"{'' if waits.ok else '  MISSED'}")
    return rows, waits


if __name__ == "__main__":
    sys.exit(main())
