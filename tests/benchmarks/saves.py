"""From a save to its verdict in `tritonlab watch`, and what it takes while nobody types.

One `watch` is started for each module of Track 1, in a workspace of its own. Three kinds of saves
take turns, as a learner's do: one that leaves blanks, the exercise as it is given; one with a
mistake, a mutant of the solution drawn with a fixed seed; and the solution. Each is written as
editors do, beside the file and then in its place, when the grade before it has ended. The verdict
on a wrong save is its first failure, in full; that on a right one is that every value is right,
while only the compiler is still asked.
"""

from __future__ import annotations

import json
import os
import pty
import queue
import random
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import grader
from grader.judge import oversized
from grader.sandbox import processes
from grader.suite import Suite
from tritonlab.course import course
from tritonlab.course.course import Module
from tritonlab.grading.grade import GATE

TRACK = "missing-elements"
LIMIT_MS, LIMITS_MS = 500.0, {"softmax": 250.0}  # of the median over all saves
IDLE_CPU, IDLE_BYTES = 0.01, 500e6  # of one processor, and of memory
SEED = 20  # of the mutants that are drawn
PAUSE_S = 0.5  # from a verdict to the next save; nobody types faster
PATIENCE_S = 120.0  # with a save that hangs in every case
SETTLE_S, WATCHED_S = 20.0, 10.0  # until all is warm, and then looked at for
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Row:
    """What the saves of one module took in ms: medians of all and by kind, and 80th percentile."""

    name: str
    saves: int
    median_ms: float
    p80_ms: float
    unfinished_ms: float
    wrong_ms: float
    right_ms: float
    limit_ms: float

    @property
    def ok(self) -> bool:
        return self.median_ms <= self.limit_ms

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "ok": self.ok}


@dataclass(frozen=True)
class Idle:
    """What `watch` takes while nothing is saved: a share of one processor, and bytes of memory."""

    cpu: float
    nbytes: int

    @property
    def ok(self) -> bool:
        return self.cpu < IDLE_CPU and self.nbytes < IDLE_BYTES

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "ok": self.ok}


class Watching:
    """A `watch --json` that runs, and what it said of the newest save."""

    def __init__(self, process: subprocess.Popen[str], suite: Suite) -> None:
        self._said: queue.Queue[tuple[float, dict[str, Any]]] = queue.Queue()
        self._compiled = {case.name for case in suite.all_cases if oversized.waits_for_code(case)}
        self._process = process
        threading.Thread(target=self._listen, daemon=True).start()
        self.kernel = Path(self._next("watching")[1]["kernel"])
        self._next("graded")

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with suppress(ValueError):  # in the end it is closed
            for line in self._process.stdout:
                self._said.put((time.perf_counter(), json.loads(line)))

    def _next(self, *wanted: str) -> tuple[float, dict[str, Any]]:
        """The next event of these kinds, with its time.

        Raises:
            queue.Empty: none came in time.
        """
        while True:
            at, said = self._said.get(timeout=PATIENCE_S)
            if said["event"] in wanted:
                return at, said

    def save(self, text: str, *, right: bool) -> tuple[float, float]:
        """Saves kernel.py; seconds until its values are judged, and until all of it is.

        Raises:
            RuntimeError: the verdict is the wrong one.
        """
        beside = self.kernel.with_name("kernel.py~")
        beside.write_text(text, encoding="utf-8")
        beside.replace(self.kernel)
        saved = time.perf_counter()
        self._next("began")
        known = 0.0
        while True:
            at, said = self._next("progress", "failing", "graded")
            ended = said["event"] == "graded"
            if said["event"] == "failing" or (right and self._asks_compiler(said)) or ended:
                known = known or at
            if ended:
                if (said["report"]["verdict"] == "PASSED") is not right:
                    raise RuntimeError(f"{self.kernel}: {said['report']['verdict']}")
                time.sleep(PAUSE_S)
                return known - saved, at - saved

    def _asks_compiler(self, said: dict[str, Any]) -> bool:
        judging = said.get("judging", "").partition(": waiting")[0]
        return judging.startswith(GATE) or judging in self._compiled


