"""Writes a trace as an HTML page that needs no network."""

import base64
import functools
import json
import zlib
from importlib.resources import files
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from tritonlab.render import pages

_SCRIPTS = ("vendor/htm-preact-3.1.1.js", "reading.js", "drawing.js", "app.js")


def page(data: dict[str, Any], title: str) -> str:
    """Returns the page of a trace.

    Args:
        data: of ``grader.trace.trace.TracedCase.to_dict``.
        title: of the module.
    """
    described = {key: value for key, value in data.items() if key != "data"}
    described["code"] = pages.highlighted("\n".join(data["source"]).expandtabs(4))
    return _templates().get_template("trace.html").render(
        title=title, data=data,
        described=_packed(json.dumps(described, separators=(",", ":")).encode()),
        numbers=_packed(base64.b64decode(data["data"])),
        scripts=[_script(name) for name in _SCRIPTS])


def _packed(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data, 9)).decode()


@functools.cache
def _script(name: str) -> Markup:
    return Markup(files(__package__).joinpath("templates", name).read_text(encoding="utf-8"))


@functools.cache
def _templates() -> Environment:
    """The template of the page; it extends those of all pages. Values are escaped."""
    loader = ChoiceLoader([PackageLoader("tritonlab.trace"), PackageLoader("tritonlab.render")])
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined,
                       trim_blocks=True, lstrip_blocks=True)
