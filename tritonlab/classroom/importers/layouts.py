"""The layouts of submissions, and how one is recognized."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from tritonlab.classroom.importers import (
    canvas,
    classroom50,
    file_tree,
    flat,
    folder,
    git,
    gradescope,
    ipynb,
    moodle,
    table,
    workspaces,
)
from tritonlab.classroom.importers.file_tree import FileTree, printable
from tritonlab.classroom.importers.incoming import Incoming, is_code, submissions
from tritonlab.errors import TritonlabError
from tritonlab.progress.journal import MARK

AUTO = "auto"


@dataclass(frozen=True)
class Layout:
    """A way to arrange submissions: by its shape, and how to read it."""

    recognizes: Callable[[FileTree], bool]
    read: Callable[[FileTree], Iterator[Incoming]]


# Those that platforms write go before those that any folder may have.
_SPECIFIC = {
    "canvas": Layout(canvas.recognizes, canvas.read),
    "moodle": Layout(moodle.recognizes, moodle.read),
    "gradescope": Layout(gradescope.recognizes, gradescope.read),
    "classroom50": Layout(classroom50.recognizes, classroom50.read),
    "git": Layout(git.recognizes, git.read),
    "workspaces": Layout(workspaces.recognizes, workspaces.read),
    "csv": Layout(table.recognizes, table.read),
}
_GENERIC = {
    "ipynb": Layout(ipynb.recognizes, ipynb.read),
    "folder": Layout(folder.recognizes, folder.read),
    "flat": Layout(flat.recognizes, flat.read),
}
LAYOUTS = {**_SPECIFIC, **_GENERIC}


def read(path: Path, layout: str = AUTO,
         student_from: re.Pattern[str] | None = None) -> Iterator[Incoming]:
    """Yields the submissions in a folder, an archive or a file.

    Args:
        path: the folder or archive of all students, or of one.
        layout: a key of ``LAYOUTS``, ``git:REF``, or ``auto``: recognized by shape.
        student_from: is searched in the path of each submission; its group ``student``, or the
            first, names the student. Files of an unknown layout are grouped by it.

    Raises:
        TritonlabError: the path cannot be read, an archive is refused, or the layout is unknown or
            ambiguous.
    """
    with file_tree.opened(path) as tree:
        yield from _read(tree, layout, student_from)


def recognize(path: Path) -> str:
    """Returns the layout of a folder, an archive or a file; raises as ``read``."""
    with file_tree.opened(path) as tree:
        return _recognized(tree)[0]


def _read(tree: FileTree, layout: str, student_from: re.Pattern[str] | None) -> Iterator[Incoming]:
    name, _, reference = layout.partition(":")
    if layout == AUTO:
        try:
            name, tree = _recognized(tree)
        except TritonlabError:
            if student_from is None:
                raise
            yield from _grouped(tree, student_from)
            return
    elif name not in LAYOUTS or (reference and name != "git"):
        raise TritonlabError(f"No layout is called '{layout}'.", _choices())
    else:
        tree = _unwrapped(tree, LAYOUTS[name]) or tree
    reader = partial(git.read, reference=reference) if name == "git" else LAYOUTS[name].read
    for incoming in reader(tree):
        one = _renamed(incoming, student_from) if student_from else incoming
        yield replace(one, student_text=printable(one.student_text))
    if "kernel.py" not in tree.top and not _is_workspace(tree) and "" not in tree.repositories:
        for path, reason in tree.left_out.items():
            if "/" not in path:  # it might be a student's
                yield Incoming(printable(path), name=printable(path),
                               problems=(f"{printable(path)} {reason} and was left out.",))


def _recognized(tree: FileTree) -> tuple[str, FileTree]:
    for layouts in (_SPECIFIC, _GENERIC):
        matches = {name: one for name, layout in layouts.items()
                   if (one := _unwrapped(tree, layout))}
        if "ipynb" in matches:  # folders and files of notebooks alone
            matches = {"ipynb": matches["ipynb"]}
        if len(matches) == 1:
            return next(iter(matches.items()))
        if matches:
            names = " and ".join(f"`{name}`" for name in matches)
            raise TritonlabError(
                f"The files in {printable(tree.name)} fit the layouts {names}.",
                "Name the layout with `--from`.")
    raise TritonlabError(f"The layout of {printable(tree.name)} is not recognized.", _choices())


def _unwrapped(tree: FileTree, layout: Layout) -> FileTree | None:
    """The tree that has a layout: the given one, or what lies below folders around it."""
    outer = tree.unwrapped(_is_submission)
    inner = outer.unwrapped(lambda child: "" in child.repositories or "kernel.py" in child.top)
    return next((one for one in (tree, outer, inner) if layout.recognizes(one)), None)


def _is_submission(tree: FileTree) -> bool:
    return any(map(is_code, tree.top)) or _is_workspace(tree) or "" in tree.repositories


def _is_workspace(tree: FileTree) -> bool:
    return MARK in tree.children


def _renamed(incoming: Incoming, student_from: re.Pattern[str]) -> Incoming:
    student = _student(incoming.name, student_from)
    if student is None:
        return replace(incoming, problems=(*incoming.problems,
                                           "Its path does not match `--student-from`."))
    return replace(incoming, student_text=student, ids=())


def _student(path: str, student_from: re.Pattern[str]) -> str | None:
    match = student_from.search(path)
    if match is None:
        return None
    group = "student" if "student" in student_from.groupindex else min(student_from.groups, 1)
    return match[group] or None


def _grouped(tree: FileTree, student_from: re.Pattern[str]) -> Iterator[Incoming]:
    """Yields the files of an unknown layout by the students that their paths name."""
    students: dict[str, dict[str, str]] = {}
    for path in tree.files:
        student = _student(path, student_from)
        if student is not None:
            students.setdefault(student, {})[path] = path
        elif is_code(path):
            yield Incoming(path, name=printable(path),
                           problems=("Its path does not match `--student-from`.",))
    for student, paths in students.items():
        yield from submissions(FileTree("", {path: tree.files[path] for path in paths}),
                               Incoming(student))


def _choices() -> str:
    return f"Name it with `--from`: {', '.join(LAYOUTS)}. `--student-from REGEX` finds the " \
        "student in each path."
