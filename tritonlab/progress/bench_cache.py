"""The last benchmark of each module, stored beside the journal for the report."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tritonlab.course.course import Module
from tritonlab.errors import not_saved
from tritonlab.progress import safe_files

if TYPE_CHECKING:
    from grader.bench.bench import Benchmark, Chart, Contender

SCHEMA = 1
FOLDER = "bench"  # in the workspace's own folder; below it a file for each module, by its id
LARGEST = 1_000_000  # bytes; one has about 10 000
_LONGEST = 200  # characters of a text that is drawn


@dataclass(frozen=True)
class StoredBenchmark:
    """A stored benchmark and its day."""

    found: Benchmark
    date: str


def path(mark: Path, module: Module) -> Path:
    return mark / FOLDER / f"{module.id}.json"


def keep(mark: Path, module: Module, benchmark: Benchmark) -> str:
    """Stores a benchmark of all functions if anything was timed.

    A prediction does not replace a measurement of the same file.

    Returns:
        Why it could not be stored, or an empty string.
    """
    file = path(mark, module)
    if not any(chart.timed for chart in benchmark.charts):
        return ""
    before = kept(mark, module)
    if before and before.found.measured and not benchmark.measured \
            and before.found.source_sha256 == benchmark.source_sha256:
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


def kept(mark: Path, module: Module) -> StoredBenchmark | None:
    """Returns the stored benchmark of a module; None if the file is absent or damaged."""
    file = path(mark, module)
    try:
        with safe_files.opened(file.parent) as folder:
            content = safe_files.read(folder, file.name) or b""
        if len(content) > LARGEST:
            return None
        data = json.loads(content)
        if data["schema"] != SCHEMA or data["benchmark"]["schema"] != SCHEMA:
            return None
        return StoredBenchmark(_benchmark(data["benchmark"]), str(date.fromisoformat(data["date"])))
    except (OSError, ValueError, TypeError, KeyError, AttributeError, OverflowError,
            RecursionError):
        return None


def _benchmark(data: Mapping[str, Any]) -> Benchmark:
    """Returns the benchmark of the data of ``Benchmark.to_dict``, without findings."""
    from grader.bench.bench import Benchmark

    return Benchmark(str(data["suite"]), str(data["source_sha256"]), data["measured"] is True,
                     str(data["device"]), dict(data["of"]),
                     tuple(_chart(one) for one in data["functions"]), (),
                     {str(name): str(version) for name, version in data["versions"].items()},
                     str(data["not_measured"]))


def _chart(data: Mapping[str, Any]) -> Chart:
    from grader.bench.bench import Chart, Roof
    from grader.suite import Cost

    roof = data["roof"]
    chart = Chart(_words(data["function"]), _words(data["axis"]), _words(data["at"]),
                  _words(data["peer"]),
                  Roof(str(roof["device"]), roof["measured"] is True, _positive(roof["copy"]),
                      _positive(roof["peak"]), _units(roof["units"])),
                 {_size(one["size"]): Cost(int(_positive(one["bytes"])), max(0, int(one["flops"])))
                  for one in data["sizes"]},
                  tuple(_contender(one) for one in data["contenders"]))
    if not chart.needed or any(size not in chart.needed for one in chart.contenders
                               for size in one.speeds):
        raise ValueError("a size is missing")
    return chart


def _contender(data: Mapping[str, Any]) -> Contender:
    from grader.bench.bench import COMPILED, REFERENCE, TORCH, YOURS, Contender, Speed, Without

    if data["who"] not in (YOURS, REFERENCE, TORCH, COMPILED):
        raise ValueError("not a contender")
    return Contender(
        data["who"],
        {_size(one["size"]): Speed(_positive(one["seconds"]), _positive(one["low"]),
                                   _positive(one["high"]), int(one["repeats"]), str(one["note"]))
         for one in data["times"]},
        {int(size): Without(str(why)) for size, why in data["without"].items()})


def _units(name: Any) -> Any:
    if name not in ("fp8", "fp16", "tf32", "fp32"):
        raise ValueError("not units of a roof")
    return name


def _words(text: Any) -> str:
    """Checks a text for a chart, where a dollar sign would begin a formula."""
    if not isinstance(text, str) or len(text) > _LONGEST or "$" in text:
        raise ValueError("not a text for a chart")
    return text


def _size(number: Any) -> int:
    return int(_positive(number))


def _positive(number: Any) -> float:
    if isinstance(number, bool) or not isinstance(number, int | float) \
            or not 0 < number < math.inf:
        raise ValueError("a number is not above zero")
    return float(number)
