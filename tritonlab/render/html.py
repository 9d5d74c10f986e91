"""HTML templates of self-contained pages without scripts."""

from __future__ import annotations

import functools
import re

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup, escape

from grader.text import sentence
from tritonlab.render import quantities as q


def template(name: str) -> Template:
    """Loads the template of a page; values are escaped."""
    return _templates().get_template(name)


@functools.cache
def _templates() -> Environment:
    environment = Environment(loader=PackageLoader("tritonlab.render"), autoescape=True,
                       undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters.update(code=_with_code, bytes=q.bytes_, share=q.share, three=q.three,
                        seconds=q.seconds, plural=q.plural, sentence=sentence)
    return environment


def _with_code(text: str) -> Markup:
    """Renders backticks of a message as code."""
    return Markup(re.sub(r"`([^`]*)`", r"<code>\1</code>", str(escape(text))))
