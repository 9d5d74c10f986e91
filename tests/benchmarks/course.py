"""Seconds of a learner: `grade` and `watch` of every module, beside the import of torch and triton.

``cold`` is `grade` of the solution with an empty cache, ``second`` the same again, whose report is
kept, and ``again`` is `grade --again`, which judges values anew and finds the code. Of the
untouched exercise and of a typical mistake, the first mutant, `grade` is timed until it has ended.
In `watch`, a mistake is timed until its first failure is shown, and the solution until its values
are right and until its final verdict: saved for the first time, with a comment more, and with a
host function more. CPU seconds and the peak of memory (PSS) are those of the cold grade with all
its processes. A machine that others use too changes its speed, so the import is timed around each
cold grade; ``cold`` is compared with the median of these.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import grader
from grader.submission.source import KERNEL
from tests.benchmarks import saves
from tritonlab.course import course
from tritonlab.course.course import Module

MORE = "def _saved():\n    return {}"  # host code, which changes no kernel
LOOK_S = 0.2  # between two looks at the memory


@dataclass(frozen=True)
class Row:
    """One module, in seconds, medians of the repeats; memory in bytes."""

    module: str
    importing: float
    cold: float
    second: float
    again: float
    exercise: float
    mistake: float
    cpu: float
    memory: int
    watch_failure: float
    watch_values: float
    watch_verdict: float
    watch_comment: float
    watch_host: float

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class GpuRow:
    """One module on a machine with a GPU, in seconds of `grade`; ``quick`` has a function more."""

    module: str
    importing: float
    cold: float
    second: float
    again: float
    quick: float
    cpu: float
    memory: int

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


GPU_COLUMNS = ("importing", "cold", "second", "again", "quick", "cpu")
COLUMNS = ("importing", "cold", "second", "again", "exercise", "mistake", "cpu", "watch_failure",
           "watch_values", "watch_verdict", "watch_comment", "watch_host")


def import_s() -> float:
    """Seconds of a process that imports torch and triton."""
    return _timed([sys.executable, "-c", "import torch, triton"], Path(), dict(os.environ))[0]


def rows(repeats: int, only: Sequence[str] = ()) -> Iterator[Row]:
    """A row for each module, or of ``only`` these."""
    for module in course.load().modules:
        if not only or module.slug in only:
            with tempfile.TemporaryDirectory() as folder:
                yield measure(module, Path(folder), repeats)


def gpu_rows(repeats: int, only: Sequence[str] = ()) -> Iterator[GpuRow]:
    """The same for `grade` alone, which uses this machine's GPU."""
    for module in course.load().modules:
        if not only or module.slug in only:
            with tempfile.TemporaryDirectory() as folder:
                place, environment = Path(folder), saves.environment_in(Path(folder))
                saves.tritonlab("start", module.id, folder=place, environment=environment)
                kernel = _exercise(place)
                shutil.copytree(module.solution.parent, kernel.parent, dirs_exist_ok=True)
                command = [sys.executable, "-m", "tritonlab", "grade", module.id]
                text = kernel.read_text("utf-8")
                imports, colds, others = [], [], []
                for _ in range(repeats):
                    kernel.write_text(text, "utf-8")
                    shutil.rmtree(place / "cache", ignore_errors=True)
                    imports.append(import_s())
                    colds.append(_timed(command, place, environment))
                    imports.append(import_s())
                    second, again = (_timed([*command, *options], place, environment)[0]
                                     for options in ((), ("--again",)))
                    kernel.write_text(f"{text}\n{MORE.format(0)}\n", "utf-8")
                    quick = _timed([*command, "--quick"], place, environment)[0]
                    others.append((second, again, quick))
                cold, cpu, memory = map(statistics.median, zip(*colds, strict=True))
                yield GpuRow(module.slug, statistics.median(imports), cold,
                             *map(statistics.median, zip(*others, strict=True)), cpu, int(memory))


