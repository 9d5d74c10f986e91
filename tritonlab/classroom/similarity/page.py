"""The page of similar submissions: evidence, and both sources side by side."""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from tritonlab.classroom.similarity.compare import Pair, Similarity

MOST_PAIRS = 50
_MOST_LINES = 3_000  # of one source
_CONTEXT = 2  # lines around marked ones that are not folded
_Ranges = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Listing:
    """Consecutive lines of a source: (number, parts), each part marked or not; maybe folded."""

    lines: tuple[tuple[int, tuple[tuple[bool, str], ...]], ...]
    folded: bool


@dataclass(frozen=True)
class ModulePage:
    """One module on the page; ``sources`` are those of the compared submissions, by student."""

    module: str
    similarity: Similarity
    sources: Mapping[str, str]
    notes: tuple[str, ...] = ()

    @property
    def pairs(self) -> list[tuple[Pair, list[list[Listing]]]]:
        """The pairs whose sources are shown, each with its two sides."""
        return [(one, [[*_listings(self.sources[student], marks, lines)] for student, marks, lines
                       in zip(one.students, one.marks, one.lines, strict=True)])
                for one in self.similarity.pairs[:MOST_PAIRS]]


def page(title: str, modules: Sequence[ModulePage], label: Callable[[str], str] = str) -> str:
    """Returns a page that needs no other file.

    Args:
        title: of the assignment.
        label: the name under which a student is shown.
    """
    return _templates().get_template("similar.html").render(
        title=title, modules=modules, label=label)


def _listings(text: str, marks: _Ranges, lines: _Ranges) -> Iterator[Listing]:
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
        rows.append((number, tuple((marked, part.expandtabs(4).replace("\0", "\ufffd"))
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
