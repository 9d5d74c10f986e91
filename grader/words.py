"""Small turns of phrase that several rooms share."""

from __future__ import annotations

from collections.abc import Sequence


def sentence(text: str) -> str:
    """The text with a capital at the front and a full stop at the end."""
    text = text.strip()
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?", "^")) else ".")


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
