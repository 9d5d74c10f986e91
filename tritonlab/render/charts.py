"""Charts: speed over size, rooflines, attempts over time; SVG for pages, PNG for files."""

import io
import itertools
import math
import re
import textwrap
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from markupsafe import Markup, escape
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyBboxPatch
from matplotlib.transforms import Bbox

from grader.bench.benchmark import COMPILED, REFERENCE, TORCH, YOURS, Benchmark, Chart, Contender
from grader.engine.compiler.targets import Target
from grader.text import plural
from tritonlab.progress.progress_report import Day
from tritonlab.render import bench_text
from tritonlab.render import quantities as q

if TYPE_CHECKING:
    from grader.inspect.inspection import Point

# Colors by their CSS variables in page.css. Color vision deficiencies: markers differ besides.
INK = {"card": "#ffffff", "text": "#1f2328", "soft": "#646b74", "rule": "#e2e0da",
       "yours": "#0b6b6b", "reference": "#8a6d00", "torch": "#c4431a", "compiled": "#6b4fbb"}
_STYLE: Any = {
    "figure.dpi": 72,  # display units are points
    "font.size": 9, "text.color": INK["text"],
    "axes.facecolor": "none", "axes.edgecolor": INK["soft"], "axes.labelcolor": INK["soft"],
    "axes.labelsize": 10, "axes.spines.top": False, "axes.spines.right": False,
    "axes.axisbelow": True, "axes.grid": True, "grid.color": INK["rule"],
    "xtick.color": INK["soft"], "ytick.color": INK["soft"], "xtick.labelsize": 9,
    "ytick.labelsize": 9, "svg.fonttype": "none"}
_GROUND = {"facecolor": INK["card"], "edgecolor": "none", "alpha": 0.8, "pad": 1}  # below labels
CLASSES = {YOURS: "yours", REFERENCE: "reference", TORCH: "torch", COMPILED: "compiled"}
_MARKERS = {YOURS: "o", REFERENCE: "D", TORCH: "^", COMPILED: "s"}
_PNG_DPI = 200
_GROWTH = 1.84  # pixels a point at most, in wide windows
_LEFT, _RIGHT, _HEADING, _BELOW = 0.8, 0.22, 0.56, 0.52  # inches around axes: labels and titles
_PERIODS = {1: "a day", 2: "2 days", 4: "4 days", 7: "a week", 14: "2 weeks", 28: "4 weeks",
            91: "13 weeks"}  # of a column of the timeline: the shortest that fits is chosen


# A benchmark


@mpl.rc_context(_STYLE)
def benchmark_png(benchmark: Benchmark, title: str) -> bytes:
    """A benchmark on a light ground."""
    image = io.BytesIO()
    _benchmark(benchmark, title).savefig(image, format="png", dpi=_PNG_DPI)
    return image.getvalue()


def benchmark_svgs(benchmark: Benchmark, label: str) -> list[Markup]:
    """A benchmark for wide windows and for narrow ones; none where nothing was timed."""
    if not any(chart.timed for chart in benchmark.charts):
        return []
    return [_svg(_benchmark(benchmark, narrow=narrow), label, narrow=narrow)
            for narrow in (False, True)]


