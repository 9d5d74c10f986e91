"""One submission as it comes in, and the search for the exercise among its files."""

import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import PurePosixPath

from grader.submission.source import KERNEL
from tritonlab.classroom.importers import notebook_cells
from tritonlab.classroom.importers.file_tree import (
    MOST_INNER,
    MOST_INNER_EXPANDED,
    MOST_LARGE,
    FileTree,
    archive,
    is_archive,
    printable,
)
from tritonlab.errors import UnusableFile
from tritonlab.progress.journal import JOURNAL, MARK

MOST_FILES = 64  # of a submission
_COPY = re.compile(r"(?:-(\d+)| ?\((\d+)\))$")  # of browsers, and of Canvas where a name is taken
_LESSON = {"README.md", "lesson.py"}  # in a workspace; the course's own


@dataclass(frozen=True)
class Incoming:
    """One submission as a layout gives it.

    Args:
        student_text: the student's name or id, as the layout writes it.
        files: content by path in the exercise; empty where there is nothing to grade.
        at: when it was handed in, where the layout gives a time; in a commit, the student's clock
            gives it. Without a zone, that of the class is meant.
        late: whether the platform marks it as late.
        name: where it came from, for people.
        attempt: what distinguishes it from other submissions of the student.
        module: the module that the source names, as it is written there.
        journal: the journal of the learner's workspace.
        problems: sentences about what was left out or assumed.
        ids: exact identifiers for ``Roster.match``, such as ``email:a@b.edu``.
    """

    student_text: str
    files: Mapping[str, bytes] = field(default_factory=dict)
    at: datetime | None = None
    late: bool | None = None
    name: str = ""
    attempt: str = ""
    module: str | None = None
    journal: bytes | None = None
    problems: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Exercise:
    """The kernel of an exercise among the files, the folder of its other files, and its module."""

    kernel: str
    folder: str | None  # None: it has no other files
    module: str | None = None


def is_code(name: str) -> bool:
    """Whether a file name is that of a Python file, a notebook or an archive."""
    return name.casefold().endswith((".py", ".ipynb")) or is_archive(name)


def submissions(tree: FileTree, base: Incoming) -> Iterator[Incoming]:
    """Yields the exercises among a student's files, or the reason why there is none.

    An exercise is ``kernel.py`` with the files beside and below it, wherever it lies; in a
    workspace or where there are several, their folders name the modules. Without it, the only
    Python file is the exercise, or several name a module each. Then come notebooks.

    Args:
        tree: the student's files.
        base: the fields that the layout gives; ``name`` is the path of the tree.
    """
    tree, problems = _unpacked(tree)
    problems = [*base.problems, *problems,
                *(f"{printable(path)} {reason} and was left out."
                  for path, reason in tree.left_out.items())]
    base = replace(base, journal=_journal(tree, problems))
    exercises = _exercises(tree, problems)
    if not exercises and (notebooks := _ending(tree, ".ipynb")):
        yield from _from_notebooks(tree, notebooks, base, problems)
    elif not exercises:
        yield replace(base, problems=(*problems, "There is no Python file and no notebook in it."))
    for exercise in exercises:
        own = list(problems)
        files = _files(tree, exercise, own)
        yield replace(base, files=files, name=_joined(base.name, exercise.kernel),
                      module=exercise.module or base.module, problems=tuple(own))


def _unpacked(tree: FileTree) -> tuple[FileTree, list[str]]:
    """The tree with the content of the archives that a student handed in; theirs stay packed."""
    packed = [path for path in tree.files if is_archive(path)]
    if not packed or _ending(tree, ".py", ".ipynb"):
        return tree, []
    files, left_out, problems = dict(tree.files), dict(tree.left_out), []
    for path in packed:
        del files[path]
        try:
            content = io.BytesIO(tree.content(path, MOST_INNER))
            inner = archive(content, printable(path), MOST_INNER_EXPANDED, MOST_INNER_EXPANDED)
        except UnusableFile as error:
            problems.append(f"{printable(path)}: {error.message}")
            continue
        inner = inner.unwrapped(lambda child: any(map(is_code, child.top)))
        overlap = len(packed) > 1
        prefix = f"{path}/" if overlap else ""
        files |= {prefix + name: entry for name, entry in inner.files.items()}
        left_out |= {prefix + name: reason for name, reason in inner.left_out.items()}
    return replace(tree, files=files, left_out=left_out), problems


