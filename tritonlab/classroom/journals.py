"""The journals that students hand in with their workspaces."""

from collections.abc import Iterator

from tritonlab.classroom.book import Book
from tritonlab.classroom.store import Store
from tritonlab.errors import TritonlabError
from tritonlab.progress import journal
from tritonlab.progress.journal import JournalReading


def latest(store: Store, book: Book) -> dict[str, JournalReading]:
    """Returns the last journal that each student handed in, which holds the earlier ones."""
    blobs = {student: blob for _, student, blob in book.journals}
    return {student: reading for student, blob in blobs.items()
            if (reading := _reading(store, blob)) is not None}


def read(store: Store, book: Book, assignment: str) -> Iterator[tuple[str, JournalReading]]:
    """Yields students and the journals that they handed in with an assignment.

    Those that are missing or damaged are left out.
    """
    for name, student, blob in dict.fromkeys(book.journals):
        if name == assignment and (reading := _reading(store, blob)) is not None:
            yield student, reading


def _reading(store: Store, blob: str) -> JournalReading | None:
    try:
        return journal.parse(store.files(blob).get(journal.JOURNAL, b""))
    except TritonlabError:
        return None
