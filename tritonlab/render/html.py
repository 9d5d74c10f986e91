"""HTML: templates of pages, each one file that runs no script and needs nothing from elsewhere."""

from __future__ import annotations

import functools
import re

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup, escape

from grader.words import sentence
from tritonlab.render import quantities as q


def template(name: str) -> Template:
    """The template of a page; what is put into it is escaped."""
    return _templates().get_template(name)


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
