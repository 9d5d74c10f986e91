"""The table of defects: what is wrong, where, and which tests to try first."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

TABLE = Path(__file__).with_name("defects.toml")


@dataclass(frozen=True)
class Defect:
    """One deliberate defect: ``old`` is replaced by ``new`` in one file of the grader.

    ``nearest`` are test files, or tests in them, that are tried first.
    """

    id: str
    file: str
    old: str
    new: str
    why: str
    nearest: tuple[str, ...] = ()

    @property
    def room(self) -> str:
        """The package of the file, as a folder such as ``engine/interpreter``."""
        parts = Path(self.file).parts[1:-1]
        return "/".join(parts[:2] if parts[0] == "engine" else parts[:1])

    def planted(self, text: str) -> str:
        """The text of the file with the defect.

        Raises:
            ValueError: ``old`` is not there exactly once.
        """
        if (count := text.count(self.old)) != 1:
            raise ValueError(f"{self.id}: the old text stands {count} times in {self.file}")
        return text.replace(self.old, self.new)


def load() -> list[Defect]:
    """All defects, in the order of the table."""
    rows = tomllib.loads(TABLE.read_text(encoding="utf-8"))["defect"]
    return [Defect(**row | {"nearest": tuple(row.get("nearest", ()))}) for row in rows]
