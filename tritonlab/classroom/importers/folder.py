"""One folder a student: ``alice/kernel.py``; also the folder of one student."""

from collections.abc import Iterator

from tritonlab.classroom.importers.file_tree import FileTree, printable
from tritonlab.classroom.importers.incoming import Incoming, is_code, submissions
from tritonlab.classroom.importers.repositories import is_of_clones


def recognizes(tree: FileTree) -> bool:
    """Whether folders hold code, and no file beside them does; or ``kernel.py`` lies in it."""
    if any(map(is_code, tree.top)):
        return "kernel.py" in tree.top and not is_of_clones(tree)
    folders = [child for child in tree.children.values() if any(map(is_code, child.files))]
    if is_of_clones(tree) or not folders:
        return False
    if len(tree.children) > 1:
        return True
    code = [name for name in folders[0].top if is_code(name)]  # or it holds all students' files
    return "kernel.py" in code or len(code) == 1


def read(tree: FileTree) -> Iterator[Incoming]:
    """Yields the submissions; a student is named by the folder."""
    if any(map(is_code, tree.top)):
        yield from submissions(tree, Incoming(tree.name))
        return
    for name, child in tree.children.items():
        yield from submissions(child, Incoming(name, name=printable(name)))
