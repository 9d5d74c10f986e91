"""Line information of PTX: moves `.loc` directives to the lines that a reader expects."""

from __future__ import annotations

import re
from pathlib import PurePath

_ASSEMBLY = re.compile(r"// begin inline asm\n.*?// end inline asm", re.DOTALL)
_LOCATION = re.compile(r"^[ \t]*\.loc\b.*$", re.MULTILINE)
_PARTS = re.compile(r"^[ \t]*\.loc[ \t]+(\d+) (\d+) (\d+)(.*)$", re.MULTILINE)
_FILE = re.compile(r'^[ \t]*\.file[ \t]+(\d+) "([^"\n]+)"', re.MULTILINE)
_FRAME = re.compile(r"([^\s\[\]:]+):(\d+):(\d+)")


def repaired(ptx: str) -> str:
    """Gives every instruction of a block of inline assembly the location of its first.

    Triton 3.8 and 3.9 write a masked load as several lines of assembly, and LLVM takes each of
    them for one line of the source: the load itself is reported some lines below where it is.
    Nothing else is changed, so that assembling the result again gives the same instructions.
    """
    return _ASSEMBLY.sub(_with_one_location, ptx)


def _with_one_location(block: re.Match[str]) -> str:
    first = _LOCATION.search(block[0])
    return _LOCATION.sub(lambda _: first[0], block[0]) if first else block[0]


def own_file(ptx: str) -> str:
    """The name of the kernel's file: that of the first location; empty without one."""
    paths = dict(_FILE.findall(ptx))
    return PurePath(paths.get(_own_number(ptx), "")).name


def attributed_to_callers(ptx: str) -> str:
    """Moves locations in library helpers to the line of the kernel's file that calls them.

    Triton 3.6 and 3.7 name the caller of a helper only in a comment, which the assembler drops:
    ``.loc 2 293 36 // standard.py:293:36 @[ kernel.py:26:35 ]``. Later versions pass it to the
    assembler, and their PTX is returned as it is.
    """
    number, name = _own_number(ptx), own_file(ptx)

    def moved(location: re.Match[str]) -> str:
        if location[1] == number or "@[" not in location[4]:
            return location[0]
        for file, line, column in _FRAME.findall(location[4]):
            if file == name:
                return f"\t.loc\t{number} {line} {column}"
        return location[0]

    return _PARTS.sub(moved, ptx)


def _own_number(ptx: str) -> str:
    first = _PARTS.search(ptx)
    return first[1] if first else ""
