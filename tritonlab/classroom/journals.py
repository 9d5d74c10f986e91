"""The journals that students hand in with their workspaces."""

from collections.abc import Iterator

from tritonlab.classroom.store import Store
from tritonlab.errors import TritonlabError
from tritonlab.progress import journal
from tritonlab.progress.journal import JournalReading


def read(store: Store, assignment: str) -> Iterator[tuple[str, JournalReading]]:
    """Yields students and their journals, the last one last; missing files are left out."""
    blobs = dict.fromkeys(
        (str(event["student"]), str(event["journal"])) for event in store.log().events
        if event.get("event") == "imported" and event.get("journal")
        and event.get("assignment") == assignment)
    for student, blob in blobs:
        try:
            content = store.files(blob).get(journal.JOURNAL, b"")
        except TritonlabError:
            continue
        yield student, journal.parse(content)
