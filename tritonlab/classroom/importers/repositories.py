"""Students' clones: the files and the time of a commit."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime

from tritonlab.classroom.importers.file_tree import FileTree, is_wanted, printable
from tritonlab.classroom.importers.git_objects import Commit, Repository
from tritonlab.classroom.importers.incoming import Incoming, submissions
from tritonlab.errors import UnusableFile

# The clone, the content of the commit and the commit -> when it was pushed.
Pushed = Callable[[FileTree, FileTree, Commit], datetime | None]


def clones(tree: FileTree) -> dict[str, FileTree]:
    """Returns the repositories at the top by the names of their folders, or the tree itself."""
    if "" in tree.repositories:
        return {tree.name: tree}
    return {name: child for name, child in tree.children.items() if "" in child.repositories}


def is_of_clones(tree: FileTree) -> bool:
    """Whether it is a repository, or most of the folders in it are; a stray one may hold .git."""
    return "" in tree.repositories or 2 * len(clones(tree)) > len(tree.children)


def _read_commit(clone: FileTree, reference: str = "HEAD") -> tuple[FileTree, Commit]:
    """Returns the tree of a commit.

    Raises:
        UnusableFile: it is missing, or the git folder is damaged.
    """
    repository = Repository(clone.repositories[""])
    commit = repository.commit(reference)
    files, left_out = repository.files(commit)
    return FileTree(clone.name, {path: entry for path, entry in files.items() if is_wanted(path)},
                    {path: reason for path, reason in left_out.items() if is_wanted(path)}), commit


def handed_in(clone: FileTree, base: Incoming, reference: str = "HEAD",
              pushed: Pushed | None = None) -> Iterator[Incoming]:
    """Yields the exercises in a commit, with the time of its push or else its own.

    Where the git folder cannot be read, the files of the clone are taken, without a time; a given
    reference that is missing leaves nothing to take.
    """
    try:
        content, commit = _read_commit(clone, reference)
    except UnusableFile as error:
        if reference != "HEAD":
            yield replace(base, problems=(*base.problems, error.message))
            return
        yield from submissions(clone, replace(base, problems=(
            *base.problems, f"{error.message} The files of the folder were taken, and their time "
            "is unknown.")))
        return
    at = pushed(clone, content, commit) if pushed else None
    yield from submissions(content, replace(base, at=at or commit.at, attempt=commit.id[:12]))


def without_git(tree: FileTree) -> Iterator[Incoming]:
    """Yields the exercises in folders that are not repositories, without a time."""
    for name, child in tree.children.items():
        if "" not in tree.repositories and "" not in child.repositories and child.files:
            yield from submissions(child, Incoming(name, name=printable(name), problems=(
                "It is not a git repository: the time of submission is unknown.",)))
