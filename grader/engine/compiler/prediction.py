"""Prediction: how long a launch would take on a target, and what bounds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Prediction:
    """Seconds, what bounds them and what comes next; ``parts`` by name, in seconds.

    The names are dram, l2, compute, latency, launch, programs and atomics.
    """

    seconds: float
    bound: str
    runner_up: str
    parts: Mapping[str, float]
