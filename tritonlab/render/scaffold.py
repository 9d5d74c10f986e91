"""The files of a new module, filled in from templates."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined


@functools.cache
def _templates() -> Environment:
    return Environment(loader=PackageLoader("tritonlab.render", "templates/module"),
                       undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
                       keep_trailing_newline=True, autoescape=False)


def fill(template: str, values: Mapping[str, Any]) -> str:
    """The text of one file."""
    return _templates().get_template(template).render(values)
