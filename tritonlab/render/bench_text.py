"""A benchmark as text: sentences for terminals and pages, the table, and the plot's legend."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from grader.bench.bench import REFERENCE, YOURS, Benchmark, Chart, Contender, Speed
from grader.report import Finding
from grader.text import sentence
from tritonlab.course.course import Module
from tritonlab.render import quantities as q
from tritonlab.render.plot import CEILING, MARKS, plot
from tritonlab.render.report import diagnosis, show_parts
from tritonlab.render.screen import Part, Screen

MOST_PLOTS = 2  # of more functions, none is drawn unless one is named
_GAP = "  "
_PLOT = 92  # columns at most
WHO = {YOURS: "Your kernel", REFERENCE: "The reference solution"}
UNITS = {"fp8": "float8", "fp16": "float16", "tf32": "float32 in TF32", "fp32": "float32"}


@dataclass(frozen=True)
class Line:
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


def bounded(chart: Chart) -> str:
    """The head of the column with shares."""
    bounds = {chart.roof.bound(needed) for needed in chart.needed.values()}
    return f"of {bounds.pop()}" if len(bounds) == 1 else "of ceiling"


def lines(chart: Chart) -> Iterator[Line]:
    """Rows for all times, size by size."""
    for size in chart.needed:
        for one in chart.timed:
            if size in one.speeds:
                yield _line(chart, size, one.who, one.speeds[size])


def _line(chart: Chart, size: int, who: str, speed: Speed) -> Line:
    low, high = (q.seconds(part) if speed.repeats else "" for part in (speed.low, speed.high))
    return Line(size, who, q.seconds(speed.seconds), low, high,
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
    if mine is None or not others:
        return ""
    shared = [size for size in mine.speeds if any(size in one.speeds for one in others)]
    if not shared:
        return ""
    size = max(shared)
    best = min((one for one in others if size in one.speeds),
               key=lambda one: one.speeds[size].seconds)
    ratio = best.speeds[size].seconds / mine.speeds[size].seconds
    who = "the reference solution" if best.who == REFERENCE else best.who
    than = f"{who}, the fastest of the others" if len(others) > 1 else who
    if 0.995 <= ratio < 1.005:
        verb, result = "be", f"as fast as {than}"
    elif ratio > 1:
        verb, result = "be", f"{ratio:.2f} times as fast as {than}"
    else:
        verb, result = "reach", f"{ratio:.2f} of the speed of {than}"
    does = {"be": "is", "reach": "reaches"}[verb] if chart.roof.measured else \
        f"is predicted to {verb}"
    return f"At {size:,} {chart.axis}, your kernel {does} {result}."


def missing(chart: Chart) -> Iterator[str]:
    """Reasons why contenders have no times."""
    for one in chart.contenders:
        name = WHO.get(one.who, one.who)
        if one.wrong is not None:
            yield f"{name} was not timed, as its values are wrong: {one.wrong.name}."
        for sizes, reason in _reasons(one):
            yield f"{name} has no time for {sizes} {chart.axis}: {reason}"


def _reasons(one: Contender) -> Iterator[tuple[str, str]]:
    """Each reason once, with its sizes."""
    by_reason: dict[str, list[int]] = {}
    for size, why in one.without.items():
        reason = why.reason or " ".join(finding.seen for finding in why.findings)
        by_reason.setdefault(reason, []).append(size)
    for reason, sizes in by_reason.items():
        yield _list([f"{size:,}" for size in sizes]), reason


def _list(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def nowhere(chart: Chart) -> str:
    """Explains why a function is not on the roofline."""
    return f"{chart.function} has no place on the roofline: it only moves, and computes nothing."


# ---------------------------------------------------------------------------------------------
# On a terminal


def show(screen: Screen, module: Module, benchmark: Benchmark, next_command: str, before: str, *,
         written: Sequence[str] = ()) -> None:
    """Prints a benchmark; ``written`` are the paths of its files."""
    screen.line((module.id, "strong"), "  ", (module.title, "dim"))
    screen.line(introduction(benchmark))
    for finding in benchmark.findings:
        screen.blank()
        _untimed(screen, module, finding, "your file")
    plotted = len(benchmark.charts) <= MOST_PLOTS
    for chart in benchmark.charts:
        screen.blank()
        screen.line((chart.function, "strong"), (f"  {title(chart)}", "dim"))
        if chart.timed:
            _table(screen, chart)
            for text in () if screen.plain else notes(chart):
                screen.line((text, "dim"), lead=("  ",))
            if plotted and not screen.plain:
                _plot(screen, chart)
        summaries = [*filter(None, (summary(chart), peers(chart)))]
        if summaries and chart.timed:
            screen.blank()
        for text in summaries:
            screen.line(text, lead=("  ",))
        for number, text in enumerate(missing(chart)):
            if not number:
                screen.blank()
            screen.line((text, "skip"), lead=("  ",))
        for one in chart.contenders:
            if one.who == YOURS and one.findings:  # the first says enough here
                _untimed(screen, module, one.findings[0], chart.function)
    screen.blank()
    if not plotted and not screen.plain:
        screen.line(("With `--function NAME` one of them is drawn too.", "dim"))
    for path in written:
        screen.line(f"The picture is {path}")
    screen.next(next_command, before)


def _untimed(screen: Screen, module: Module, finding: Finding, subject: str) -> None:
    screen.line((subject, "strong"), (f"  {finding.code}", "dim"), lead=("Not timed: ",))
    show_parts(screen, diagnosis(module, finding))


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
    table = [["size", "", "time", "p20", "p80", "speed", bounded(chart)]]
    table += [[f"{line.size:,}", line.who, line.time, line.low, line.high, line.speed, line.share]
              for line in times]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    narrow = 2 + sum(widths) + len(_GAP) * len(widths) > screen.full_width
    if narrow or not any(line.repeats for line in times):
        table, widths = [row[:3] + row[5:] for row in table], widths[:3] + widths[5:]

    def cells(row: Sequence[str]) -> list[str]:
        """Numbers to the right, names to the left."""
        return [f"{text:{'<' if number == 1 else '>'}{width}}{_GAP}"
                for number, (text, width) in enumerate(zip(row, widths, strict=True))]

    screen.row("  ", *((cell, "dim") for cell in cells(table[0])))
    for line, row, above in zip(times, table[1:], [None, *times], strict=False):
        size, who, *others = cells(row)
        again = above is not None and line.size == above.size
        screen.row("  ", " " * len(size) if again else size, (who, MARKS[line.who][1]), *others)


def _plot(screen: Screen, chart: Chart) -> None:
    screen.blank()
    for row in plot(chart, min(screen.full_width - 3, _PLOT)):
        screen.row("  ", *row)
    for parts in legend(chart):
        screen.line(*parts, lead=("  ",))


def legend(chart: Chart) -> list[list[Part]]:
    """The legend of the plot: contenders and the ceiling."""
    marks: list[Part] = []
    for one in chart.timed:
        mark, style = MARKS[one.who]
        marks += [(mark, style), f" {one.who}   "]
    return [marks, [(f"{CEILING * 2} {ceiling(chart)}", "dim")]]
