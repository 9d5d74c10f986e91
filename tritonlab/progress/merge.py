"""Merges the records of another machine into the journal of this workspace."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tritonlab.course.course import Course, other_course
from tritonlab.errors import TritonlabError, reason_of
from tritonlab.progress import certificate
from tritonlab.progress.certificate import Certificate
from tritonlab.progress.journal import JOURNAL, MARK, MERGED, Journal, contents, lines

_AGAIN = "Name the other workspace, its .tritonlab folder, or its journal.jsonl."


@dataclass(frozen=True)
class Merge:
    """The result of a merge. ``there`` counts all records of the source.

    ``warning``: why the certificate is out of date.
    """

    source: Path
    there: int
    before: Certificate
    after: Certificate
    warning: str

    @property
    def added(self) -> int:
        """The number of new records."""
        return self.after.records - self.before.records

    @property
    def gained(self) -> Sequence[str]:
        """The modules that the merge made passed."""
        return [new.module for old, new in zip(self.before.entries, self.after.entries, strict=True)
                if new.done and not old.done]


def merge(course: Course, journal: Journal, source: Path) -> Merge:
    """Adds the records of another workspace, its ``.tritonlab`` folder or a file of records.

    Merging again changes nothing. The other side is read, never written.

    Raises:
        TritonlabError: there is no journal at ``source``, or it cannot be read.
        OtherCourse: it holds records of other courses only.
        NotSaved: the records cannot be written here.
    """
    files = _files(source)
    courses = {record.sha256: record.course for content in files for line in lines(content)
             for record in line.records}
    if not courses:
        raise TritonlabError(f"'{source}' holds no record of tritonlab.", _AGAIN)
    there = [sha256 for sha256, its_course in courses.items() if its_course == course.id]
    if not there:
        raise other_course(f"The journal '{source}'", next(iter(courses.values())), course.id)
    before, after, warning = journal.absorb(*files)
    return Merge(source, len(there), certificate.build(course, before),
                 certificate.build(course, after), warning)


def _files(source: Path) -> list[bytes]:
    """Returns the contents of the other journal and of its merged records."""
    path = source.expanduser()
    try:
        path = path.resolve(strict=True)
        if path.is_dir():
            folder = path / MARK if (path / MARK).is_dir() else path
            files = contents(folder, JOURNAL, MERGED)
        else:
            files = contents(path.parent, path.name)
    except OSError as error:
        raise TritonlabError(f"No journal can be read at '{source}': {reason_of(error)}.",
                             _AGAIN) from error
    if files[0] is None:
        raise TritonlabError(f"No journal lies in '{source}'.", _AGAIN)
    return [content for content in files if content is not None]
