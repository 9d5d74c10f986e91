"""Small turns of phrase that several rooms share."""

from __future__ import annotations

import re
from collections.abc import Sequence

NOT_WRITTEN = "This part is not written yet."
_GROUPED = re.compile(r"(?<=\d)[,_'\u2009\u202f ](?=\d{3}(?!\d))")


def sentence(text: str) -> str:
    """The text with a capital at the front, unless that is a path, and a full stop at the end."""
    text = text.strip()
    first = text[:1] if "/" in text.partition(" ")[0] else text[:1].upper()
    return first + text[1:] + ("" if text.endswith((".", "!", "?", "^")) else ".")


def ranges(numbers: Sequence[int]) -> str:
    """1, 2, 3, 7 as '1 to 3, 7'."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(
        f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs
    )


def mentions(message: str, word: str) -> bool:
    """Whether a message holds a word; digits of its numbers may stand in groups of three."""
    return word in message or word in _GROUPED.sub("", message)
