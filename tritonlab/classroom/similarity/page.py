"""The page of similar submissions: evidence, and both sources side by side."""

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from tritonlab.classroom.similarity.compare import Similarity

MOST_PAIRS = 50
_MOST_LINES = 3_000  # of one source
_CONTEXT = 2  # lines around marked ones that are not folded
_Ranges = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Listing:
    """Consecutive lines of a source: (number, parts), each part marked or not; maybe folded."""

    lines: tuple[tuple[int, tuple[tuple[bool, str], ...]], ...]
    folded: bool


def page(similarity: Similarity, sources: Mapping[str, str], title: str, *,
         label: Callable[[str], str] = str, masked: Callable[[str], str] = str,
         most: int = MOST_PAIRS) -> str:
    """Returns a page that needs no other file.

    Args:
        sources: of the compared submissions, by student.
        title: of the assignment.
        label: the name under which a student is shown.
        masked: a text as it is shown, for instance without names.
        most: pairs whose sources are shown.
    """
    def side(student: str, marks: _Ranges, lines: _Ranges) -> list[Listing]:
        return [*_listings(sources[student], marks, lines, masked)]

    pairs = [(one, [side(*each) for each in zip(one.students, one.marks, one.lines, strict=True)])
             for one in similarity.pairs[:most]]
    return _templates().get_template("similar.html").render(
        title=title, similarity=similarity, pairs=pairs, label=label, masked=masked)


def _listings(text: str, marks: _Ranges, lines: _Ranges,
              masked: Callable[[str], str]) -> Iterator[Listing]:
    """Splits a source into runs of lines: those with marks and their context, and folded ones."""
    near = {number for first, last in lines
            for number in range(first - _CONTEXT, last + _CONTEXT + 1)}
    rows: list[tuple[int, tuple[tuple[bool, str], ...]]] = []
    start, folded = 0, False
    for number, line in enumerate(text.split("\n")[:_MOST_LINES], 1):
        if rows and folded == (number in near):
            yield Listing(tuple(rows), folded)
            rows = []
        folded = number not in near
        rows.append((number, tuple((marked, masked(part.expandtabs(4).replace("\0", "\ufffd")))
                                   for marked, part in _parts(line, start, marks))))
        start += len(line) + 1
    if rows:
        yield Listing(tuple(rows), folded)


def _parts(line: str, start: int, marks: _Ranges) -> Iterator[tuple[bool, str]]:
    """Splits a line that begins at a character of the source into marked and other parts."""
    done = 0
    for first, last in marks:
        left, right = max(first - start, done), min(last - start, len(line))
        if left < right:
            if done < left:
                yield False, line[done:left]
            yield True, line[left:right]
            done = right
    if done < len(line):
        yield False, line[done:]


@functools.cache
def _templates() -> Environment:
    loader = ChoiceLoader([PackageLoader("tritonlab.classroom.similarity"),
                           PackageLoader("tritonlab.classroom.report")])
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined,
                       trim_blocks=True, lstrip_blocks=True)
