"""Pages for a browser, each in one file that runs no script and needs nothing from elsewhere."""

from __future__ import annotations

import functools
import re
import shlex
from dataclasses import dataclass, replace

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from grader.bench import COMPILED, REFERENCE, TORCH, YOURS, Benchmark
from grader.inspection import InspectedCase, Inspection
from grader.words import sentence
from tritonlab import claims
from tritonlab.certificate import Certificate
from tritonlab.course import Module
from tritonlab.render import benched, certified, highlight, picture
from tritonlab.render import inspected as words
from tritonlab.render import quantities as q
from tritonlab.render.drawing import draw
from tritonlab.render.inspected import Row

_WIDE, _NARROW = (900, 420), (360, 320)  # pixels of the two drawings: the page shows one that fits


@dataclass(frozen=True)
class _Source:
    """The source beside what one case moves."""

    case: InspectedCase
    rows: tuple[Row, ...]
    heaviest: int  # bytes of the line that moves most
    first: bool


@functools.cache
def _templates() -> Environment:
    made = Environment(loader=PackageLoader("tritonlab.render"), autoescape=True,
                       undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    made.filters.update(code=_with_code, bytes=q.bytes_, share=q.share, three=q.three,
                        seconds=q.seconds, plural=q.plural, sentence=sentence)
    return made


def _with_code(text: str) -> Markup:
    """Text of a message, what stands in backticks set as code."""
    return Markup(re.sub(r"`([^`]*)`", r"<code>\1</code>", str(escape(text))))


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
    return _templates().get_template("inspect.html").render(
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
    return _templates().get_template("bench.html").render(
        module=module, found=found, words=benched, drawings=drawings, classes=classes)


def certificate(made: Certificate, file: str) -> str:
    """The page of a certificate, to print on one sheet; its data are in it, to be verified.

    ``file`` is the name that the page will have.
    """
    data = made.to_dict()
    return _templates().get_template("certificate.html").render(
        made=made, words=certified, data=data, fingerprint=claims.fingerprint(data),
        marker=Markup(claims.MARKER), command=f"tritonlab verify {shlex.quote(file)}")


def _sources(found: Inspection) -> list[_Source]:
    """The case that moves most first; it is the one that is open."""
    cases = sorted((case for case in found.cases if case.launches), key=lambda case: -case.bytes)
    return [_Source(case, tuple(words.pages(found, case)),
                    max((line.bytes for line in case.lines.values()), default=0), number == 0)
            for number, case in enumerate(cases)]


def _lines(found: Inspection) -> dict[int, str]:
    return {number: line.strip() for number, line in enumerate(found.text.split("\n"), 1)}
