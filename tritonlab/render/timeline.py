"""The timeline: attempts over days as a row of cells for each module, for a page's SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from tritonlab.overview import Day
from tritonlab.render import quantities as q

_LETTER = 7.2  # pixels, about, of a letter in a label
_CELL, _HIGH, _GAP = 30, 22, 2  # pixels of a cell, and between cells
_TICK = 64  # pixels that a date takes
_PERIODS = {1: "a day", 2: "2 days", 4: "4 days", 7: "a week", 14: "2 weeks", 28: "4 weeks",
            91: "13 weeks"}  # of a column: the shortest that there is room for


@dataclass(frozen=True)
class Cell:
    """The grades of one module in one period; ``passed``: one of them was a pass."""

    x: float
    y: float
    width: float
    count: str
    passed: bool
    about: str

    @property
    def middle(self) -> float:
        return self.x + self.width / 2


@dataclass(frozen=True)
class Lane:
    """One module: its name, and what was tried of it."""

    name: str
    x: float
    y: float  # of the text's base line
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Timeline:
    """A drawing of ``width`` times ``height`` pixels; ``period`` is what a column stands for."""

    width: int
    height: float
    high: float  # of a cell
    lanes: tuple[Lane, ...]
    ticks: tuple[tuple[float, str], ...]
    period: str  # such as ``a week``
    first: date
    last: date


def draw(days: Sequence[Day], width: int, *, above: bool = False) -> Timeline | None:
    """The timeline of some days; none if there are none.

    Args:
        days: by day, and by module.
        width: in pixels.
        above: put the names above the cells instead of before them.
    """
    if not days:
        return None
    names = list(dict.fromkeys(day.module for day in days))
    left = 0.0 if above else _LETTER * max(map(len, names)) + 12
    first, last = days[0].day, days[-1].day
    span = (last - first).days + 1
    columns = max(1, int((width - left) / _CELL))
    step = next((size for size in _PERIODS if -(-span // size) <= columns), -(-span // columns))
    pitch = min(_CELL * 1.5, (width - left) / -(-span // step))
    lane_high = _HIGH + (24 if above else 8)
    lanes = tuple(_lane(name, [day for day in days if day.module == name], first, step, left,
                        pitch, number * lane_high, above=above)
                  for number, name in enumerate(names))
    bottom = len(lanes) * lane_high
    ticks = tuple(_ticks(first, span, step, left, pitch, width))
    return Timeline(width, bottom + 22, _HIGH, lanes, ticks, _PERIODS.get(step, f"{step} days"),
                    first, last)


def _lane(name: str, days: Sequence[Day], first: date, step: int, left: float, pitch: float,
          top: float, *, above: bool) -> Lane:
    columns: dict[int, list[Day]] = {}
    for day in days:
        columns.setdefault((day.day - first).days // step, []).append(day)
    y = top + (20 if above else 0)
    cells = tuple(_cell(name, found, left + pitch * column, y, pitch - _GAP)
                  for column, found in columns.items())
    return Lane(name, 0.0, top + 15, cells)


def _cell(name: str, days: Sequence[Day], x: float, y: float, width: float) -> Cell:
    grades, passes = sum(day.grades for day in days), sum(day.passes for day in days)
    when = str(days[0].day) if len(days) == 1 else f"{days[0].day} to {days[-1].day}"
    about = f"{name}, {when}: {q.plural(grades, 'grade')}, {passes or 'none'} passed"
    return Cell(x, y, width, str(grades) if grades < 100 else "99+", passes > 0, about)


def _ticks(first: date, span: int, step: int, left: float, pitch: float,
           width: float) -> list[tuple[float, str]]:
    """Dates below columns, as many as there is room for."""
    every = max(1, -(-_TICK // int(pitch)))
    found: list[tuple[float, str]] = []
    for column in range(0, -(-span // step), every):
        x = left + pitch * column
        if x + _TICK <= width or not found:
            found.append((x, f"{first + timedelta(days=column * step):%d %b}"))
    return found
