"""A benchmark as text: sentences for terminals and pages, the table, the plot in characters."""

import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from grader.bench.benchmark import REFERENCE, YOURS, Benchmark, Chart
from grader.recording.launch_stats import Prediction
from grader.text import sentence
from tritonlab.course.course import Module
from tritonlab.errors import shown
from tritonlab.render import quantities as q
from tritonlab.render import unit_times
from tritonlab.render.report import show_finding
from tritonlab.render.screen import Part, Screen, padded

_MOST_PLOTS = 2  # of more functions, none is drawn unless one is named
_PLOT_WIDTH = 92  # columns at most
_PLOT_ROWS = 14  # of the drawing itself
_TICKS = 5  # steps of the vertical axis, about
_MARKS = {"yours": ("●", "command"), "reference": ("◆", "pass"), "PyTorch": ("▲", "skip"),
          "torch.compile": ("■", "")}
_CEILING, _PATH = "╌", "·"  # of the ceiling, and between the marks of one's own kernel
WHO = {YOURS: "Your kernel", REFERENCE: "The reference solution"}
UNITS = {"fp8": "float8", "fp16": "float16", "tf32": "float32 in TF32", "fp32": "float32"}


class Line(NamedTuple):
    """One row of the table. Percentiles are empty where a time is predicted."""

    size: int
    who: str
    time: str
    low: str
    high: str
    speed: str
    share: str
    repeats: int
    note: str


def promise(benchmark: Benchmark) -> str:
    """Whether its times are measured or predicted, on which GPU."""
    if benchmark.measured:
        return f"measured on this {benchmark.device}"
    return f"predicted for an {benchmark.device} from compiled code, not measured"


def introduction(benchmark: Benchmark) -> str:
    """The same as a sentence, with how to read the times."""
    text = sentence(promise(benchmark))
    if benchmark.measured:
        return f"{text} Times are medians; 60 % of the repeats lie between p20 and p80."
    if benchmark.why:
        text = f"{text[:-1]}: {benchmark.why.rstrip('.')}."
    return (f"{text} What PyTorch and torch.compile would take cannot be predicted: that needs a "
            "GPU.")


def title(chart: Chart) -> str:
    """Such as ``softmax by columns, 4 096 rows of float32``."""
    return f"by {chart.axis}, {chart.at}"


def peers(chart: Chart) -> str:
    """The torch function that was timed, as a sentence."""
    return f"PyTorch is {chart.peer_name}." if chart.roof.measured else ""


def ceiling(chart: Chart) -> str:
    """The ceiling, named with its device."""
    roof, bounds = chart.roof, {chart.roof.bound(needed) for needed in chart.needed.values()}
    copy = f"copy {q.rate(roof.copy, 'B/s')}"
    product = f"matmul {q.rate(roof.peak, 'FLOP/s')}"
    speeds = " or ".join(text for name, text in (("copy", copy), ("matmul", product))
                         if name in bounds)
    return f"ceiling of the {roof.device}: {speeds}"


def ceilings(chart: Chart) -> tuple[list[int], list[float], float]:
    """The sizes that were timed, the ceiling at each, and the highest of ceilings and speeds."""
    sizes = [size for size in chart.needed if any(size in one.speeds for one in chart.timed)]
    levels = [chart.ceiling(size) for size in sizes]
    speeds = [chart.rate(size, speed.seconds) for one in chart.timed
              for size, speed in one.speeds.items()]
    return sizes, levels, max((*levels, *speeds), default=0.0)


def bounded(chart: Chart) -> str:
    """The head of the column with shares."""
    bounds = {chart.roof.bound(needed) for needed in chart.needed.values()}
    return f"of {bounds.pop()}" if len(bounds) == 1 else "of ceiling"


def lines(chart: Chart) -> Iterator[Line]:
    """Rows for all times, size by size."""
    for size in chart.needed:
        for one in chart.timed:
            if speed := one.speeds.get(size):
                low, high = (q.seconds(part) if speed.repeats else ""
                             for part in (speed.low, speed.high))
                yield Line(size, one.who, q.seconds(speed.seconds), low, high,
                           q.rate(chart.rate(size, speed.seconds), chart.unit),
                           q.share(chart.share(size, speed)), speed.repeats, speed.note)


def notes(chart: Chart) -> Iterator[str]:
    """Notes on times, each with the contenders and sizes that it concerns."""
    by_note: dict[str, dict[str, list[str]]] = {}
    for line in lines(chart):
        if line.note:
            by_note.setdefault(line.note, {}).setdefault(line.who, []).append(f"{line.size:,}")
    for note, whose in by_note.items():
        yield f"{sentence(note)[:-1]}: " + "; ".join(
            f"{who} at {_list(sizes)}" for who, sizes in whose.items()) + "."