@mpl.rc_context(_STYLE)
def _benchmark(benchmark: Benchmark, title: str = "", *, narrow: bool = False) -> Figure:
    """A panel for each function that was timed, and the roofline of all that compute."""
    charts = [chart for chart in benchmark.charts if chart.timed]
    computing = [chart for chart in charts if _computes(chart)]
    footer = textwrap.wrap(_footer(benchmark), 58 if narrow else 88)
    names = list(dict.fromkeys(one.who for chart in charts for one in chart.timed))
    columns = 2 if len(charts) > 1 and not narrow else 1
    width, high = (4.2 if narrow else 6.2), (2.3 if columns == 1 else 1.95)
    title_lines = textwrap.wrap(title, 42)
    head = 0.28 * len(title_lines) + 0.26 * (2 if narrow and len(names) > 2 else 1) + 0.16
    row = _HEADING + high + _BELOW
    rows = -(-len(charts) // columns)
    below = head + rows * row
    height = below + (_HEADING + 2.75 + _BELOW) * bool(computing) + 0.16 * len(footer) + 0.16
    figure = Figure(figsize=(width, height))
    figure.text(_LEFT / width, 1 - 0.12 / height, "\n".join(title_lines), fontsize=13,
                fontweight="bold", va="top")
    figure.legend(
        handles=[Line2D([], [], label=who, linewidth=2.2 if who == YOURS else 1.3,
                        **_marker(who)) for who in names],
        loc="lower left", bbox_to_anchor=(_LEFT / width, 1 - head / height),
        ncols=2 if narrow else 4, fontsize=10, frameon=False, handlelength=2,
        columnspacing=1.2, borderaxespad=0, borderpad=0)
    for number, chart in enumerate(charts):
        across = width / columns
        axes = _axes(figure, number % columns * across + _LEFT,
                     head + number // columns * row + _HEADING,
                     across - _LEFT - _RIGHT, high, xscale="log")
        _speeds(axes, chart, alone=columns == 1, narrow=narrow)
    if computing:
        axes = _axes(figure, _LEFT, below + _HEADING, width - _LEFT - _RIGHT, 2.75,
                     xscale="log", yscale="log")
        _bench_roofline(axes, computing, benchmark, narrow=narrow)
    figure.text(0.12 / width, 0.12 / height, "\n".join(footer), fontsize=8.5, color=INK["soft"],
                linespacing=1.3)
    return figure


def _computes(chart: Chart) -> bool:
    return any(cost.flops for cost in chart.needed.values())


def _footer(benchmark: Benchmark) -> str:
    versions = ", ".join(f"{name} {benchmark.versions[name]}" for name in ("torch", "triton")
                         if name in benchmark.versions)
    origin = f"Measured on an {benchmark.device} with {versions}. Bars: 20th to 80th percentile." \
        if benchmark.measured else bench_text.introduction(benchmark)
    return " ".join((origin, *(bench_text.nowhere(chart) for chart in benchmark.charts
                               if chart.timed and not _computes(chart))))


def _marker(who: str) -> dict[str, Any]:
    """Color and marker of a contender; the reference is a ring round a marker that it covers."""
    style = {"color": INK[CLASSES[who]], "marker": _MARKERS[who], "markersize": 6}
    ring = {"markersize": 9, "markerfacecolor": INK["card"], "markeredgewidth": 1.4}
    return style | ring if who == REFERENCE else style


def _speeds(axes: Axes, chart: Chart, *, alone: bool, narrow: bool) -> None:
    """Speed over size of all contenders, below the ceiling."""
    sizes, ceilings, top = bench_text.ceilings(chart)
    scale, unit = q.scale(top, chart.unit)
    axes.plot(sizes, np.divide(ceilings, scale), color=INK["text"], linewidth=1.6,
              linestyle=(0, (5, 3)), zorder=1.5)
    for one in reversed(chart.timed):
        middle, low, high = np.transpose([
            [chart.rate(size, seconds) for seconds in (speed.seconds, speed.high, speed.low)]
            for size, speed in one.speeds.items()]) / scale
        mine = one.who == YOURS
        axes.errorbar([*one.speeds], middle,
                      yerr=(middle - low, high - middle) if chart.roof.measured else None,
                      **_marker(one.who), linewidth=2.2 if mine else 1.3, elinewidth=1.2,
                      capsize=2, zorder=3 if mine else 2)
    axes.set_ylim(0, 1.16 * top / scale)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    ceiling = bench_text.ceiling(chart)
    if narrow or not alone:
        rates = ceiling.split(": ", 1)[1].split(" or ")
        ceiling = rates[-1 if chart.unit == "FLOP/s" else 0]  # that of the largest size
    curves = [line for line in axes.lines if line.get_linestyle() == "-"]
    _beside(axes, ceiling, [(sizes[end], ceilings[end] / scale) for end in (-1, 0)], curves,
            bbox=_GROUND)
    axes.set_xticks(sizes, _size_labels(sizes, 5 if narrow or not alone else 8))
    axes.set_xticks([], minor=True)
    axes.set_xlabel(chart.axis)
    axes.set_ylabel(unit)
    kind = "" if chart.roof.measured else "; predicted" + ", not measured" * alone
    _heading(axes, chart.function, chart.at + kind)


def _size_labels(sizes: Sequence[int], most: int) -> list[str]:
    """Labels for as many sizes as fit, the last one among them."""
    room = math.log(sizes[-1] / sizes[0]) / most
    kept = [sizes[-1]]
    for size in reversed(sizes[:-1]):
        if math.log(kept[-1] / size) >= room:
            kept.append(size)
    return [q.count(size) if size in kept else "" for size in sizes]


def _bench_roofline(axes: Axes, charts: Sequence[Chart], benchmark: Benchmark, *,
                    narrow: bool) -> None:
    """All sizes of all contenders; the largest of each is named."""
    alone = len(charts) == 1
    paths = [(chart, one, _path(chart, one)) for chart in charts for one in chart.timed]
    peaks = {f"{bench_text.UNITS[chart.roof.units]} matmul": chart.roof.peak for chart in charts}
    points = [point for *_, path in paths for point in (path if alone else path[-1:])]
    for _, one, path in paths:
        if alone:
            axes.plot(*zip(*path, strict=True), color=INK[CLASSES[one.who]], linewidth=1,
                      marker=_MARKERS[one.who], markersize=3, alpha=0.45, zorder=2)
        axes.plot(*path[-1], **_marker(one.who), zorder=5 if one.who == YOURS else 4)
    _roofline(axes, ("copy", charts[0].roof.copy), peaks, points, [
        (one.who if alone else chart.function, path[-1], INK[CLASSES[one.who]])
        for chart, one, path in paths if alone or one.who == YOURS], narrow=narrow,
        ridges=True)
    axes.set_xlabel("arithmetic intensity (FLOP/B)")
    axes.set_ylabel("speed (FLOP/s)")
    largest = ("the largest sizes" if narrow else "the largest size of each function") \
        if not alone else f"{max(s for o in charts[0].timed for s in o.speeds):,} {charts[0].axis}"
    kind = "measured" if benchmark.measured else "predicted, not measured"
    _heading(axes, f"Roofline of the {benchmark.device}", f"{kind}; named: {largest}")


def _path(chart: Chart, one: Contender) -> list[tuple[float, float]]:
    """Intensity and speed of the sizes, the largest last."""
    return [(chart.needed[size].flops / chart.needed[size].bytes,
             chart.needed[size].flops / one.speeds[size].seconds)
            for size in sorted(one.speeds) if chart.needed[size].flops]


# An inspection


def inspection_svgs(points: Sequence[tuple[str, "Point"]], target: Target,
                    label: str) -> list[Markup]:
    """The roofline of numbered launches, each paired with its case, wide and narrow."""
    return [_svg(inspection_figure(points, target, narrow=narrow), label, narrow=narrow)
            for narrow in (False, True)] if points else []


@mpl.rc_context(_STYLE)
def inspection_figure(points: Sequence[tuple[str, "Point"]], target: Target, *,
                      narrow: bool = False) -> Figure:
    """Numbered points below the roofs; dashed lines lead up to what is possible there."""
    width, height = (4.2, 3.7) if narrow else (9.4, 4.3)
    figure = Figure(figsize=(width, height))
    axes = _axes(figure, _LEFT, 0.1, width - _LEFT - _RIGHT, height - 0.65, xscale="log",
                 yscale="log")
    peaks = {"FP32": target.fp32, "FP16 tensor cores": target.fp16_tensor} | {
        point.units: point.peak for _, point in points}
    places = [(point.intensity, point.rate) for _, point in points]
    for number, (_, point) in enumerate(points, 1):
        place = point.intensity, point.rate
        axes.plot([point.intensity] * 2, [point.rate, point.ceiling(target)], color=INK["yours"],
                  linewidth=1.2, linestyle=(0, (2, 3)))
        axes.plot(*place, "o", markersize=13, color=INK["yours"], zorder=4)
        axes.annotate(str(number), place, ha="center", va="center_baseline", fontsize=8,
                      fontweight="bold", color=INK["card"], zorder=5)
    several = len({case for case, _ in points}) > 1 and not narrow
    _roofline(axes, ("DRAM", target.dram), peaks, places, [
        (f"{point.label}, {case}" if several else point.label, place, INK["yours"])
        for (case, point), place in zip(points, places, strict=True)], narrow=narrow)
    axes.set_xlabel("arithmetic intensity (FLOP per byte of DRAM traffic)")
    axes.set_ylabel("operations per second")
    return figure


# Any roofline


def _roofline(axes: Axes, memory: tuple[str, float], peaks: Mapping[str, float],
              points: Sequence[tuple[float, float]],
              names: Sequence[tuple[str, tuple[float, float], str]], *, narrow: bool,
              ridges: bool = False) -> None:
    """Roofs with labels, and names of points where nothing else is, on logarithmic axes.

    Args:
        memory: name and B/s of the memory roof.
        peaks: FLOP/s of the compute roofs by name.
        points: (FLOP/B, FLOP/s) of all points, which labels avoid.
        names: (name, point, color), a subset of ``points``.
    """
    xs, ys = zip(*points, strict=True)
    ends = [*xs, *(peak / memory[1] for peak in peaks.values())]
    axes.set_xlim(min(ends) / 4, max(ends) * (24 if narrow else 8))
    axes.set_ylim(min(min(ys) / 4, min(ends) / 4 * memory[1]), max(*ys, *peaks.values()) * 4)
    axes.minorticks_off()
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}")
    axes.yaxis.set_major_formatter(_prefixed)
    (left, right), (bottom, _) = axes.get_xlim(), axes.get_ylim()
    style: dict[str, Any] = {"color": INK["text"], "linewidth": 1.8, "zorder": 1.5}
    ridge = max(peaks.values()) / memory[1]
    roofs = axes.plot([left, ridge], [left * memory[1], ridge * memory[1]], **style)
    taken = [Bbox.from_extents(x - 6, y - 6, x + 6, y + 6)
             for x, y in axes.transData.transform(points)]
    for name, peak in peaks.items():
        ridge = peak / memory[1]
        roofs += axes.plot([ridge, right], [peak, peak], **style)
        taken.append(_beside(axes, f"{name} {q.rate(peak, 'FLOP/s')}",
                             [(right, peak), (ridge, peak)], (), taken))
        if ridges:
            axes.plot([ridge, ridge], [bottom, peak], color=INK["soft"], linewidth=1,
                      linestyle=":", zorder=1.2)
            label = f"ridge {q.three(ridge)} FLOP/B\nof {name}"
            width, height = _extent(axes, label)
            x, y = axes.transData.transform((ridge, bottom))
            boxes = [Bbox.from_bounds(x + 4, y + 5 + row * height, width, height)
                     for row in range(4)]
            box = next((box for box in boxes if not any(map(box.overlaps, taken))), boxes[0])
            axes.annotate(label, (box.x0, box.y0), xycoords="figure points", color=INK["soft"])
            taken.append(box)
    taken.append(_slope_label(axes, roofs[0], f"{memory[0]} {q.rate(memory[1], 'B/s')}", taken))
    for name, point, color in sorted(names, key=lambda each: -each[1][1]):
        taken.append(_name(axes, name, point, color, taken, roofs))


