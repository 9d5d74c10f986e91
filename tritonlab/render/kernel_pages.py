"""Pages about kernels: an inspection, a benchmark."""

from __future__ import annotations

from grader.bench.bench import Benchmark
from grader.inspect.inspection import Inspection
from tritonlab.course.course import Module
from tritonlab.render import bench_text, charts, highlight
from tritonlab.render import inspect_text as words
from tritonlab.render import quantities as q
from tritonlab.render.html import template


def inspection(module: Module, inspection: Inspection) -> str:
    """The page of an inspection: table, annotated source, advice, roofline, listings."""
    points = [(case, point) for case in inspection.cases if case.launches
              for point in case.points(inspection.target)]
    drawings = charts.inspection_svgs(
        [(case.name, point) for case, point in points], inspection.target,
        f"Roofline of an {inspection.target.title} with {q.plural(len(points), 'predicted point')}")
    columns, left = words.launch_columns(inspection)
    sources = [(case, words.source_rows(inspection, case),
                max((line.bytes for line in case.lines.values()), default=0))
               for case in sorted(inspection.cases, key=lambda case: -case.bytes) if case.launches]
    return template("inspect.html").render(
        module=module, inspection=inspection, words=words, columns=columns, left=left,
        facts=words.facts(columns, inspection.target),
        parts=highlight.parts(inspection.text.expandtabs(4)), sources=sources,
        points=points, drawings=drawings, listings=words.distinct_launches(inspection),
        lines=dict(enumerate(map(str.strip, inspection.text.split("\n")), 1)),
        nowhere=[case for case in inspection.cases
                 if case.launches and not case.points(inspection.target)],
    )


def benchmark(module: Module, benchmark: Benchmark) -> str:
    """The page of a benchmark: the picture, and a table for each function."""
    drawings = charts.benchmark_svgs(
        benchmark, f"Speed over size and roofline, {bench_text.promise(benchmark)}; "
                   "the tables below hold the numbers")
    return template("bench.html").render(
        module=module, benchmark=benchmark, words=bench_text, drawings=drawings,
        classes=charts.CLASSES)