def summary(chart: Chart) -> str:
    """Compares the learner's kernel with the fastest other one at the largest common size."""
    mine = next((one for one in chart.timed if one.who == YOURS), None)
    others = [one for one in chart.timed if one.who != YOURS]
    shared = [size for size in (mine.speeds if mine else ())
              if any(size in one.speeds for one in others)]
    if mine is None or not shared:
        return ""
    size = max(shared)
    best = min((one for one in others if size in one.speeds),
               key=lambda one: one.speeds[size].seconds)
    ratio = best.speeds[size].seconds / mine.speeds[size].seconds
    who = "the reference solution" if best.who == REFERENCE else best.who
    than = f"{who}, the fastest of the others" if len(others) > 1 else who
    if ratio < 0.995:
        verb = "reaches" if chart.roof.measured else "is predicted to reach"
        result = f"{ratio:.2f} of the speed of {than}"
    else:
        verb = "is" if chart.roof.measured else "is predicted to be"
        result = f"{f'{ratio:.2f} times ' if ratio >= 1.005 else ''}as fast as {than}"
    return f"At {size:,} {chart.axis}, your kernel {verb} {result}."


def largest_prediction(chart: Chart) -> tuple[str, Prediction] | None:
    """The predicted time of the learner's kernel at its largest size, with a title."""
    mine = next((one.speeds for one in chart.timed if one.who == YOURS), {})
    size = max((size for size, speed in mine.items() if speed.prediction), default=None)
    prediction = mine[size].prediction if size is not None else None
    return (f"{chart.function}, {size:,} {chart.axis}", prediction) if prediction else None


def missing(chart: Chart) -> Iterator[str]:
    """Reasons why contenders have no times."""
    for one in chart.contenders:
        name = WHO.get(one.who, one.who)
        if one.wrong is not None:
            yield f"{name} was not timed, as its values are wrong: {one.wrong.name}."
        by_reason: dict[str, list[str]] = {}
        for size, why in one.without.items():
            reason = why.reason or " ".join(finding.seen for finding in why.findings)
            by_reason.setdefault(reason, []).append(f"{size:,}")
        for reason, sizes in by_reason.items():
            yield f"{name} has no time for {_list(sizes)} {chart.axis}: {reason}"


