"""Asks for gains."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def gains(module: Any, questions: Sequence[Sequence[float]]) -> list[Any]:
    """What ``fusion_gain`` answers for each; what is no number as a text."""
    answers = [module.fusion_gain(*question) for question in questions]
    return [answer if isinstance(answer, int | float) else repr(answer) for answer in answers]


def fusion_gain(module: Any, *question: Any) -> Any:
    """The answer to one question, some of which are refused."""
    return module.fusion_gain(*question)
