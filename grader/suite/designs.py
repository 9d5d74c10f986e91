"""Checks a design that was written down before the code."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Count = Callable[[Mapping[str, int]], float]  # of something, by the sizes of a shape


def is_designed(elements: Count, nbytes: Count, flops: tuple[Count, Count], bound: str,
                reasons: Mapping[str, str]) -> Callable[..., None]:
    """A check of what ``grader.worker.suite_drivers.design`` answers of one function, within 10 %.

    Where several forms are right, flops lie between two counts. A grid is right if its tiles hold
    all elements, and if it needs all of them.
    """
    def check(answer: Any, function: str, shapes: Sequence[Mapping[str, int]]) -> None:
        for key in ("flops", "bytes", "grid", "tile"):
            entry = f"DESIGN[{function!r}][{key!r}]"
            assert isinstance(answer[key], list), f"{entry} {answer[key]}."
        assert answer["bound"] == bound, (
            f"DESIGN[{function!r}]['bound'] is {answer['bound']!r}. {reasons['bound']}")
        for number, shape in enumerate(shapes):
            where = ", ".join(f"{name} = {size:,}" for name, size in shape.items())
            got = {key: answer[key][number] for key in ("flops", "bytes", "grid", "tile")}
            for key, least, most in (("flops", *flops), ("bytes", nbytes, nbytes)):
                assert 0.9 * least(shape) <= got[key] <= 1.1 * most(shape), (
                    f"For {where}, DESIGN[{function!r}][{key!r}] is {got[key]:,.0f}. "
                    f"{reasons[key]}")
            programs, tile, count = got["grid"], got["tile"], elements(shape)
            assert programs * tile >= 0.9 * count, (
                f"For {where}, DESIGN[{function!r}] has {programs:,.0f} programs with tiles of "
                f"{tile:,.0f}: {programs * tile:,.0f} elements of {count:,.0f}.")
            assert (programs - 1) * tile <= 2.2 * count, (
                f"For {where}, DESIGN[{function!r}] has {programs:,.0f} programs with tiles of "
                f"{tile:,.0f}: more than twice the {count:,.0f} existing elements.")

    return check


def product_of(factor: float, *names: str) -> Count:
    """Counts so many of something for each product of these sizes."""
    return lambda shape: factor * math.prod(shape[name] for name in names)
