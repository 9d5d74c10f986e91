"""Line repair: gives the loads and stores in PTX the line on which they stand in the source.

Triton writes a masked access as inline assembly of several lines. From 3.8 on, LLVM numbers these
lines as if each were one of the source: the first has the right number, the next is one line
further down, and the access itself, which comes last, seems to stand several lines below.
"""

from __future__ import annotations

_BEGIN = "// begin inline asm"
_END = "// end inline asm"


def repaired(ptx: str) -> str:
    """The same PTX, with the first line number of each inline assembly in place of its others.

    Nothing but ``.loc`` directives changes, so an assembler makes the same code of it. PTX whose
    numbers are right, as that of Triton 3.6 and 3.7, is returned as it is.
    """
    if _BEGIN not in ptx:
        return ptx
    inside, first = False, None
    lines = ptx.split("\n")
    for number, line in enumerate(lines):
        text = line.strip()
        if text == _BEGIN:
            inside, first = True, None
        elif text == _END:
            inside = False
        elif inside and text.startswith(".loc"):
            if first is None:
                first = line
            else:
                lines[number] = first
    return "\n".join(lines)
