"""What `tritonlab doctor` found, as a list, and its attacks as a table."""

from __future__ import annotations

from tritonlab.doctor import Diagnosis
from tritonlab.render.screen import Screen, word


def show(screen: Screen, diagnosis: Diagnosis, next_command: str) -> None:
    """Every check with its remedy, what can be decided here, and what every attack came to."""
    margin = "" if screen.plain else "  "
    for check in diagnosis.checks:
        label = f"{check.name}: " if screen.plain else f"{check.name:<22} "
        screen.line(check.seen, lead=(margin, word(str(check.state)), " ", label))
        if check.remedy:
            screen.line((check.remedy, "dim"), lead=() if screen.plain else (" " * 8,))
    screen.blank()
    for level in diagnosis.levels:
        able = not level.hindrance
        heading = "This machine decides" if able else "It cannot decide"
        screen.line(f"{level.means if able else level.hindrance}.",
                    lead=(f"{heading} ", (level.name, "strong"), ": "))
        if level.remedy:
            screen.line((level.remedy, "dim"), lead=() if screen.plain else (" " * 8,))
    if diagnosis.attacks:
        screen.blank()
        _attacks(screen, diagnosis)
    screen.blank()
    screen.next(next_command)


def _attacks(screen: Screen, diagnosis: Diagnosis) -> None:
    count = len(diagnosis.attacks)
    stopped = count - len(diagnosis.succeeded)
    screen.line(("Attacks on the grader", "strong"), f": {stopped} of {count} were stopped")
    width = max(len(result.name) for result in diagnosis.attacks)
    for result in diagnosis.attacks:
        state = ("SUCCEEDED", "fail") if result.succeeded else ("stopped", "pass")
        if screen.plain:
            screen.line(state, f": {result.name}: {result.how}")
        else:
            shown = (f"{state[0]:<9}", state[1])
            screen.line((result.how, "dim"), lead=("  ", shown, f" {result.name:<{width}}  "))
