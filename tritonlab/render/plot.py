"""Plot of speed over size in characters, for a terminal."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from grader.bench.bench import Chart
from tritonlab.render import quantities as q
from tritonlab.render.screen import Part

MARKS = {"yours": ("●", "command"), "reference": ("◆", "pass"), "PyTorch": ("▲", "skip"),
         "torch.compile": ("■", "")}
_ROWS = 14  # of the drawing itself
_TICKS = 5  # steps of the vertical axis, about
CEILING, _PATH = "╌", "·"  # of the ceiling, and between the marks of one's own kernel


@dataclass(frozen=True)
class _Paper:
    """Cells of a mark and a style, the first row on top; sizes lie at logarithmic places."""

    columns: int
    sizes: tuple[int, ...]
    top: float  # the speed at the upper edge
    cells: dict[tuple[int, int], Part]

    def x(self, size: float) -> int:
        low, high = math.log(self.sizes[0]), math.log(self.sizes[-1])
        room = self.columns - 7  # marks stand beside each other, and a label is centred
        return 3 + round(room * (math.log(size) - low) / (high - low)) if high > low else 3

    def y(self, rate: float) -> int:
        return _ROWS - 1 - min(_ROWS - 1, round((_ROWS - 1) * rate / self.top))

    def put(self, x: int, y: int, text: str, style: str = "") -> None:
        for at, letter in enumerate(text):
            if x + at < self.columns:
                self.cells[x + at, y] = (letter, style)

    def row(self, y: int) -> Iterator[Part]:
        for x in range(self.columns):
            yield self.cells.get((x, y), " ")


def plot(chart: Chart, width: int) -> list[list[Part]]:
    """The rows of a plot, at most ``width`` columns wide; none where nothing was timed."""
    sizes = tuple(size for size in chart.needed if any(size in one.speeds for one in chart.timed))
    if not sizes:
        return []
    ceilings = {size: chart.ceiling(size) for size in sizes}
    rates = [chart.rate(size, speed.seconds) for one in chart.timed
             for size, speed in one.speeds.items()]
    most = max(*ceilings.values(), *rates)
    scale, name = q.scale(most, chart.unit)
    ticks = nice(1.06 * most / scale, _TICKS)
    labels = [f"{tick:,g}" for tick in ticks]
    margin = max(map(len, labels)) + 1
    paper = _Paper(max(24, width - margin - 1), sizes, 1.06 * most, {})
    _ceiling(paper, ceilings)
    _contenders(paper, chart)
    at = {paper.y(tick * scale): label for tick, label in zip(ticks, labels, strict=True)}
    rows: list[list[Part]] = [[(f"{name:>{margin + 2}}", "dim")]]
    for y in range(_ROWS):
        rows.append([(f"{at.get(y, ''):>{margin}}{'┤' if y in at else '│'}", "dim"),
                     *paper.row(y)])
    rows.append([(f"{'':>{margin}}└{'─' * paper.columns}", "dim")])
    rows.append([(f"{'':>{margin + 1}}{_sizes(paper)}", "dim")])
    return rows


def _ceiling(paper: _Paper, ceilings: dict[int, float]) -> None:
    """Draws the ceiling, straight between the sizes."""
    places = [(paper.x(size), rate) for size, rate in ceilings.items()]
    places = [(0, places[0][1]), *places, (paper.columns - 1, places[-1][1])]
    for x, rate in _between(places):
        paper.put(x, paper.y(rate), CEILING, "dim")


def _contenders(paper: _Paper, chart: Chart) -> None:
    """Draws markers of equal sizes side by side, the learner's on top."""
    shift = -((len(chart.timed) - 1) // 2)
    for number, one in reversed(list(enumerate(chart.timed))):
        mark, style = MARKS[one.who]
        places = [(paper.x(size) + shift + number, chart.rate(size, speed.seconds))
                  for size, speed in one.speeds.items()]
        if number == 0:
            for x, rate in _between(places):
                paper.cells.setdefault((x, paper.y(rate)), (_PATH, style))
        for x, rate in places:
            paper.put(x, paper.y(rate), mark, style)


def _between(places: Sequence[tuple[int, float]]) -> Iterator[tuple[int, float]]:
    """A value for each column from the first place to the last."""
    for (x, value), (end, last) in itertools.pairwise(places):
        for step in range(end - x):
            yield x + step, value + (last - value) * step / (end - x)
    yield from places[-1:]


def _sizes(paper: _Paper) -> str:
    """The labels of the horizontal axis; of two that would meet, the inner one is left out."""
    text = [" "] * paper.columns
    taken: set[int] = set()
    for size in (paper.sizes[-1], *paper.sizes[:-1]):
        label = q.count(size)
        first = min(max(0, paper.x(size) - len(label) // 2), paper.columns - len(label))
        places = range(first, first + len(label))
        if not taken & {first - 1, *places, first + len(label)}:
            text[first: first + len(label)] = label
            taken |= set(places)
    return "".join(text).rstrip()


def nice(top: float, steps: int) -> list[float]:
    """Round numbers from 0 up to at most ``top``, about as many as ``steps``."""
    raw = top / steps
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= raw)
    return [number * step for number in range(int(top / step) + 1)]
