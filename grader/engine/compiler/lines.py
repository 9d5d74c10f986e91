"""Line numbers of PTX, put right where the compiler counts on through inline assembly."""

from __future__ import annotations

import re

_ASSEMBLY = re.compile(r"// begin inline asm\n.*?// end inline asm", re.DOTALL)
_LOCATION = re.compile(r"^[ \t]*\.loc\b.*$", re.MULTILINE)


def repaired(ptx: str) -> str:
    """Give every instruction of a block of inline assembly the location of its first.

    Triton 3.8 and 3.9 write a masked load as several lines of assembly, and LLVM takes each of
    them for one line of the source: the load itself is reported some lines below where it is.
    Nothing else is changed, so that assembling the result again gives the same instructions.
    """
    return _ASSEMBLY.sub(_with_one_location, ptx)


def _with_one_location(block: re.Match[str]) -> str:
    first = _LOCATION.search(block[0])
    if first is None:
        return block[0]
    location = first[0]
    return _LOCATION.sub(lambda _: location, block[0])
