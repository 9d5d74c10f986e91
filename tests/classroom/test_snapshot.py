"""The snapshot of events: status shows what the whole log says, whatever the snapshot has."""

import pytest

from tests.classroom import support
from tritonlab.classroom import book, snapshot
from tritonlab.classroom.events import EVENTS


@pytest.fixture
def a_class(tmp_path, monkeypatch):
    """A class whose events are all in a snapshot."""
    monkeypatch.setattr(snapshot, "LEAST", 1)
    settings, store = support.write(tmp_path)
    blob = support.hand_in(store, "ada", "a", journal="j" * 64)
    store.append({"event": "graded", "assignment": "hw1", "module": "track1/softmax", "blob": blob,
                  "key": "k", "verdict": "PASSED"},
                 {"event": "excused", "student": "bob", "assignment": "hw1", "reason": "ill"})
    snapshot.read(settings, store)
    assert (store.folder / snapshot.FILE).exists()
    return settings, store


def parsed(monkeypatch):
    """The numbers of lines that are parsed from now on."""
    counts = []
    collect = book.collect
    monkeypatch.setattr(book, "collect",
                        lambda lines, before=None: counts.append(len(lines)) or
                        collect(lines, before))
    return counts


def test_only_newer_events_are_parsed(a_class, monkeypatch):
    settings, store = a_class
    counts = parsed(monkeypatch)

    first = snapshot.read(settings, store)
    support.hand_in(store, "ada", "a", journal="j" * 64)  # the same submission
    support.hand_in(store, "bob", "b")
    store.append({"event": "undone", "decision": "excused", "student": "bob", "assignment": "hw1"})
    second = snapshot.read(settings, store)
    whole = book.read(settings, store.log())

    assert counts == [0, 3, 6]
    assert ("bob", "hw1") in first.excused
    assert second == whole
    assert len(second.handed["hw1"]) == 2


@pytest.mark.parametrize("change", [
    lambda content: content.replace(b'"ada"', b'"eve"'), lambda content: content[:-200]])
def test_a_log_that_changed_is_read_whole(a_class, change):
    settings, store = a_class
    path = store.folder / EVENTS
    path.write_bytes(change(path.read_bytes()))

    quick = snapshot.read(settings, store)

    assert quick == book.read(settings, store.log())
    assert quick.problems


def test_damage_of_newer_events_has_its_line_in_the_whole_log(a_class):
    settings, store = a_class
    with (store.folder / EVENTS).open("ab") as file:
        file.write(b"\n{broken\n")

    quick = snapshot.read(settings, store)

    assert quick == book.read(settings, store.log())
    assert quick.problems


@pytest.mark.parametrize("content", [b"", b"\x00", b"{}"])
def test_a_damaged_snapshot_is_replaced(a_class, content):
    settings, store = a_class
    (store.folder / snapshot.FILE).write_bytes(content)

    quick = snapshot.read(settings, store)

    assert quick == book.read(settings, store.log())
    assert len((store.folder / snapshot.FILE).read_bytes()) > 100


def test_without_a_folder_for_it_there_is_no_snapshot(a_class):
    settings, store = a_class
    (store.folder / snapshot.FILE).unlink()
    (store.folder / "cache").rmdir()
    (store.folder / "cache").write_text("a file")

    assert snapshot.read(settings, store) == book.read(settings, store.log())
