"""Syntax highlighting: the lines of a Python file as spans."""

from __future__ import annotations

import io
import keyword
import tokenize
from collections.abc import Iterator

_KINDS = {tokenize.COMMENT: "comment", tokenize.STRING: "string"}
_FSTRINGS = tuple(getattr(tokenize, name) for name in (
    "FSTRING_START", "FSTRING_MIDDLE", "FSTRING_END") if hasattr(tokenize, name))  # Python 3.12


def parts(text: str) -> dict[int, list[tuple[str, str]]]:
    """Spans (kind, text) by line number; the kind is empty for plain code."""
    lines = text.split("\n")
    marked: dict[int, list[tuple[int, int, str]]] = {}
    try:
        for kind, (row, start), (last, end) in _marks(text):
            for number in range(row, last + 1):
                marked.setdefault(number, []).append((
                    start if number == row else 0,
                    end if number == last else len(lines[number - 1]), kind))
    except (tokenize.TokenError, SyntaxError):  # what is odd is shown as it stands
        marked = {}
    return {number: list(_split(lines[number - 1], marks)) for number, marks in marked.items()}


def _marks(text: str) -> Iterator[tuple[str, tuple[int, int], tuple[int, int]]]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        kind = _KINDS.get(token.type, "")
        if token.type in _FSTRINGS:
            kind = "string"
        if token.type == tokenize.NAME and keyword.iskeyword(token.string):
            kind = "keyword"
        if kind:
            yield kind, token.start, token.end


def _split(line: str, marks: list[tuple[int, int, str]]) -> Iterator[tuple[str, str]]:
    done = 0
    for start, end, kind in marks:
        if start > done:
            yield "", line[done:start]
        yield kind, line[start:end]
        done = end
    if done < len(line):
        yield "", line[done:]
