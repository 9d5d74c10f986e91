"""Defects: what makes a kernel slow, by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Defect:
    """A defect by name. ``code`` is that of the diagnosis.

    ``weight``: a "hint" says what could be better and may cost nothing as things are.
    """

    name: str
    code: str
    line: int | None
    seen: str
    advice: str
    weight: Literal["defect", "hint"] = "defect"
