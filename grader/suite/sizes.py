"""Sizes that are drawn anew at each grade: stratified, biased to edges, and shrunk on failure."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

COUNT = 28  # sizes of a case, where each costs a few milliseconds
BIASED = 7  # one of so many is made of edges alone; the others are spread over the range
TILES = (16, 32, 64, 128)  # whose multiples are edges too
MOST_TRIES = 24  # runs that shrink a failure: two dimensions of 2**12, by bisection

Drawn = dict[str, Any]  # a size, or one of the choices, for each name


@dataclass(frozen=True)
class Sizes:
    """The sizes of a case, which are drawn, and the inputs of these sizes.

    ``make`` gets a value for each name of ``ranges`` (lowest and highest size, both included) and
    of ``choices`` (such as dtypes), and returns the inputs.
    """

    make: Callable[..., Sequence[Any]]
    ranges: Mapping[str, tuple[int, int]]
    choices: Mapping[str, Sequence[Any]]
    count: int

    def draw(self, random: Random) -> list[Drawn]:
        """Draws ``count`` sizes, the smallest first; sizes that are drawn twice count once.

        Six of seven are spread evenly over the range of each dimension, which a random offset
        shifts; where the range is wide, every other one of these moves to the edge of a tile
        nearby. So a window of sizes that is ``share`` of a range is met with probability ``share``
        times their number, while that is below 1. The others have an edge in each dimension.
        """
        biased = self.count // BIASED
        spread = self.count - biased
        columns = {}
        for name, (low, high) in self.ranges.items():
            near = [random.choice(edges(low, high)) for _ in range(biased)]
            columns[name] = [*_spread(low, high, spread, random), *near]
        for name, choices in self.choices.items():
            columns[name] = [choices[n % len(choices)] for n in range(self.count)]
            random.shuffle(columns[name])
        drawn = [dict(zip(columns, values, strict=True))
                 for values in zip(*columns.values(), strict=True)]
        drawn.sort(key=lambda size: math.prod(max(1, size[name]) for name in self.ranges))
        return list({words(size): size for size in drawn}.values())

    def shrunk(self, size: Drawn, fails: Callable[[Drawn], bool]) -> Drawn:
        """Returns the smallest size found that still fails, with at most ``MOST_TRIES`` tries.

        Each dimension goes to its lowest size where that fails too, and otherwise down to the
        first that fails, by bisection.
        """
        tries = 0

        def try_with(name: str, value: Any) -> bool:
            nonlocal size, tries
            if tries == MOST_TRIES:
                return False
            tries += 1
            smaller = {**size, name: value}
            if failed := fails(smaller):
                size = smaller
            return failed

        for name, choices in self.choices.items():
            if size[name] != choices[0]:
                try_with(name, choices[0])
        for name, (low, _) in self.ranges.items():
            if size[name] == low or try_with(name, low):
                continue
            passing = low
            while tries < MOST_TRIES and size[name] - passing > 1:
                middle = (passing + size[name]) // 2
                if not try_with(name, middle):
                    passing = middle
        return size


def edges(low: int, high: int) -> list[int]:
    """The ends of a range and the powers of two inside, each with its neighbors."""
    middles = [low, high, *(1 << power for power in range(high.bit_length()))]
    near = {middle + step for middle in middles for step in (-1, 0, 1)}
    return sorted(size for size in near if low <= size <= high)


def words(size: Drawn) -> str:
    """A drawn size in words, such as ``rows = 3, columns = 1,021, dtype = float16``."""
    return ", ".join(f"{name} = {value:,}" if type(value) is int else f"{name} = {value}"
                     for name, value in size.items())


def _spread(low: int, high: int, count: int, random: Random) -> list[int]:
    """Sizes at even distances, in random order; every other one at the edge of a tile nearby."""
    width = (high - low + 1) / count
    offset = random.random()
    places = [low + int((number + offset) * width) for number in range(count)]
    random.shuffle(places)
    tiles = [tile for tile in TILES if 4 * tile <= width]  # others would leave windows unmet
    for number in range(0, count if tiles else 0, 2):
        tile = random.choice(tiles)
        edge = round(places[number] / tile) * tile + random.choice((-1, 0, 1))
        places[number] = min(max(edge, low), high)
    return places
