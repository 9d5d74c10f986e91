"""Notebooks in one folder, ``alice.ipynb``, or in one folder a student."""

from collections.abc import Iterator

from tritonlab.classroom.importers import flat, folder
from tritonlab.classroom.importers.file_tree import FileTree
from tritonlab.classroom.importers.incoming import Incoming
from tritonlab.classroom.importers.repositories import is_of_clones


def recognizes(tree: FileTree) -> bool:
    """Whether all code is in notebooks."""
    endings = {path.rpartition(".")[2].casefold() for path in tree.files}
    return "ipynb" in endings and not endings & {"py", "zip", "gz", "tgz", "tar"} and \
        not is_of_clones(tree)


def read(tree: FileTree) -> Iterator[Incoming]:
    """Yields the exercises in the notebooks."""
    notebooks = FileTree(tree.name, {path: entry for path, entry in tree.files.items()
                                     if path.casefold().endswith(".ipynb")}, tree.left_out)
    return flat.read(notebooks) if notebooks.top else folder.read(notebooks)
