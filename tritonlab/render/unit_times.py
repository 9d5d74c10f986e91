"""Predicted time by unit: a bar of what adds up, and how long each unit is busy."""

from itertools import pairwise
from typing import NamedTuple

from grader.engine.compiler.timing_model.accuracy import ACCURACY, DEVICE
from grader.recording.launch_stats import Prediction
from tritonlab.render import quantities as q
from tritonlab.render.screen import Part, Screen

NAMES = {
    "dram": "DRAM", "l2": "the L2 cache", "tensor": "tensor cores", "fma": "FMA units",
    "alu": "integer units", "fp64": "FP64 units", "xu": "MUFU (exp, log, sqrt)",
    "lsu": "LSU and L1", "issue": "instruction issue", "compute": "arithmetic",
    "latency": "latency", "programs": "starting programs", "atomics": "atomics",
    "launch": "the launch itself",
}
REST = "imperfect overlap"
READING = ("Units work at the same time, so their times do not add up. The first bar does: the "
           "launch, the busiest unit, and what does not overlap with it.")
_LEAST = 0.01  # of the predicted time; units that are busy for less are left out
_MARKS = {"launch": ("▒", "skip"), REST: ("░", "dim")}
_BUSIEST = ("█", "command")
_NARROWEST, _WIDEST = 10, 60  # columns of a bar
_BESIDE = 22  # columns of a time, a share and the gaps


class Time(NamedTuple):
    """One unit or segment, by its key in ``NAMES`` or ``REST``."""

    unit: str
    name: str
    seconds: float


def bound(prediction: Prediction) -> str:
    """Such as ``tensor cores, then DRAM``."""
    parts = filter(None, (prediction.bound, prediction.runner_up))
    return ", then ".join(_name(prediction, part) for part in parts)


def first(prediction: Prediction) -> str:
    """The bound alone."""
    return _name(prediction, prediction.bound)


def _name(prediction: Prediction, part: str) -> str:
    return NAMES.get(prediction.unit(part), part)


def stack(prediction: Prediction) -> list[Time]:
    """The launch, the busiest unit and the rest, which add up to the predicted time."""
    launch = min(prediction.parts.get("launch", 0.0), prediction.seconds)
    busiest = busy(prediction)[:1]
    rest = prediction.seconds - launch - sum(one.seconds for one in busiest)
    return [Time("launch", "launch", launch), *busiest, Time(REST, REST, max(0.0, rest))]


def busy(prediction: Prediction) -> list[Time]:
    """How long each unit is busy, the busiest first; the launch and idle units are left out."""
    units = {**prediction.parts, **prediction.pipes}
    for name in ("launch", *(["compute"] if prediction.pipes else [])):
        units.pop(name, None)
    return sorted((Time(unit, NAMES.get(unit, unit), seconds) for unit, seconds in units.items()
                   if seconds >= _LEAST * prediction.seconds), key=lambda one: -one.seconds)


def accuracy(prediction: Prediction) -> str:
    """How far measured times were from predictions with the same bound."""
    unit = prediction.unit(prediction.bound)
    kind = ACCURACY.get(unit)
    if kind is None:
        return f"Error: unknown, as no kernel bound by {NAMES.get(unit, unit)} was measured."

    def of_all(count: int) -> str:
        return "all" if count == kind.kernels else f"{count}"

    return (f"Error: of {kind.kernels} kernels bound by {NAMES[unit]} that were measured on an "
            f"{DEVICE}, {of_all(kind.within_quarter)} took within 25 % of the predicted time, "
            f"{of_all(kind.within_double)} within a factor of two.")


def columns(prediction: Prediction, width: int) -> list[tuple[Time, int]]:
    """The columns of each segment of the stack, as many as ``width`` together."""
    edges, total = [0], 0.0
    segments = stack(prediction)
    for one in segments:
        total += one.seconds
        edges.append(round(width * total / prediction.seconds))
    return [(one, last - first)
            for one, (first, last) in zip(segments, pairwise(edges), strict=True)]


def show(screen: Screen, label: str, prediction: Prediction) -> None:
    """Prints both bars, what they mean and how far such predictions were off."""
    wide = max(len(one.name) for one in (*busy(prediction), Time("", "time", 0.0)))
    width = min(screen.full_width - wide - _BESIDE, _WIDEST)
    if screen.plain or width < _NARROWEST:
        _sentences(screen, f"{label}: " if screen.plain else "", prediction)
    else:
        _bars(screen, prediction, wide, width)
    screen.line((READING, "dim"), lead=("  ",))
    screen.line((accuracy(prediction), "dim"), lead=("  ",))


def _sentences(screen: Screen, label: str, prediction: Prediction) -> None:
    added = " + ".join(f"{one.name} {q.seconds(one.seconds)}" for one in stack(prediction))
    shares = ", ".join(f"{one.name} {q.share(one.seconds / prediction.seconds)}"
                       for one in busy(prediction))
    screen.line(f"{label}time {q.seconds(prediction.seconds)} = {added}", lead=("  ",))
    screen.line(f"{label}busy: {shares or 'no unit'}", lead=("  ",))


def _bars(screen: Screen, prediction: Prediction, wide: int, width: int) -> None:
    bars: list[Part] = [(_mark(one)[0] * count, _mark(one)[1])
                        for one, count in columns(prediction, width)]
    screen.row("  ", ("time".ljust(wide), "strong"), "  ", *bars,
               f"  {q.seconds(prediction.seconds):>8}")
    legend = [part for one in stack(prediction)
              for part in (_mark(one), f" {one.name} {q.seconds(one.seconds)}   ")]
    screen.line(*legend, lead=(" " * (wide + 4),))
    for one in busy(prediction):
        share = one.seconds / prediction.seconds
        screen.row("  ", one.name.ljust(wide), "  ",
                   (("█" * max(1, round(width * share))).ljust(width), "dim"),
                   f"  {q.seconds(one.seconds):>8}  {q.share(share):>6}")


def _mark(one: Time) -> tuple[str, str]:
    return _MARKS.get(one.unit, _BUSIEST)
