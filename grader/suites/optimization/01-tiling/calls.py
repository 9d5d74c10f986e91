"""Calls the planners of tiling, with clocks that follow a script."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def tiles(module: Any, sides: Sequence[Sequence[int]]) -> list[Any]:
    """Returns the tile of ``choose_tile`` for each (m, n, itemsize)."""
    return [module.choose_tile(*one) for one in sides]


def sweep(module: Any, times: Sequence[Sequence[float]], script: Sequence[Sequence[Any]],
          candidates: Sequence[int], repeats: int) -> dict[str, Any]:
    """Returns the result of a sweep and the candidates it called, in order.

    ``times`` has a pair (candidate, ms) per candidate. A line of the ``script`` changes some calls:

    - ("first", candidate, ms): the first call of the candidate takes ``ms`` longer;
    - ("drift", share): each call takes ``share`` longer per earlier call of any candidate;
    - ("every", count, number, candidate, ms): of each ``count`` calls of the candidate, the one
      with this number takes ``ms``;
    - ("turn", candidate, ms, …): the calls of the candidate take these times in turn.
    """
    called: list[int] = []

    def time_ms(candidate: int) -> float:
        nth = called.count(candidate)
        ms = dict(times)[candidate]
        for kind, *values in script:
            if kind == "first" and candidate == values[0] and nth == 0:
                ms += values[1]
            elif kind == "drift":
                ms *= 1 + values[0] * len(called)
            elif kind == "every" and candidate == values[2] and nth % values[0] == values[1]:
                ms = values[3]
            elif kind == "turn" and candidate == values[0]:
                ms = values[1:][nth % len(values[1:])]
        called.append(candidate)
        return ms

    result = module.sweep_block_sizes(time_ms, list(candidates), repeats=repeats)
    return {"result": result, "called": called}


def default_repeats(module: Any) -> int:
    """Returns how often a sweep calls its only candidate by default."""
    called: list[int] = []

    def time_ms(candidate: int) -> float:
        called.append(candidate)
        return 1.0

    module.sweep_block_sizes(time_ms, [64])
    return len(called)


def changed(module: Any) -> bool:
    """Returns whether a field of a result can be assigned."""
    result = module.sweep_block_sizes(lambda candidate: 1.0, [64], repeats=2)
    try:
        result.best = 128
    except AttributeError:
        return False
    return True
