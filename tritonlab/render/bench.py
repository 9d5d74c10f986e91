"""What `tritonlab bench` found, on a terminal: a table and a plot for each function."""

from __future__ import annotations

from collections.abc import Sequence

from grader.bench import YOURS, Benchmark, Chart
from grader.report import Finding
from tritonlab.course import Module
from tritonlab.render import benched as words
from tritonlab.render.plot import MARKS, legend, plot
from tritonlab.render.report import diagnosis
from tritonlab.render.screen import Part, Screen

_GAP = "  "
_PLOT = 92  # columns at most
MOST_PLOTS = 2  # of more functions, none is drawn unless one is named


def show(screen: Screen, module: Module, found: Benchmark, next_command: str, before: str, *,
         written: Sequence[str] = ()) -> None:
    """Print a benchmark; the last line is the next command. ``written`` are paths of pictures."""
    screen.line((module.id, "strong"), "  ", (module.title, "dim"))
    screen.line(words.introduction(found))
    _findings(screen, module, found)
    plotted = len(found.charts) <= MOST_PLOTS
    for chart in found.charts:
        _heading(screen, chart.function, words.title(chart))
        if chart.timed:
            _table(screen, chart)
            for text in () if screen.plain else words.notes(chart):
                screen.line((text, "dim"), lead=_margin(screen))
            if plotted:
                _plot(screen, chart)
        said = [*filter(None, (words.summary(chart), words.peers(chart)))]
        if said and chart.timed:
            screen.blank()
        for text in said:
            screen.line(text, lead=_margin(screen))
        missing = [*words.missing(chart)]
        if missing:
            screen.blank()
        for text in missing:
            screen.line((text, "skip"), lead=_margin(screen))
        _wrong(screen, module, chart)
    screen.blank()
    if not plotted and not screen.plain:
        screen.line(("With `--function NAME` one of them is drawn too.", "dim"))
    for path in written:
        screen.line(f"The picture is {path}")
    screen.next(next_command, before)


def _margin(screen: Screen) -> tuple[str, ...]:
    return () if screen.plain else ("  ",)


def _heading(screen: Screen, title: str, more: str) -> None:
    screen.blank()
    screen.line((title, "strong"), (f"  {more}", "dim"))


def _findings(screen: Screen, module: Module, found: Benchmark) -> None:
    """Why the learner's file cannot be used at all."""
    for finding in found.findings:
        screen.blank()
        _diagnosed(screen, module, finding, "your file")


def _wrong(screen: Screen, module: Module, chart: Chart) -> None:
    """What is wrong with the learner's kernels: the first finding says enough here."""
    for one in chart.contenders:
        if one.who == YOURS and one.findings:
            _diagnosed(screen, module, one.findings[0], chart.function)


def _diagnosed(screen: Screen, module: Module, finding: Finding, what: str) -> None:
    screen.line((what, "strong"), (f"  {finding.code}", "dim"), lead=("Not timed: ",))
    for label, text in diagnosis(module, finding):
        said, *quoted = text.splitlines()
        screen.line(said, lead=(f"{label}: " if screen.plain else f"  {label:<8}",))
        screen.quote(quoted, indent=10)


# ---------------------------------------------------------------------------------------------
# The table and the plot


def _table(screen: Screen, chart: Chart) -> None:
    """A row for each time; percentiles are left out where the terminal is too narrow for them."""
    lines = list(words.lines(chart))
    if screen.plain:
        for line in lines:
            between = f" (p20 {line.low}, p80 {line.high}, {line.repeats} repeats)" \
                if line.repeats else ""
            note = f"; {line.note}" if line.note else ""
            screen.line(f"{chart.function}, {line.size:,} {chart.axis}, {line.who}: {line.time}"
                        f"{between}, {line.speed}, {line.share} {words.bounded(chart)}{note}")
        return
    heads = ["size", "", "time", "p20", "p80", "speed", words.bounded(chart)]
    rows = [[f"{line.size:,}", line.who, line.time, line.low, line.high, line.speed, line.share]
            for line in lines]
    keep = [number for number in range(len(heads))
            if number not in (3, 4) or any(line.repeats for line in lines)]
    widths = [max(len(heads[n]), *(len(row[n]) for row in rows)) for n in range(len(heads))]
    if 2 + sum(widths[n] + len(_GAP) for n in keep) > screen.full_width:
        keep = [number for number in keep if number not in (3, 4)]
    screen.row("  ", *_cells([heads[n] for n in keep], [widths[n] for n in keep], keep, "dim"))
    before = 0
    for line, row in zip(lines, rows, strict=True):
        shown = ["" if n == 0 and line.size == before else row[n] for n in keep]
        cells = _cells(shown, [widths[n] for n in keep], keep, MARKS[line.who][1])
        screen.row("  ", *cells)
        before = line.size


def _cells(texts: Sequence[str], widths: Sequence[int], columns: Sequence[int],
           style: str) -> list[Part]:
    """Numbers to the right, names to the left; the style is that of the name, or of a head."""
    cells: list[Part] = []
    for text, width, column in zip(texts, widths, columns, strict=True):
        placed = text.ljust(width) if column == 1 else text.rjust(width)
        cells.append((placed + _GAP, style if column == 1 or style == "dim" else ""))
    return cells


def _plot(screen: Screen, chart: Chart) -> None:
    if screen.plain:
        return
    screen.blank()
    for row in plot(chart, min(screen.full_width - 3, _PLOT)):
        screen.row("  ", *row)
    for parts in legend(chart):
        screen.line(*parts, lead=("  ",))