def measure(module: Module, folder: Path, repeats: int) -> Row:
    """Grades and watches solution, exercise and mistake of a module in a new workspace."""
    suite = grader.load_suite(module.suite)
    files = {name: (module.solution.parent / name).read_text("utf-8")
             for name in (KERNEL, *suite.files)}
    mistake = next(mutant for mutant in suite.mutants if mutant.codes[0][0] in "NM")
    wrong = mistake.apply_to(files)
    environment = saves.environment_in(folder)
    saves.tritonlab("start", module.id, folder=folder, environment=environment)
    kernel = _exercise(folder)
    command = [sys.executable, "-m", "tritonlab", "grade", module.id, "--no-gpu"]

    def graded(texts: dict[str, str] | None = None, *options: str,
               cold: bool = False) -> tuple[float, ...]:
        for name, text in (texts or {}).items():
            (kernel.parent / name).write_text(text, "utf-8")
        if cold:
            shutil.rmtree(folder / "cache", ignore_errors=True)
        return _timed([*command, *options], folder, environment)

    exercises = [graded() for _ in range(repeats)]
    mistakes = [graded(wrong, cold=True) for _ in range(repeats)]
    imports, colds = [], []
    for _ in range(repeats):
        imports.append(import_s())
        colds.append(graded(files, cold=True))
        imports.append(import_s())
    seconds = [graded(files) for _ in range(repeats)]
    agains = [graded(files, "--again") for _ in range(repeats)]
    failures, values, verdicts, comments, hosts = _watched(
        module, folder / "watch", files, wrong, repeats)
    median = statistics.median
    return Row(module.slug, median(imports), *(median(one[0] for one in times) for times in (
                   colds, seconds, agains, exercises, mistakes)),
               cpu=median(one[1] for one in colds), memory=int(median(one[2] for one in colds)),
               watch_failure=median(failures), watch_values=median(values),
               watch_verdict=median(verdicts), watch_comment=median(comments),
               watch_host=median(hosts))


def _exercise(folder: Path) -> Path:
    """The kernel file of a workspace of one module, which may hold others deeper down."""
    return min(folder.rglob(KERNEL), key=lambda path: len(path.parts))


def _watched(module: Module, folder: Path, right: dict[str, str], wrong: dict[str, str],
             repeats: int) -> tuple[list[float], ...]:
    """Seconds of saves: a mistake, the solution, it with a comment, and with a function more."""
    failures, values, verdicts, comments, hosts = [], [], [], [], []
    folder.mkdir()
    with saves.watching(module, folder) as process:
        watch = saves.Watching(process, grader.load_suite(module.suite))

        def save(texts: dict[str, str], last: str) -> tuple[float, float]:
            for name, text in texts.items():
                if name != KERNEL:
                    (watch.kernel.parent / name).write_text(text, "utf-8")
            return watch.save(f"{texts[KERNEL]}\n{last}\n", right=texts is right)

        for number in range(repeats):
            failures.append(save(wrong, f"# {number}")[0])
            shutil.rmtree(folder / "cache", ignore_errors=True)
            judged, ended = save(right, f"# {number}")
            values.append(judged)
            verdicts.append(ended)
            comments.append(save(right, f"# {number} again")[1])
            hosts.append(save(right, MORE.format(number))[1])
    return failures, values, verdicts, comments, hosts


def _timed(command: Sequence[str], folder: Path,
           environment: dict[str, str]) -> tuple[float, float, float]:
    """Wall seconds, CPU seconds and the peak of memory of a command and all below it."""
    started, peak, ended = time.perf_counter(), 0, threading.Event()
    process = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)

    def look() -> None:
        nonlocal peak
        while not ended.wait(LOOK_S):
            with suppress(OSError, ValueError):
                peak = max(peak, sum(saves.memory(pid) for pid in saves.family(process.pid)))

    looking = threading.Thread(target=look)
    looking.start()
    _, _, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
    ended.set()
    looking.join()
    process.returncode = 0  # reaped above
    return seconds, usage.ru_utime + usage.ru_stime, peak
