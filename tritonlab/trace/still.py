"""A still of a launch as SVG: which elements one program touches, and which the others do."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grader.recording.trace import Group, TracedAccess

_WIDTH, _ROOM = 460, 240  # pixels of a drawn tensor at most, along and down
_MOST_CELL, _GAP, _MARGIN, _LABEL = 18, 26, 12, 18  # pixels
_FONT = "ui-sans-serif, system-ui, sans-serif"
# Okabe and Ito's colors, which people tell apart whatever their sight; each has a word beside it.
_LOADED, _STORED, _BOTH = "#56B4E9", "#E69F00", "#009E73"
_OTHERS = ("#C9CED6", "#E3E6EB")  # other programs, in turn, so that their borders show
_EMPTY, _LINE = "#FFFFFF", "#6B7280"
_LEAST_GRID = 5  # pixels of a cell that gets a border


@dataclass(frozen=True)
class StillTensor:
    """A tensor of a still: its shape, and the strides of its elements."""

    name: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]


def svg(tensors: Sequence[StillTensor], groups: Sequence[Group], numbers: Any, program: int,
        title: str) -> str:
    """Draws the tensors of a launch below each other.

    Args:
        groups: of all programs of the launch.
        numbers: gives the values of an array of the trace by its number.
        program: whose accesses are colored.
        title: of the picture, for readers that do not see it.
    """
    parts, top, colors = [], float(_MARGIN), set()
    for number, tensor in enumerate(tensors):
        states = _states(tensor, groups, numbers, number, program)
        rows = states.reshape(-1, states.shape[-1]) if states.ndim else states.reshape(1, 1)
        cell = min(_MOST_CELL, _WIDTH / max(rows.shape[1], 1), _ROOM / max(rows.shape[0], 1))
        high = max(cell, 6.0) if rows.shape[0] == 1 else cell
        parts.append(f'<text x="{_MARGIN}" y="{top + 12:g}">{escape(_described(tensor))}</text>')
        top += _LABEL
        for at, row in enumerate(rows):
            parts += _row(row, _MARGIN, top + at * high, cell, high)
        wide = cell * rows.shape[1]
        parts.append(f'<rect x="{_MARGIN}" y="{top:g}" width="{wide:g}" '
                     f'height="{high * len(rows):g}" fill="none" stroke="{_LINE}"/>')
        if cell >= _LEAST_GRID:
            parts += _grid(_MARGIN, top, cell, high, rows.shape)
        colors |= {*np.unique(rows).tolist()}
        top += high * len(rows) + _GAP
    left = float(_MARGIN)
    for state, color, word in (("l", _LOADED, "loads"), ("s", _STORED, "stores"),
                               ("b", _BOTH, "loads and stores"), ("0", _OTHERS[0], "")):
        if state in colors or (state == "0" and "1" in colors):
            words = f"program {program} {word}" if word else "other programs"
            parts.append(f'<rect x="{left:g}" y="{top - 4:g}" width="12" height="12" '
                         f'fill="{color}" stroke="{_LINE}"/><text x="{left + 18:g}" '
                         f'y="{top + 6:g}">{words}</text>')
            left += 30 + 7 * len(words)
    wide = max(_WIDTH + 2 * _MARGIN, int(left))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {top + 18:g}" '
            f'width="{wide}" role="img" aria-label="{escape(title, quote=True)}" '
            f'font-family="{_FONT}" font-size="13" fill="currentColor">'
            f'<title>{escape(title)}</title>{"".join(parts)}</svg>\n')


def described(tensors: Sequence[StillTensor], groups: Sequence[Group], numbers: Any,
              program: int, programs: int) -> str:
    """The picture in one sentence."""
    done: dict[str, list[str]] = {"loads": [], "stores": []}
    for number, tensor in enumerate(tensors):
        states = _states(tensor, groups, numbers, number, program)
        for verb, marks in (("loads", "lb"), ("stores", "sb")):
            if count := int(np.isin(states, [*marks]).sum()):
                done[verb].append(f"{count:,} of {states.size:,} elements of {tensor.name}")
    clauses = [f"{verb} {' and '.join(places)}" for verb, places in done.items() if places]
    return f"Program {program} of {programs:,} {' and '.join(clauses)}."


def _described(tensor: StillTensor) -> str:
    return f"{tensor.name}  [{', '.join(map(str, tensor.shape))}]"


def _states(tensor: StillTensor, groups: Sequence[Group], numbers: Any, number: int,
            program: int) -> NDArray[np.str_]:
    """For each element: l, s or b (loaded, stored, both), 0 or 1 (others), or nothing."""
    size = int(np.prod(tensor.shape, dtype=np.int64))
    extent = 1 + sum((n - 1) * step for n, step in zip(tensor.shape, tensor.stride, strict=True))
    states = np.full(extent if size else 0, "", "<U1")
    own: dict[str, set[int]] = {"load": set(), "store": set()}
    for group in groups:
        for step in group.steps:
            for access in step.accesses:
                if access.tensor != number:
                    continue
                for row, one in enumerate(group.programs):
                    offsets = _offsets(access, row, numbers)
                    offsets = offsets[(offsets >= 0) & (offsets < extent)]
                    if one == program:
                        kinds = ("load", "store") if access.kind == "atomic" else (access.kind,)
                        for kind in kinds:
                            own[kind] |= {*offsets.tolist()}
                    else:
                        states[offsets] = str(one % 2)
    for mark, places in (("l", own["load"] - own["store"]), ("s", own["store"] - own["load"]),
                         ("b", own["load"] & own["store"])):
        states[[*places]] = mark
    return np.lib.stride_tricks.as_strided(
        states, tensor.shape, [step * states.itemsize for step in tensor.stride])


def _offsets(access: TracedAccess, row: int, numbers: Any) -> NDArray[Any]:
    offsets = numbers(access.offset)
    offsets = offsets[row if len(offsets) > 1 else 0]
    if access.mask is None:
        return np.asarray(offsets).reshape(-1)
    mask = numbers(access.mask)
    mask = mask[row if len(mask) > 1 else 0]
    offsets, mask = np.broadcast_arrays(offsets, mask)
    return np.asarray(offsets[mask != 0]).reshape(-1)


def _row(row: NDArray[np.str_], left: float, top: float, cell: float, high: float) -> list[str]:
    """Rectangles of the runs of equal elements."""
    fills: Mapping[str, str] = {"l": _LOADED, "s": _STORED, "b": _BOTH, "0": _OTHERS[0],
                                "1": _OTHERS[1]}
    starts = [0, *(np.flatnonzero(row[1:] != row[:-1]) + 1).tolist(), len(row)]
    return [f'<rect x="{left + a * cell:.4g}" y="{top:.4g}" width="{(b - a) * cell:.4g}" '
            f'height="{high:.4g}" fill="{fills.get(str(row[a]), _EMPTY)}"/>'
            for a, b in itertools.pairwise(starts) if b > a]


def _grid(left: float, top: float, cell: float, high: float,
          shape: tuple[int, ...]) -> list[str]:
    rows, columns = shape
    down = [f"M{left + n * cell:.4g} {top:.4g}v{rows * high:.4g}" for n in range(1, columns)]
    along = [f"M{left:.4g} {top + n * high:.4g}h{columns * cell:.4g}" for n in range(1, rows)]
    return [f'<path d="{"".join((*down, *along))}" stroke="{_LINE}" stroke-width="0.5"/>']
