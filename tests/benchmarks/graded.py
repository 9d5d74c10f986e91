"""Grades with a GPU: solutions by values and by the clock, mutants on processor and GPU.

    python -m tests.benchmarks.graded --out graded.json [--seconds 200] [--jobs 12]
        [--only timed values mutants] [--modules softmax conv2d] [--quick]

The grader's own way from end to end, with its processes. What is timed runs alone and first; then
solutions (every value case) and mutants (some of them, right or wrong on the processor) run side by
side. ``differ`` names every case whose verdict is not the same on both, with the reason where one
is known. The file is written after each, so that a run that is cut off leaves what it had.
"""

from __future__ import annotations

import argparse
import datetime
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import grader
from grader.judge.oversized import is_measured, limits
from grader.report import CaseResult, Report, Verdict
from grader.suite import Case, Function, Suite
from tests.benchmarks.text import json_text
from tests.fidelity.modules import Module, modules
from tests.support.gpu_differences import differences
from tritonlab.authoring import module_files

KINDS = ("timed", "values", "mutants")
SOME = 6  # cases of a mutant
STRAGGLERS_S = 20.0  # that tasks may take after the time is over


@dataclass(frozen=True)
class Task:
    module: str
    kind: str
    mutant: str = ""


def main() -> int:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--out", type=Path, required=True)
    options.add_argument("--seconds", type=float, default=200.0, help="when nothing more is begun")
    options.add_argument("--jobs", type=int, default=min(12, os.cpu_count() or 1))
    options.add_argument("--only", nargs="+", choices=KINDS, default=KINDS)
    options.add_argument("--modules", nargs="+", help="slugs")
    options.add_argument("--quick", action="store_true", help="two mutants of each module")
    options.add_argument("--simulate", action="store_true", help="no GPU: to try this script")
    chosen = options.parse_args()
    started = time.monotonic()
    result: dict[str, Any] = {"date": f"{datetime.date.today():%Y-%m-%d}", "grades": []}
    found = [module for module in modules() if not chosen.modules or module.slug in chosen.modules]
    for alone in (True, False):
        tasks = [task for task in tasks_of(found, chosen.only, 2 if chosen.quick else None)
                 if (task.kind == "timed") is alone]
        for one in outcomes(tasks, 1 if alone else chosen.jobs, started + chosen.seconds,
                            chosen.simulate):
            result["ceilings"] = one.pop("ceilings", None) or result.get("ceilings")
            result["versions"] = one.pop("versions", None) or result.get("versions")
            result["grades"].append(one)
            result["seconds"] = round(time.monotonic() - started, 1)
            chosen.out.write_text(json_text(result) + "\n")
            print(said(one), flush=True)
    return 1 if any(trouble(one) for one in result["grades"]) else 0


def tasks_of(found: Sequence[Module], kinds: Sequence[str], most: int | None) -> Iterator[Task]:
    """Solutions before mutants, what moves most last, and the mutants of all modules in turn."""
    smallest = sorted(found, key=lambda module: limits(module.suite).address_space)
    for kind in ("timed", "values"):
        if kind in kinds:
            yield from (Task(module.slug, kind) for module in smallest
                        if kind == "values" or any(map(is_measured, module.suite.all_cases)))
    if "mutants" in kinds:
        longest = max((len(module.suite.mutants) for module in found), default=0)
        for number in range(min(longest, most or longest)):
            yield from (Task(module.slug, "mutants", module.suite.mutants[number].id)
                        for module in found if number < len(module.suite.mutants))


def trouble(one: dict[str, Any]) -> bool:
    """Whether a solution did not pass, or something broke."""
    return bool(one.get("broke")) or (one["kind"] != "mutants" and one.get("verdict") != "PASSED")


def said(one: dict[str, Any]) -> str:
    """A line about one grade, and one for each time and each difference."""
    name = f"{one['module']} {one['kind']} {one.get('mutant', '')}".strip()
    lines = [f"{name}: {one.get('verdict', '')} {one.get('evidence', '')} "
             f"{one.get('seconds', 0):.1f} s {one.get('broke', '')[-300:]}".rstrip()]
    lines += [f"    {case['name']}: {case['verdict']} {case['said']}"
              for case in one.get("cases", ()) if case["clocked"]]
    lines += [f"    differs: {case}: {why}" for case, why in one.get("differ", ())]
    return "\n".join(lines)


# ---------------------------------------------------------------------------------------------
# Processes


_here: dict[str, Any] = {}


def begin(simulate: bool) -> None:
    """In each process: a warm sandbox, for all that it grades."""
    _here["modules"] = {module.slug: module for module in modules()}
    _here["sandbox"] = grader.Sandbox()
    if simulate:
        import pytest

        from tests.support import simulated

        simulated.install(pytest.MonkeyPatch(), simulated.Simulated())


