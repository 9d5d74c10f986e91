"""Compares the verdicts of known files with the kept ones.

    python -m tests.golden [--write] [SLUG ...]

For every module: its solution, its untouched exercise and two of its mutants, each graded at one
seed without compiling. Prints the lines that differ and exits with 1 if any does.
"""

from __future__ import annotations

import argparse
import difflib
import sys

from grader import Sandbox
from tests.golden import verdicts


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("slugs", nargs="*", metavar="SLUG", help="modules; all if none is named")
    parser.add_argument("--write", action="store_true", help="keep the verdicts of today's grader")
    options = parser.parse_args()
    differs = False
    with Sandbox() as sandbox:
        for material in verdicts.modules(options.slugs):
            file = verdicts.kept(material)
            before = file.read_text() if file.exists() else ""
            now = verdicts.of(material, sandbox, verdicts.mutants_of(before) if before else ())
            differs |= now != before
            print(material.module.id, "as kept" if now == before else "DIFFERS", flush=True)
            sys.stdout.writelines(difflib.unified_diff(
                before.splitlines(True), now.splitlines(True), "kept", "now", n=0))
            if options.write:
                file.parent.mkdir(exist_ok=True)
                file.write_text(now)
    return int(differs and not options.write)


if __name__ == "__main__":
    sys.exit(main())
