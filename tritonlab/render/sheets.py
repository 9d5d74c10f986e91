"""Pages about a learner: the certificate, and the report of progress."""

from __future__ import annotations

import shlex

from markupsafe import Markup

from tritonlab import claims
from tritonlab.certificate import Certificate
from tritonlab.render import certified
from tritonlab.render.html import template


def certificate(made: Certificate, file: str) -> str:
    """The page of a certificate, to print on one sheet; its data are in it, to be verified.

    ``file`` is the name that the page will have.
    """
    data = made.to_dict()
    return template("certificate.html").render(
        made=made, words=certified, data=data, fingerprint=claims.fingerprint(data),
        marker=Markup(claims.MARKER), command=f"tritonlab verify {shlex.quote(file)}")
