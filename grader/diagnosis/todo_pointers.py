"""Maps a finding to TODOs of the exercise, most likely first."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from grader.finding import Unstored, shows, value_of
from grader.report import Finding
from grader.submission import dataflow
from grader.suite import Mutant

_ACCESSES = frozenset(("M01", "M02", "M06", "M08", "M09"))  # an address or a mask is wrong
_VALUES = frozenset(("N01", "N02", "N03", "N04"))
# Messages of Triton about sizes and shapes.
_SIZES = re.compile(r"power of 2|maximum tensor numel|and K >= \d")
_SHAPES = re.compile(r"incompatible|equal reduction dimensions")
_WORD = re.compile(r"\w+")
# With few warps, each thread has many operations to compile.
_SLOW_TO_COMPILE = frozenset(("compiling", "compiling given up"))
# Patterns of right values in wrong places.
_MOVED = frozenset(("shift", "reverse", "transpose", "rows", "elsewhere"))
# Comments of this word stand above all that is to be changed, and not at a single expression.
_OF_WHAT_FOLLOWS = "DECIDE"
# Nothing is wrong with how arguments are checked: that is given wherever something is slow.
_OF_WORK = re.compile("[TQNM]|L0[35]|R02")


def places_of(finding: Finding, numbers: Mapping[int, int], text: str, entry: str,
              likely: Mutant | None, possible: Sequence[Mutant], others: Sequence[Mutant],
              roots: Collection[str] = ()) -> tuple[int, ...]:
    """The places to look at, the most probable first; none where nothing tells.

    Of a known mistake, its own, of which that of the line comes first. Else those where the file
    makes what was seen to be wrong, and where that is not known, those of all possible mistakes.
    A wrong value may come from a mistake that nobody has thought of, so the places of the known
    ones are all there is only where the values have a sign of one of them, which then counts alone.
    No other place is one that the functions of the case never come to. Where nothing else tells, a
    DECIDE stands for all that follows it in its function.

    Args:
        finding: with its line, if it has one.
        numbers: line -> number of the place that it belongs to.
        text: of the file.
        entry: the learner's function that the case calls.
        likely: the known mistake that fails alike.
        possible: mistakes that have its code, and that nothing speaks against.
        others: mistakes that have its code, and its sign.
        roots: the learner's functions that the case calls, by way of the suite's code too.
    """
    roots = frozenset(roots or {entry} - {""})
    elsewhere = dataflow.lines_elsewhere(text, roots)
    away = {numbers[line] for line in elsewhere if line in numbers}
    numbers = {line: number for line, number in numbers.items() if line not in elsewhere}
    away -= {*numbers.values()}

    def at(lines: Iterable[int]) -> list[int]:
        return [numbers[line] for line in lines if line in numbers]

    def below(lines: Iterable[int]) -> list[int]:
        return at(line if line in numbers else
                  dataflow.comment_above(text, line, _OF_WHAT_FOLLOWS) or 0
                  for line in lines if line not in elsewhere)

    def left(mistakes: Sequence[Mutant]) -> list[int]:
        return sorted({number for mistake in mistakes for number in mistake.todos} - away)

    own = at([finding.line or 0])
    if likely:
        return tuple(sorted(likely.todos, key=lambda number: number not in own))
    data = finding.data
    before, after = _lines(finding, text, entry)
    pointed = [*at(before), *own, *at(after)]
    if pointed:
        return tuple(dict.fromkeys(pointed))
    shown = [mistake for mistake in possible if shows(mistake.sign)]
    named = left(shown or possible)
    if not named and finding.line and _OF_WORK.match(finding.code):
        named = below([finding.line])
    values: list[int] = []
    if finding.code in _VALUES and not shown:
        moved = value_of(data, "pattern") in _MOVED or value_of(data, "region") is not None
        lines = (*dataflow.lines_of_addresses(text), *dataflow.lines_of_values(text)) if moved \
            else dataflow.lines_of_values(text)
        # Of a type with too few bits, what a sum begins with tells as much as what is added.
        values = below(sorted(lines) if finding.code == "N04" else lines)
    first = named or values or left(others)
    if not first and finding.code == "M08":
        first = at(dataflow.lines_of_addresses(text))
    if not first and _OF_WORK.match(finding.code):
        first = at(dataflow.comments_in(text, roots, _OF_WHAT_FOLLOWS))
    return tuple(dict.fromkeys(first))


def line_of(finding: Finding, text: str, entry: str) -> int | None:
    """The one line that a finding without a line is about, such as that of the grid."""
    if finding.line is not None:
        return None
    lines, _ = _lines(finding, text, entry)
    return lines[0] if len(lines) == 1 else None


def line_of_warps(finding: Finding, text: str) -> int | None:
    """The line that chooses the warps of a launch whose compilation takes too long."""
    if finding.code != "R02" or value_of(finding.data, "kind") not in _SLOW_TO_COMPILE:
        return None
    lines = dataflow.lines_of_arguments(text, {"num_warps"}, finding.line)
    return lines[0] if len(lines) == 1 else None


def agrees(mistake: Mutant, finding: Finding, numbers: Mapping[int, int], text: str) -> bool:
    """Whether a mistake of layout can be the one that shows in this line, by where it is."""
    line = finding.line
    if finding.code != "M08" or not mistake.todos or line is None or line not in numbers:
        return True
    near = {numbers.get(one) for one in (line, *dataflow.lines_behind(text, line))}
    return not near.isdisjoint(mistake.todos)


def _lines(finding: Finding, text: str, entry: str) -> tuple[dataflow.Lines, dataflow.Lines]:
    """The lines that tell more than the finding's own, and those that tell less."""
    code, data, line = finding.code, finding.data, finding.line
    reason = data.reason if isinstance(data, Unstored) else ""
    # Of a suite's own checks, only those of a launch have a line.
    of_grid = value_of(data, "kind") == "programs" or (isinstance(data, str) and line is not None)
    if (code == "T03" and of_grid) or code in ("L01", "L03"):
        return dataflow.lines_of_grid(text, line if code == "L01" else None, entry), ()
    if code == "S01" and line is None:
        return dataflow.lines_of_results(text, entry), ()
    if code in _VALUES and value_of(data, "after_first"):
        return dataflow.lines_of_addresses(text), ()
    if reason == "no launch":
        return dataflow.lines_of_launches(text), ()
    if reason == "no argument":
        return dataflow.lines_of_launches(text), dataflow.lines_of_results(text, entry)
    grid = dataflow.lines_of_grid(text, None, entry)
    if isinstance(data, Unstored) and (reason == "no store" or data.all_idle):
        grid = ()  # no further program would store more
    if code == "M03" and line is None:
        return (), (*dataflow.lines_of_stores(text), *grid)
    if line is None:
        return (), ()
    if code == "L05" and _SIZES.search(finding.text):
        sizes = dataflow.sizes_in(text, line)
        return dataflow.lines_of_arguments(text, sizes, kernel_line=line), ()
    if code == "L05" and _SHAPES.search(finding.text):
        return (), dataflow.lines_of_operands(text, line)
    if code == "R01":
        named = dataflow.keywords_of_launches(text, line).intersection(_WORD.findall(finding.text))
        return dataflow.lines_of_arguments(text, named, line), ()
    if code in _ACCESSES:
        return (), dataflow.lines_behind(text, line)[::-1]  # the nearest first
    if code == "M04":
        lines, written = dataflow.lines_behind(text, line, far=True, mask=False), text.split("\n")
        owned = any("program_id" in written[one - 1] for one in lines)
        grid = grid if value_of(data, "axes") == "part" else ()
        # Where no line asks for the program, it is lost on the way.
        return ((*grid, *lines), ()) if owned else (grid, lines)
    if reason == "none left":
        passed = dataflow.lines_of_arguments(text, dataflow.sizes_in(text, line))
        return ((*grid, *passed, *dataflow.lines_of_launches(text)),
                dataflow.lines_behind(text, line, far=True))
    if code == "M03":
        return dataflow.lines_behind(text, line, far=True), grid
    return (), ()
