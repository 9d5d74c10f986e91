"""The journal loses nothing that was acknowledged, whatever happens to the process or the disk."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from datetime import date
from pathlib import Path

import pytest

from tritonlab.errors import NotSaved
from tritonlab.progress import safe_files
from tritonlab.progress.journal import (
    CERTIFICATE,
    JOURNAL,
    MERGED,
    Journal,
    JournalReading,
    contents,
    parse,
)

KILL_LOOP = Path(__file__).parents[1] / "support" / "toy" / "kill_loop.py"


def view(reading: JournalReading) -> str:
    return json.dumps({"records": len(reading.records)})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / ".tritonlab"
    path.mkdir()
    return path


@pytest.fixture
def journal(folder: Path) -> Journal:
    return Journal(folder, view)


def fill(journal: Journal, count: int) -> bytes:
    for number in range(count):
        journal.append("graded", "track1/softmax", number=number)
    return (journal.folder / JOURNAL).read_bytes()


def numbers(reading: JournalReading) -> list[int]:
    return [record["number"] for record in reading.records]


def test_records_come_back_in_order_and_chained(journal):
    fill(journal, 3)

    reading = journal.read()

    assert [record.seq for record in reading.records] == [1, 2, 3]
    assert [record.prev for record in reading.records[1:]] == [
        record.sha256 for record in reading.records[:-1]]
    assert reading.problems == ()


def test_a_line_is_canonical_and_holds_nothing_personal(journal, folder):
    line = fill(journal, 1)

    data = json.loads(line)

    assert line == json.dumps(data, sort_keys=True, separators=(",", ":")).encode() + b"\n"
    assert set(data) == {"schema", "seq", "event", "course", "course_version", "module", "date",
                         "time", "prev", "sha256", "number"}
    assert re.fullmatch(r"\d\d:\d\d", data["time"])
    assert str(folder).encode() not in line


def test_no_journal_says_nothing(journal):
    assert journal.read() == JournalReading(())


@pytest.mark.parametrize("cut", [1, 10, 100])
def test_a_torn_tail_costs_only_its_line(journal, folder, cut):
    content = fill(journal, 3)
    (folder / JOURNAL).write_bytes(content[:-cut])

    torn = journal.read()
    journal.append("graded", "track1/softmax", number=99)
    after = journal.read()

    complete = [0, 1, 2] if cut == 1 else [0, 1]  # the last byte is only the end of the line
    assert numbers(torn) == complete
    assert len(torn.problems) == (cut > 1)
    assert numbers(after) == [*complete, 99]
    assert len(after.problems) == (cut > 1)
    assert (folder / JOURNAL).read_bytes().startswith(content[:-cut])


def test_every_flipped_byte_costs_at_most_its_record_and_is_reported(journal):
    content = fill(journal, 3)
    first, second, third = content.splitlines(keepends=True)

    for place in range(len(second) - 1):
        broken = bytearray(second)
        broken[place] ^= 0x01
        reading = parse(first + bytes(broken) + third)

        assert numbers(reading)[0] == 0
        assert numbers(reading)[-1] == 2
        assert len(reading.records) == 2
        assert reading.problems


@pytest.mark.parametrize("end", [b"\x0b", b"", b"}", b'{"', b"\xff"])
def test_a_damaged_line_end_costs_no_record(journal, end):
    first, second, third = fill(journal, 3).splitlines()

    reading = parse(first + end + second + b"\n" + third + b"\n")

    assert numbers(reading) == [0, 1, 2]
    assert reading.problems == (
        "Line 1 of the journal is damaged; records read from it all the same: 2.",)


def test_a_removed_line_is_noticed(journal):
    first, _, third = fill(journal, 3).splitlines(keepends=True)

    reading = parse(first + third)

    assert numbers(reading) == [0, 2]
    assert reading.problems == ("Before line 2 of the journal at least one record is missing.",)


def test_all_damage_is_said_in_one_sentence(journal):
    first, second, third = fill(journal, 3).splitlines(keepends=True)

    reading = parse(b"rubbish\n" * 1_000 + first + third + b"[]\n" + second[:-1] + third)

    assert numbers(reading) == [0, 1, 2]
    assert reading.problems == (
        "The journal is damaged in 1,002 places, first at line 1; all other records count, and 2 "
        "read from damaged lines.",)


@pytest.mark.parametrize("left", [b"", b"\n\n"])
def test_an_emptied_journal_is_missed(journal, folder, left):
    fill(journal, 2)
    head = journal.read().head
    (folder / CERTIFICATE).write_text(json.dumps({"journal": {"head": head}}))
    (folder / JOURNAL).write_bytes(left)

    problems = " ".join(journal.read().problems)

    assert "The journal is empty." in problems
    assert "has lost its last records since certificate.json was made" in problems


def test_of_a_long_journal_what_decides_is_read_in_bounded_memory(journal, folder, monkeypatch):
    def grade(verdict: str, number: int) -> None:
        journal.append("graded", "track1/softmax", verdict=verdict, suite_sha256="a" * 64,
                       evidence="correct", number=number)

    journal.append("solution", "track1/copy")
    journal.append("hint", "track1/copy", group="A", rung=1)
    for number in range(20):
        grade("PASSED" if number in (3, 5) else "FAILED", number)
    whole = journal.read()
    newest = b"".join((folder / JOURNAL).read_bytes().splitlines(keepends=True)[-4:])
    monkeypatch.setattr("tritonlab.progress.journal.NEWEST", len(newest))
    monkeypatch.setattr("tritonlab.progress.journal._BLOCK", 1_000)

    reading = journal.read()
    grade("FAILED", 20)
    after = journal.read()

    assert numbers(reading) == [None, None, 5, 16, 17, 18, 19]
    assert (reading.head, reading.heads, reading.hints("track1/copy")) == (
        whole.head, whole.heads, 1)
    assert len(reading.problems) == 1
    assert "only passes, hints and starts are read" in reading.problems[0]
    assert (numbers(after)[-1], after.own[-1].seq, len(after.problems)) == (20, 23, 1)


def test_junk_of_any_length_is_no_record_and_costs_one_sentence(journal, folder, monkeypatch):
    monkeypatch.setattr("tritonlab.progress.journal.NEWEST", 200_000)
    for junk in (b"{" * 300_000, b'{"sha256"' * 300_000, b"\0" * 300_000, b"{}\n" * 300_000):
        (folder / JOURNAL).write_bytes(junk)

        reading = journal.read()

        assert (reading.records, len(reading.problems)) == ((), 2)


def test_nothing_is_ever_cut_off(journal, folder):
    content = b"rubbish\n" + fill(journal, 2) + b'{"half'
    (folder / JOURNAL).write_bytes(content)

    journal.append("graded", "track1/softmax", number=99)

    assert (folder / JOURNAL).read_bytes().startswith(content)
    assert numbers(journal.read()) == [0, 1, 99]


@pytest.mark.parametrize("content", [b"", b"{", b"\x00" * 300, b"[]"])
def test_a_damaged_certificate_is_kept_aside_and_rebuilt(journal, folder, content):
    fill(journal, 2)
    (folder / CERTIFICATE).write_bytes(content)

    assert journal.renew() == ""
    (folder / CERTIFICATE).write_bytes(content)
    journal.append("hint", "track1/softmax")

    assert json.loads((folder / CERTIFICATE).read_bytes()) == {"records": 3}
    kept = sorted(folder.glob("certificate.json.damaged-*"))
    assert [path.read_bytes() for path in kept] == [content, content]


def test_a_deleted_certificate_is_rebuilt(journal, folder):
    fill(journal, 2)
    (folder / CERTIFICATE).unlink()

    assert journal.renew() == ""
    assert json.loads((folder / CERTIFICATE).read_bytes()) == {"records": 2}


def test_records_cut_off_at_a_line_are_missed_by_the_certificate(folder):
    journal = Journal(folder, lambda reading: json.dumps({"journal": {"head": reading.head}}))
    content = fill(journal, 3)
    before = (folder / CERTIFICATE).read_bytes()
    (folder / JOURNAL).write_bytes(b"".join(content.splitlines(keepends=True)[:2]))

    said = journal.append("graded", "track1/softmax", number=99)

    assert said.startswith("The journal has lost its last records since certificate.json was made")
    [aside] = folder.glob("certificate.json.damaged-*")
    assert aside.read_bytes() == before
    assert journal.append("graded", "track1/softmax", number=100) == ""


@pytest.mark.parametrize("name", [JOURNAL, ".lock"])
def test_a_symbolic_link_is_refused_and_its_target_untouched(journal, folder, tmp_path, name):
    target = tmp_path / "precious"
    target.write_text("precious")
    (folder / name).symlink_to(target)

    with pytest.raises(NotSaved, match="links are not followed"):
        journal.append("started", "track1/softmax")

    assert target.read_text() == "precious"


def test_a_linked_certificate_is_replaced_and_its_target_untouched(journal, folder, tmp_path):
    target = tmp_path / "precious"
    target.write_text("precious")
    (folder / CERTIFICATE).symlink_to(target)

    journal.append("started", "track1/softmax")

    assert target.read_text() == "precious"
    assert not (folder / CERTIFICATE).is_symlink()


def test_a_linked_folder_is_refused(folder, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(folder)

    with pytest.raises(NotSaved, match="symbolic link"):
        Journal(link, view).append("started", "track1/softmax")


@pytest.mark.parametrize("name", [JOURNAL, ".lock", CERTIFICATE])
def test_a_pipe_in_place_of_a_file_does_not_hang(journal, folder, name):
    os.mkfifo(folder / name)

    try:
        journal.append("started", "track1/softmax")
    except NotSaved:
        saved = False
    else:
        saved = True

    assert saved is (name != JOURNAL)  # the others are replaced


def test_strays_older_than_an_hour_are_swept(journal, folder):
    old, young = folder / ".certificate.json.1.aa.tmp", folder / ".certificate.json.2.bb.tmp"
    for path in (old, young):
        path.write_text("")
    os.utime(old, (time.time() - 3700, time.time() - 3700))

    journal.append("started", "track1/softmax")

    assert (old.exists(), young.exists()) == (False, True)


def test_a_lock_that_is_never_given_back_is_an_error(folder):
    with safe_files.opened(folder) as descriptor, safe_files.locked(descriptor), \
            pytest.raises(TimeoutError), safe_files.locked(descriptor, timeout_s=0.1):
        pass


def test_four_writers_at_once_lose_nothing(folder):
    code = ("import sys; from pathlib import Path; from tritonlab.progress.journal import Journal\n"
            "journal = Journal(Path(sys.argv[1]), lambda reading: '{}')\n"
            "for n in range(25): journal.append('graded', sys.argv[2], number=n)\n")

    writers = [subprocess.Popen([sys.executable, "-c", code, str(folder), f"track1/w{n}"])
               for n in range(4)]

    assert [writer.wait(60) for writer in writers] == [0] * 4
    reading = Journal(folder, view).read()
    assert reading.problems == ()
    assert [record.seq for record in reading.records] == list(range(1, 101))
    assert {(r.module, r["number"]) for r in reading.records} == {
        (f"track1/w{writer}", number) for writer in range(4) for number in range(25)}


@pytest.mark.course
def test_300_kills_lose_no_acknowledged_record(folder):
    done = subprocess.run([sys.executable, str(KILL_LOOP), str(folder), "300"],
                          capture_output=True, text=True, timeout=120)

    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["lost"] == []
    assert result["unreadable"] == 0
    assert result["acknowledged"] >= 100, "the writers were killed before they wrote"
    assert all("damaged" in p or "cut short" in p for p in result["problems"])


def test_ctrl_c_waits_for_a_commit(journal, monkeypatch):
    append = safe_files.append

    def interrupted(*arguments):
        os.kill(os.getpid(), signal.SIGINT)
        append(*arguments)

    monkeypatch.setattr(safe_files, "append", interrupted)

    with pytest.raises(KeyboardInterrupt):
        journal.append("started", "track1/softmax")

    assert journal.saved
    assert len(journal.read().records) == 1


def test_a_commit_works_outside_the_main_thread(journal):
    thread = threading.Thread(target=fill, args=(journal, 2))
    thread.start()
    thread.join()

    assert numbers(journal.read()) == [0, 1]


def test_a_full_disk_keeps_every_record_and_is_said(small_disk):
    with small_disk() as disk:
        journal = Journal(disk, view)
        acknowledged = 0
        with pytest.raises(NotSaved, match="no space is left on the disk") as error:
            for number in range(1000):
                journal.append("graded", "track1/softmax", number=number, padding="x" * 500)
                acknowledged += 1

        reading = journal.read()
        assert numbers(reading)[:acknowledged] == list(range(acknowledged))
        assert acknowledged > 20
        assert not list(disk.glob(".*.tmp"))
        assert "was not saved" in error.value.message
        assert error.value.exit_code == 3

        (disk / CERTIFICATE).unlink(missing_ok=True)  # makes a little room
        after = journal.read()
        assert numbers(after)[:acknowledged] == list(range(acknowledged))


def test_a_read_only_disk_is_said_and_still_read(small_disk):
    with small_disk("1m") as disk:
        journal = Journal(disk, view)
        fill(journal, 2)
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)

        with pytest.raises(NotSaved, match="the file system is read-only"):
            journal.append("started", "track1/softmax")

        assert numbers(journal.read()) == [0, 1]
        assert "read-only" in journal.renew()


def test_a_folder_without_permission_is_said(folder, journal):
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    folder.chmod(0o500)

    with pytest.raises(NotSaved, match="writing there is not permitted"):
        journal.append("started", "track1/softmax")


# ------------------------------------------------------------ records of other machines


@pytest.fixture
def machines(tmp_path):
    """Makes journals that each lie in a folder of their own: ``machines("a", "b")``."""

    def make(*names: str) -> list[Journal]:
        for name in names:
            (tmp_path / name).mkdir()
        return [Journal(tmp_path / name, view_of_all) for name in names]

    return make


def view_of_all(reading: JournalReading) -> str:
    return json.dumps({"journal": {"head": reading.last, "heads": reading.heads}})


def files(journal: Journal) -> list[bytes]:
    return [path.read_bytes() for name in (JOURNAL, MERGED)
            if (path := journal.folder / name).exists()]


def absorb(journal: Journal, *others: Journal) -> int:
    absorbed = [journal.absorb(*files(other)) for other in others]
    return sum(len(after.records) - len(before.records) for before, after, _ in absorbed)


def shas(journal: Journal) -> list[str]:
    return [record.sha256 for record in journal.read().records]


@pytest.mark.parametrize("first", [("a", "b", "c"), ("c", "a", "b"), ("b", "c", "a")])
def test_merged_in_any_order_the_same_records_are_read_in_the_same_order(machines, first):
    journals = dict(zip("abc", machines("a", "b", "c"), strict=True))
    for count, journal in enumerate(journals.values(), start=1):
        for number in range(count):
            journal.append("graded", f"track1/of-{journal.folder.name}", number=number)

    for name in first:
        absorb(journals[name], *(j for j in journals.values() if j.folder.name != name))

    readings = [shas(journal) for journal in journals.values()]
    assert len(readings[0]) == 6
    assert readings[0] == readings[1] == readings[2]
    assert [journal.read().problems for journal in journals.values()] == [()] * 3


def test_merging_back_and_forth_comes_to_rest(machines):
    a, b = machines("a", "b")
    fill(a, 2)
    b.append("started", "track1/copy")

    assert [absorb(a, b), absorb(b, a)] == [1, 2]
    before = files(a), files(b)
    assert [absorb(a, b), absorb(b, a), absorb(a, a)] == [0, 0, 0]
    assert (files(a), files(b)) == before


def test_what_was_merged_keeps_its_bytes_and_its_chain(machines):
    a, b = machines("a", "b")
    theirs = fill(b, 3)
    ours = fill(a, 1)

    absorb(a, b)
    a.append("graded", "track1/softmax", number=99)

    lines = (a.folder / JOURNAL).read_bytes().splitlines(keepends=True)
    assert (a.folder / MERGED).read_bytes() in (theirs, theirs.replace(ours, b""))
    assert lines[0] == ours
    assert json.loads(lines[1])["prev"] == json.loads(ours)["sha256"]
    assert a.read().problems == ()


def test_a_copied_workspace_shares_what_was_before_and_parts_after(machines):
    a, b = machines("a", "b")
    content = fill(a, 2)
    (b.folder / JOURNAL).write_bytes(content)
    a.append("graded", "track1/softmax", number=10)
    b.append("graded", "track1/softmax", number=20)
    b.append("started", "track1/copy")

    added = absorb(a, b)

    assert added == 2
    assert len(a.read().records) == 5
    assert len(a.read().heads) == 2
    assert a.read().problems == ()


def test_the_current_module_stays_this_machine_s(machines):
    a, b = machines("a", "b")
    a.append("started", "track1/softmax")
    fill(b, 5)
    b.append("started", "track1/copy")

    absorb(a, b)
    absorb(b, a)

    assert (a.read().current, b.read().current) == ("track1/softmax", "track1/copy")


def test_a_hint_that_was_shown_on_both_machines_counts_once(machines):
    a, b = machines("a", "b")
    fill(b, 1)
    for journal, rungs in ((a, (1, 2)), (b, (1,))):
        for rung in rungs:
            journal.append("hint", "track1/softmax", group="A", rung=rung)

    absorb(a, b)

    assert a.read().hints("track1/softmax", "A") == 2


def test_order_is_by_day_and_a_clock_that_went_back_breaks_no_chain(machines, monkeypatch):
    a, b = machines("a", "b")
    for journal, day in ((a, "2026-03-02"), (a, "2026-03-01"), (b, "2026-02-28"),
                         (b, "2026-03-03")):
        monkeypatch.setattr("tritonlab.progress.journal.date", Clock(day))
        journal.append("graded", f"track1/{journal.folder.name}", day=day)

    absorb(a, b)

    assert [record["day"] for record in a.read().records] == [
        "2026-02-28", "2026-03-02", "2026-03-01", "2026-03-03"]


class Clock:
    """Stands for the class ``date`` on a machine whose clock shows a certain day."""

    def __init__(self, day: str) -> None:
        self._day = day

    def today(self) -> date:
        return date.fromisoformat(self._day)


def test_damaged_lines_survive_a_merge_unless_their_record_is_known(machines):
    a, b = machines("a", "b")
    first, second, third = fill(b, 3).splitlines(keepends=True)
    broken = second.replace(b"track1", b"track9")
    (b.folder / JOURNAL).write_bytes(b"rubbish\n" + first + broken + third)

    absorb(a, b)
    damaged = a.read()
    (b.folder / JOURNAL).write_bytes(first + second + third)
    absorb(a, b)

    assert (a.folder / MERGED).read_bytes().count(b"rubbish\n") == 1
    assert broken in (a.folder / MERGED).read_bytes()
    assert numbers(damaged) == [0, 2]
    assert damaged.problems == (
        "merged.jsonl is damaged in 2 places, first at line 1; all other records count.",)
    assert numbers(a.read()) == [0, 1, 2]


def test_what_is_damaged_here_is_known_from_there(machines):
    a, b = machines("a", "b")
    first, second, third = fill(a, 3).splitlines(keepends=True)
    absorb(b, a)
    (a.folder / JOURNAL).write_bytes(first + second.replace(b"track1", b"track9") + third)
    lost = a.read()

    absorb(a, b)
    damaged = absorb(b, a)

    assert (numbers(lost), len(lost.problems)) == ([0, 2], 1)
    assert (numbers(a.read()), a.read().problems) == ([0, 1, 2], ())
    assert damaged == 0
    assert numbers(b.read()) == [0, 1, 2]


def test_every_flipped_byte_of_a_merged_line_costs_at_most_its_record(machines):
    a, b = machines("a", "b")
    b.append("started", "track1/copy")
    fill(b, 2)
    absorb(a, b)
    content = (a.folder / MERGED).read_bytes()

    for place in range(0, len(content) - 1, 7):
        broken = bytearray(content)
        broken[place] ^= 0x01
        reading = parse(b"", bytes(broken))

        assert len(reading.records) >= 2
        assert len(reading.records) == 3 or reading.problems


def test_a_merge_that_was_lost_is_missed_by_the_certificate(machines):
    a, b = machines("a", "b")
    fill(b, 2)
    absorb(a, b)
    (a.folder / MERGED).unlink()

    assert "has lost its last records" in a.append("started", "track1/softmax")


def test_a_merge_that_fails_changes_nothing(machines, monkeypatch):
    a, b = machines("a", "b")
    fill(a, 1)
    fill(b, 2)
    before = files(a)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(safe_files, "replace", full)

    with pytest.raises(NotSaved, match="The merged record was not saved: no space is left"):
        absorb(a, b)
    assert files(a) == before


def test_merging_while_the_other_side_writes_takes_whole_records_only(machines):
    a, b = machines("a", "b")
    code = ("import sys; from pathlib import Path; from tritonlab.progress.journal import Journal\n"
            "journal = Journal(Path(sys.argv[1]), lambda reading: '{}')\n"
            "for n in range(40): journal.append('graded', 'track1/softmax', number=n)\n")
    writer = subprocess.Popen([sys.executable, "-c", code, str(b.folder)])

    while writer.poll() is None:
        content = contents(b.folder, JOURNAL)[0]
        if content:
            a.absorb(content)
    absorb(a, b)

    assert writer.returncode == 0
    assert numbers(a.read()) == list(range(40))
    assert a.read().problems == ()


@pytest.mark.parametrize("content", [
    b'{"schema":1}\n', b"[]\n", b"null\n", b'{"sha256":1}\n', b"\x00" * 100, b"{" * 70_000,
])
def test_what_is_no_record_is_damage_and_no_error(content):
    reading = parse(b"", content)

    assert reading.records == ()
    assert reading.problems
