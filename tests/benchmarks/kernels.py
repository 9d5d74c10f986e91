"""Every reference solution beside its peers, in one run.

    python -m tests.benchmarks.kernels --out FILE [--seconds 180] [--quick] [--rows TEXT ...]

First every row runs once in processes side by side, which compiles what is needed and compares each
result with the reference; what is wrong is not timed. Then the rows are timed one after the other:
of one row, everybody takes turns, so that what drifts drifts for all. Times are medians of events
with L2 flushed before each start. Ratios are time of the best peer over own time: 1.00 is level;
``of_starter`` is the time of the file that learners start from over that of the solution.
Ceilings are the copy rate and the float16 matmul rate that this run measured. Results are written
after each row. ``--simulate`` tries all of this on small inputs without a GPU, through the grader's
interpreter; its times mean nothing.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import multiprocessing
import os
import platform
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import torch
import triton

from grader.engine.gpu import ceilings
from grader.engine.gpu.clock import Cuda
from tests.benchmarks.rows import FULL, QUICK, TINY, Inputs, Row, all_rows
from tests.benchmarks.rows_attention import attention_rows
from tests.benchmarks.rows_compiled import compiled_rows
from tests.benchmarks.rows_debugging import debugging_rows
from tests.benchmarks.rows_fp8 import fp8_rows
from tests.benchmarks.rows_fused import fused_rows
from tests.benchmarks.rows_odd import odd_rows
from tests.benchmarks.rows_optimization import optimization_rows
from tests.benchmarks.rows_training import training_rows
from tests.benchmarks.text import json_text
from tests.benchmarks.turns import together

Entry = dict[str, Any]
_FORK = multiprocessing.get_context("fork")  # the parent never touches CUDA: a fault ends a child
_PREPARING = 0.55  # share of the seconds that compiling and comparing may take
_ROW_MS = 500.0  # that all contestants of a row may take
_OURS = ("solution", "starter")  # how those are called who are no peers


def every_row() -> list[Row]:
    return [*all_rows(), *optimization_rows(), *fp8_rows(), *debugging_rows(), *fused_rows(),
            *attention_rows(), *training_rows(), *compiled_rows(), *odd_rows()]


def main() -> int:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--out", type=Path)
    options.add_argument("--seconds", type=float, default=180.0, help="when to stop")
    options.add_argument("--quick", action="store_true", help="small sizes, to try the script")
    options.add_argument("--simulate", action="store_true", help="no GPU: interpreted, not timed")
    options.add_argument("--rows", nargs="+", help="only those whose name holds one of these texts")
    options.add_argument("--bare", action="store_true", help="import torch.compile in every child")
    options.add_argument("--jobs", type=int, default=min(12, os.cpu_count() or 1))
    chosen = options.parse_args()
    begun = time.monotonic()
    scale = TINY if chosen.simulate else QUICK if chosen.quick else FULL
    rows = [row for row in every_row()
            if not chosen.rows or any(text in row.name for text in chosen.rows)]
    run = Run(rows, scale, "cpu" if chosen.simulate else "cuda")

    result: dict[str, Any] = {
        "date": f"{datetime.date.today():%Y-%m-%d}",
        "versions": {"python": platform.python_version(), "torch": torch.__version__,
                     "triton": triton.__version__},
        "scale": scale, "rows": [],
    }
    if not chosen.simulate:
        os.environ |= {"TORCHINDUCTOR_COMPILE_THREADS": "1",  # there are processes enough
                       "PYTORCH_NVML_BASED_CUDA_CHECK": "1"}  # asks for GPUs without CUDA
        if not chosen.bare:
            importlib.import_module("torch._inductor.compile_fx")  # once, and not in each of them
        if not reaches_gpu():
            if chosen.bare:
                print("This benchmark measures a GPU, and no GPU was found.", file=sys.stderr)
                return 2
            os.execv(sys.executable, [sys.executable, "-m", __spec__.name, *sys.argv[1:], "--bare"])
    until = begun + _PREPARING * chosen.seconds
    problems = prepare(run, chosen.jobs, until)
    result["prepared_s"] = round(time.monotonic() - begun, 1)
    result["not_timed"] = {row: {who: why for who, why in found.items() if why}
                           for row, found in problems.items() if any(found.values())}
    result["errors"] = run.errors
    print(f"{len(problems)} rows prepared in {result['prepared_s']} s", flush=True)
    for row, found in run.errors.items():
        for who, errors in found.items():
            print(f"  off: {row}: {who}: " + ", ".join(f"{name} {error:.3g}" for name, error in
                                                       errors.items()), flush=True)
    for row, found in result["not_timed"].items():
        for who, why in found.items():
            print(f"  not timed: {row}: {who}: {why.strip().splitlines()[-1][:160]}", flush=True)
    for measured in time_rows(run, problems, begun + chosen.seconds):
        if "name" in measured:
            result["rows"].append(judged(measured, result))
            show(result["rows"][-1])
        else:
            result |= measured
            print(", ".join(f"{key} {value}" for key, value in measured.items()), flush=True)
        result["seconds"] = round(time.monotonic() - begun, 1)
        if chosen.out:
            chosen.out.write_text(json_text(result) + "\n")
    print(f"\nseconds {result.get('seconds')}")
    return summed_up(rows, result)


def reaches_gpu() -> bool:
    """Whether a child gets a GPU: not where there is none, nor where an import has begun CUDA."""
    child = _FORK.Process(target=lambda: torch.zeros(1, device="cuda").item())
    child.start()
    child.join()
    return child.exitcode == 0


class Run:
    """What is to be run, at which scale, and where."""

    def __init__(self, rows: Sequence[Row], scale: int, device: str) -> None:
        self.rows, self.scale, self.device = rows, scale, device
        self.errors: dict[str, dict[str, dict[str, float]]] = {}  # of rows that ask for them

    def inputs(self, row: Row) -> Inputs:
        torch.manual_seed(7)
        return row.make(self.scale, self.device)

    def who(self, row: Row) -> dict[str, Callable[..., Any]]:
        return {name: run for name, run in row.who().items()
                if self.device == "cuda" or not name.startswith("torch.compile")}

    def here(self) -> ExitStack:
        """Inside, kernels run: on the GPU, or interpreted."""
        inside = ExitStack()
        if self.device == "cpu":
            from grader.engine.interpreter.eager import interpreted
            inside.enter_context(interpreted())
        return inside


# ---------------------------------------------------------------------------------------------
# First: compile and compare


def prepare(run: Run, jobs: int, until: float) -> dict[str, dict[str, str]]:
    """For each row that was ready in time, what is wrong with whom; nothing where all is well."""
    waiting = deque((row, frozenset[str]()) for row in run.rows)
    found: dict[str, dict[str, str]] = {}
    active: dict[Connection, tuple[Any, Row, str]] = {}
    while (waiting or active) and time.monotonic() < until:
        while waiting and len(active) < jobs:
            row, done = waiting.popleft()
            ours, theirs = _FORK.Pipe(duplex=False)
            child = _FORK.Process(target=_prepare_row, args=(run, row, done, theirs), daemon=True)
            child.start()
            theirs.close()
            active[ours] = (child, row, "")
        for ready in wait(list(active), timeout=1.0):
            assert isinstance(ready, Connection)
            child, row, who = active[ready]
            results = found.setdefault(row.name, {})
            try:
                message = ready.recv()
            except EOFError:
                del active[ready]
                child.join()
                if who:  # it died over this one; the others get another process
                    results[who] = f"the process ended with {child.exitcode}"
                    waiting.appendleft((row, frozenset(results)))
                continue
            if message["problem"] is not None:
                results[message["who"]] = message["problem"]
            if message["errors"]:
                run.errors.setdefault(row.name, {})[message["who"]] = message["errors"]
            active[ready] = (child, row, message["who"] if message["problem"] is None else "")
    for child, row, who in active.values():
        child.kill()
        child.join()
        found.setdefault(row.name, {})[who or "the row"] = "not ready in time"
    return found


def _prepare_row(run: Run, row: Row, done: frozenset[str], channel: Connection) -> None:
    """In a process of its own: before and after each of the row's contestants, a word of it."""
    def tell(who: str, problem: str | None = None,
             errors: dict[str, float] | None = None) -> None:
        channel.send({"who": who, "problem": problem, "errors": errors})

    tell("the row")
    problem = ""
    try:
        with run.here():
            inputs = run.inputs(row)
            everybody = run.who(row)
            right: dict[str, Any] = {}
            for who, work in everybody.items():
                if who in done:
                    continue
                tell(who)
                reference = row.others.get(who, row.expected)
                key = who if who in row.others else ""
                if key not in right:
                    right = {key: reference(*inputs)}  # one at a time: they are large
                problem, errors = _compared(row, work, inputs, right[key])
                tell(who, problem, errors)
                problem = ""
    except BaseException:
        problem = traceback.format_exc(limit=-6)
    tell("the row", problem)


