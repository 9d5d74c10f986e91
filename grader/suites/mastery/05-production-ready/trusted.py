"""Right and wrong packages that the learner's tests meet, in place of the learner's own."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from grader.suite import Tree

_HERE = Path(__file__).with_name("trusted")
_PLACE = "package/addrmsnorm/"


@dataclass(frozen=True)
class Wrong:
    """A mutant: the class of its mistake, what to ask about it, and its files."""

    kind: str
    critical: bool
    question: str
    tree: Tree


def right() -> tuple[Tree, ...]:
    """Two packages that keep the contract, named by how they differ from a usual one."""
    first = _files("one")
    return (Tree("one row for each program", first, _PLACE),
            Tree("up to four rows for each program, other words in messages",
                 {**first, **_files("two")}, _PLACE))


def wrong() -> tuple[Wrong, ...]:
    """The mutants, the critical ones first.

    Raises:
        ValueError: a text to replace does not occur exactly once.
    """
    first = _files("one")
    found = []
    for entry in tomllib.loads((_HERE / "mutants.toml").read_text("utf-8"))["mutant"]:
        files = dict(first)
        for patch in entry["patch"]:
            path = _PLACE + patch["file"]
            if files[path].count(patch["find"]) != 1:
                raise ValueError(f"{entry['class']}: not once in {path}: {patch['find']!r}")
            files[path] = files[path].replace(patch["find"], patch["replace"])
        kind = entry["class"]
        found.append(Wrong(kind, entry.get("critical", False), entry["question"],
                           Tree(kind, files, _PLACE)))
    return tuple(found)


def _files(name: str) -> dict[str, str]:
    return {_PLACE + file.name: file.read_text("utf-8")
            for file in sorted((_HERE / name / "addrmsnorm").glob("*.py"))}
