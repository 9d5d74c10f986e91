"""Learners' workspaces, one a student: all modules, and the journal."""

from collections.abc import Iterator

from tritonlab.classroom.importers.file_tree import FileTree, printable
from tritonlab.classroom.importers.incoming import Incoming, submissions
from tritonlab.classroom.importers.repositories import is_of_clones
from tritonlab.progress.journal import MARK


def recognizes(tree: FileTree) -> bool:
    """Whether it is a workspace, or folders in it are or hold one."""
    return not is_of_clones(tree) and any(
        MARK in path.split("/")[:3] for path in tree.files)


def read(tree: FileTree) -> Iterator[Incoming]:
    """Yields every exercise of every workspace; a student is named by the folder at the top."""
    if MARK in tree.children:
        yield from submissions(tree, Incoming(tree.name))
        return
    for name, child in tree.children.items():
        if any(MARK in path.split("/") for path in child.files):
            yield from submissions(child, Incoming(name, name=printable(name)))
        else:
            yield Incoming(name, name=printable(name), problems=("It is not a workspace.",))
