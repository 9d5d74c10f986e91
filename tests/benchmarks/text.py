"""Results as JSON that shows a row of a table on a line."""

from __future__ import annotations

import json
from typing import Any

WIDTH = 160


def json_text(data: Any, indent: int = 0) -> str:
    """Formats ``data``; a list or dict that fits into ``WIDTH`` characters takes one line."""
    line = json.dumps(data)
    if not isinstance(data, dict | list) or indent + len(line) <= WIDTH:
        return line
    if isinstance(data, dict):
        ends = "{}"
        parts = [f"{json.dumps(name)}: {json_text(one, indent + 1)}" for name, one in data.items()]
    else:
        ends = "[]"
        parts = [json_text(one, indent + 1) for one in data]
    start = "\n" + " " * (indent + 1)
    return f"{ends[0]}{start}{f',{start}'.join(parts)}{start[:-1]}{ends[1]}"
