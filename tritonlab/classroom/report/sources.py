"""The sources of a class's submissions, and what changed from one to the next."""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass

from tritonlab.classroom.store import Store
from tritonlab.course.course import EXERCISE
from tritonlab.errors import TritonlabError

MOST_LINES = 400  # of a diff
MOST_CHARACTERS = 200  # of a line
MOST_BYTES = 200_000  # of a file


@dataclass(frozen=True)
class Change:
    """A unified diff without its header, and the numbers of lines added and removed."""

    lines: tuple[str, ...]
    added: int
    removed: int
    left_out: int = 0


class Sources:
    """Decoded submissions; each is read once."""

    def __init__(self, store: Store, starters: Mapping[str, str]) -> None:
        self._store = store
        self._starters = starters
        self._files: dict[str, dict[str, list[str]] | None] = {}
        self._changes: dict[tuple[str, str], Change | None] = {}

    def files(self, blob: str) -> dict[str, list[str]] | None:
        """The lines of a submission's files by name; None if it is missing or damaged."""
        if blob not in self._files:
            try:
                files = self._store.files(blob)
            except TritonlabError:
                self._files[blob] = None
            else:
                self._files[blob] = {name: _lines(files[name]) for name in sorted(files)}
        return self._files[blob]

    def line(self, blob: str, number: int) -> str:
        """A line of the exercise file, without indentation."""
        files = self.files(blob) or {}
        lines = files.get(EXERCISE) or next(iter(files.values()), [])
        return lines[number - 1].strip() if number <= len(lines) else ""

    def change(self, module: str, before: str, blob: str) -> Change | None:
        """Returns what changed since the blob ``before``, or since the file as handed out."""
        key = (before or module, blob)
        if key not in self._changes:
            new = self.files(blob)
            old = self.files(before) if before else \
                {EXERCISE: self._starters.get(module, "").splitlines()}
            self._changes[key] = None if new is None else _change(old or {}, new)
        return self._changes[key]


def _lines(content: bytes) -> list[str]:
    text = content[:MOST_BYTES].decode("utf-8", "replace").replace("\0", "\ufffd")
    return [line[:MOST_CHARACTERS] for line in text.expandtabs(4).splitlines()]


def _change(old: Mapping[str, list[str]], new: Mapping[str, list[str]]) -> Change:
    lines: list[str] = []
    for name in sorted({*old, *new}):
        before, after = old.get(name, []), new.get(name, [])
        if before == after:
            continue
        if len(new) > 1:
            lines.append(f"@@ {name}")
        lines += [*difflib.unified_diff(before, after, lineterm="", n=2)][2:]
    added, removed = (sum(line.startswith(sign) for line in lines) for sign in "+-")
    return Change(tuple(lines[:MOST_LINES]), added, removed, max(0, len(lines) - MOST_LINES))
