"""Caches beside the journal: each module's last benchmark, case names and failed cases."""

import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from tritonlab.course.course import Module
from tritonlab.errors import not_saved
from tritonlab.progress import safe_files

if TYPE_CHECKING:
    from grader.bench.benchmark import Benchmark

T = TypeVar("T")

SCHEMA = 1
BENCHMARKS = "bench"  # in the workspace's own folder; below it a file for each module, by its id
LARGEST = 1_000_000  # bytes; one has about 10 000
CASE_NAMES = "cases.json"  # {module: [name, ...]}
FAILURES = "failures.json"  # {module: Failures}


@dataclass(frozen=True)
class Failures:
    """The cases that failed in a module's last grade, and the seed of its inputs."""

    seed: str = ""
    cases: Sequence[str] = ()


@dataclass(frozen=True)
class StoredBenchmark:
    """A stored benchmark and its day."""

    benchmark: "Benchmark"
    date: str


def benchmark_path(mark: Path, module: Module) -> Path:
    return mark / BENCHMARKS / f"{module.id}.json"


def save_benchmark(mark: Path, module: Module, benchmark: "Benchmark") -> str:
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


def _benchmark(data: Mapping[str, Any]) -> "Benchmark":
    """Returns the benchmark of the data of ``Benchmark.to_dict``, without findings."""
    from grader.bench.benchmark import Benchmark

    charts = [{
        **chart, "peer_name": chart["peer"],
        "needed": {one["size"]: one for one in chart["sizes"]},
        "contenders": [{
            "who": one["who"], "speeds": {time["size"]: time for time in one["times"]},
            "without": {int(size): {"reason": why} for size, why in one["without"].items()},
        } for one in chart["contenders"]],
    } for chart in data["functions"]]
    benchmark = msgspec.convert(
        {**data, "charts": charts, "findings": (), "why": data["not_measured"]}, Benchmark)
    if any(not chart.needed or any(one.speeds.keys() - chart.needed for one in chart.contenders)
           for chart in benchmark.charts):
        raise ValueError("a size is missing")
    return benchmark


def save_case_names(mark: Path, module: str, names: Sequence[str]) -> None:
    """Stores the case names of a module; a failure only costs completions."""
    _save(mark, CASE_NAMES, load_case_names(mark), module, [*names])


def load_case_names(mark: Path) -> dict[str, list[str]]:
    """Returns the names by module; empty if the file is absent or damaged."""
    return _load(mark, CASE_NAMES, list[str])


def save_failures(mark: Path, module: str, failures: Failures) -> None:
    """Stores what failed last; without it `trace` draws the first case."""
    _save(mark, FAILURES, _load(mark, FAILURES, Failures), module, failures)


def load_failures(mark: Path, module: str) -> Failures:
    """Returns what failed last; nothing if the file is absent or damaged."""
    return _load(mark, FAILURES, Failures).get(module, Failures())


def _save(mark: Path, file: str, cached: Mapping[str, T], module: str, value: T) -> None:
    if cached.get(module) == value:
        return
    with contextlib.suppress(OSError), safe_files.opened(mark) as folder:
        content = msgspec.json.format(msgspec.json.encode({**cached, module: value}), indent=1)
        safe_files.replace(folder, file, content)


def _load(mark: Path, file: str, kind: type[T]) -> dict[str, T]:
    try:
        with safe_files.opened(mark) as folder:
            stored: dict[str, T] = msgspec.json.decode(safe_files.read(folder, file) or b"{}",
                                                       type=dict[str, kind])  # type: ignore[valid-type]
            return stored
    except (OSError, msgspec.DecodeError, RecursionError):
        return {}