def _journal(tree: FileTree, problems: list[str]) -> bytes | None:
    for path in tree.files:
        if path.endswith(f"{MARK}/{JOURNAL}"):
            try:
                return tree.content(path, MOST_LARGE)
            except UnusableFile as error:
                problems.append(f"The journal was left out. {error.message}")
    return None


def _exercises(tree: FileTree, problems: list[str]) -> list[_Exercise]:
    kernels = [path for path in _shallow_first(tree.files) if PurePosixPath(path).name == KERNEL]
    if roots := [path.rpartition(MARK)[0] for path in tree.files if MARK in path.split("/")]:
        in_workspace = [path for path in kernels if path.startswith(roots[0])
                        and path.removeprefix(roots[0]).count("/") == 2]
        return [_Exercise(path, _folder(path), _folder(path).removeprefix(roots[0]))
                for path in sorted(in_workspace)]
    if KERNEL in kernels or len(kernels) == 1:
        return [_Exercise(kernels[0], _folder(kernels[0]))]
    if kernels:
        return [_Exercise(path, _folder(path), _folder(path)) for path in sorted(kernels)]
    python = _ending(tree, ".py")
    copies = {path: number for path in python
              for stem, number in [_copy(PurePosixPath(path).stem)] if stem == "kernel"}
    if copies:
        newest = max(copies, key=lambda path: copies[path])
        if len(copies) > 1:
            problems.append(f"There are {len(copies)} versions of {KERNEL}; "
                            f"{printable(newest)} counts.")
        return [_Exercise(newest, _folder(newest))]
    if not python and len(tree.files) == 1:
        python = _ending(tree, ".py.txt")  # as browsers save it
    if len(python) == 1:
        return [_Exercise(python[0], _folder(python[0]))]
    return [_Exercise(path, None, _copy(PurePosixPath(path).stem)[0].replace("_", "-"))
            for path in python]


def _from_notebooks(tree: FileTree, notebooks: list[str], base: Incoming,
                    problems: list[str]) -> Iterator[Incoming]:
    for path in notebooks:
        one = replace(base, name=_joined(base.name, path))
        try:
            cells, notes = notebook_cells.kernels(tree.content(path, MOST_LARGE))
        except UnusableFile as error:
            yield replace(one, problems=(*problems, f"{printable(path)}: {error.message}"))
            continue
        for cell in cells:
            yield replace(one, files={KERNEL: cell.source}, module=cell.module or base.module,
                          problems=(*problems, *notes))


def _files(tree: FileTree, exercise: _Exercise, problems: list[str]) -> dict[str, bytes]:
    """The files of an exercise by their paths in it; empty where the kernel is unusable."""
    paths = {KERNEL: exercise.kernel}
    if exercise.folder is not None:
        start = f"{exercise.folder}/" if exercise.folder else ""
        rest = (path for path in _shallow_first(tree.files)
                if path.startswith(start) and path != exercise.kernel
                and not any(part.startswith(".") for part in path[len(start):].split("/")))
        for path in rest:
            name = path.removeprefix(start)
            if not (is_archive(name) or name.endswith(".ipynb") or name in _LESSON
                    or _copy(name.removesuffix(".py"))[0] == "kernel"):
                paths[name] = path
    if len(paths) > MOST_FILES:
        problems.append(f"It has {len(paths):,} files; {MOST_FILES} of them were imported.")
    files = {}
    for name, path in list(paths.items())[:MOST_FILES]:
        try:
            if printable(name) != name:
                raise UnusableFile("Its name has characters that cannot be shown.")
            files[name] = tree.content(path)
        except UnusableFile as error:
            problems.append(f"{printable(path)} was left out. {error.message}")
            if name == KERNEL:
                return {}
    return files


def _copy(stem: str) -> tuple[str, int]:
    """A file's stem without the number of a copy, in lower case, and the number."""
    number = _COPY.search(stem)
    return (stem[:number.start()] if number else stem).casefold(), \
        int((number[1] or number[2])[:9]) if number else 0


def _ending(tree: FileTree, *endings: str) -> list[str]:
    return [path for path in _shallow_first(tree.files) if path.casefold().endswith(endings)]


def _shallow_first(paths: Mapping[str, object]) -> list[str]:
    return sorted(paths, key=lambda path: (path.count("/"), path))


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _joined(name: str, path: str) -> str:
    return printable(f"{name}/{path}" if name else path)
