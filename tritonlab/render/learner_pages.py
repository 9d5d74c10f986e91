"""Pages about a learner: the certificate, and the report of progress."""

from __future__ import annotations

import shlex

from markupsafe import Markup

from tritonlab.progress.certificate import Certificate
from tritonlab.progress.progress_report import Overview
from tritonlab.render import certificate_text, progress
from tritonlab.render.html import template
from tritonlab.verify import certificate_reader


def certificate(certificate: Certificate, file: str) -> str:
    """The page of a certificate, to print on one sheet; its data are in it, to be verified.

    ``file`` is the name that the page will have.
    """
    data = certificate.to_dict()
    return template("certificate.html").render(
        certificate=certificate, words=certificate_text, data=data,
        fingerprint=certificate_reader.fingerprint(data),
        marker=Markup(certificate_reader.MARKER), command=f"tritonlab verify {shlex.quote(file)}")


def report(overview: Overview) -> str:
    """The page of a learner's progress: modules, attempts over time, benchmarks."""
    from tritonlab.render import charts  # loads matplotlib, which a certificate does without

    benched = [(one, charts.benchmark_svgs(one.kept.found, f"Speed over size of {one.module.id}"))
               for one in overview.benched]
    return template("report.html").render(
        overview=overview, certificate=overview.certificate, words=progress,
        timelines=charts.timeline_svgs(overview.days), benched=benched)
