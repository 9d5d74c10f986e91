"""A snapshot of a class's events, so that ``class status`` parses the newer ones only.

It is used only if the log still begins with the bytes that it was made from, and may be deleted at
any time. All other verbs read the whole log.
"""

import contextlib
import hashlib
import os
from pathlib import Path

import msgspec

from tritonlab.classroom import book, events
from tritonlab.classroom.book import Book, Records
from tritonlab.classroom.events import Log
from tritonlab.classroom.settings import ClassSettings
from tritonlab.classroom.store import Store
from tritonlab.version import __version__

FILE = "cache/events.msgpack"
LEAST = 1000  # events that are worth a new snapshot


class _Snapshot(msgspec.Struct, gc=False):
    """The records of the first ``length`` bytes of a log, and the last event among them."""

    version: str
    length: int
    sha256: str
    number: int
    head: str
    records: Records


_DECODER = msgspec.msgpack.Decoder(_Snapshot)


def read(settings: ClassSettings, store: Store) -> Book:
    """Returns the book of all events, as ``book.read``.

    Raises:
        NotSaved: the log cannot be read.
    """
    content = events.content(store.folder)
    path = store.folder / FILE
    saved = _saved(path, content)
    log = events.parse(content[saved.length:], Log((), (), saved.number, saved.head)) \
        if saved else events.parse(content)
    if saved and log.problems:  # they are named by the line in the whole log
        saved, log = None, events.parse(content)
    records = book.collect(log.lines, saved.records if saved else None)
    if len(log.lines) >= LEAST and not log.problems:
        _save(path, _Snapshot(__version__, len(content), hashlib.sha256(content).hexdigest(),
                              log.number, log.head, records))
    return book.build(settings, records, log.problems)


def _saved(path: Path, content: bytes) -> _Snapshot | None:
    """The snapshot, if this log begins with the bytes that it was made from."""
    try:
        saved = _DECODER.decode(path.read_bytes())
    except (OSError, msgspec.DecodeError):
        return None
    is_of_log = saved.version == __version__ and saved.length <= len(content) and \
        hashlib.sha256(memoryview(content)[:saved.length]).hexdigest() == saved.sha256
    return saved if is_of_log else None


def _save(path: Path, snapshot: _Snapshot) -> None:
    """Writes the snapshot; where that fails, the next reader parses all events again."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with contextlib.suppress(OSError):
        path.parent.mkdir(exist_ok=True)
        temporary.write_bytes(msgspec.msgpack.encode(snapshot))
        temporary.replace(path)
