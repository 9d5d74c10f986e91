"""Small turns of phrase that several rooms share."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence

_PLAIN = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*[,;.]?")  # a word of English, and no name of code
_GROUPED = re.compile(r"(?<=\d)[,_'\u2009\u202f ](?=\d{3}(?!\d))")


def sentence(text: str) -> str:
    """The text with a capital at the front and a full stop at the end.

    What is written in one way only keeps its first letter: a path, a name of code and its call.
    """
    text = text.strip()
    first = text[:1].upper() if _PLAIN.fullmatch(text.partition(" ")[0]) else text[:1]
    return first + text[1:] + ("" if text.endswith((".", "!", "?", "^")) else ".")


def ranges(numbers: Sequence[int]) -> str:
    """1, 2, 3, 7 as '1 to 3, 7'."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(map(str, run))
                     for run in runs)


def joined(words: Iterable[str], last: str = "and") -> str:
    """Words as 'a', 'a and b' or 'a, b and c'."""
    *most, end = words
    return f"{', '.join(most)} {last} {end}" if most else end


def plural(number: int, word: str) -> str:
    """A number with its noun: '1 case', '1,200 cases'."""
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"


def program(index: int, grid: tuple[int, int, int]) -> str:
    """``program 9`` in a 1-D grid, ``program (1, 2)`` in a 2-D one."""
    return f"program {program_number(index, grid)}"


def program_number(index: int, grid: tuple[int, int, int]) -> str:
    """The place of a program in its grid; programs count along axis 0 first."""
    x, rest = index % grid[0], index // grid[0]
    y, z = rest % grid[1], rest // grid[1]
    if grid[2] > 1:
        return f"({x}, {y}, {z})"
    return f"({x}, {y})" if grid[1] > 1 else str(x)


def mentions(message: str, word: str) -> bool:
    """Whether a message holds a word; digits of its numbers may stand in groups of three."""
    return word in message or word in _GROUPED.sub("", message)


def toml_value(value: object) -> str:
    """A value as TOML on one line."""
    if isinstance(value, Mapping):
        pairs = ", ".join(f"{toml_value(str(key))} = {toml_value(one)}"
                          for key, one in value.items())
        return f"{{ {pairs} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_value, value))}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def toml_line(text: str, *path: str | int) -> int:
    """The line of a key in a TOML file; otherwise that of the table around it, from 1 on.

    ``path``: keys, and a number behind each list of tables, such as ``"mutant", 2, "codes"``.
    """
    lines = text.splitlines()
    start, stop, table = 0, len(lines), ""
    for number, step in enumerate(path):
        if isinstance(step, int):
            continue
        table = f"{table}.{step}".lstrip(".")
        header = re.compile(rf'\s*\[+\s*"?{re.escape(table)}"?\s*\]+')
        key = re.compile(rf'\s*"?{re.escape(step)}"?\s*=')
        following = path[number + 1] if number + 1 < len(path) else None
        headers = [place for place in range(start, stop) if header.match(lines[place])]
        if isinstance(following, int) and following < len(headers):
            start = headers[following]
            stop = headers[following + 1] if following + 1 < len(headers) else stop
        else:
            start = next((place for place in range(start, stop)
                          if key.match(lines[place]) or header.match(lines[place])), start)
    return start + 1
