"""Asks for gains."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def gains(module: Any, questions: Sequence[Sequence[float]]) -> list[Any]:
    """The result of ``fusion_gain`` for each; a text where it is not a number."""
    answers = [module.fusion_gain(*question) for question in questions]
    return [answer if isinstance(answer, int | float) else repr(answer) for answer in answers]


def fusion_gain(module: Any, *question: Any) -> Any:
    """The answer to one question, some of which are refused."""
    return module.fusion_gain(*question)
