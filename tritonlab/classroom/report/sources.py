"""The sources of a class's submissions, and what changed from one to the next."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tritonlab.classroom.store import Store
from tritonlab.course.course import EXERCISE
from tritonlab.errors import TritonlabError

MOST_LINES = 400  # of a diff
MOST_CHARACTERS = 200  # of a line
MOST_BYTES = 200_000  # of a file
_CONTEXT = 2  # lines around a change


@dataclass(frozen=True)
class Change:
    """A unified diff without its header, and the numbers of lines added and removed."""

    text: str
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
        lines = self.exercise(blob)
        return lines[number - 1].strip() if number <= len(lines) else ""

    def exercise(self, blob: str) -> list[str]:
        """The lines of the exercise file."""
        files = self.files(blob) or {}
        return files.get(EXERCISE) or next(iter(files.values()), [])

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


def difference(old: Sequence[str], new: Sequence[str]) -> list[str]:
    """A unified diff of two files without its header."""
    skipped = _common(old, new)  # difflib looks at each line
    shared = _common(old[:skipped:-1], new[:skipped:-1])
    ends = len(old) - max(0, shared - _CONTEXT), len(new) - max(0, shared - _CONTEXT)
    start = max(0, skipped - _CONTEXT)
    before, after = old[start:ends[0]], new[start:ends[1]]
    lines = []
    for group in difflib.SequenceMatcher(None, before, after).get_grouped_opcodes(_CONTEXT):
        first, last = group[0], group[-1]
        lines.append(f"@@ -{_range(start, first[1], last[2])} +{_range(start, first[3], last[4])} "
                     "@@")
        for kind, i, j, k, m in group:
            if kind == "equal":
                lines += [f" {line}" for line in before[i:j]]
            else:
                lines += [f"-{line}" for line in before[i:j]]
                lines += [f"+{line}" for line in after[k:m]]
    return lines


def _common(old: Sequence[str], new: Sequence[str]) -> int:
    """The number of equal lines at the beginning of two files."""
    return next((n for n, (one, other) in enumerate(zip(old, new, strict=False)) if one != other),
                min(len(old), len(new)))


def _range(start: int, first: int, last: int) -> str:
    """Lines of a file as a diff writes them, counted from 1."""
    count = last - first
    return str(start + first + 1) if count == 1 else f"{start + first + (count > 0)},{count}"


def _change(old: Mapping[str, list[str]], new: Mapping[str, list[str]]) -> Change:
    lines: list[str] = []
    for name in sorted({*old, *new}):
        before, after = old.get(name, []), new.get(name, [])
        if before == after:
            continue
        if len(new) > 1:
            lines.append(f"@@ {name}")
        lines += difference(before, after)
    signs = [line[0] for line in lines]
    added, removed = signs.count("+"), signs.count("-")
    return Change("\n".join(lines[:MOST_LINES]), added, removed, max(0, len(lines) - MOST_LINES))
