"""Runs the chaos list and prints what held: `python -m tests.fidelity.chaos [--quick]`."""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from tests.fidelity.chaos.bench import Bench
from tests.fidelity.chaos.entries import NOT_RUN_HERE, Entry, entries
from tests.fidelity.chaos.surroundings import can_mount

KILLS, QUICK_KILLS = 300, 3


def tried(entry: Entry, bench: Bench) -> list[str]:
    """What went wrong; an entry that fails itself is a problem too."""
    try:
        return entry.run(bench)
    except Exception as error:
        return [f"{type(error).__name__}: {error}"]


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--quick", action="store_true",
                         help="shorter deadlines, and fewer entries unless --only names them")
    options.add_argument("--only", default="", help="entries whose name holds these words")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--kills", type=int, help="of the judge")
    chosen = options.parse_args()
    kills = chosen.kills or (QUICK_KILLS if chosen.quick else KILLS)
    mounts = can_mount()
    held = ran = 0
    with tempfile.TemporaryDirectory() as folder, \
            Bench(Path(folder), chosen.quick, chosen.seed) as bench:
        for entry in entries(kills):
            left_out = chosen.quick and not (entry.quick or chosen.only)
            if left_out or chosen.only not in entry.name:
                continue
            if entry.mounts and not mounts:
                print(f"not run  {entry.name}: a disk of its own takes root", flush=True)
                continue
            started = time.monotonic()
            problems = tried(entry, bench)
            bench.clear()
            ran, held = ran + 1, held + (not problems)
            word = "FAILED" if problems else "held"
            print(f"{word:<8} {entry.name}  {time.monotonic() - started:.1f} s", flush=True)
            for problem in problems[:5]:
                print(f"         {problem}", flush=True)
    for name in NOT_RUN_HERE:
        print(f"not run  {name}: it takes a GPU")
    print(f"Chaos: {held} of {ran} entries held; seed {chosen.seed}, {kills} kills of the judge.")
    return 0 if held == ran else 1


if __name__ == "__main__":
    raise SystemExit(main())