def _compared(row: Row, work: Callable[..., Any], inputs: Inputs,
              expected: Any) -> tuple[str, dict[str, float]]:
    """Why this one is not timed, or nothing; and how far off it is, where the row asks for it."""
    errors: dict[str, float] = {}
    try:
        returned = row.values(work(*inputs))
        if row.errors:
            errors = row.errors(inputs, returned, expected)
        results = returned if isinstance(returned, tuple) else (returned,)
        wanted = expected if isinstance(expected, tuple) else (expected,)
        for result, right in zip(results, wanted, strict=True):
            if result.shape != right.shape:
                return f"shape {tuple(result.shape)} instead of {tuple(right.shape)}", errors
            off = (result - right).abs()
            allowed = row.tolerance * (right.abs() + right.abs().mean())
            bad = int((~(off <= allowed)).sum())  # NaN is bad
            if bad:
                return f"{bad} of {off.numel()} wrong, off by up to {off.max().item():.3g}", errors
    except Exception:
        return traceback.format_exc(limit=-4), errors
    return "", errors


# ---------------------------------------------------------------------------------------------
# Then: time


def time_rows(run: Run, problems: dict[str, dict[str, str]], until: float) -> Iterator[Entry]:
    """The ceilings, then every row that is ready, from a process that is replaced if it is lost."""
    rows = deque(row for row in run.rows if problems.get(row.name, {}).get("the row") == "")
    first = True
    while rows and time.monotonic() < until:
        ours, theirs = _FORK.Pipe(duplex=False)
        child = _FORK.Process(target=_time_rows, daemon=True, args=(
            run, tuple(rows), problems, first, theirs))
        child.start()
        theirs.close()
        first = False
        while rows:
            if not ours.poll(max(0.0, until - time.monotonic())):
                break
            try:
                message = ours.recv()
            except EOFError:
                lost = rows.popleft()
                yield {"name": lost.name, "lost": "the process ended while it was timed"}
                break
            if "name" in message:
                rows.popleft()
            yield message
        child.kill()
        child.join()


