"""Workflow commands that annotate files in GitHub Actions.

https://docs.github.com/actions/reference/workflow-commands-for-github-actions
"""

from collections.abc import Mapping
from typing import Any

from tritonlab.formats.annotations import annotations, clean

_COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}


def render(report: Mapping[str, Any], file: str) -> str:
    """Returns a command for each failure, such as ``::error file=kernel.py,line=40,...::...``.

    Args:
        report: from ``grader.report.Report.to_dict``.
        file: the path of ``kernel.py`` from the root of the repository, with slashes.
    """
    lines = []
    for remark in annotations(report, file):
        name = f"{remark.name} ({remark.code}): " if remark.code else ""
        place = {"file": remark.file, "line": str(remark.line or 1), "col": "1"} \
            if remark.file else {}
        properties = place | {"title": name + (remark.check or "tritonlab")}
        words = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
        lines.append(f"::{_COMMANDS[remark.level]} {words}::{_data(remark.text)}\n")
    return "".join(lines)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(clean(text)).replace(":", "%3A").replace(",", "%2C")
