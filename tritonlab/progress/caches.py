"""Caches beside the journal: each module's last benchmark, and its case names for completion."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta, convert

from tritonlab.course.course import Module
from tritonlab.errors import not_saved
from tritonlab.progress import safe_files

if TYPE_CHECKING:
    from grader.bench.benchmark import Benchmark, Chart

SCHEMA = 1
BENCHMARKS = "bench"  # in the workspace's own folder; below it a file for each module, by its id
LARGEST = 1_000_000  # bytes; one has about 10 000
CASE_NAMES = "cases.json"  # {module: [name, ...]}
_Text = Annotated[str, Meta(max_length=200, pattern="^[^$]*$")]  # $ would begin a formula
_Positive = Annotated[float, Meta(gt=0, le=sys.float_info.max)]


@dataclass(frozen=True)
class StoredBenchmark:
    """A stored benchmark and its day."""

    benchmark: Benchmark
    date: str


def benchmark_path(mark: Path, module: Module) -> Path:
    return mark / BENCHMARKS / f"{module.id}.json"


def save_benchmark(mark: Path, module: Module, benchmark: Benchmark) -> str:
    """Stores a benchmark of all functions if anything was timed.

    A prediction does not replace a measurement of the same file.

    Returns:
        Why it could not be stored, or an empty string.
    """
    file = benchmark_path(mark, module)
    if not any(chart.timed for chart in benchmark.charts):
        return ""
    before = load_benchmark(mark, module)
    if before and before.benchmark.measured and not benchmark.measured \
            and before.benchmark.source_sha256 == benchmark.source_sha256:
        return ""
    data = {"schema": SCHEMA, "module": module.id, "date": f"{date.today():%Y-%m-%d}",
            "benchmark": benchmark.to_dict()}
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with safe_files.opened(file.parent) as folder:
            safe_files.replace(folder, file.name, json.dumps(data, indent=1).encode())
    except OSError as error:
        return str(not_saved("The benchmark", error, file))
    return ""


def load_benchmark(mark: Path, module: Module) -> StoredBenchmark | None:
    """Returns the stored benchmark of a module; None if the file is absent or damaged."""
    file = benchmark_path(mark, module)
    try:
        with safe_files.opened(file.parent) as folder:
            data = json.loads(safe_files.read(folder, file.name, LARGEST) or b"")
        if data["schema"] != SCHEMA or data["benchmark"]["schema"] != SCHEMA:
            return None
        return StoredBenchmark(_benchmark(data["benchmark"]), str(date.fromisoformat(data["date"])))
    except (OSError, ValueError, TypeError, KeyError, AttributeError, OverflowError,
            RecursionError):
        return None


def _benchmark(data: Mapping[str, Any]) -> Benchmark:
    """Returns the benchmark of the data of ``Benchmark.to_dict``, without findings."""
    from grader.bench.benchmark import Benchmark

    charts = tuple(map(_chart, data["functions"]))
    return convert({**data, "charts": charts, "findings": (), "why": data["not_measured"]},
                   Benchmark)


def _chart(data: Mapping[str, Any]) -> Chart:
    from grader.bench import benchmark
    from grader.bench.benchmark import Chart, Contender, Roof, Speed, Without
    from grader.suite import Cost

    function, axis, at, peer = convert(
        [data[name] for name in ("function", "axis", "at", "peer")], list[_Text])
    roof = convert(data["roof"], Roof)
    needed = {one["size"]: convert(one, Cost) for one in data["sizes"]}
    contenders = tuple(Contender(
        one["who"], {time["size"]: convert(time, Speed) for time in one["times"]},
        {int(size): Without(str(why)) for size, why in one["without"].items()})
        for one in data["contenders"])
    speeds = [speed for one in contenders for speed in one.speeds.values()]
    convert([roof.copy, roof.peak, *needed, *(cost.bytes for cost in needed.values()),
             *(number for speed in speeds for number in (speed.seconds, speed.low, speed.high))],
            list[_Positive])
    if not needed or any(one.speeds.keys() - needed for one in contenders):
        raise ValueError("a size is missing")
    if any(cost.flops < 0 for cost in needed.values()):
        raise ValueError("a count of operations is below zero")
    if any(one.who not in (benchmark.YOURS, benchmark.REFERENCE, benchmark.TORCH,
                           benchmark.COMPILED) for one in contenders):
        raise ValueError("not a contender")
    return Chart(function, axis, at, peer, roof, needed, contenders)


def save_case_names(mark: Path, module: str, names: Sequence[str]) -> None:
    """Stores the case names of a module; a failure only costs completions."""
    cached = load_case_names(mark)
    if cached.get(module) == [*names]:
        return
    with contextlib.suppress(OSError), safe_files.opened(mark) as folder:
        content = json.dumps({**cached, module: [*names]}, indent=1)
        safe_files.replace(folder, CASE_NAMES, content.encode())


def load_case_names(mark: Path) -> dict[str, list[str]]:
    """Returns the names by module; empty if the file is absent or damaged."""
    try:
        with safe_files.opened(mark) as folder:
            return msgspec.json.decode(safe_files.read(folder, CASE_NAMES) or b"{}",
                                       type=dict[str, list[str]])
    except (OSError, msgspec.DecodeError, RecursionError):
        return {}
