"""What was observed while a kernel ran, gathered into one finding for each place in the source."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from grader.finding import MemoryAccess
from grader.report import Finding

_KEPT_PROGRAMS = 1 << 16  # more are counted as "at least" so many


@dataclass(frozen=True)
class Note:
    """One event: the same at one place of the source, on one tensor, by one or more programs.

    ``access`` is that of the first of ``programs``.
    """

    code: str
    line: int | None
    access: MemoryAccess
    programs: frozenset[int]


class Observations:
    """Collects events; of several programs, the access of the first in numbering order stays."""

    def __init__(self) -> None:
        self._accesses: dict[tuple[str, int | None, str, str], tuple[MemoryAccess, set[int]]] = {}
        self._plain: dict[tuple[str, int | None, str], Finding] = {}

    def note(self, note: Note) -> None:
        key = (note.code, note.line, note.access.tensor, note.access.kind)
        if key not in self._accesses:
            self._accesses[key] = (note.access, set(note.programs))
            return
        access, programs = self._accesses[key]
        if len(programs) < _KEPT_PROGRAMS:
            programs |= note.programs
        if note.access.program < access.program:
            access = note.access
        elif note.access.program == access.program:
            access = msgspec.structs.replace(access, count=access.count + note.access.count)
        self._accesses[key] = (access, programs)

    def add(self, finding: Finding) -> None:
        self._plain.setdefault((finding.code, finding.line, finding.seen), finding)

    def findings(self) -> list[Finding]:
        accesses = [
            Finding(code, msgspec.structs.replace(access, others=len(programs) - 1), line=line)
            for (code, line, _, _), (access, programs) in self._accesses.items()
        ]
        return [*accesses, *self._plain.values()]
