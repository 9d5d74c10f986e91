"""``python -m tests.fidelity.tolerance``: right runs that fail, wrong kernels that pass."""

from __future__ import annotations

import sys

import torch

from .measure import KERNELS, measure, upper_bound


def main(seeds: int = 3) -> int:
    torch.set_num_threads(1)
    counts = measure(range(seeds))
    ours = counts["the rule"]
    runs = sum(ours.right.values())
    variants = {key[:2] for key in ours.wrong}
    missed = ours.variants_never_caught()
    print(f"{len(KERNELS)} kernels, {seeds} seeds")
    print(f"right runs failed: {len(ours.failed)} of {runs}"
          + ("" if ours.failed else f" (rate below {upper_bound(runs):.2%}, 95%)"))
    print(f"wrong variants caught: {len(variants) - len(missed)} of {len(variants)}; "
          f"in each of their dtypes: {len(ours.wrong) - len(ours.never_caught())} "
          f"of {len(ours.wrong)}")
    print(f"\n{'':16} {'right failed':>14} {'wrong never caught':>20} {'wrong runs passed':>19}")
    for rule, count in counts.items():
        lost = f"{len(count.variants_never_caught())} of {len(variants)}"
        passed = f"{count.passed_pairs()} of {sum(count.wrong.values())}"
        print(f"{rule:16} {f'{len(count.failed)} of {runs}':>14} {lost:>20} {passed:>19}")
    for line in ours.failed[:20]:
        print(f"right and failed: {line}")
    for key in ours.never_caught():
        print(f"wrong and passed everywhere: {' / '.join(key)}")
    return int(bool(ours.failed or ours.never_caught()))


if __name__ == "__main__":
    raise SystemExit(main(*map(int, sys.argv[1:])))
