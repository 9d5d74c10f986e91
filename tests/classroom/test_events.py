"""The event log: a chain that shows damage and loses one event by it."""

import multiprocessing
from pathlib import Path

import pytest

from tests.classroom import support
from tritonlab.classroom import events
from tritonlab.classroom.events import EVENTS
from tritonlab.errors import NotSaved


@pytest.fixture
def folder(tmp_path):
    return support.write(tmp_path)[1].folder


def numbers(log: events.Log) -> list[int]:
    return [event["n"] for event in log.events]


def test_events_are_read_as_they_were_appended(folder):
    events.append(folder, [{"event": "a", "n": 1}, {"event": "a", "n": 2}])
    events.append(folder, [{"event": "a", "n": 3}])

    log = events.read(folder)

    assert (numbers(log), log.problems) == ([1, 2, 3], ())
    assert [event["seq"] for event in log.events] == [1, 2, 3]


@pytest.mark.parametrize(("change", "rest", "problem"), [
    (lambda lines: [lines[0], lines[1].replace(b'"n":2', b'"n":7'), *lines[2:]], [1, 3],
     "Line 2 of events.jsonl is damaged; only that event is lost."),
    (lambda lines: [lines[0], lines[2]], [1, 3],
     "Before line 2 of events.jsonl at least one event is missing."),
    (lambda lines: [*lines[:2], lines[2][:20]], [1, 2],
     "Line 3 of events.jsonl is damaged; only that event is lost."),
])
def test_damage_costs_one_event_and_is_reported(folder, change, rest, problem):
    events.append(folder, [{"event": "a", "n": n} for n in (1, 2, 3)])
    path = folder / EVENTS
    path.write_bytes(b"\n".join(change(path.read_bytes().splitlines())))

    log = events.read(folder)

    assert (numbers(log), log.problems) == (rest, (problem,))


def test_a_line_that_was_cut_short_spoils_no_later_one(folder):
    events.append(folder, [{"event": "a", "n": 1}])
    with (folder / EVENTS).open("ab") as file:
        file.write(b'{"event":"a","n":2')

    events.append(folder, [{"event": "a", "n": 3}])

    assert numbers(events.read(folder)) == [1, 3]


def _append_many(folder: Path, first: int) -> None:
    for n in range(first, first + 20):
        events.append(folder, [{"event": "a", "n": n}])


def test_two_processes_append_to_one_chain(folder):
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_append_many, args=(folder, first)) for first in (0, 100)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()

    log = events.read(folder)

    assert sorted(numbers(log)) == [*range(20), *range(100, 120)]
    assert log.problems == ()


def test_a_full_disk_loses_nothing(small_disk):
    with small_disk("64k") as disk:
        _, store = support.write(disk)
        events.append(store.folder, [{"event": "a", "n": 1}])

        with pytest.raises(NotSaved, match="no space is left on the disk"):
            events.append(store.folder, [{"event": "a", "n": 2, "text": "x" * 200_000}])

        (disk / "class.toml").unlink()
        assert numbers(events.read(store.folder)) == [1]


def test_a_log_that_cannot_be_read_gives_one_sentence(folder):
    (folder / EVENTS).mkdir()

    with pytest.raises(NotSaved, match="The log of events cannot be read"):
        events.read(folder)
