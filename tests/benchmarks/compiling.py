"""What the compiler's facts cost beside the compilation itself, in a warm process.

    python -m tests.benchmarks.compiling [--json FILE] [--repeats 5]

For kernels of the performance set: milliseconds to compile a launch ("compile": Triton's own
stages and its assembler, nothing cached), to read the facts of it ("facts"), to have the front end
alone read it ("front end"), and seconds to survey it at its real size ("survey", CPU time). All are
medians. Exits with 1 where a limit is missed: 150 ms for compiling and facts in the median over the
kernels that multiply no matrices, 2 s for any survey.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tests.benchmarks.text import json_text

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[name] = "1"

import triton  # noqa: E402

from grader.engine.compiler.compile import build, parse  # noqa: E402
from grader.engine.compiler.kernel_reader import binary_of  # noqa: E402
from grader.engine.compiler.targets import find  # noqa: E402
from grader.executor.binding import without_memory  # noqa: E402
from tests.fidelity.performance.analysing import surveyed  # noqa: E402
from tests.fidelity.performance.case import Case  # noqa: E402
from tests.fidelity.performance.every import CASES  # noqa: E402
from tests.fidelity.performance.recorded import record  # noqa: E402

GATE_MS, SURVEY_S = 150.0, 2.0
NAMES = (
    "vector add", "softmax in one pass", "softmax in three passes over long rows", "layer norm",
    "transpose in tiles of 64", "add, relu and mul fused", "sum in two phases", "dropout",
    "gather of random elements", "cross entropy with a running maximum", "row sums in a loop",
    "product fp16, 128x256x64, 8 warps, 3 stages", "product fp16, 64x64x32",
    "attention, 128x64, 64 wide",
)


def main() -> int:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--json", type=Path, help="write the rows to this file")
    options.add_argument("--repeats", type=int, default=5)
    chosen = options.parse_args()
    rows = []
    print(f"{'':48} {'compile':>8} {'facts':>7} {'front end':>10} {'survey':>8}")
    for case in (case for case in CASES if case.name in NAMES):
        row = measure(case, chosen.repeats)
        rows.append(row)
        print(f"{case.name:48} {row['compile_ms']:5.0f} ms {row['facts_ms']:4.0f} ms "
              f"{row['front_end_ms']:7.0f} ms {row['survey_s']:6.2f} s", flush=True)
    gates = [row["compile_ms"] + row["facts_ms"] for row in rows if not row["multiplies"]]
    slowest = max(row["survey_s"] for row in rows)
    print(f"gate and facts, median of kernels without products: {statistics.median(gates):.0f} ms, "
          f"limit {GATE_MS:.0f}; slowest survey {slowest:.2f} s, limit {SURVEY_S:.0f}")
    if chosen.json:
        chosen.json.write_text(json_text({
            "date": datetime.date.today().isoformat(),
            "device": platform.machine(), "cores": os.cpu_count(),
            "versions": {"python": platform.python_version(),
                         **{name: version(name) for name in ("torch", "triton", "numpy")}},
            "repeats": chosen.repeats, "rows": rows,
        }) + "\n")
    return 0 if statistics.median(gates) <= GATE_MS and slowest <= SURVEY_S else 1


def measure(case: Case, repeats: int) -> dict[str, Any]:
    """The first launch of a case; the first time of each step is not counted."""
    target = find()
    recorded = record(case)
    launch = recorded.recording.launches[0]
    kernel, arguments = without_memory(recorded.kernels).bind(launch)
    made: list[Any] = []

    def compile_it() -> None:
        with forgotten(kernel):
            made[:] = [build(kernel, arguments, launch.options, target)]

    def take_it() -> None:
        with forgotten(kernel):
            parse(kernel, arguments, launch.options, target)

    compile_ms = median(compile_it, repeats)
    binary = binary_of(made[0], target, launch.kernel, launch.options)
    facts_ms = median(lambda: binary_of(made[0], target, launch.kernel, launch.options), repeats)
    resident = [binary.occupancy.programs] * len(recorded.recording.launches)
    survey_s = median(lambda: surveyed(recorded, resident, target), min(repeats, 3),
                      time.process_time) / 1e3
    return {"name": case.name, "multiplies": binary.dot, "compile_ms": compile_ms,
            "facts_ms": facts_ms, "front_end_ms": median(take_it, repeats), "survey_s": survey_s}


@contextlib.contextmanager
def forgotten(kernel: Any) -> Iterator[None]:
    """Inside, nothing is known of earlier compilations."""
    kernel.device_caches.clear()
    with tempfile.TemporaryDirectory() as folder, triton.knobs.cache.scope():
        triton.knobs.cache.dir = folder
        yield


def median(step: Callable[[], object], repeats: int,
           clock: Callable[[], float] = time.perf_counter) -> float:
    """Milliseconds."""
    times = []
    for _ in range(repeats + 1):
        started = clock()
        step()
        times.append((clock() - started) * 1e3)
    return statistics.median(times[1:])


if __name__ == "__main__":
    sys.exit(main())
