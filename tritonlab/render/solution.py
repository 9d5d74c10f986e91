"""The learner's files and the solution: two columns if they fit, else a unified diff."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from itertools import zip_longest

from tritonlab.grading.solution_diff import CONTEXT, Comparison, FileComparison
from tritonlab.render.screen import Part, Screen

SIDE_BY_SIDE = 160  # columns from which on two files fit beside each other
_STYLES = {"+": "pass", "-": "fail", "@": "note"}


def show(screen: Screen, comparison: Comparison, command: str, before: str = "Next: ") -> None:
    """Prints all files that differ."""
    screen.line((comparison.module.id, "strong"), "  ", (comparison.module.title, "dim"))
    screen.blank()
    if comparison.same:
        screen.line("Your exercise is the solution, line by line.")
    for file in comparison.files:
        if file.same:
            if not comparison.same:
                screen.line(f"{file.name}: the same in both.")
        elif screen.plain or screen.full_width < SIDE_BY_SIDE:
            _unified(screen, file)
        else:
            _beside(screen, file)
        screen.blank()
    screen.next(command, before)


def _unified(screen: Screen, file: FileComparison) -> None:
    if not screen.plain:
        screen.line(("- yours   + the solution", "dim"))
    for line in file.unified:
        screen.row((line.expandtabs(4), _STYLES.get(line[:1], "")))


def _beside(screen: Screen, file: FileComparison) -> None:
    width = (screen.full_width - 5) // 2
    screen.row((f"{'yours/' + file.name:<{width}}     {'solution/' + file.name}", "strong"))
    for left, right, sign in _rows(file):
        for one, other in _folded(left.expandtabs(4), right.expandtabs(4), width):
            yours: Part = (f"{one:<{width}}", "fail" if sign in "<|" else "")
            screen.row(yours, f"  {sign}  ", (other, "pass" if sign in ">|" else ""))
            sign = " " if sign in "<>|" else sign


def _rows(file: FileComparison) -> Iterator[tuple[str, str, str]]:
    """The learner's line, the solution's, and the sign between them."""
    matcher = difflib.SequenceMatcher(None, file.yours, file.solution, autojunk=False)
    for number, group in enumerate(matcher.get_grouped_opcodes(CONTEXT)):
        if number:
            yield "⋮", "⋮", " "
        for tag, a1, a2, b1, b2 in group:
            for left, right in zip_longest(file.yours[a1:a2], file.solution[b1:b2]):
                sign = " " if tag == "equal" else ">" if left is None else \
                    "<" if right is None else "|"
                yield left or "", right or "", sign


def _folded(left: str, right: str, width: int) -> Iterator[tuple[str, str]]:
    """Folds two lines into columns of equal width."""
    for start in range(0, max(len(left), len(right), 1), width):
        yield left[start:start + width], right[start:start + width]