def _list(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def nowhere(chart: Chart) -> str:
    """Explains why a function is not on the roofline."""
    return f"{chart.function} has no place on the roofline: it only moves, and computes nothing."


# On a terminal


def show(screen: Screen, module: Module, benchmark: Benchmark, written: Iterable[Path]) -> None:
    """Prints a benchmark; ``written`` are its page and its picture."""
    screen.line((module.id, "strong"), "  ", (module.title, "dim"))
    screen.line(introduction(benchmark))
    for finding in benchmark.findings:
        screen.blank()
        show_finding(screen, "Not timed: ", "your file", module, finding)
    plotted = len(benchmark.charts) <= _MOST_PLOTS
    for chart in benchmark.charts:
        screen.blank()
        screen.line((chart.function, "strong"), (f"  {title(chart)}", "dim"))
        if chart.timed:
            _table(screen, chart)
            for text in () if screen.plain else notes(chart):
                screen.line((text, "dim"), lead=("  ",))
            if plotted and not screen.plain:
                screen.blank()
                for row in plot(chart, min(screen.full_width - 3, _PLOT_WIDTH)):
                    screen.row("  ", *row)
                for parts in legend(chart):
                    screen.line(*parts, lead=("  ",))
        if (largest := largest_prediction(chart)) and (plotted or screen.plain):
            screen.heading("Time by unit", f"of yours: {largest[0]}")
            unit_times.show(screen, *largest)
        summaries, lacking = [*filter(None, (summary(chart), peers(chart)))], [*missing(chart)]
        if summaries and chart.timed:
            screen.blank()
        for text in summaries:
            screen.line(text, lead=("  ",))
        if lacking:
            screen.blank()
        for text in lacking:
            screen.line((text, "skip"), lead=("  ",))
        for one in chart.contenders:
            if one.who == YOURS and one.findings:  # the first says enough here
                show_finding(screen, "Not timed: ", chart.function, module, one.findings[0])
    screen.blank()
    if not plotted and not screen.plain:
        screen.line(("With `--function NAME` one of them is drawn too.", "dim"))
    for path in written:
        screen.line(f"The picture is {shown(path.absolute())}")


def _table(screen: Screen, chart: Chart) -> None:
    """A row for each time; percentiles are left out where the terminal is too narrow for them."""
    times = list(lines(chart))
    if screen.plain:
        for line in times:
            between = f" (p20 {line.low}, p80 {line.high}, {line.repeats} repeats)" \
                if line.repeats else ""
            note = f"; {line.note}" if line.note else ""
            screen.line(f"{chart.function}, {line.size:,} {chart.axis}, {line.who}: {line.time}"
                        f"{between}, {line.speed}, {line.share} {bounded(chart)}{note}")
        return
    rows = [["size", "", "time", "p20", "p80", "speed", bounded(chart)]]
    rows += [[f"{line.size:,}", *line[1:7]] for line in times]
    table = padded(rows, "><>>>>>", "  ")
    narrow = 2 + sum(map(len, table[0])) > screen.full_width
    if narrow or not any(line.repeats for line in times):
        table = [row[:3] + row[5:] for row in table]
    screen.row("  ", *((cell, "dim") for cell in table[0]))
    for line, row, above in zip(times, table[1:], [None, *times], strict=False):
        size, who, *others = row
        again = above is not None and line.size == above.size
        screen.row("  ", " " * len(size) if again else size, (who, _MARKS[line.who][1]), *others)


def legend(chart: Chart) -> list[list[Part]]:
    """The legend of the plot: contenders and the ceiling."""
    marks = [part for one in chart.timed for part in (_MARKS[one.who], f" {one.who}   ")]
    return [marks, [(f"{_CEILING * 2} {ceiling(chart)}", "dim")]]


def plot(chart: Chart, width: int) -> list[list[Part]]:
    """The rows of a plot, at most ``width`` columns wide; none where nothing was timed.

    Sizes lie at logarithmic places. Marks of equal sizes stand side by side, the learner's on top.
    """
    sizes, levels, most = ceilings(chart)
    if not sizes:
        return []
    scale, name = q.scale(most, chart.unit)
    ticks = nice(1.06 * most / scale, _TICKS)
    margin = max(len(f"{tick:,g}") for tick in ticks) + 1
    columns = max(24, width - margin - 1)
    low, high = math.log(sizes[0]), math.log(sizes[-1])

    def x(size: int) -> int:
        room = columns - 7  # marks stand beside each other, and a label is centered
        return 3 + round(room * (math.log(size) - low) / (high - low)) if high > low else 3

    def y(rate: float) -> int:
        """The row, counted from the top."""
        last = _PLOT_ROWS - 1
        return last - min(last, round(last * rate / (1.06 * most)))

    cells: dict[tuple[int, int], Part] = {}
    for column, rate in enumerate(np.interp(range(columns), [*map(x, sizes)], levels)):
        cells[column, y(rate)] = (_CEILING, "dim")
    for number, one in reversed(list(enumerate(chart.timed))):
        mark, style = _MARKS[one.who]
        shift = number - (len(chart.timed) - 1) // 2
        at = [x(size) + shift for size in one.speeds]
        rates = [chart.rate(size, speed.seconds) for size, speed in one.speeds.items()]
        if number == 0:
            path = range(at[0], at[-1] + 1)
            for column, rate in zip(path, np.interp(path, at, rates), strict=True):
                cells.setdefault((column, y(rate)), (_PATH, style))
        cells |= {(column, y(rate)): (mark, style) for column, rate in zip(at, rates, strict=True)}
    labels = {y(tick * scale): f"{tick:,g}" for tick in ticks}
    return [
        [(f"{name:>{margin + 2}}", "dim")],
        *([(f"{labels.get(row, ''):>{margin}}{'┤' if row in labels else '│'}", "dim"),
           *(cells.get((column, row), " ") for column in range(columns))]
          for row in range(_PLOT_ROWS)),
        [(f"{'':>{margin}}└{'─' * columns}", "dim")],
        [(f"{'':>{margin + 1}}{_axis({size: x(size) for size in sizes}, columns)}", "dim")]]


def _axis(places: dict[int, int], columns: int) -> str:
    """Labels below the columns of sizes; of two that would meet, the inner one is left out."""
    text = " " * columns
    for size in (max(places), *places):
        label = q.count(size)
        first = min(max(0, places[size] - len(label) // 2), columns - len(label))
        around = slice(max(0, first - 1), first + len(label) + 1)
        if not text[around].strip():
            text = text[:first] + label + text[first + len(label):]
    return text.rstrip()


def nice(top: float, steps: int) -> list[float]:
    """Round numbers from 0 up to at most ``top``, about as many as ``steps``."""
    raw = top / steps
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= raw)
    return [number * step for number in range(int(top / step) + 1)]
