"""`python -m tests.messages [--write] [--verb VERB]`: compare what is said with what is kept."""

from __future__ import annotations

import argparse
import difflib
import sys

from grader import Sandbox
from tests.messages.situations import SITUATIONS
from tests.messages.stage import kept, spoken


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.messages")
    parser.add_argument("--write", action="store_true", help="keep what is said now")
    parser.add_argument("--verb", choices=list(SITUATIONS), help="only this verb")
    chosen = parser.parse_args()
    differ = False
    with Sandbox() as box:
        for verb in [chosen.verb] if chosen.verb else SITUATIONS:
            file, said = kept(verb), spoken(SITUATIONS[verb], box)
            before = file.read_text() if file.exists() else ""
            differ |= before != said
            sys.stdout.writelines(difflib.unified_diff(
                before.splitlines(True), said.splitlines(True), file.name, f"{verb} now"))
            if chosen.write:
                file.write_text(said)
    return int(differ and not chosen.write)


if __name__ == "__main__":
    sys.exit(main())
