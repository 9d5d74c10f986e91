"""Picture: speed over size below the ceiling, and the roofline, for a file or for a page."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from grader.bench import REFERENCE, YOURS, Benchmark, Chart, Contender, Roof
from tritonlab.render import benched as words
from tritonlab.render import quantities as q

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_DPI = 200
_WIDE, _NARROW = 5.8, 4.2  # inches; shown 400 pixels wide, letters of the wide one have 9 pixels
_HEAD, _PANEL, _ROOFLINE = 0.7, 3.3, 3.9  # inches high
_MOST = 4.0  # a factor: room beside the points of a roofline
_MARKS = {"yours": "o", "reference": "D", "PyTorch": "^", "torch.compile": "s"}
_UNITS = {"fp8": "float8", "fp16": "float16", "tf32": "float32 in TF32", "fp32": "float32"}


@dataclass(frozen=True)
class Ink:
    """Colours, told apart by people who see fewer of them too; marks differ besides."""

    page: str
    text: str
    soft: str
    rule: str
    who: dict[str, str]


LIGHT = Ink("#ffffff", "#1f2328", "#646b74", "#e2e0da", {
    "yours": "#0b6b6b", "reference": "#8a6d00", "PyTorch": "#c4431a", "torch.compile": "#6b4fbb"})
# Stand for the colours of a page, which knows whether it is dark; no other text looks like them.
PAGE = Ink("#fe0001", "#fe0002", "#fe0003", "#fe0004", {
    "yours": "#fe0005", "reference": "#fe0006", "PyTorch": "#fe0007", "torch.compile": "#fe0008"})
NAMES = ("card", "text", "soft", "rule", "yours", "reference", "torch", "compiled")


def png(found: Benchmark, title: str) -> bytes:
    """A benchmark as a picture, on a light ground."""
    made = io.BytesIO()
    draw(found, title, LIGHT).savefig(made, format="png", dpi=_DPI, facecolor=LIGHT.page)
    return made.getvalue()


def svg(found: Benchmark, *, narrow: bool, salt: str = "") -> str:
    """The same as an SVG element, from its attributes on; colours are variables of the page.

    ``salt`` tells the names within apart from those of other drawings on the page.
    """
    import matplotlib

    figure = draw(found, "", PAGE, narrow=narrow)
    made = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": f"narrow: {narrow}{salt}"}):
        figure.savefig(made, format="svg", transparent=True, metadata={"Date": None})
    text = made.getvalue()
    for name, colour in zip(NAMES, (PAGE.page, PAGE.text, PAGE.soft, PAGE.rule,
                                    *PAGE.who.values()), strict=True):
        text = text.replace(colour, f"var(--{name})")
    # The names of groups say nothing, and there are two drawings on a page.
    return re.sub(r'<g id="[^"]*"', "<g", text[text.index("<svg") + len("<svg"):])


def draw(found: Benchmark, title: str, ink: Ink, *, narrow: bool = False) -> Figure:
    """A panel for each function that was timed, and the roofline of all that compute."""
    from matplotlib.figure import Figure

    timed = [chart for chart in found.charts if chart.timed]
    computing = [chart for chart in timed if _computes(chart)]
    columns = 2 if len(timed) > 1 and not narrow else 1
    rows = max(1, -(-len(timed) // columns))
    head = _HEAD if title else _HEAD / 2
    heights = [head, *[_PANEL if columns == 1 else 0.85 * _PANEL] * rows,
               *[_ROOFLINE] * bool(computing)]
    width = _NARROW if narrow else _WIDE
    figure = Figure(figsize=(width, sum(heights) + 0.5), layout="constrained")
    figure.get_layout_engine().set(h_pad=0.09, w_pad=0.06)  # type: ignore[union-attr, call-arg]
    later: list[Callable[[], None]] = []  # what can be placed only when all else is
    grid = figure.add_gridspec(len(heights), columns, height_ratios=heights)
    _head(figure.add_subplot(grid[0, :]), title, timed, ink, 2 if narrow else 4)
    for number, chart in enumerate(timed):
        axes = figure.add_subplot(grid[1 + number // columns, number % columns])
        _speeds(axes, chart, ink, alone=columns == 1, narrow=narrow)
    if computing:
        _roofline(figure.add_subplot(grid[-1, :]), computing, found, ink, later,
                  narrow=narrow)
    figure.supxlabel(_footer(found, narrow), x=0.02, ha="left", fontsize=8.5, color=ink.soft)
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for place in later:
        place()
    return figure


def _head(axes: Axes, title: str, charts: Sequence[Chart], ink: Ink, columns: int) -> None:
    """The title, and all contenders once, above the panels."""
    from matplotlib.lines import Line2D

    axes.set_axis_off()
    axes.annotate(title, (0, 1), fontsize=13, fontweight="bold", color=ink.text, va="top",
                  xycoords="axes fraction")
    names = list(dict.fromkeys(one.who for chart in charts for one in chart.timed))
    handles = [Line2D([], [], color=ink.who[who], label=who, **_marker(who, ink),
                      linewidth=2.2 if who == YOURS else 1.3) for who in names]
    axes.legend(handles=handles, loc="lower left", ncols=columns, fontsize=10, frameon=False,
                labelcolor=ink.text, handlelength=2, columnspacing=1.2, borderaxespad=0,
                borderpad=0)


def _footer(found: Benchmark, narrow: bool) -> str:
    import textwrap

    said = words.introduction(found) if not found.measured else \
        f"Measured on an {found.device} with " + ", ".join(
            f"{name} {found.versions[name]}" for name in ("torch", "triton")
            if name in found.versions) + ". Bars: 20th to 80th percentile."
    said = " ".join((said, *(words.nowhere(chart) for chart in found.charts
                             if chart.timed and not _computes(chart))))
    return "\n".join(textwrap.wrap(said, 62 if narrow else 88))


def _computes(chart: Chart) -> bool:
    return any(needed.flops for needed in chart.needed.values())


def _plain(axes: Axes, ink: Ink) -> None:
    axes.set_facecolor("none")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(ink.soft)
    axes.tick_params(which="both", colors=ink.soft, labelsize=9)
    axes.grid(True, color=ink.rule, linewidth=0.8)
    axes.set_axisbelow(True)
    for label in (axes.xaxis.label, axes.yaxis.label):
        label.set_color(ink.soft)
        label.set_fontsize(10)


def _heading(axes: Axes, title: str, more: str, ink: Ink) -> None:
    axes.set_title(title, loc="left", fontsize=11, fontweight="bold", color=ink.text, pad=20)
    axes.annotate(more, (0, 1), (0, 6), xycoords="axes fraction", textcoords="offset points",
                  fontsize=9, color=ink.soft).set_in_layout(False)


def _marker(who: str, ink: Ink) -> dict[str, Any]:
    """The reference is a ring, so that it is seen round a mark that lies on it."""
    if who == REFERENCE:
        return {"marker": _MARKS[who], "markersize": 9, "markerfacecolor": ink.page,
                "markeredgewidth": 1.4}
    return {"marker": _MARKS[who], "markersize": 6}


# ---------------------------------------------------------------------------------------------
# Speed over size


def _speeds(axes: Axes, chart: Chart, ink: Ink, *, alone: bool, narrow: bool) -> None:
    sizes = [size for size in chart.needed if any(size in one.speeds for one in chart.timed)]
    ceilings = [chart.ceiling(size) for size in sizes]
    rates = [chart.rate(size, speed.seconds) for one in chart.timed
             for size, speed in one.speeds.items()]
    top = max(*ceilings, *rates)
    scale, unit = q.scale(top, chart.unit)
    axes.set_xscale("log", base=2)
    axes.plot(sizes, [rate / scale for rate in ceilings], color=ink.text, linewidth=1.6,
              linestyle=(0, (5, 3)), zorder=1.5)
    for one in reversed(chart.timed):
        _line(axes, chart, one, scale, ink)
    axes.set_ylim(0, 1.16 * top / scale)
    said = words.ceiling(chart)
    axes.annotate(said if alone and not narrow else said.split(": ", 1)[1],
                  (sizes[-1], ceilings[-1] / scale), (0, 4), textcoords="offset points",
                  ha="right", fontsize=9, color=ink.text,  # readable where lines run beneath
                  bbox={"facecolor": ink.page, "edgecolor": "none", "alpha": 0.8, "pad": 1})
    axes.set_xticks(sizes, _labels(sizes, 5 if narrow or not alone else 8))
    axes.set_xticks([], minor=True)
    axes.set_xlabel(chart.axis)
    axes.set_ylabel(unit)
    _plain(axes, ink)
    kind = "" if chart.roof.measured else "; predicted" + ", not measured" * alone
    _heading(axes, chart.function, chart.at + kind, ink)


def _line(axes: Axes, chart: Chart, one: Contender, scale: float, ink: Ink) -> None:
    places = list(one.speeds)
    middle, low, high = (
        [chart.rate(size, seconds) / scale for size, seconds in zip(places, each, strict=True)]
        for each in zip(*((s.seconds, s.high, s.low) for s in one.speeds.values()), strict=True))
    off = [[m - a for m, a in zip(middle, low, strict=True)],
           [b - m for m, b in zip(middle, high, strict=True)]]
    mine = one.who == YOURS
    axes.errorbar(places, middle, yerr=off if chart.roof.measured else None, label=one.who,
                  color=ink.who[one.who], **_marker(one.who, ink),
                  linewidth=2.2 if mine else 1.3, elinewidth=1.2, capsize=2,
                  zorder=3 if mine else 2)


def _labels(sizes: Sequence[int], most: int) -> list[str]:
    """Labels for as many sizes as there is room for, the last one among them."""
    room = math.log(sizes[-1] / sizes[0]) / most
    kept = [sizes[-1]]
    for size in reversed(sizes[:-1]):
        if math.log(kept[-1] / size) >= room:
            kept.append(size)
    return [q.count(size) if size in kept else "" for size in sizes]


# ---------------------------------------------------------------------------------------------
# The roofline


def _roofline(axes: Axes, charts: Sequence[Chart], found: Benchmark, ink: Ink,
              later: list[Callable[[], None]], *, narrow: bool) -> None:
    """All sizes of all contenders below the roofs; the largest of each is named."""
    points = [(chart, one, _path(chart, one)) for chart in charts for one in chart.timed]
    roofs = list({chart.roof.units: chart.roof for chart in charts}.values())
    every = [place for *_, path in points for place in path]
    ridges = [roof.peak / roof.copy for roof in roofs]
    left = min(*(x for x, _ in every), *ridges) / _MOST
    room = _MOST * (3 if narrow else 1)  # for names, right of the points
    right = max(*(x for x, _ in every), *ridges) * 2 * room
    top = max(max(roof.peak for roof in roofs), *(y for _, y in every))
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(left, right)
    axes.set_ylim(min(y for _, y in every) / (1 + len(charts)), top * _MOST)
    for roof in roofs:
        _roof(axes, roof, left, right, ink)
    later.append(_slope(axes, min(roofs, key=lambda roof: roof.peak), every, ink))
    for _, one, path in points:
        mine = one.who == YOURS
        if len(charts) == 1:
            axes.plot(*zip(*path, strict=True), color=ink.who[one.who], linewidth=1,
                      marker=_MARKS[one.who], markersize=3, alpha=0.45, zorder=2)
        axes.plot(*path[-1], color=ink.who[one.who], **_marker(one.who, ink),
                  zorder=5 if mine else 4)
    names = [(one.who if len(charts) == 1 else chart.function, path[-1], ink.who[one.who])
             for chart, one, path in points if len(charts) == 1 or one.who == YOURS]
    later.append(_name(axes, names, roofs, ink))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}")
    axes.yaxis.set_major_formatter(lambda value, _: _rate(value))
    axes.set_xlabel("intensity: operations per byte (FLOP/B)")
    axes.set_ylabel("speed (FLOP/s)")
    _plain(axes, ink)
    axes.grid(True, which="major", color=ink.rule, linewidth=0.8)
    axes.minorticks_off()
    largest = ("the largest sizes" if narrow else "the largest size of each function") \
        if len(charts) > 1 else f"{_last(charts[0]):,} {charts[0].axis}"
    kind = "measured" if found.measured else "predicted, not measured"
    _heading(axes, f"Roofline of the {found.device}", f"{kind}; named: {largest}", ink)


def _last(chart: Chart) -> int:
    return max(size for one in chart.timed for size in one.speeds)


def _path(chart: Chart, one: Contender) -> list[tuple[float, float]]:
    """Intensity and speed of the sizes, the largest last."""
    return [(chart.needed[size].flops / chart.needed[size].bytes,
             chart.needed[size].flops / one.speeds[size].seconds)
            for size in sorted(one.speeds) if chart.needed[size].flops]


def _roof(axes: Axes, roof: Roof, left: float, right: float, ink: Ink) -> None:
    ridge, low = roof.peak / roof.copy, axes.get_ylim()[0]
    axes.plot([left, ridge, right], [left * roof.copy, roof.peak, roof.peak], color=ink.text,
              linewidth=1.8, solid_joinstyle="round", zorder=1.5)
    axes.plot([ridge, ridge], [low, roof.peak], color=ink.soft, linewidth=1, linestyle=":",
              zorder=1.2)
    axes.annotate(f"ridge {q.three(ridge)} FLOP/B", (ridge, low), (4, 5),
                  textcoords="offset points", fontsize=9, color=ink.soft)
    axes.annotate(f"{_UNITS[roof.units]} matmul {q.rate(roof.peak, 'FLOP/s')}",
                  (right, roof.peak), (-2, 4), textcoords="offset points", ha="right",
                  fontsize=9, color=ink.text)


def _slope(axes: Axes, roof: Roof, points: Sequence[tuple[float, float]],
           ink: Ink) -> Callable[[], None]:
    """Name the slope where no point lies; what is returned turns the name along it."""
    ridge, (left, right) = roof.peak / roof.copy, axes.get_xlim()
    last = max((x for x, _ in points if x < ridge), default=left)
    roomy = math.log(ridge / last) > 0.2 * math.log(right / left)
    free = last if roomy else max(left, axes.get_ylim()[0] / roof.copy)
    middle = math.sqrt(free * ridge)
    text = axes.annotate(f"copy {q.rate(roof.copy, 'B/s')}", (middle, middle * roof.copy), (-3, 5),
                         textcoords="offset points", fontsize=9, color=ink.text, ha="center",
                         va="bottom", rotation_mode="anchor")

    def turn() -> None:
        (a, b), (c, d) = axes.transData.transform(
            [(x, x * roof.copy) for x in (middle, 2 * middle)])
        text.set_rotation(math.degrees(math.atan2(d - b, c - a)))

    return turn


def _name(axes: Axes, names: Sequence[tuple[str, tuple[float, float], str]],
          roofs: Sequence[Roof], ink: Ink) -> Callable[[], None]:
    """Name points; what is returned moves names apart."""
    labels = [axes.annotate(name, place, (18, 0), textcoords="offset points", fontsize=9,
                            color=ink.text, va="center", zorder=6,
                            arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.8,
                                        "shrinkA": 1, "shrinkB": 4, "relpos": (0, 0.5)})
              for name, place, colour in sorted(names, key=lambda name: -name[1][1])]

    def part() -> None:
        taken: list[tuple[float, float, float]] = []  # from x to x, at y, in points
        for label in labels:
            x = label.xy[0]
            roof = max(min(roof.peak, 2 * x * roof.copy) for roof in roofs)
            _move(axes, label, roof, taken)

    return part


def _move(axes: Axes, label: Any, roof: float, taken: list[tuple[float, float, float]]) -> None:
    """Put a name below the roof where none is yet, step by step; to the left at the right edge."""
    point = 72 / axes.figure.dpi
    x, y = (value * point for value in axes.transData.transform(label.xy))
    right, bottom = axes.bbox.x1 * point, axes.bbox.y0 * point
    long, high = 5.4 * len(label.get_text()), 12.0
    left = x + 18 + long > right
    begin = x - 18 - long if left else x + 18
    at = min(y, axes.transData.transform((label.xy[0], roof))[1] * point - 0.8 * high)
    while any(abs(at - other) < high and begin < end and start < begin + long
              for start, end, other in taken) and at - high > bottom:
        at -= high
    taken.append((begin, begin + long, at))
    label.set_position((-18 if left else 18, at - y))
    label.set_horizontalalignment("right" if left else "left")
    label.arrowprops["relpos"] = (1, 0.5) if left else (0, 0.5)


def _rate(value: float) -> str:
    size, name = q.scale(value, "")
    return f"{value / size:,g} {name}".rstrip()