def _beside(axes: Axes, text: str, ends: Sequence[tuple[float, float]], lines: Sequence[Line2D],
            taken: Sequence[Bbox] = (), **style: Any) -> Bbox:
    """Writes above or below the right or the left end of a line, where no other line passes.

    Args:
        ends: of the line, the right one first.
        lines: which the text should not cover.
        taken: places of markers and other texts.
    """
    paths = [line.get_path().transformed(axes.transData) for line in lines]
    labels = [axes.annotate(text, end, offset, textcoords="offset points", ha=ha, va=va, **style)
              for end, ha, x in zip(ends, ("right", "left"), (-2, 2), strict=True)
              for va, offset in (("bottom", (x, 4)), ("top", (x, -5)))]
    boxes = [label.get_window_extent() for label in labels]
    clear = [not any(map(box.overlaps, taken))
             and not any(path.intersects_bbox(box, filled=False) for path in paths)
             for box in boxes]
    best = clear.index(True) if any(clear) else 0
    for number, label in enumerate(labels):
        if number != best:
            label.remove()
    return boxes[best]


def _slope_label(axes: Axes, slope: Line2D, text: str, taken: Sequence[Bbox]) -> Bbox:
    """Writes along the slope, as far from all else as possible."""
    start, end = axes.transData.transform(slope.get_xydata())
    angle = math.atan2(*(end - start)[::-1])
    width, height = _extent(axes, text)
    extent = Bbox.from_bounds(-width / 2, -height / 2, width, height).rotated(angle)

    def distance(box: Bbox) -> float:
        """Points to what is nearest; less than nothing where it would be covered."""
        inside = axes.bbox.x0 <= box.x0 and axes.bbox.y0 <= box.y0
        gaps = [max(box.x0 - other.x1, other.x0 - box.x1, box.y0 - other.y1, other.y0 - box.y1)
                for other in taken]
        return min(gaps) if inside else -math.inf

    above = start + 9 * np.array((-math.sin(angle), math.cos(angle)))
    boxes = [extent.translated(*(above + part * (end - start))) for part in np.linspace(0, 1, 41)]
    best = max(boxes, key=distance)
    axes.annotate(text, ((best.x0 + best.x1) / 2, (best.y0 + best.y1) / 2),
                  xycoords="figure points", ha="center", va="center", rotation=math.degrees(angle))
    return best


