"""``python -m tests.fidelity.performance``: planted defects found by name, good kernels let be."""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import triton

from grader.engine.compiler.compile import DoesNotCompile
from grader.engine.compiler.targets import find

from .analysing import analyse
from .every import CASES


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--target", default="h200")
    options.add_argument("--only", default="", help="a part of a case's name")
    options.add_argument("--verbose", action="store_true", help="what was seen, and the facts")
    chosen = options.parse_args()
    target = find(chosen.target)
    cases = [case for case in CASES if chosen.only in case.name]
    right = 0
    for case in cases:
        try:
            made = analyse(case, target)
        except DoesNotCompile as error:
            print(f"FAIL  {case.name}: {error}")
            continue
        right += made.right
        found = ", ".join(sorted(made.names)) or "-"
        wanted = "" if made.right else f"  (planted: {', '.join(sorted(case.finds)) or 'none'})"
        print(f"{'ok   ' if made.right else 'FAIL '} {case.family:12} {case.name:62} "
              f"{found}{wanted} {made.why} [{made.seconds:.2f} s]", flush=True)
        if chosen.verbose:
            for one in made.launches[:3]:
                print("     ", one.binary)
                print("     ", one.survey)
            for defect in made.defects:
                print(f"      {defect.code} {defect.name} ({defect.weight}, line {defect.line}): "
                      f"{defect.seen}. {defect.advice}")
    print(f"Triton {triton.__version__}, {target.title}: {right} of {len(cases)} cases as planted.")
    return 0 if right == len(cases) else 1


if __name__ == "__main__":
    raise SystemExit(main())
