"""Wrong versions of a solution, and what a failure like theirs usually means."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from grader.finding import Sign
from grader.suite.mistakes import REFERENCE, SuiteMistake, nearest, place
from grader.text import toml_line

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
                                 f"{patch.file} of the solution, not once: {patch.find!r}.")
            files[patch.file] = files[patch.file].replace(patch.find, patch.replace)
        return files


_TEXTS = ("id", "title", "meaning")
_LISTS = {"codes": str, "todos": int, "wrong": str, "right": str}
_KEYS = (*_TEXTS, *_LISTS, "sign", "patch")
_NEEDED = (*_TEXTS, "codes", "patch")
_EXAMPLES = {
    "id": 'id = "a"', "title": 'title = "the mask is missing"', "meaning": 'meaning = "…"',
    "codes": 'codes = ["M01"]', "todos": "todos = [2]", "wrong": 'wrong = ["4 x 127"]',
    "right": 'right = ["4 x 128"]', "patch": "[[mutant.patch]] with find and replace below it"}


def read_toml(path: Path) -> dict[str, Any]:
    """Reads a TOML file of a suite.

    Raises:
        FileNotFoundError: there is none.
        SuiteMistake: it is not TOML.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        cause, _, line = str(error).partition(" (at line ")
        number = line.partition(",")[0]
        raise SuiteMistake(f"This is not TOML: {cause}.", "Correct the syntax.",
                           place(path, int(number) if number.isdigit() else None)) from error


def read_mutants(path: Path) -> tuple[Mutant, ...]:
    """Reads ``mutants.toml``; a missing file means no mutants.

    Raises:
        SuiteMistake: a key is unknown or missing, or has another type than it can have.
    """
    try:
        data = read_toml(path)
    except FileNotFoundError:
        return ()
    text = path.read_text(encoding="utf-8")
    for key in data:
        if key != "mutant":
            raise SuiteMistake(f"'{key}' is not a table of this file.{nearest(key, ['mutant'])}",
                               "Begin each mutant with [[mutant]].",
                               place(path, toml_line(text, key)))
    if not isinstance(data.get("mutant", []), list):
        raise SuiteMistake("`mutant` is one table.", "Begin each mutant with [[mutant]].",
                           place(path, toml_line(text, "mutant")))
    return tuple(_mutant(path, text, number, entry)
                 for number, entry in enumerate(data.get("mutant", [])))


def _mutant(path: Path, text: str, number: int, entry: Mapping[str, Any]) -> Mutant:
    """An entry of the file. A sign is a table, or a pattern for plain text."""
    head = f"mutant {entry.get('id', number + 1)}"

    def mistake(cause: str, cure: str, *keys: str | int) -> SuiteMistake:
        return SuiteMistake(f"{head}: {cause}", cure,
                            place(path, toml_line(text, "mutant", number, *keys)))

    def needs(table: Mapping[str, Any], keys: Sequence[str], *inside: str | int) -> None:
        for key in table:
            if key not in keys:
                raise mistake(f"'{key}' is not a key.{nearest(key, keys)}",
                              f"{REFERENCE} lists all keys.", *inside, key)

    needs(entry, _KEYS)
    for key in _NEEDED:
        if key not in entry:
            raise mistake(f"'{key}' is missing.", f"Add {_EXAMPLES[key]}.")
    for key in _TEXTS:
        if not isinstance(entry[key], str):
            raise mistake(f"'{key}' is not a text.", f"Write {_EXAMPLES[key]}.", key)
    for key, kind in _LISTS.items():
        value = entry.get(key, [])
        if not isinstance(value, list) or not all(type(one) is kind for one in value):
            raise mistake(f"'{key}' is not a list of {'texts' if kind is str else 'numbers'}.",
                          f"Write {_EXAMPLES[key]}.", key)
    patches = entry["patch"]
    if not isinstance(patches, list) or not all(isinstance(one, dict) for one in patches):
        raise mistake("'patch' is not a list of tables.", "Write [[mutant.patch]] above find and "
                      "replace.", "patch")
    for place_in, patch in enumerate(patches):
        needs(patch, ("find", "replace", "file"), "patch", place_in)
        for key in ("find", "replace"):
            if not isinstance(patch.get(key), str):
                raise mistake(f"a patch has no text '{key}'.",
                              'Write find = "…" and replace = "…".', "patch", place_in)
    sign = entry.get("sign", {})
    if isinstance(sign, str):
        sign = {"text": {"pattern": sign}}
    patterns = [one["pattern"] for one in sign.values() if isinstance(one, dict)
                and "pattern" in one] if isinstance(sign, dict) else []
    for pattern in patterns:
        try:
            re.compile(pattern)
        except (re.error, TypeError) as error:
            raise mistake(f"the pattern {pattern!r} of 'sign' is not a regular expression: "
                          f"{error}.", "Correct it.", "sign") from error
    if not isinstance(sign, dict):
        raise mistake("'sign' is not a table.", 'Write sign = { kind = "overflow" }, say.', "sign")
    lists: dict[str, Any] = {key: tuple(entry.get(key, ())) for key in _LISTS}
    return Mutant(entry["id"], entry["title"], tuple(Patch(**patch) for patch in patches),
                  meaning=entry["meaning"], sign=sign, **lists)
