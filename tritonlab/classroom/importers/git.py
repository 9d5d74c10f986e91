"""One git repository a student; ``git:REF`` takes a branch, a tag or a commit instead of HEAD."""

from collections.abc import Iterator

from tritonlab.classroom.importers import classroom50
from tritonlab.classroom.importers.file_tree import FileTree, printable
from tritonlab.classroom.importers.incoming import Incoming
from tritonlab.classroom.importers.repositories import (
    clones,
    handed_in,
    is_of_clones,
    without_git,
)


def recognizes(tree: FileTree) -> bool:
    """Whether there are repositories, other than those of Classroom 50."""
    return is_of_clones(tree) and not classroom50.recognizes(tree)


def read(tree: FileTree, reference: str = "") -> Iterator[Incoming]:
    """Yields the exercises in each repository; a student is named by its folder."""
    for name, clone in clones(tree).items():
        yield from handed_in(clone, Incoming(name, name=printable(name)), reference or "HEAD")
    yield from without_git(tree)
