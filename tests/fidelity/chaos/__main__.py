"""Runs the chaos list and prints what held: `python -m tests.fidelity.chaos [--quick]`."""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from tests.fidelity.chaos.bench import Bench
from tests.fidelity.chaos.entries import NOT_RUN_HERE, Entry, entries
from tests.fidelity.chaos.surroundings import can_mount
from tests.fidelity.tally import Say, Tally

KILLS, QUICK_KILLS = 300, 3


def tried(entry: Entry, bench: Bench) -> list[str]:
    """What went wrong; an entry that fails itself is a problem too."""
    try:
        return entry.run(bench)
    except Exception as error:
        return [f"{type(error).__name__}: {error}"]


def attempted(quick: bool, seed: int, kills: int, only: str, say: Say) -> Tally:
    """Run the list: each entry has to end as it must."""
    tally = Tally("chaos")
    started = time.monotonic()
    mounts = can_mount()
    with tempfile.TemporaryDirectory() as folder, Bench(Path(folder), quick, seed) as bench:
        for entry in entries(kills):
            left_out = quick and not (entry.quick or only)
            if left_out or only not in entry.name:
                continue
            if entry.mounts and not mounts:
                say(f"not run  {entry.name}: a disk of its own takes root")
                continue
            begun = time.monotonic()
            problems = tried(entry, bench)
            bench.clear()
            tally.kinds += 1
            tally.trials += 1
            say(f"{'FAILED' if problems else 'held':<8} {entry.name}  "
                f"{time.monotonic() - begun:.1f} s")
            if problems:
                tally.problems.append(f"{entry.name}: {'; '.join(problems[:5])}")
    for name in NOT_RUN_HERE:
        say(f"not run  {name}: it takes a GPU")
    tally.seconds = time.monotonic() - started
    tally.note = f"{kills} kills of the judge"
    return tally


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--quick", action="store_true",
                         help="shorter deadlines, and fewer entries unless --only names them")
    options.add_argument("--only", default="", help="entries whose name holds these words")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--kills", type=int, help="of the judge")
    chosen = options.parse_args()
    kills = chosen.kills or (QUICK_KILLS if chosen.quick else KILLS)
    tally = attempted(chosen.quick, chosen.seed, kills, chosen.only,
                      lambda text: print(text, flush=True))
    for problem in tally.problems:
        print(f"    {problem}")
    print(f"Chaos: {tally.right} of {tally.trials} entries held; seed {chosen.seed}, {tally.note}.")
    return 1 if tally.problems else 0


if __name__ == "__main__":
    raise SystemExit(main())
