"""All constructs, theme by theme."""

from __future__ import annotations

from . import (  # aggregates adds to the theme of functions
    aggregates,
    arguments,
    arithmetic,
    atomics,
    branches,
    calls,
    cooperation,
    debugging,
    descriptors,
    dot,
    dtypes,
    functions,
    integers,
    launching,
    library,
    library_bits,
    loop_forms,
    loops,
    many,
    mathematics,
    memory,
    pointers,
    python,
    randomness,
    rearranging,
    reductions,
    scans,
    shapes,
    tuning,
)
from .construct import Construct

THEMES = tuple(room.theme for room in (
    memory, pointers, integers, arithmetic, dtypes, mathematics, library, library_bits, randomness,
    shapes, rearranging, reductions, scans, dot, branches, loops, loop_forms, calls, functions,
    arguments, python, launching, tuning, debugging, descriptors, atomics, cooperation, many))
assert aggregates.theme is functions.theme
CONSTRUCTS: tuple[Construct, ...] = tuple(c for theme in THEMES for c in theme.constructs)
