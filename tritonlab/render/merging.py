"""A merge: what came in, and what is passed now."""

from __future__ import annotations

from tritonlab.errors import shown
from tritonlab.merging import Merge
from tritonlab.render.screen import Screen


def show(screen: Screen, merge: Merge, command: str) -> None:
    """How many records came in, and what they changed."""
    where, records = shown(merge.source), _records(merge.there)
    if not merge.added:
        all_of_them = "The only record" if merge.there == 1 else f"All {records}"
        screen.line(f"{all_of_them} in {where} {_were(merge.there)} here already; nothing was "
                    "changed.")
    else:
        known = merge.there - merge.added
        screen.line(f"{_records(merge.added)} came in from {where}"
                    f"{f'; {known} {_were(known)} here already' if known else ''}.")
        screen.line(f"Core modules passed: {merge.before.core} before, {merge.after.core} now."
                    if merge.before.core != merge.after.core
                    else f"Core modules passed: {merge.after.core}, as before.")
        if merge.gained:
            screen.line(f"Passed there and not here before: {', '.join(merge.gained)}.")
        screen.line("Exercises were not copied: only the record was merged.")
    screen.next(command)


def _were(number: int) -> str:
    return "was" if number == 1 else "were"


def _records(number: int) -> str:
    return "1 record" if number == 1 else f"{number} records"
