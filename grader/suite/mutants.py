"""Wrong versions of a solution, and what a failure like theirs usually means."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from grader.finding import Sign

KERNEL = "kernel.py"


@dataclass(frozen=True)
class Patch:
    """A text that occurs exactly once in ``file``, and what takes its place."""

    find: str
    replace: str
    file: str = KERNEL


@dataclass(frozen=True)
class Mutant:
    """A wrong version of the solution.

    ``codes`` are the findings that it must get, the first of them first. ``meaning`` is what such a
    failure usually means, in the words of this module; ``todos`` are the blanks to look at.
    Three marks tell a learner's failure from others with the same code: what ``sign`` asks of the
    finding's data (``grader.finding.matches``), cases that this mistake gets ``wrong``, and cases
    that it gets ``right``. Where a suite has several functions, it explains failures of those only
    whose cases it gets wrong.
    """

    id: str
    title: str
    patches: tuple[Patch, ...]
    codes: tuple[str, ...]
    meaning: str
    todos: tuple[int, ...] = ()
    sign: Sign = field(default_factory=dict)
    wrong: tuple[str, ...] = ()
    right: tuple[str, ...] = ()

    def apply(self, solution: str) -> str:
        """The mutant's source, for a solution of one file.

        Raises:
            ValueError: a text to replace does not occur exactly once in the solution.
        """
        return self.apply_to({KERNEL: solution})[KERNEL]

    def apply_to(self, solution: Mapping[str, str]) -> dict[str, str]:
        """All files of the mutant, from those of the solution by their paths.

        Raises:
            ValueError: a text to replace does not occur exactly once in its file.
        """
        files = dict(solution)
        for patch in self.patches:
            count = files.get(patch.file, "").count(patch.find)
            if count != 1:
                raise ValueError(f"mutant {self.id}: the text to replace occurs {count} times in "
                                 f"{patch.file}, not once: {patch.find!r}")
            files[patch.file] = files[patch.file].replace(patch.find, patch.replace)
        return files


def read_mutants(path: Path) -> tuple[Mutant, ...]:
    """Reads ``mutants.toml``; a missing file means no mutants."""
    if not path.exists():
        return ()
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    return tuple(_mutant(**entry) for entry in data.get("mutant", ()))


def _mutant(patch: Sequence[Mapping[str, str]], sign: Any = None, **entry: Any) -> Mutant:
    """An entry of the file. A sign is a table, or a pattern for plain text."""
    if isinstance(sign, str):
        sign = {"text": {"pattern": sign}}
    values: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value
                              for key, value in entry.items()}
    return Mutant(patches=tuple(Patch(**one) for one in patch), sign=sign or {}, **values)
