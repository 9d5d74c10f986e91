"""A line for each failure, as compilers write them; editors jump to the place."""

from collections.abc import Mapping
from typing import Any

from tritonlab.formats.annotations import annotations, clean


def render(report: Mapping[str, Any], file: str) -> str:
    """Returns lines such as ``kernel.py:40:1: error: ... [load-out-of-bounds]``.

    Args:
        report: from ``grader.report.Report.to_dict``.
        file: the path of ``kernel.py``, with slashes.
    """
    lines = []
    for remark in annotations(report, file):
        path = clean(remark.file).replace("\n", " ")
        place = f"{path}:{remark.line or 1}:1" if path else "tritonlab"
        name = f" [{remark.name}]" if remark.name else ""
        lines.append(f"{place}: {remark.level}: {remark.summary}{name}\n")
    return "".join(lines)
