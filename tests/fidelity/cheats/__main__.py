"""``python -m tests.fidelity.cheats``: a table of all cheats, and how many are caught."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import grader
from grader import Sandbox
from tests.fidelity.cheats import CLASSES, cheats, is_confined, plant, suite_of, touched
from tests.fidelity.cheats.naive import believed


def main() -> int:
    """Print one line for each cheat; the exit status is 1 unless all are caught."""
    known = cheats()
    naive = believed(known)
    caught = kept = 0
    with Sandbox() as sandbox, tempfile.TemporaryDirectory() as folder:
        confined = is_confined(sandbox, Path(folder))
        print(f"{'class':6}{'cheat':46}{'naive':8}{'code':6}what was seen")
        for cheat in known:
            home = Path(tempfile.mkdtemp(dir=folder))
            plant(home)
            report = grader.grade(cheat.put(home), suite_of(cheat.module), sandbox=sandbox)
            finding = cheat.caught(report) if report.exit_code == 1 else None
            caught += finding is not None
            changed = touched(home)
            kept += not changed
            believes = "passes" if naive[f"{cheat.module}/{cheat.name}"] else "fails"
            code, seen = (finding.code, finding.seen) if finding else ("", "NOT CAUGHT")
            where = f"; changed {', '.join(changed)}" if changed else ""
            print(f"{cheat.group:6}{f'{cheat.module}/{cheat.name}':46}{believes:8}{code:6}"
                  f"{seen[:90]}{where}", flush=True)
    print()
    for letter, what in CLASSES.items():
        print(f"{letter} {what}: {sum(cheat.group[0] == letter for cheat in known)}")
    print(f"A grader in the same process passes {sum(naive.values())} of {len(known)}.")
    print(f"Canary files untouched by {kept} of {len(known)}"
          f"{'' if confined else '; here nothing confines what a submission writes'}.")
    print(f"{caught} of {len(known)} caught")
    return 0 if caught == len(known) else 1


if __name__ == "__main__":
    sys.exit(main())
