"""A CSV file with the columns student, and file or source; also at, late, module and attempt."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from grader.submission.source import KERNEL
from tritonlab.classroom.importers.file_tree import Entry, FileTree, beside, printable
from tritonlab.classroom.importers.incoming import Incoming, submissions
from tritonlab.classroom.importers.repositories import is_of_clones
from tritonlab.classroom.roster import decoded, rows_of
from tritonlab.errors import TritonlabError, UnusableFile

_MOST = 64_000_000  # bytes of the table, which may hold all sources
_TRUE = {"true", "yes", "1", "late", "x"}


def recognizes(tree: FileTree) -> bool:
    """Whether it is one CSV file, or such a table lies beside the files that it names."""
    tables = _tables(tree)
    if len(tables) != 1 or is_of_clones(tree):
        return False
    if len(tree.files) == 1:
        return True
    try:
        first, _ = decoded(tree.content(tables[0], _MOST).partition(b"\n")[0])
        return _has_columns([cell for _, cells in rows_of(first, "")[0] for cell in cells])
    except TritonlabError:
        return False


def read(tree: FileTree) -> Iterator[Incoming]:
    """Yields a submission a row; paths in the column file are relative to the table.

    Raises:
        TritonlabError: the table cannot be read, or lacks a column.
    """
    tables = _tables(tree)
    if len(tables) != 1:
        raise UnusableFile(f"{printable(tree.name)} has {len(tables)} CSV files; one is read.")
    name = printable(tables[0])
    text, _ = decoded(tree.content(tables[0], _MOST))
    rows, problems = rows_of(text, name)
    header = [cell.casefold() for cell in rows[0][1]] if rows else []
    if not _has_columns(header):
        raise TritonlabError(f"{name} lacks the column student, or both file and source.",
                             "The columns are student, file or source, and any of at, late, "
                             "module and attempt.")
    for line, cells in rows[1:]:
        row = dict(zip(header, cells, strict=False))
        own = [problem for problem in problems if problem.startswith(f"Line {line} ")]
        base = Incoming(row["student"], at=_time(row.get("at", ""), own),
                        late=row["late"].casefold() in _TRUE if row.get("late") else None,
                        name=f"{name} line {line}", attempt=row.get("attempt", ""),
                        module=row.get("module") or None, problems=tuple(own))
        try:
            files = _files(tree, row)
        except UnusableFile as error:
            yield Incoming(base.student_text, name=base.name, problems=(*own, error.message))
            continue
        yield from submissions(FileTree("", files), base)


def _tables(tree: FileTree) -> list[str]:
    return [name for name in tree.top if name.casefold().endswith(".csv")]


def _has_columns(header: Sequence[str]) -> bool:
    names = {cell.casefold() for cell in header}
    return "student" in names and bool({"file", "source"} & names)


def _files(tree: FileTree, row: dict[str, str]) -> dict[str, Entry]:
    if row.get("source"):
        data = (row["source"].replace("\r\n", "\n").rstrip() + "\n").encode()
        return {KERNEL: Entry(len(data), lambda most: data)}
    path = row.get("file", "").replace("\\", "/")
    if not path:
        raise UnusableFile("The row names no file and has no source.")
    entry = tree.files.get(path) or (beside(tree.folder, path) if tree.folder else None)
    if entry is None:
        raise UnusableFile(f"There is no file {printable(path)}.")
    return {path.rpartition("/")[2]: entry}


def _time(text: str, problems: list[str]) -> datetime | None:
    """The time in ISO 8601; without a zone, the class's is meant."""
    try:
        return datetime.fromisoformat(text) if text else None
    except ValueError:
        problems.append(f"'{printable(text)}' is not a time such as 2026-10-12T23:59:00.")
        return None