def measure(module: Module, folder: Path, saves: int) -> Row:
    """Save unfinished, wrong and right versions in turn, and time each verdict."""
    suite = grader.load_suite(module.suite)
    exercise, solution = (path.read_text(encoding="utf-8")
                          for path in (module.folder / "kernel.py", module.solution))
    draw = random.Random(SEED)

    def wrong() -> str:
        return draw.choice(suite.mutants).apply(solution)

    kinds: tuple[tuple[Callable[[], str], list[float]], ...] = (
        (lambda: exercise, []), (wrong, []), (lambda: solution, []))
    with watching(module, folder) as process:
        watch = Watching(process, suite)
        for number in range(saves):  # no content twice: then there is nothing to grade
            make, took = kinds[number % len(kinds)]
            right = make is kinds[-1][0]
            took.append(watch.save(f"{make()}\n# save {number}\n", right=right)[0] * 1e3)
    every = [ms for _, took in kinds for ms in took]
    return Row(module.slug, saves, statistics.median(every), statistics.quantiles(every, n=5)[-1],
               *(statistics.median(took) for _, took in kinds),
               limit_ms=LIMITS_MS.get(module.slug, LIMIT_MS))


def rows(folder: Path, saves: int, only: tuple[str, ...] = ()) -> Iterator[Row]:
    """A row for each module of Track 1, or of ``only`` these; workspaces are made in ``folder``."""
    for module in course.load().modules:
        if module.track == TRACK and (not only or module.slug in only):
            place = folder / module.slug
            place.mkdir()
            yield measure(module, place, saves)


@contextmanager
def watching(module: Module, folder: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """`watch` on the module in a new workspace; JSON goes to a pipe."""
    environment = environment_in(folder)
    tritonlab("start", module.id, folder=folder, environment=environment)
    with subprocess.Popen(
            [sys.executable, "-m", "tritonlab", "watch", module.id, "--json", "--no-gpu", *options],
            cwd=folder, env=environment, text=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.terminate()


def idle(folder: Path) -> Idle:
    """What `watch` takes in a terminal while nothing is saved, its warm processes included."""
    module = next(one for one in course.load().modules if one.slug == "softmax")
    environment = environment_in(folder)
    tritonlab("start", module.id, folder=folder, environment=environment)
    ours, theirs = pty.openpty()
    with subprocess.Popen([sys.executable, "-m", "tritonlab", "watch", module.id, "--no-gpu"],
                          cwd=folder, env=environment | {"TERM": "xterm"}, stdin=theirs,
                          stdout=theirs, stderr=theirs, start_new_session=True) as process:
        os.close(theirs)
        threading.Thread(target=_empty, args=(ours,), daemon=True).start()
        try:
            time.sleep(SETTLE_S)
            before = _cpu_s(process.pid)
            time.sleep(WATCHED_S)
            return Idle((_cpu_s(process.pid) - before) / WATCHED_S, memory(process.pid))
        finally:
            process.terminate()


def tritonlab(*words: str, folder: Path, environment: dict[str, str]) -> None:
    subprocess.run([sys.executable, "-m", "tritonlab", *words], cwd=folder, env=environment,
                   check=True, stdout=subprocess.DEVNULL)


def environment_in(folder: Path) -> dict[str, str]:
    """Without what belongs to another workspace; ours lies in ``folder``."""
    return {name: value for name, value in os.environ.items()
            if not name.startswith("TRITONLAB_")} | {
        "PYTHONPATH": os.pathsep.join(
            [str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]),
        "TRITONLAB_WORKSPACE": str(folder),
        "TRITONLAB_CACHE": str(folder / "cache")}


def _empty(terminal: int) -> None:
    """Read what is shown, so that the terminal never fills up."""
    try:
        while os.read(terminal, 1 << 16):
            pass
    except OSError:  # the other end is closed
        os.close(terminal)


def family(pid: int) -> list[int]:
    return [pid, *processes.descendants(pid)]


def _cpu_s(pid: int) -> float:
    """Seconds of processor time of a process and of all below it that live."""
    total = 0
    for member in family(pid):
        fields = Path(f"/proc/{member}/stat").read_text().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total * _TICK_S


def memory(pid: int) -> int:
    """Bytes of a process and of all below it; what several share counts once.

    Pages of files are left out: they can be dropped, and other programs have the same libraries.
    """
    total = 0
    for member in family(pid):
        lines = Path(f"/proc/{member}/smaps_rollup").read_text().splitlines()
        total += sum(int(line.split()[1]) * 1024 for line in lines
                     if line.startswith(("Pss_Anon:", "Pss_Shmem:")))
    return total