def _name(axes: Axes, text: str, point: tuple[float, float], color: str, taken: Sequence[Bbox],
          roofs: Sequence[Line2D]) -> Bbox:
    """Writes where nothing else is, beside a point or below; returns the place that it takes."""
    width, height = _extent(axes, text)
    x, y = axes.transData.transform(point)
    paths = [roof.get_path().transformed(axes.transData) for roof in roofs]
    frame = axes.bbox
    middle = min(max(frame.x0, x - width / 2), frame.x1 - width)
    places = [Bbox.from_bounds(begin, y - height / 2 - 4 * step, width, height)
              for begin in (x + 16, x - 16 - width, middle) for step in range(16)]
    fitting = (box for box in places if frame.x0 <= box.x0 and box.x1 <= frame.x1
               and frame.y0 <= box.y0 and not any(map(box.overlaps, taken))
               and not any(path.intersects_bbox(box, filled=False) for path in paths))
    box = next(fitting, places[-1])
    side = 0.0 if box.x0 > x else 1.0 if box.x1 < x else 0.5
    axes.annotate(text, point, (box.x0 - x, box.y0 + height / 2 - y), textcoords="offset points",
                  va="center", zorder=6, bbox=_GROUND,
                  arrowprops={"arrowstyle": "-", "color": color, "linewidth": 0.8,
                              "shrinkA": 1, "shrinkB": 4, "relpos": (side, 0.5 + side % 1)})
    return box


