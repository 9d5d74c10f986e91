"""Pages about kernels: what `inspect` and `bench` found."""

from __future__ import annotations

from dataclasses import dataclass, replace

from grader.bench import COMPILED, REFERENCE, TORCH, YOURS, Benchmark
from grader.inspection import InspectedCase, Inspection
from tritonlab.course import Module
from tritonlab.render import benched, highlight, picture
from tritonlab.render import inspected as words
from tritonlab.render.drawing import draw
from tritonlab.render.html import template
from tritonlab.render.inspected import Row

_WIDE, _NARROW = (900, 420), (360, 320)  # pixels of the two drawings: the page shows one that fits


@dataclass(frozen=True)
class _Source:
    """The source beside what one case moves."""

    case: InspectedCase
    rows: tuple[Row, ...]
    heaviest: int  # bytes of the line that moves most
    first: bool


def inspection(module: Module, found: Inspection) -> str:
    """The page of an inspection: table, annotated source, advice, roofline, listings."""
    points = [(case, point) for case in found.cases if case.launches
              for point in case.points(found.target)]
    alone = [point for _, point in points]
    full = alone if len(found.cases) == 1 else [
        replace(point, label=f"{point.label}, {case.name}") for case, point in points]
    drawings = (draw(full, found.target, *_WIDE), draw(alone, found.target, *_NARROW)) \
        if points else ()
    columns, left = words.columns(found)
    return template("inspect.html").render(
        module=module, found=found, words=words, columns=columns, left=left,
        facts=words.facts(columns, found.target),
        parts=highlight.parts(found.text.expandtabs(4)), sources=_sources(found),
        points=points, drawings=drawings, listings=words.different(found), lines=_lines(found),
        nowhere=[case for case in found.cases
                 if case.launches and not case.points(found.target)],
    )


def benchmark(module: Module, found: Benchmark) -> str:
    """The page of a benchmark: the picture, and a table for each function."""
    timed = any(chart.timed for chart in found.charts)
    drawings = [picture.svg(found, narrow=narrow) for narrow in (False, True)] if timed else []
    classes = {YOURS: "yours", REFERENCE: "reference", TORCH: "torch", COMPILED: "compiled"}
    return template("bench.html").render(
        module=module, found=found, words=benched, drawings=drawings, classes=classes)


def _sources(found: Inspection) -> list[_Source]:
    """The case that moves most first; it is the one that is open."""
    cases = sorted((case for case in found.cases if case.launches), key=lambda case: -case.bytes)
    return [_Source(case, tuple(words.pages(found, case)),
                    max((line.bytes for line in case.lines.values()), default=0), number == 0)
            for number, case in enumerate(cases)]


def _lines(found: Inspection) -> dict[int, str]:
    return {number: line.strip() for number, line in enumerate(found.text.split("\n"), 1)}
