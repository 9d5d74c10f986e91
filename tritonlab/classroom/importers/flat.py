"""All files in one folder: ``alice_kernel.py``, ``alice.py``, ``alice.zip``."""

import re
from collections.abc import Iterator
from dataclasses import replace

from tritonlab.classroom.importers.file_tree import (
    FileTree,
    is_archive,
    printable,
    without_ending,
)
from tritonlab.classroom.importers.incoming import Incoming, is_code, submissions
from tritonlab.classroom.importers.repositories import is_of_clones

_KERNEL = re.compile(r"(?i)[-_. ]kernel(?=(?:-\d+| ?\(\d+\))?$)")


def recognizes(tree: FileTree) -> bool:
    """Whether code lies at the top, in files that are named after students."""
    code = [name for name in tree.top if is_code(name)]
    return bool(code) and not is_of_clones(tree) and "kernel.py" not in code and not any(
        is_code(path) for child in tree.children.values() for path in child.files)


def read(tree: FileTree) -> Iterator[Incoming]:
    """Yields the submissions; a student is named by the part before ``_kernel``.

    Where all names end alike, as in ``alice_softmax.py`` and ``bob_softmax.py``, the end names the
    module. Otherwise the whole name is the student's.
    """
    code = sorted(name for name in tree.top if is_code(name))
    stems = {name: without_ending(name) for name in code}
    ends = {stem.rpartition("_")[2] for stem in stems.values()}
    for name, stem in stems.items():
        student, module = stem, None
        if kernel := _KERNEL.search(stem):
            student = stem[:kernel.start()]
        elif len(stems) > 1 and len(ends) == 1 and "_" in stem:
            student, _, end = stem.rpartition("_")
            module = end if name.endswith(".py") else None
        base = Incoming(student, name=printable(name), module=module)
        for one in submissions(FileTree("", {name: tree.files[name]}), base):
            yield one if is_archive(name) else replace(one, name=printable(name))
