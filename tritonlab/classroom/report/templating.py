"""The templates of a class's pages; values are escaped."""

import functools
import re
from datetime import datetime, tzinfo

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from tritonlab.classroom.book import ModuleScore
from tritonlab.grading.points import number

_CODE = re.compile(r"(`[^`\n]*`)")
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|!~&$])")


@functools.cache
def templates() -> Environment:
    """The environment of all pages."""
    environment = Environment(loader=PackageLoader("tritonlab.classroom.report"), autoescape=True,
                              undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters.update(code=_code, diff=_diff, number=number)
    return environment


def breakdown(module: ModuleScore) -> str:
    """The points of a module by kind of case, and the deduction; empty without cases."""
    parts = [f"{one.kind} {number(one.points)} of {number(one.out_of)} "
             f"({one.passed} of {one.total} cases)" for one in module.groups]
    deducted = module.raw - module.points
    if parts and deducted >= 0.005:
        parts.append(f"{number(deducted)} deducted for lateness")
    return ", ".join(parts)


def time(zone: tzinfo, at: datetime | None) -> str:
    """A time of the class's timezone to the minute."""
    return at.astimezone(zone).isoformat(" ")[:16] if at else ""


def source(name: str) -> str:
    """The text of a template file."""
    environment = templates()
    assert environment.loader is not None
    return environment.loader.get_source(environment, name)[0]


def markdown(text: str) -> str:
    """Escapes a sentence for Markdown; code in backticks stays code."""
    parts = _CODE.split(" ".join(text.split()))
    return "".join(part if n % 2 else _SPECIAL.sub(r"\\\1", part) for n, part in enumerate(parts))


def _code(text: str) -> Markup:
    return Markup(re.sub(r"`([^`]*)`", r"<code>\1</code>", str(escape(text))))


def _diff(text: str) -> Markup:
    """The lines of a diff, those added and removed each in an element."""
    styles = {"+": "a", "-": "d"}
    return Markup("".join(f'<i class="{styles[line[0]]}">{line}</i>' if line[:1] in styles
                          else f"{line}\n" for line in str(escape(text)).split("\n")))
