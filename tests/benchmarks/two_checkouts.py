"""Grades of two checkouts of this repository side by side, as ratios of their times.

    python -m tests.benchmarks.two_checkouts BEFORE [--slug softmax ...] [--repeats 9] [--json FILE]

BEFORE is another checkout with a ``.venv`` of its own. Each checkout has one process with a warm
sandbox; the two grade the module's reference solution with the same seed in turn, so that noise
hits both alike. Seconds are wall time of ``grader.grade`` with every check on; ratios are this
checkout over BEFORE, the median of the repeats. Exits with 1 where the median of the modules'
ratios is above 1.03.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

from tests.benchmarks.text import json_text

ROOT = Path(__file__).parents[2]
SLUGS = ("vector-add", "softmax", "matrix-mul", "layer-norm", "tiling", "two-phase-reduction",
         "dynamic-shapes", "fused-operations")
MOST = 1.03
GRADES = """
import json, sys, time
from pathlib import Path
import grader

with grader.Sandbox() as sandbox:
    for line in sys.stdin:
        slug, seed = line.split()
        [suite] = Path("grader/suites").glob(f"*/*-{slug}/suite.py")
        folder = suite.parent.relative_to("grader/suites")
        started = time.perf_counter()
        report = grader.grade(Path("solutions") / folder / "kernel.py", grader.load_suite(suite),
                              sandbox=sandbox, seed=int(seed))
        seconds = time.perf_counter() - started
        print(json.dumps([report.verdict.name, seconds]), flush=True)
"""


class Checkout:
    """A process that grades with the code of one checkout."""

    def __init__(self, folder: Path) -> None:
        self.process = subprocess.Popen(
            [folder / ".venv" / "bin" / "python", "-c", GRADES], cwd=folder, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"})

    def grade(self, slug: str, seed: int) -> float:
        """Seconds of one grade of a solution.

        Raises:
            RuntimeError: the solution does not pass.
        """
        assert self.process.stdin and self.process.stdout
        print(slug, seed, file=self.process.stdin, flush=True)
        verdict, seconds = json.loads(self.process.stdout.readline())
        if verdict != "PASSED":
            raise RuntimeError(f"{slug}, seed {seed}: {verdict}")
        return float(seconds)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("before", type=Path)
    parser.add_argument("--slug", nargs="+", default=SLUGS)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    before, after = Checkout(options.before.resolve()), Checkout(ROOT)
    rows = {}
    for slug in options.slug:
        pairs = [(before.grade(slug, seed), after.grade(slug, seed))
                 for seed in range(options.repeats + 1)][1:]  # the first one imports and warms up
        ratio = statistics.median(b / a for a, b in pairs)
        a, b = (statistics.median(times) for times in zip(*pairs, strict=True))
        rows[slug] = {"before_s": round(a, 3), "after_s": round(b, 3), "ratio": round(ratio, 3)}
        print(f"{slug:24}{a:8.2f} s{b:8.2f} s{ratio:8.3f}", flush=True)
    ratio = statistics.median(row["ratio"] for row in rows.values())
    print(f"median ratio {ratio:.3f}, at most {MOST}")
    if options.json:
        options.json.write_text(json_text({"median_ratio": ratio, "rows": rows}) + "\n")
    return ratio > MOST


if __name__ == "__main__":
    sys.exit(main())
