"""Every solution and every mutant on a real GPU, beside the processor; times; timing cheats.

    python -m tests.benchmarks.gpu --out FILE [--seconds 220] [--quick] [--modules track/slug ...]

Values: each case is recorded in the worker, replayed in the executor and twice in the process
before the GPU (other garbage in fresh memory, red zones), and compared with the suite's reference.
Where processor and GPU disagree, both are told. Times: the measured cases of every solution, the
cheats beside honest work. The file is written after each part, so that a run that is cut short
leaves what it has. ``--simulate`` tries the script where there is no GPU.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import queue
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
import triton

from tests.benchmarks import checkout, straight
from tests.benchmarks.text import json_text

ROOT = checkout.ROOT
SECONDS = 220.0
WORKERS = 16
SHARE_OF_VALUES = 0.55  # of the time that is left for them and all that comes behind
JOB_S = 90.0  # of a mutant, or of some cases of a solution
Job = tuple[int, int, str, str, int, int]  # order twice, module, kernel, part of how many


class Run:
    """What was found, written down after each part; every part has its own failure."""

    def __init__(self, out: Path, seconds: float) -> None:
        self.out = out
        self.started = time.monotonic()
        self.seconds = seconds
        self.found: dict[str, Any] = {
            "date": f"{datetime.date.today():%Y-%m-%d}", "parts": {},
            "versions": {"python": platform.python_version(), "torch": torch.__version__,
                         "triton": triton.__version__},
        }

    @property
    def left(self) -> float:
        return self.seconds - (time.monotonic() - self.started)

    def part(self, name: str, work: Callable[[], Any], least: float = 5.0) -> Any:
        """Do one part; a traceback is what is kept of one that breaks."""
        begun = time.monotonic()
        made: Any = None
        if self.left < least:
            self.found["parts"][name] = "left out: no time was left"
        else:
            try:
                made = work()
                self.found["parts"][name] = "done"
            except BaseException as error:
                self.found["parts"][name] = traceback.format_exc()[-6000:]
                if isinstance(error, KeyboardInterrupt):
                    raise
        self.say(f"{name}: {str(self.found['parts'][name]).splitlines()[-1][:200]}, "
                 f"{time.monotonic() - begun:.1f} s")
        self.write()
        return made

    def say(self, text: str) -> None:
        print(f"[{time.monotonic() - self.started:6.1f} s] {text}", flush=True)

    def write(self) -> None:
        self.found["seconds"] = round(time.monotonic() - self.started, 1)
        part = self.out.with_suffix(".part")
        part.write_text(json_text(self.found) + "\n", encoding="utf-8")
        part.replace(self.out)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--out", type=Path)
    options.add_argument("--seconds", type=float, default=SECONDS)
    options.add_argument("--modules", nargs="*", default=[])
    options.add_argument("--parts", nargs="*", default=[],
                         choices=["tests", "cheats", "values", "times", "grades"])
    options.add_argument("--workers", type=int, default=min(WORKERS, os.cpu_count() or 1))
    options.add_argument("--quick", action="store_true", help="solutions only, few cases")
    options.add_argument("--simulate", action="store_true", help="to try the script without a GPU")
    options.add_argument("--serve", default="", help="(a worker of this script)")
    chosen = options.parse_args()
    if chosen.serve:
        return serve(chosen.serve)
    if chosen.out is None:
        options.error("--out FILE is needed")
    run = Run(chosen.out, chosen.seconds)
    run.part("checkout", lambda: run.found.update(checkout=checkout.make_known()))
    without = run.part("look", lambda: look(run, chosen.simulate)) or ()
    setting = json.dumps({"without": without, "simulate": chosen.simulate, "quick": chosen.quick})
    modules = [m for m in straight.modules() if not chosen.modules or str(m) in chosen.modules]
    run.part("ceilings", lambda: run.found.update(
        ceilings=straight.ceilings(without, chosen.simulate)))
    parts: dict[str, Callable[[], None]] = {
        "values": lambda: values(run, modules, chosen, setting),
        "tests": lambda: tests(run, chosen),
        "times": lambda: times(run, modules, chosen, without),
        "cheats": lambda: cheats(run, modules, chosen, without),
        "grades": lambda: grades(run, modules, chosen, without),
    }
    for name in chosen.parts or parts:
        run.part(name, parts[name])
    summarize(run)
    run.write()
    return 0


def look(run: Run, simulate: bool) -> tuple[str, ...]:
    """Which GPU there is; and, where the sandbox is in its way, which measure is."""
    run.found["look"] = []
    for without in straight.LADDER:
        tried = straight.look(without, simulate)
        run.found["look"].append(tried)
        run.write()
        run.say(f"without {without or 'nothing'}: {str(tried)[:300]}")
        if "gpu" in tried:
            run.found["gpu"] = tried["gpu"]
            return without
    raise RuntimeError("the GPU answers under no measure")


# ---------------------------------------------------------------------------------------------
# Values, on all cores


def values(run: Run, modules: list[Path], chosen: argparse.Namespace, setting: str) -> None:
    """Every solution and every mutant; the solutions first."""
    run.found["values"] = {}
    jobs: queue.PriorityQueue[Job] = queue.PriorityQueue()
    for module in modules:
        count = straight.chunks(module)
        for number in range(1 if chosen.quick else count):
            jobs.put((0, number, str(module), straight.SOLUTION, number, count))
        for number, name in enumerate(straight.kernels(module)[1:]):
            if not chosen.quick:
                jobs.put((1, number, str(module), name, 0, 1))
    end = time.monotonic() + SHARE_OF_VALUES * run.left
    lock = threading.Lock()

    def work() -> None:
        for job, answer in served(jobs, setting, end):
            with lock:
                *_, module, name, number, count = job
                name = f"{name} {number + 1}/{count}" if count > 1 else name
                run.found["values"].setdefault(module, {})[name] = answer
                run.say(f"{module} {name}: {told(answer)}")
                run.write()

    threads = [threading.Thread(target=work, daemon=True) for _ in range(chosen.workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if not jobs.empty():
        raise TimeoutError(f"{jobs.qsize()} of the kernels were not run")


def told(answer: dict[str, Any]) -> str:
    if "cases" not in answer:
        return str(answer)[-200:]
    differ = f", differ: {answer['differ'][:2]}" if answer["differ"] else ""
    return f"{answer['cases']} cases, processor {answer['cpu']}, GPU {answer['gpu']}, " \
           f"{answer['seconds']} s{differ}"


def served(jobs: queue.PriorityQueue[Job], setting: str,
           end: float) -> Iterator[tuple[Job, dict[str, Any]]]:
    """What a worker process answers to jobs, until there are none; one that is lost is replaced."""
    worker: subprocess.Popen[str] | None = None
    while time.monotonic() < end:
        try:
            job = jobs.get_nowait()
        except queue.Empty:
            break
        if worker is None:
            worker = subprocess.Popen(
                [sys.executable, "-W", "ignore", "-m", "tests.benchmarks.gpu", "--serve", setting],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT,
                env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"})
        assert worker.stdin is not None and worker.stdout is not None
        late = threading.Timer(min(JOB_S, max(1.0, end - time.monotonic())), worker.kill)
        late.start()
        try:
            worker.stdin.write(json.dumps(job[2:]) + "\n")
            worker.stdin.flush()
            line = worker.stdout.readline()
            answer = json.loads(line) if line else {"lost": "the worker ended, or took too long"}
        except (OSError, ValueError) as error:
            answer = {"lost": repr(error)}
        finally:
            late.cancel()
        if "lost" in answer:
            worker.kill()
            worker.wait()
            worker = None
        yield job, answer
    if worker is not None and worker.stdin is not None:
        worker.stdin.close()
        try:
            worker.wait(10)
        except subprocess.TimeoutExpired:
            worker.kill()


def serve(setting: str) -> int:
    """A worker: a line of JSON for each line of JSON."""
    chosen = json.loads(setting)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever is printed is no answer
    torch.set_num_threads(1)
    with straight.sandbox(tuple(chosen["without"])) as box:
        for line in sys.stdin:
            module, name, *chunk = json.loads(line)
            try:
                answer = straight.values(Path(module), name, box, simulate=chosen["simulate"],
                                         chunk=(chunk[0], chunk[1]))
            except Exception:
                answer = {"failed": traceback.format_exc()[-3000:]}
            print(json.dumps(answer), file=answers, flush=True)
    return 0


# ---------------------------------------------------------------------------------------------
# Times, one at a time


def times(run: Run, modules: list[Path], chosen: argparse.Namespace,
          without: tuple[str, ...]) -> None:
    """The measured cases of every solution, by the session alone."""
    run.found["times"] = {}
    end = time.monotonic() + 0.6 * run.left
    with straight.sandbox(without) as box:
        for module in sorted(modules, key=lambda module: module.parts[0] == "mastery"):
            for case, answer in straight.times(module, box, run.found.get("ceilings"),
                                               simulate=chosen.simulate, quick=chosen.quick):
                run.found["times"].setdefault(str(module), {})[case] = answer
                run.say(f"{module} {case}: {answer.get('said') or str(answer)[-300:]}")
                run.write()
                if time.monotonic() > end:
                    raise TimeoutError("no time was left for all cases")


def cheats(run: Run, modules: list[Path], chosen: argparse.Namespace,
           without: tuple[str, ...]) -> None:
    """Timing cheats: what a naive clock says of each, and what this one does."""
    run.found["cheats"] = {}
    with straight.sandbox(without) as box:
        for name in straight.cheats():
            answer = straight.cheat(name, box, simulate=chosen.simulate)
            run.found["cheats"][name] = answer
            run.say(f"{name}: {answer}")
            run.write()


def grades(run: Run, modules: list[Path], chosen: argparse.Namespace,
           without: tuple[str, ...]) -> None:
    """Whole grades of the solutions with the GPU, where the judge asks for it."""
    run.found["grades"] = {}
    with straight.sandbox(without) as box:
        for module in modules:
            if run.left < 10:
                raise TimeoutError("no time was left for all modules")
            answer = straight.grade(module, box)
            run.found["grades"][str(module)] = answer
            run.say(f"{module}: {answer.get('verdict')} {answer.get('evidence')} "
                    f"{answer.get('seconds')} s")
            run.write()


def tests(run: Run, chosen: argparse.Namespace) -> None:
    """The tests that need a GPU."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-m", "gpu", "-W", "default", "-o",
             f"cache_dir={folder}", *(["--collect-only"] if chosen.simulate else []),
             *(str(path) for path in sorted((ROOT / "tests").glob("test_*.py"))
               if "mark.gpu" in path.read_text(encoding="utf-8"))],
            cwd=ROOT, capture_output=True, text=True, timeout=max(10.0, run.left))
    run.found["tests"] = {"rc": done.returncode, "tail": (done.stdout + done.stderr)[-6000:]}
    run.say(done.stdout[-300:])


def summarize(run: Run) -> None:
    """In a few lines: what is right, what differs, how fast."""
    counted = {"solutions": 0, "wrong": 0, "mutants": 0, "agree": 0, "differ": 0, "broken": 0}
    for kernels in run.found.get("values", {}).values():
        for name, answer in kernels.items():
            if "cases" not in answer:
                counted["broken"] += 1
            elif name.startswith(straight.SOLUTION):
                counted["solutions"] += 1
                counted["wrong"] += answer["gpu"] != "PASSED"
            else:
                counted["mutants"] += 1
                counted["agree" if answer["cpu"] == answer["gpu"] else "differ"] += 1
    run.found["summary"] = counted
    run.say(f"summary: {counted}")


if __name__ == "__main__":
    raise SystemExit(main())
