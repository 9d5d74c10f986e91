"""Callers: puts what a helper of a library does on the line of the kernel's file that calls it."""

from __future__ import annotations

import re
from pathlib import PurePath

_LOCATION = re.compile(r"^[ \t]*\.loc[ \t]+(\d+) (\d+) (\d+)(.*)$", re.MULTILINE)
_FILE = re.compile(r'^[ \t]*\.file[ \t]+(\d+) "([^"\n]+)"', re.MULTILINE)
_FRAME = re.compile(r"([^\s\[\]:]+):(\d+):(\d+)")


def own_file(ptx: str) -> str:
    """The name of the file that the kernel stands in: that of its first location; else empty."""
    number = _own_number(ptx)
    paths = dict(_FILE.findall(ptx))
    return PurePath(paths.get(number, "")).name


def called(ptx: str) -> str:
    """The same PTX, in which no location lies in another file if its comment names a caller.

    Triton 3.6 and 3.7 tell who called a helper only in a comment, which the assembler drops:
    ``.loc 2 293 36 // standard.py:293:36 @[ kernel.py:26:35 ]``. Later versions tell the assembler,
    and their PTX is returned as it is.
    """
    number, name = _own_number(ptx), own_file(ptx)

    def moved(location: re.Match[str]) -> str:
        if location[1] == number or "@[" not in location[4]:
            return location[0]
        for file, line, column in _FRAME.findall(location[4]):
            if file == name:
                return f"\t.loc\t{number} {line} {column}"
        return location[0]

    return _LOCATION.sub(moved, ptx)


def _own_number(ptx: str) -> str:
    first = _LOCATION.search(ptx)
    return first[1] if first else ""