def _time_rows(run: Run, rows: Sequence[Row], problems: dict[str, dict[str, str]],
               first: bool, channel: Connection) -> None:
    with run.here():
        device = Cuda() if run.device == "cuda" else None
        if first:
            channel.send(_ceilings(device))
        for row in rows:
            try:
                channel.send(_timed(run, row, problems.get(row.name, {}), device))
            except Exception:
                channel.send({"name": row.name, "lost": traceback.format_exc(limit=-4)})
            if device:
                torch.cuda.empty_cache()


def _ceilings(device: Cuda | None) -> Entry:
    if device is None:
        return {"device": "none: simulated", "copy_gb_s": 1.0, "matmul_tflops": 1.0}
    return {"device": torch.cuda.get_device_name(),
            "copy_gb_s": round(ceilings.copy_gb_s(device, ceilings.copied_bytes()), 1),
            "matmul_tflops": round(ceilings.matmul_tflops(device, torch.float16), 1)}


def _timed(run: Run, row: Row, problems: dict[str, str], device: Cuda | None) -> Entry:
    inputs = run.inputs(row)
    works = {who: (lambda work=work: work(*inputs)) for who, work in run.who(row).items()
             if not problems.get(who)}
    if device is None:
        times = {who: {"median": _seconds(work) * 1e3, "p20": 0.0, "p80": 0.0, "repeats": 1}
                 for who, work in works.items()}
    else:
        times = together(works, device, _ROW_MS)
    return {"name": row.name, "goal": row.goal, "rival": row.rival,
            "bytes": row.least_bytes(*inputs) if row.least_bytes else None,
            "flops": row.flops(*inputs) if row.flops else None, "times": times}