def _extent(axes: Axes, text: str) -> tuple[float, float]:
    """Width and height of a label, in points."""
    label = axes.annotate(text, (0, 0), xycoords="figure points")
    width, height = label.get_window_extent().padded(0, 1).size
    label.remove()
    return width, height


def _prefixed(value: float, _: object) -> str:
    size, prefix = q.scale(value, "")
    return f"{value / size:,g} {prefix}".rstrip()


# Attempts over time


def timeline_svgs(days: Sequence[Day]) -> list[tuple[Markup, str]]:
    """Attempts over days, a row of cells a module, wide and narrow; none where there are no days.

    Each comes with the period that a column stands for, such as ``a week``.
    """
    return [_timeline(days, narrow=narrow) for narrow in (False, True)] if days else []


@mpl.rc_context(_STYLE)
def _timeline(days: Sequence[Day], *, narrow: bool) -> tuple[Markup, str]:
    """In points, y down; where it is narrow, the names stand above the cells."""
    modules = list(dict.fromkeys(day.module for day in days))
    first, last = days[0].day, days[-1].day
    span = (last - first).days + 1
    width, left = (336, 1.0) if narrow else (900, 7.2 * max(map(len, modules)) + 12)
    columns = int((width - left) / 30)
    step = next((size for size in _PERIODS if -(-span // size) <= columns), -(-span // columns))
    pitch = min(45.0, (width - left) / -(-span // step))
    above, lane = (20, 46) if narrow else (1, 30)
    height = lane * len(modules) + 22
    figure = Figure(figsize=(width / 72, height / 72))
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(height, 0))
    axes.set_axis_off()
    for column in range(0, -(-span // step), -(-64 // int(pitch))):
        x = left + pitch * column
        if column and x + 64 > width:
            break
        axes.plot([x, x], [0, height - 18], color=INK["rule"], linewidth=1, zorder=1)
        axes.text(x + 3, height - 6, f"{first + timedelta(days=column * step):%d %b}", fontsize=12,
                  color=INK["soft"])
    for number, module in enumerate(modules):
        axes.text(0, number * lane + 15, module, fontsize=12)
        own = (day for day in days if day.module == module)
        for column, group in itertools.groupby(own, lambda day: (day.day - first).days // step):
            _cell(axes, [*group], left + pitch * column, number * lane + above, pitch - 2)
    period = _PERIODS.get(step, f"{step} days")
    label = f"Attempts from {first} to {last}, {period} a column; the table below holds the numbers"
    return _svg(figure, label, narrow=narrow), period


def _cell(axes: Axes, days: Sequence[Day], x: float, y: float, width: float) -> None:
    """The grades of one module in one period, filled where one of them was a pass."""
    grades, passes = sum(day.grades for day in days), sum(day.passes for day in days)
    when = str(days[0].day) if len(days) == 1 else f"{days[0].day} to {days[-1].day}"
    title = f"{days[0].module}, {when}: {plural(grades, 'grade')}, {passes or 'none'} passed"
    fill, edge, letters = ("yours", "yours", "card") if passes else ("card", "soft", "text")
    axes.add_patch(FancyBboxPatch(
        (x, y), width, 22, boxstyle="round,pad=0,rounding_size=4", linewidth=1.5,
        facecolor=INK[fill], edgecolor=INK[edge], gid=f"title:{title}"))
    axes.text(x + width / 2, y + 15, str(grades) if grades < 100 else "99+", fontsize=12,
              ha="center", fontweight="bold" if passes else "normal", color=INK[letters])


# Shared by all charts


def _axes(figure: Figure, left: float, top: float, width: float, height: float,
          **scales: Any) -> Axes:
    """Axes at a place in inches from the upper left corner."""
    across, high = figure.get_size_inches()
    return figure.add_axes((left / across, 1 - (top + height) / high, width / across,
                            height / high), **scales)


def _heading(axes: Axes, title: str, more: str) -> None:
    axes.set_title(title, loc="left", y=1, pad=20, fontsize=11, fontweight="bold")
    axes.annotate(more, (0, 1), (0, 6), xycoords="axes fraction", textcoords="offset points",
                  color=INK["soft"])


@mpl.rc_context(_STYLE)
def _svg(figure: Figure, label: str, *, narrow: bool) -> Markup:
    """An SVG element for a page, with text as text and colors of ``INK`` as CSS variables.

    A screen reader reads ``label``; ids within are unique among drawings with other labels.
    """
    kind = "narrow" if narrow else "wide"
    image = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": kind + label}):
        figure.savefig(image, format="svg", transparent=True, metadata=dict.fromkeys(
            ("Creator", "Date", "Format", "Type")))
    text = image.getvalue()
    for name, color in INK.items():
        text = text.replace(color, f"var(--{name})")
    text = re.sub(r'<g id="title:([^"]*)"', r"<g><title>\1</title", text[text.index("<defs"):])
    text = re.sub(r'<g id="[^"]*"', "<g", text)  # the same in all drawings
    width, height = figure.get_size_inches() * 72
    return Markup(f'<svg class="{kind}" viewBox="0 0 {width:g} {height:g}" style="max-width: '
                  f'{width * _GROWTH:.0f}px" role="img" aria-label="{escape(label)}">{text}')
