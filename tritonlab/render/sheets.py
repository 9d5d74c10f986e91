"""Pages about a learner: the certificate, and the report of progress."""

from __future__ import annotations

import shlex

from markupsafe import Markup

from tritonlab import claims
from tritonlab.certificate import Certificate
from tritonlab.overview import Benched, Overview
from tritonlab.render import certified, overview, timeline
from tritonlab.render.course import hours
from tritonlab.render.html import template

_WIDE, _NARROW = 900, 336  # pixels of the two timelines: the page shows one that fits


def certificate(made: Certificate, file: str) -> str:
    """The page of a certificate, to print on one sheet; its data are in it, to be verified.

    ``file`` is the name that the page will have.
    """
    data = made.to_dict()
    return template("certificate.html").render(
        made=made, words=certified, data=data, fingerprint=claims.fingerprint(data),
        marker=Markup(claims.MARKER), command=f"tritonlab verify {shlex.quote(file)}")


def report(found: Overview) -> str:
    """The page of a learner's way: modules, attempts over time, benchmarks."""
    days = found.days
    drawings = [drawing for drawing in (timeline.draw(days, _WIDE),
                                        timeline.draw(days, _NARROW, above=True)) if drawing]
    pictures = [(one, *(_svg(one, narrow=narrow) for narrow in (False, True)))
                for one in found.benched]
    return template("report.html").render(found=found, made=found.certificate, words=overview,
                                          hours=hours, drawings=drawings, pictures=pictures)


def _svg(one: Benched, *, narrow: bool) -> str:
    from tritonlab.render import picture

    return picture.svg(one.kept.found, narrow=narrow, salt=one.module.id)
