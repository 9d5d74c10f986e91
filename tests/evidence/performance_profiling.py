"""The profiles of track3/performance-profiling: five kernels of the performance set, in numbers.

    python -m tests.evidence.performance_profiling    writes them into the module's folders

What a kernel moves is counted here, by the survey, from its addresses at real size. Times and
registers are those of the run on an H200 whose five cases are in `performance_profiling.json`. A
later run would change the lesson: the time of one launch per chunk is that of the host. Operations
are counted by hand.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from grader.engine.compiler.targets import find
from grader.recording.launch_stats import SECTOR, Survey
from tests.fidelity.performance.analysing import surveyed
from tests.fidelity.performance.every import CASES
from tests.fidelity.performance.recorded import record

ROOT = Path(__file__).parents[2]
RUN = Path(__file__).with_suffix(".json")
PLACES = [ROOT / kind / "debugging" / "03-performance-profiling" / "profiles.json"
          for kind in ("tracks", "solutions", "grader/suites")]

# Letter, case of the performance set, the job in words, operations for each element of the result.
PROFILES = (
    ("A", "an addition that walks down columns", "z = x + y, 8,192 x 8,192 float32", 1),
    ("B", "softmax in three passes over long rows", "softmax of 1,024 rows of 131,072 float32", 7),
    ("C", "vector add, one launch per chunk", "z = x + y, 4,194,304 float32", 1),
    ("D", "a block of 16,384 elements for 4 warps",
     "y = x * y + exp(x) where x > y, else log(y + 1) - x; 67,108,864 float32", 7),
    ("E", "running sums of rows", "running sums of 8,192 rows of 16,384 float32", 1),
)


def profiles() -> dict[str, Any]:
    """All that the file holds: the GPU, where the numbers come from, and the five profiles."""
    run = json.loads(RUN.read_text(encoding="utf-8"))
    target, measured = find(run["target"]), run["calibration"]
    return {
        "gpu": {
            "name": run["device"],
            "copy_gbps": _rounded(measured["copy"]["bytes_per_second"] / 1e9),
            "fp32_tflops": _rounded(target.fp32 / 1e12),
            "launch_ms": _rounded(measured["one_empty_program"]["ms"]["median"]),
        },
        "origin": {
            "ms, copy_gbps, launch_ms": f"measured on one {run['device']}, {run['date']}, driver "
                                        f"{run['driver']}: medians of "
                                        f"{measured['copy']['ms']['repeats']}, L2 flushed",
            "registers, stack_bytes, shared_bytes, warps": "the compiled code that was measured, "
                                                           f"Triton {run['versions']['triton']}",
            "bytes, sectors, programs, launches": "counted by the tracer from the addresses of all "
                                                  "launches",
            "flops": "by hand, of the job; exp and log count as one",
            "fp32_tflops": "the data sheet of the GPU",
        },
        "profiles": {letter: _profile(name, job, each, run["cases"][name])
                     for letter, name, job, each in PROFILES},
    }


def _profile(name: str, job: str, each: int, measured: dict[str, Any]) -> dict[str, Any]:
    [case] = [case for case in CASES if case.name == name]
    recorded = record(case)
    launches = recorded.recording.launches
    made, why = surveyed(recorded, [1] * len(launches), find("h200"))
    surveys = [one for one in made if isinstance(one, Survey)]
    assert not why and len(surveys) == len(launches), why
    rows = [row for one in surveys for row in one.traffic]
    [code] = measured["launches"]
    assert code["launches"] == len(launches)
    return {
        "job": job,
        "ms": _rounded(measured["ms"]["median"]),
        "ms_p20": _rounded(measured["ms"]["p20"]),
        "ms_p80": _rounded(measured["ms"]["p80"]),
        "launches": len(launches),
        "programs": sum(one.programs for one in surveys),
        "flops": each * math.prod(case.given[-1].shape),
        "compulsory_bytes": case.moves,
        "issued_bytes": sum(one.issued for one in surveys),
        "sectors": sum(row.sectors for row in rows),
        "sector_bytes": SECTOR,
        "warps": code["warps"],
        "registers": code["registers"],
        "stack_bytes": code["spill_bytes"],
        "shared_bytes": code["shared"],
    }


def _rounded(value: float) -> float:
    """To five digits, as far as the runs agree."""
    return float(f"{value:.5g}")


def text() -> str:
    """The file, as it is kept."""
    return json.dumps(profiles(), indent=1) + "\n"


def write(places: Sequence[Path] = PLACES) -> None:
    for place in places:
        place.write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    write()
