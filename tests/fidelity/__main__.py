"""The grader graded: right solutions must pass, mutants, cheats and chaos must end as they should.

    python -m tests.fidelity [--only PART ...] [--seeds 200] [--mutant-seeds 20] [--variants N]
                             [--json FILE]

One figure for each part, and every exception to it by name. The full run takes about an hour on two
cores; `--seeds 2 --mutant-seeds 1` is a quick look. Exits with 1 where a figure is not what it must
be.
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

from grader.sandbox import Sandbox
from tests.fidelity import modules
from tests.fidelity.modules import Tally


def parts(chosen: argparse.Namespace, say: Callable[[str], None]
          ) -> dict[str, Callable[[Sandbox], Tally]]:
    """Each part of the benchmark by name."""
    return {
        "right": lambda box: modules.right_but_different(chosen.seeds, box, say, chosen.variants),
        "mutants": lambda box: modules.mutants(chosen.mutant_seeds, box, say),
    }


def show(tally: Tally) -> None:
    print(f"{tally.what:32} {tally.kinds:5} {tally.right:6} of {tally.grades:6} as they must "
          f"{tally.seconds:8.0f} s", flush=True)
    for problem in tally.problems:
        print(f"    {problem}")


def main() -> int:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--only", nargs="+", default=[], metavar="PART")
    options.add_argument("--seeds", type=int, default=200, help="of every right solution")
    options.add_argument("--mutant-seeds", type=int, default=20, help="of every mutant")
    options.add_argument("--variants", type=int, default=None, help="solutions of each module")
    options.add_argument("--json", type=Path, help="write the figures to this file")
    chosen = options.parse_args()
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
            "date": datetime.date.today().isoformat(), "cores": os.cpu_count(),
            "versions": {name: version(name) for name in ("torch", "triton", "numpy")},
            "parts": {name: tally.__dict__ for name, tally in tallies.items()},
        }, indent=1) + "\n")
    return 1 if any(tally.problems for tally in tallies.values()) else 0


if __name__ == "__main__":
    raise SystemExit(main())