def _seconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


# ---------------------------------------------------------------------------------------------
# What it means


def judged(measured: Entry, result: Entry) -> Entry:
    """Rates, shares of the ceiling and ratios to the best peer of one row."""
    if "lost" in measured:
        return measured
    times = measured.pop("times")
    peers = {who: taken["median"] for who, taken in times.items() if not who.startswith(_OURS)}
    best = min(peers, key=peers.__getitem__) if peers else ""
    rival = measured["rival"] if measured["rival"] in peers else best
    entries = {}
    for who, taken in times.items():
        ms = taken["median"]
        entry = {"ms": round(ms, 5), "p20": round(taken["p20"], 5), "p80": round(taken["p80"], 5),
                 "repeats": taken["repeats"]}
        if measured["bytes"]:
            rate = measured["bytes"] / ms / 1e6
            entry |= {"gb_s": round(rate, 1), "of_copy": round(rate / result["copy_gb_s"], 4)}
        if measured["flops"]:
            rate = measured["flops"] / ms / 1e9
            entry |= {"tflops": round(rate, 2),
                      "of_matmul": round(rate / result["matmul_tflops"], 4)}
        if rival:
            entry["ratio"] = round(peers[rival] / ms, 4)
        if who == "solution" and "starter" in times:
            entry["of_starter"] = round(times["starter"]["median"] / ms, 3)
        entries[who] = entry
    return {**measured, "best_peer": best, "rival": rival, "who": entries}


def show(row: Entry) -> None:
    print(f"\n{row['name']}", flush=True)
    if "lost" in row:
        print(f"  lost: {row['lost']}", flush=True)
        return
    for who, entry in sorted(row["who"].items(), key=lambda pair: pair[1]["ms"]):
        rate = (f"{entry['gb_s']:8.1f} GB/s {entry['of_copy']:7.1%} of copy" if "gb_s" in entry
                else f"{entry['tflops']:8.1f} TFLOP/s {entry['of_matmul']:7.1%}")
        print(f"  {who:34} {entry['ms']:9.4f} ms {rate}  {entry.get('ratio', 0):6.3f}",
              flush=True)


def summed_up(rows: Sequence[Row], result: Entry) -> int:
    """A line for each row; 0 if every solution that was timed reaches its goal."""
    print(f"\n{'row':42} {'goal':>5} {'solution':>9} {'x starter':>9}")
    missed = 0
    for row in result["rows"]:
        if "lost" in row or "solution" not in row["who"]:
            print(f"{row['name']:42} not timed")
            missed += 1
            continue
        own = row["who"]["solution"].get("ratio", 0.0)
        goal = row["goal"]
        below = goal is not None and round(own, 2) < goal
        missed += below
        faster = row["who"]["solution"].get("of_starter", "")
        print(f"{row['name']:42} {goal or '':>5} {own:9.3f} {faster:>9}"
              f"{'   BELOW ITS GOAL' if below else ''}")
    left = {row.name for row in rows} - {row["name"] for row in result["rows"]}
    for name in sorted(left):
        print(f"{name:42} not reached")
    return 1 if missed or left else 0


if __name__ == "__main__":
    sys.exit(main())
