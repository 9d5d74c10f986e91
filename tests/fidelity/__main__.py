"""The grader graded: right solutions must pass, mutants, cheats and chaos must end as they should.

    python -m tests.fidelity [--only PART ...] [--seeds 200] [--mutant-seeds 20] [--variants 8]
                             [--kills 300] [--json FILE]
    python -m tests.fidelity --quick

One figure for each part, and every exception to it by name:

- right: the solution of every module and right ones that differ from it, with fresh seeds
- mutants: wrong versions of each solution, which must get their own code and diagnosis every time
- cheats: attempts to be graded right without the work, each with the finding that it must get
- tolerance: right and wrong arithmetic in NumPy and torch, in every dtype and order
- chaos: killed, starved, interrupted, with broken files and disks

The full run takes about an hour and a half on two cores. Exits with 1 where anything is not as it
must be.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from grader import Sandbox
from tests.benchmarks.checkout import commit
from tests.fidelity import cheats, modules
from tests.fidelity.chaos.__main__ import attempted as chaos
from tests.fidelity.tally import Say, Tally
from tests.fidelity.tolerance import measure

Part = Callable[[Sandbox], Tally]


def parts(chosen: argparse.Namespace, say: Say) -> dict[str, Part]:
    """Each part of the benchmark by name."""
    return {
        "right": lambda box: modules.right_but_different(chosen.seeds, box, say, chosen.variants),
        "mutants": lambda box: modules.mutants(chosen.mutant_seeds, box, say),
        "cheats": lambda box: cheats.attempted(box, say),
        "tolerance": lambda box: measure.attempted(1 if chosen.quick else 5),
        "chaos": lambda box: chaos(chosen.quick, 1, chosen.kills, "", say),
    }


def show(tally: Tally) -> None:
    print(f"{tally.what:32} {tally.kinds:5} {tally.right:7,} of {tally.trials:7,} as they must "
          f"{tally.seconds:7.0f} s  {tally.note}", flush=True)
    for problem in tally.problems:
        print(f"    {problem}")


def main() -> int:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--only", nargs="+", default=[], metavar="PART")
    options.add_argument("--seeds", type=int, default=200, help="of every right solution")
    options.add_argument("--mutant-seeds", type=int, default=20, help="of every mutant")
    options.add_argument("--variants", type=int, default=8, help="solutions of each module")
    options.add_argument("--kills", type=int, default=300, help="of the judge")
    options.add_argument("--quick", action="store_true", help="one seed, three kills")
    options.add_argument("--json", type=Path, help="write the figures to this file")
    chosen = options.parse_args()
    if chosen.quick:
        chosen.seeds = chosen.mutant_seeds = 1
        chosen.kills = 3
    live = sys.stderr.isatty()

    def say(text: str) -> None:
        if live:
            print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)

    available = parts(chosen, say)
    unknown = set(chosen.only) - set(available)
    if unknown:
        options.error(f"no such part: {', '.join(sorted(unknown))}; there are "
                      f"{', '.join(available)}")
    tallies = {}
    with Sandbox() as sandbox:
        for name, run in available.items():
            if not chosen.only or name in chosen.only:
                tallies[name] = run(sandbox)
                say("")
                show(tallies[name])
    if chosen.json:
        chosen.json.write_text(json.dumps({
            "date": datetime.date.today().isoformat(), "commit": commit(),
            "cores": os.cpu_count(),
            "versions": {name: version(name) for name in ("torch", "triton", "numpy")},
            "parts": {name: tally.__dict__ for name, tally in tallies.items()},
        }, indent=1) + "\n")
    return 1 if any(tally.problems for tally in tallies.values()) else 0


if __name__ == "__main__":
    raise SystemExit(main())
