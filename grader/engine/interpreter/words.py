"""The sentences in which findings about memory are told."""

from __future__ import annotations

from collections.abc import Set

from grader.engine.interpreter.observed import Tally, elements

_WRAP = 1 << 32
_INT32_ELEMENTS = 1 << 31


def program(index: int, grid: tuple[int, int, int]) -> str:
    return f"program {number(index, grid)}"


def number(index: int, grid: tuple[int, int, int]) -> str:
    """``9`` in a 1-D grid, ``(1, 2)`` in a 2-D one; programs count along axis 0 first."""
    x, rest = index % grid[0], index // grid[0]
    y, z = rest % grid[1], rest // grid[1]
    if grid[2] > 1:
        return f"({x}, {y}, {z})"
    return f"({x}, {y})" if grid[1] > 1 else str(x)


def axes(asked: Set[int], grid: tuple[int, int, int]) -> str:
    """Why all programs work on the same place, where the axes that were asked for show it."""
    if not asked:
        return "; the kernel never asks for its program_id"
    if all(grid[axis] == 1 for axis in asked):
        named = " and ".join(str(axis) for axis in sorted(asked))
        word = "axis" if len(asked) == 1 else "axes"
        return f"; the kernel asks for program_id along {word} {named}, where the grid is 1"
    if any(size > 1 and axis not in asked for axis, size in enumerate(grid)):
        named = " and ".join(str(axis) for axis in sorted(asked))
        word = "axis" if len(asked) == 1 else "axes"
        sizes = grid if grid[2] > 1 else grid[:2]
        return f"; the grid is {sizes}, and the kernel asks for its place along {word} {named} only"
    return ""


def wrapped(index: int, size: int) -> bool:
    """Whether an index outside a tensor of ``size`` elements is a right one cut to 32 bits."""
    if 0 <= index % _WRAP < size and size > _INT32_ELEMENTS:
        return True
    return size >= _INT32_ELEMENTS and (index < 0 or index >= 2 * size)


# Each of these gets a tally and gives what was seen.


def past(tally: Tally) -> str:
    facts = tally.extra
    return (f"{tally.place} {facts['action']} {elements(tally.lanes)} past the end of "
            f"`{facts['tensor']}` (first index {tally.index} of {facts['elements']})"
            f"{tally.more()}")


def before(tally: Tally) -> str:
    facts = tally.extra
    return (f"{tally.place} {facts['action']} {elements(tally.lanes)} before the start of "
            f"`{facts['tensor']}` (first index {tally.index}){tally.more()}")


def overflowed(tally: Tally) -> str:
    facts = tally.extra
    return (f"{tally.place} {facts['action']} {elements(tally.lanes)} of `{facts['tensor']}` at "
            f"index {tally.index}, outside 0 to {int(facts['elements']) - 1}; an offset beyond "
            f"2147483647 does not fit 32 bits{tally.more()}")


def wild(tally: Tally) -> str:
    return (f"{tally.place} {tally.extra['action']} {elements(tally.lanes)} at an address that "
            f"belongs to no argument{tally.more()}")


def crooked(tally: Tally) -> str:
    return (f"{tally.place} {tally.extra['action']} {elements(tally.lanes)} of "
            f"`{tally.extra['tensor']}` at an address that is no multiple of the element's size"
            f"{tally.more()}")


def unwritten(tally: Tally) -> str:
    return (f"{tally.place} reads memory nobody wrote: {elements(tally.lanes)} of "
            f"`{tally.extra['tensor']}` (first index {tally.index}){tally.more()}")


def modified(tally: Tally) -> str:
    return (f"input `{tally.extra['tensor']}` was modified: {tally.place} stored "
            f"{elements(tally.lanes)} into it (first index {tally.index}){tally.more()}")


def twice(tally: Tally) -> str:
    facts = tally.extra
    count = len(tally.programs)
    more = f"; {count} programs stored over another program's elements" if count > 1 else ""
    return (f"programs {facts['other']} both stored element {tally.index} of `{facts['tensor']}`"
            f"{more}{facts['axis']}")


def lanes_clash(tally: Tally) -> str:
    facts = tally.extra
    return (f"two lanes of {tally.place} stored different values to element {tally.index} of "
            f"`{facts['tensor']}`{tally.more()}")


def overwritten(tally: Tally) -> str:
    facts = tally.extra
    return (f"{tally.place} {facts['action']} {elements(tally.lanes)} of `{facts['tensor']}` that "
            f"{facts['other']} loaded in the same launch (first index {tally.index})"
            f"{tally.more()}")


def unordered(tally: Tally) -> str:
    facts = tally.extra
    return (f"{tally.place} stored {elements(tally.lanes)} of `{facts['tensor']}` that "
            f"{facts['other']} changes by an atomic in the same launch (first index {tally.index})"
            f"{tally.more()}")


def early(tally: Tally) -> str:
    facts = tally.extra
    return (f"{tally.place} loaded {elements(tally.lanes)} of `{facts['tensor']}` that "
            f"{facts['other']} changes by an atomic in the same launch (first index {tally.index})"
            f"{tally.more()}")


def unseen(tally: Tally) -> str:
    facts = tally.extra
    return (f"{tally.place} {facts['action']} {elements(tally.lanes)} of `{facts['tensor']}` that "
            f"it {facts['before']} itself, without a barrier in between (first index "
            f"{tally.index}){tally.more()}")


def race(tally: Tally) -> str:
    facts = tally.extra
    return (f"{tally.place} {facts['action']} {elements(tally.lanes)} of `{facts['tensor']}` that "
            f"{facts['other']} stored in the same launch (first index {tally.index})"
            f"{tally.more()}")
