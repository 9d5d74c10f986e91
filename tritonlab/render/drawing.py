"""Drawing: the roofline as lines, dots and labels in pixels, for a page to put into an SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from grader.engine.compiler.targets import Target
from grader.roofline import Point
from tritonlab.render import quantities as q

_LINE = 15.0  # pixels from one label to the next
_LETTER = 6.6  # pixels, about, of a letter in a label
_MARGIN = (64.0, 16.0, 14.0, 46.0)  # pixels: left, top, right, bottom


@dataclass(frozen=True)
class Label:
    """A text; ``anchor`` says which of its ends stands at x, as in SVG."""

    x: float
    y: float
    text: str
    anchor: str = "start"


@dataclass(frozen=True)
class Stroke:
    """A line from one place to another."""

    x1: float
    y1: float
    x2: float
    y2: float


@dataclass(frozen=True)
class Dot:
    """A point with its number; ``drop`` leads up to the roof above it."""

    x: float
    y: float
    number: int
    drop: Stroke
    label: Label


@dataclass(frozen=True)
class Drawing:
    """A roofline of ``width`` times ``height`` pixels; both axes are logarithmic."""

    width: int
    height: int
    frame: Stroke  # from the upper left corner to the lower right one
    memory: Stroke
    memory_label: Label
    memory_angle: float  # degrees
    ceilings: tuple[tuple[Stroke, Label], ...]
    x_ticks: tuple[Label, ...]
    y_ticks: tuple[Label, ...]
    dots: tuple[Dot, ...]


@dataclass(frozen=True)
class _Scale:
    """Operations per byte and per second to pixels."""

    left: float
    top: float
    right: float
    bottom: float
    x_range: tuple[float, float]
    y_range: tuple[float, float]

    def x(self, intensity: float) -> float:
        low, high = map(math.log10, self.x_range)
        return self.left + (math.log10(intensity) - low) / (high - low) * (self.right - self.left)

    def y(self, rate: float) -> float:
        low, high = map(math.log10, self.y_range)
        return self.bottom - (math.log10(rate) - low) / (high - low) * (self.bottom - self.top)


def draw(points: Sequence[Point], target: Target, width: int, height: int) -> Drawing:
    """The roofs of a target with points below them; everything lies within the frame."""
    peaks = _peaks(points, target)
    top = max(peaks.values())
    first = min([0.1, *(point.intensity / 2 for point in points)])
    last = max([10 * top / target.dram, *(2 * point.intensity for point in points)])
    least = min([first * target.dram, *(point.rate / 2 for point in points)])
    scale = _Scale(_MARGIN[0], _MARGIN[1], width - _MARGIN[2], height - _MARGIN[3],
                   (first, last), (least, 2 * max([top, *(point.rate for point in points)])))
    begin = max(first, least / target.dram)
    memory = Stroke(scale.x(begin), scale.y(begin * target.dram),
                    scale.x(top / target.dram), scale.y(top))
    middle = math.sqrt(begin * top / target.dram)
    # Above the middle of the slope, turned with it.
    label = Label(scale.x(middle) - 8, scale.y(middle * target.dram) - 8,
                  f"DRAM {q.rate(target.dram, 'B/s')}", "middle")
    return Drawing(
        width, height, Stroke(scale.left, scale.top, scale.right, scale.bottom), memory, label,
        -math.degrees(math.atan2(memory.y1 - memory.y2, memory.x2 - memory.x1)),
        tuple(_ceiling(scale, target, name, peak) for name, peak in peaks.items()),
        tuple(Label(scale.x(value), scale.bottom + 18, _count(value), "middle")
              for value in _decades(scale.x_range)),
        tuple(Label(scale.left - 8, scale.y(value) + 4, _power(value), "end")
              for value in _decades(scale.y_range)),
        tuple(_dots(points, target, scale)))


def _peaks(points: Sequence[Point], target: Target) -> dict[str, float]:
    """The roofs that matter: those of the units that are used, and the lowest and the highest."""
    peaks = {"FP32": target.fp32, "FP16 tensor cores": target.fp16_tensor}
    return peaks | {point.units: point.peak for point in points}


def _ceiling(scale: _Scale, target: Target, name: str, peak: float) -> tuple[Stroke, Label]:
    y = scale.y(peak)
    return (Stroke(scale.x(peak / target.dram), y, scale.right, y),
            Label(scale.right, y - 6, f"{name} {q.rate(peak, 'FLOP/s')}", "end"))


def _dots(points: Sequence[Point], target: Target, scale: _Scale) -> list[Dot]:
    """The dots with labels beside them, moved apart where they would meet."""
    made: list[Dot] = []
    taken: list[tuple[float, float, float]] = []  # from x to x, at y
    for number, point in enumerate(points, 1):
        x, y = scale.x(point.intensity), scale.y(point.rate)
        long = _LETTER * len(point.label)
        right = x + 14 + long <= scale.right
        at = y + 4
        begin = x + 14 if right else x - 14 - long
        while any(abs(at - other) < _LINE and begin < end and start < begin + long
                  for start, end, other in taken):
            at += _LINE
        taken.append((begin, begin + long, at))
        label = Label(x + 14 if right else x - 14, min(at, scale.bottom - 4), point.label,
                      "start" if right else "end")
        roof = scale.y(point.ceiling(target))
        made.append(Dot(x, y, number, Stroke(x, y, x, roof), label))
    return made


def _decades(between: tuple[float, float]) -> list[float]:
    low, high = (math.log10(value) for value in between)
    powers = range(math.ceil(low), math.floor(high) + 1)
    return [10.0**power for power in powers]


def _power(value: float) -> str:
    """Such as ``10 T``."""
    for prefix, size in (("T", 1e12), ("G", 1e9), ("M", 1e6)):
        if value >= size:
            return f"{value / size:,.0f} {prefix}"
    return f"{value:,.0f}"


def _count(value: float) -> str:
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"
