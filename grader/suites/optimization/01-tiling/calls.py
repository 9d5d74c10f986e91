"""Calls the planners of tiling, with clocks that follow a script."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def tiles(module: Any, sides: Sequence[Sequence[int]]) -> list[Any]:
    """What ``choose_tile`` answers for each (m, n, itemsize)."""
    return [module.choose_tile(*one) for one in sides]


def sweep(module: Any, times: Sequence[Sequence[float]], script: Sequence[Sequence[Any]],
          candidates: Sequence[int], repeats: int) -> dict[str, Any]:
    """What a sweep answers, and which candidates it called in which order.

    ``times`` holds a pair (candidate, ms) for each. A line of the ``script`` changes some calls:

    - ("first", candidate, ms): the first call of the candidate takes so much longer;
    - ("drift", share): each call takes so much more than the one before it, of any candidate;
    - ("every", count, number, candidate, ms): of each ``count`` calls of the candidate, the one
      with this number takes ``ms``;
    - ("turn", candidate, ms, …): the calls of the candidate take these in turn.
    """
    called: list[int] = []

    def time_ms(candidate: int) -> float:
        nth = called.count(candidate)
        ms = dict(times)[candidate]
        for kind, *what in script:
            if kind == "first" and candidate == what[0] and nth == 0:
                ms += what[1]
            elif kind == "drift":
                ms *= 1 + what[0] * len(called)
            elif kind == "every" and candidate == what[2] and nth % what[0] == what[1]:
                ms = what[3]
            elif kind == "turn" and candidate == what[0]:
                ms = what[1:][nth % len(what[1:])]
        called.append(candidate)
        return ms

    result = module.sweep_block_sizes(time_ms, list(candidates), repeats=repeats)
    return {"result": result, "called": called}


def default_repeats(module: Any) -> int:
    """How often a sweep calls its only candidate when nothing is said of it."""
    called: list[int] = []

    def time_ms(candidate: int) -> float:
        called.append(candidate)
        return 1.0

    module.sweep_block_sizes(time_ms, [64])
    return len(called)


def changed(module: Any) -> bool:
    """Whether a field of a result can be given another value."""
    result = module.sweep_block_sizes(lambda candidate: 1.0, [64], repeats=2)
    try:
        result.best = 128
    except AttributeError:
        return False
    return True
