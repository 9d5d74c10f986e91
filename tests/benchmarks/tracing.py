"""What tracing costs: the time of a traced replay beside a plain one.

    python -m tests.benchmarks.tracing [--json FILE]

A softmax of 49 rows of 1,024 floats, which makes 100,352 element accesses, in one process. A replay
that is not traced runs no code of the tracer.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch

from grader.executor import replay
from grader.executor.extract import kernels
from grader.executor.trace import trace
from grader.recording import arena, model
from grader.recording.trace import Trace
from tritonlab.course import course

ROWS, COLUMNS, REPEATS = 49, 1024, 7


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    solution = course.load().find("track1/softmax").solution
    loaded = kernels.from_file(str(solution))
    with arena.pack([torch.randn(ROWS, COLUMNS)]) as packed, tempfile.TemporaryFile() as output:
        x = packed.views[0]
        out = model.View(1, "float32", x.shape, x.stride, 0)
        arguments = {name: model.Argument(kind, value) for name, kind, value in (
            ("x_ptr", "tensor", x), ("out_ptr", "tensor", out), ("stride_x", "int", COLUMNS),
            ("stride_out", "int", COLUMNS), ("n_cols", "int", COLUMNS),
            ("BLOCK_SIZE", "int", COLUMNS))}
        recording = model.Recording((x,), (model.Alloc(1, 4 * ROWS * COLUMNS), model.Launch(
            "softmax_kernel", (ROWS, 1, 1), arguments)), (out,))
        plain_s = _median(lambda: replay.replay(recording, packed.layout(), packed.fd,
                                                output.fileno(), loaded, replay.Settings()))
        traced: list[Trace] = []
        traced_s = _median(lambda: traced.append(
            trace(recording, packed.layout(), packed.fd, loaded)[0]))
    programs = sum(len(group.programs) for group in traced[-1].launches[0].groups)
    figures = {"accesses": 2 * ROWS * COLUMNS, "programs": ROWS, "traced programs": programs,
               "plain_ms": round(1e3 * plain_s, 1), "traced_ms": round(1e3 * traced_s, 1),
               "ratio": round(traced_s / plain_s, 1), "array_bytes": len(traced[-1].data),
               "cpus": len(os.sched_getaffinity(0))}
    print(json.dumps(figures, indent=1))
    if chosen.json:
        chosen.json.write_text(json.dumps(figures, indent=1) + "\n")


def _median(work: Callable[[], object]) -> float:
    times = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return statistics.median(times)


if __name__ == "__main__":
    main()
