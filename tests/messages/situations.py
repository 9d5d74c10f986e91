"""Situations, by verb; a room of their own for those of a kind."""

from __future__ import annotations

from tests.messages import beginning, grading, helping, proving, recording, teaching, watching
from tests.messages.stage import Situation

SITUATIONS: dict[str, list[Situation]] = {
    verb: situations
    for room in (beginning, grading, watching, helping, recording, proving, teaching)
    for verb, situations in room.SITUATIONS.items()}
