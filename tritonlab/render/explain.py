"""The codes of findings as text: names, a table, or one with its example."""

from collections.abc import Sequence

from grader.diagnosis.examples import Example
from tritonlab.render.screen import Screen, padded


def show_all(screen: Screen, every: Sequence[Example]) -> None:
    """Prints codes and names, one a line."""
    rows = [(one.code, one.name) for one in every]
    for code, name in rows if screen.plain else padded(rows, "<<"):
        screen.line((f"{code}  ", "dim"), (name, "strong"))


def show_table(screen: Screen, every: Sequence[Example]) -> None:
    """Prints code, name, emitter and the first sentence of the meaning of each."""
    rows = [(one.code, one.name, one.emitter) for one in every]
    for one, (code, name, emitter) in zip(
            every, rows if screen.plain else padded(rows, "<<<"), strict=True):
        screen.line(one.summary, lead=((f"{code}  ", "dim"), (name, "strong"),
                                       (f"  {emitter}  ", "dim")))


def show_one(screen: Screen, one: Example) -> None:
    """Prints the meaning of a code, and wrong and repaired code below each other."""
    screen.line((one.name, "strong"), (f"  {one.code}", "dim"))
    screen.line(one.means)
    for title, code in (("Wrong:", one.wrong), ("Repaired:", one.right)):
        screen.line((title, "fail" if title == "Wrong:" else "pass"))
        for line in code.splitlines():
            screen.row(f"    {line}")