def outcomes(tasks: Sequence[Task], jobs: int, until: float,
             simulate: bool) -> Iterator[dict[str, Any]]:
    """What became of each task, as it ends; what is not begun in time is left out."""
    if not tasks or time.monotonic() >= until:
        return
    with ProcessPoolExecutor(min(jobs, len(tasks)), mp_context=get_context("spawn"),
                             initializer=begin, initargs=(simulate,)) as pool:
        waiting = [pool.submit(grade, task, until) for task in tasks]
        try:
            for done in as_completed(waiting, until - time.monotonic() + STRAGGLERS_S):
                if one := done.result():
                    yield one
        except TimeoutError:
            print("some did not end in time", file=sys.stderr)
            for process in (pool._processes or {}).values():
                process.terminate()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def grade(task: Task, until: float) -> dict[str, Any]:
    """Grade one file; empty where the time is over."""
    if time.monotonic() >= until:  # one clock for all processes of this machine
        return {}
    told = {"module": task.module, "kind": task.kind, "mutant": task.mutant}
    started = time.monotonic()
    try:
        report = _graded(_here["modules"][task.module], task)
    except Exception:
        return {**told, "broke": traceback.format_exc()}
    return {**told, **summary(report), "seconds": round(time.monotonic() - started, 2)}


def _graded(module: Module, task: Task) -> Report:
    box = _here["sandbox"]
    if task.kind == "timed":
        return grader.grade(module.solution, narrowed(module.suite, timed=True), sandbox=box,
                            gpu="found")
    suite = narrowed(module.suite, timed=False, most=SOME if task.mutant else None)
    if not task.mutant:
        return grader.grade(module.solution, suite, sandbox=box, gpu="throughout")
    mutant = next(one for one in module.suite.mutants if one.id == task.mutant)
    named = {*mutant.wrong, *mutant.right}
    files = {name: (module.solution.parent / name).read_text()
             for name in (module.solution.name, *module.suite.files)}
    with tempfile.TemporaryDirectory() as folder:
        module_files.write(mutant.apply_to(files), Path(folder))
        return grader.grade(Path(folder) / module.solution.name,
                            narrowed(module.suite, timed=False, most=SOME, named=named),
                            sandbox=box, gpu="throughout", effort="values")


def narrowed(suite: Suite, *, timed: bool, most: int | None = None,
             named: set[str] | frozenset[str] = frozenset()) -> Suite:
    """The suite with what is timed and one value case of each function; or with values alone.

    ``most`` of the value cases of each function are kept, spread over all, and those ``named``.
    """
    def kept(function: Function) -> list[Case]:
        values = [case for case in function.cases if case.limits is None and not case.raises
                  and not (case.call or case.reading or case.sizes)]
        measured = [case for case in function.cases if is_measured(case)]
        if timed:
            return [*values[:1], *measured] if measured else []
        step = -(-len(values) // most) if most else 1
        every = [f"{function.entry}: {case.name}" if suite.functions else case.name
                 for case in values]
        return [case for number, (case, name) in enumerate(zip(values, every, strict=True))
                if number % max(1, step) == 0 or name in named]

    functions = [replace(one, cases=kept(one)) for one in suite.functions]
    return replace(suite, cases=() if suite.functions else kept(suite), properties=(),
                   functions=[one for one in functions if one.cases])


def summary(report: Report) -> dict[str, Any]:
    """What is kept of a report."""
    return {
        "verdict": str(report.verdict), "evidence": report.evidence, "gpu": report.gpu,
        "ceilings": dict(report.ceilings), "versions": dict(report.versions),
        "target": report.target, "seed": report.seed, "unusable": report.unusable_gpu,
        "broke": report.reason or "\n".join(
            r.reason for r in (*report.results, *report.on_gpu) if r.verdict is Verdict.ERROR),
        "cases": [_case(one) for one in report.results],
        "on_gpu": [_case(one) for one in report.on_gpu],
        "differ": differences(report.results, report.on_gpu),
    }


def _case(result: CaseResult) -> dict[str, Any]:
    first = result.findings[0] if result.findings else None
    seen = first.seen if first else result.facts.get("measured") or result.reason
    return {"name": result.name, "verdict": str(result.verdict),
            "code": first.code if first else "", "said": seen[:400],
            "clocked": result.clocked, "seconds": round(result.seconds, 3),
            **({"measured": dict(result.measured), "facts": dict(result.facts)}
               if result.measured else {})}


if __name__ == "__main__":
    raise SystemExit(main())
