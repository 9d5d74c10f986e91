"""What was observed while a kernel ran, gathered into one finding for each place in the source."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from grader.report import Finding

_KEPT_PROGRAMS = 1 << 16  # more are counted as "at least" so many


@dataclass
class Tally:
    """One kind of event at one line on one tensor; ``lanes``, ``index``: of the first program."""

    program: int
    place: str  # the first program, in words
    lanes: int
    index: int
    extra: dict[str, str]
    programs: set[int] = field(default_factory=set)

    def more(self) -> str:
        """How many other programs did the same, as the end of a sentence."""
        others = len(self.programs) - 1
        if others <= 0:
            return ""
        return f"; {others} more {'program' if others == 1 else 'programs'} did so"


@dataclass(frozen=True)
class Note:
    """One event: the same at one place of the source, on one tensor, by one or more programs.

    ``program``, ``place``, ``lanes``, ``index`` and ``extra`` speak of the first of ``programs``.
    """

    code: str
    line: int | None
    tensor: str
    text: Callable[[Tally], str]
    program: int
    place: str
    lanes: int
    index: int
    extra: dict[str, str]
    programs: frozenset[int]


class Observations:
    """Collects events; the first program in numbering order is the one that is spoken of."""

    def __init__(self) -> None:
        self._tallies: dict[tuple[str, int | None, str, str], tuple[Tally, Callable[[Tally], str]]]
        self._tallies = {}
        self._plain: dict[tuple[str, int | None, str], Finding] = {}

    def note(self, note: Note) -> None:
        key = (note.code, note.line, note.tensor, note.text.__name__)
        if key not in self._tallies:
            self._tallies[key] = (
                Tally(note.program, note.place, 0, note.index, note.extra), note.text)
        tally, _ = self._tallies[key]
        if len(tally.programs) < _KEPT_PROGRAMS:
            tally.programs |= note.programs
        if note.program < tally.program:
            tally.program, tally.place, tally.lanes = note.program, note.place, 0
            tally.index, tally.extra = note.index, note.extra
        if note.program == tally.program:
            tally.lanes += note.lanes

    def add(self, finding: Finding) -> None:
        self._plain.setdefault((finding.code, finding.line, finding.seen), finding)

    def findings(self) -> list[Finding]:
        made = [
            Finding(code, text(tally), line=line)
            for (code, line, _, _), (tally, text) in self._tallies.items()
        ]
        return [*made, *self._plain.values()]


def elements(count: int) -> str:
    return f"{count} element" if count == 1 else f"{count} elements"
