"""What ``gh teacher download`` clones for Classroom 50: ``classroom-assignment-username``.

All three parts may have hyphens. The first two stand in the file ``.classroom50.yaml`` of each
repository, but students can write to it, so that the prefix of most repositories counts. Beside
the clone lies ``result.json``, which the runner on GitHub wrote: it gives the time of the push,
while that of a commit is what the student's clock shows.
"""

import os
import re
from collections import Counter
from collections.abc import Iterator
from datetime import datetime

import msgspec

from tritonlab.classroom.importers.file_tree import FileTree, printable
from tritonlab.classroom.importers.git_objects import Commit
from tritonlab.classroom.importers.incoming import Incoming
from tritonlab.classroom.importers.repositories import (
    clones,
    handed_in,
    is_of_clones,
    without_git,
)
from tritonlab.errors import UnusableFile

MARKER = ".classroom50.yaml"
RESULT = "result.json"  # of the newest submission
SCHEMA = "classroom50/result/v1"
_NAME = re.compile(r"[a-z0-9._]+(?:-+[a-z0-9._]+){2,}")
_DOWNLOAD = re.compile(r"(.+)_submissions_\d{4}_\d\d_\d\d_T_\d\d_\d\d_\d\d")  # its own folder


class _Result(msgspec.Struct):
    schema: str
    commit: str
    datetime: datetime


def recognizes(tree: FileTree) -> bool:
    """Whether repositories hold Classroom 50's file, or all names share two parts or more."""
    if not is_of_clones(tree):
        return False
    names = [name.casefold() for name in clones(tree)]
    return any(MARKER in clone.files for clone in clones(tree).values()) or (
        len(names) > 1 and all(map(_NAME.fullmatch, names)) and _shared(names).count("-") >= 2)


def read(tree: FileTree) -> Iterator[Incoming]:
    """Yields the exercises in each repository; a student is named by the GitHub name."""
    repositories = clones(tree)
    prefix = _prefix(tree, repositories)
    for name, clone in repositories.items():
        user = name[len(prefix):] if name.casefold().startswith(prefix) else name
        base = Incoming(user, name=printable(name), ids=(f"github:{user}", f"repository:{name}"))
        yield from handed_in(clone, base, pushed=_pushed)
    yield from without_git(tree)


def _prefix(tree: FileTree, repositories: dict[str, FileTree]) -> str:
    """What stands before the GitHub name: as most repositories state, or what all share."""
    names = [name.casefold() for name in repositories]
    stated = Counter(prefix for name, clone in repositories.items()
                     if (prefix := _stated(clone)) and name.casefold().startswith(prefix))
    if stated:
        return stated.most_common(1)[0][0]
    if download := _DOWNLOAD.fullmatch(tree.name):
        return f"{download[1]}-".casefold()
    shared = _shared(names)
    return shared if len(names) > 1 else "-".join(names[0].split("-")[:2]) + "-"


def _shared(names: list[str]) -> str:
    return os.path.commonprefix(names).rpartition("-")[0] + "-"  # noqa: RUF071 - of strings


def _stated(clone: FileTree) -> str:
    try:
        text = clone.content(MARKER, 100_000).decode() if MARKER in clone.files else ""
    except (UnusableFile, UnicodeDecodeError):
        return ""
    fields = dict(re.findall(r"""^(classroom|assignment):\s*["']?([\w.-]+)""", text, re.MULTILINE))
    return f"{fields['classroom']}-{fields['assignment']}-".casefold() if len(fields) == 2 else ""


def _pushed(clone: FileTree, content: FileTree, commit: Commit) -> datetime | None:
    """The time of the push of a commit, if the runner's result is of that commit.

    A result that is part of the commit is the student's own file.
    """
    if RESULT not in clone.files or RESULT in content.files:
        return None
    try:
        result = msgspec.json.decode(clone.content(RESULT), type=_Result)
    except (UnusableFile, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    is_of_commit = result.schema == SCHEMA and result.commit.rpartition("/")[2] == commit.id
    return result.datetime if is_of_commit and result.datetime.tzinfo else None
