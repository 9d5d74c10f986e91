"""Damaged records, disks that fail, and kernel files that are none."""

from __future__ import annotations

import itertools
import json
import os
import random
import socket
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from tests.fidelity.chaos import module
from tests.fidelity.chaos.bench import Bench, Ended
from tests.fidelity.chaos.hooks import FAILS, NO_SPACE
from tests.fidelity.chaos.kernels import HOSTILE
from tritonlab.progress.certificate import SCHEMA
from tritonlab.progress.journal import CERTIFICATE, JOURNAL, Journal, JournalReading, parse

RECORDS = 4

# ---------------------------------------------------------------------------------------------
# The record


def _filled(folder: Path) -> Journal:
    folder.mkdir()
    journal = Journal(folder, _view)
    for number in range(RECORDS):
        journal.append("graded", "track1/softmax", number=number, note="x" * 200)
    return journal


def _view(reading: JournalReading) -> str:
    return json.dumps({"records": [record.seq for record in reading.records],
                       "journal": {"head": reading.head}})


def damaged_journal(bench: Bench) -> list[str]:
    """A byte flipped, the end cut: only the record that was hit is lost, and that is said."""
    folder = bench.folder / "journal"
    journal = _filled(folder)
    whole = (folder / JOURNAL).read_bytes()
    problems = []
    for what, content, hit in _damage(whole, bench):
        reading = parse(content)
        numbers = {record["number"] for record in reading.records}
        if lost := set(range(RECORDS)) - numbers - hit:
            problems.append(f"{what}: records {sorted(lost)} are lost")
        if len(numbers) < RECORDS and not reading.problems and not whole.startswith(content):
            problems.append(f"{what}: nothing is said")
    last = whole[: whole.rindex(b"\n", 0, -1) + 1]
    for content in (last, b""):  # whole records are gone: only the certificate can tell
        (folder / JOURNAL).write_bytes(whole)
        journal.renew()
        (folder / JOURNAL).write_bytes(content)
        if "has lost its last records" not in journal.renew():
            problems.append(f"{len(whole) - len(content)} bytes cut off: nothing is said")
    for content in (b"", b"\0" * len(whole), whole[: len(whole) // 2], b"\xff" * 100 + whole):
        (folder / JOURNAL).write_bytes(content)
        journal.append("graded", "track1/softmax", number=99)
        after = (folder / JOURNAL).read_bytes()
        if not after.startswith(content) or journal.read().records[-1]["number"] != 99:
            problems.append("after damage the next record was not added behind it")
    return problems


def _damage(whole: bytes, bench: Bench) -> Iterator[tuple[str, bytes, set[int]]]:
    """What was done, the damaged content, and which records may be lost by it."""
    ends = [place for place, byte in enumerate(whole) if byte == ord("\n")]
    step = 5 if bench.quick else 1
    for place in range(random.Random(bench.seed).randrange(step), len(whole), step):
        record = sum(end < place for end in ends)
        for mask in (0x01, 0x80, 0xFF):
            broken = bytearray(whole)
            broken[place] ^= mask
            hit = {record, record + 1} if place in ends else {record}
            yield f"byte {place} ^ {mask}", bytes(broken), hit
        yield f"cut at {place}", whole[:place], set(range(record, RECORDS))
        yield f"zeros from {place} to {place + 64}", \
            whole[:place] + bytes(64) + whole[place + 64 :], \
            set(range(record, sum(end < place + 64 for end in ends) + 1))


def damaged_certificate(bench: Bench) -> list[str]:
    """The certificate is made anew from the journal, whatever was in its place."""
    folder = bench.folder / "certificate"
    journal = _filled(folder)
    path = folder / CERTIFICATE
    good = path.read_bytes()
    step = 7 if bench.quick else 1
    damage = [good[:place] for place in range(0, len(good), step)]
    for place in range(0, len(good), step):
        broken = bytearray(good)
        broken[place] ^= 0xFF
        damage.append(bytes(broken))
    problems = []
    for content in (*damage, bytes(len(good)), b"[" * 100_000, b"\xff\xfe"):
        path.write_bytes(content)
        said = journal.renew()
        if said or path.read_bytes() != good:
            problems.append(f"after {content[:40]!r} it is not what it was: {said}")
        for aside in folder.glob("*.damaged-*"):
            if aside.read_bytes() != content:
                problems.append(f"{aside.name} does not hold the damaged one")
            aside.unlink()
    return problems


def damaged_workspace(bench: Bench) -> list[str]:
    """Grading goes on after damage to both files of the record, and says what is lost."""
    bench.warm.grade()
    before = bench.recorded()
    journal, certificate = bench.mark / JOURNAL, bench.mark / CERTIFICATE
    whole = journal.read_bytes()
    problems = []
    try:
        broken = bytearray(whole)
        broken[len(whole) - 40] ^= 0x01
        journal.write_bytes(bytes(broken))
        certificate.write_bytes(b"\0" * 10)
        ended = bench.warm.grade()
        problems += bench.expected(ended, {0}, cold=False)
        if "is damaged" not in ended.err:
            problems.append(f"it does not say so: {ended.err!r}")
        if bench.recorded() != before:
            problems.append(f"{before} records, one damaged, one added: {bench.recorded()}")
        if json.loads(certificate.read_bytes())["schema"] != SCHEMA:
            problems.append("the certificate was not made anew")
    finally:
        journal.write_bytes(whole)
        bench.acknowledged = before
        bench.seen.clear()
        for aside in bench.mark.glob("*.damaged-*"):
            aside.unlink()
        bench.warm.run("certificate")
    return problems


def failing_disk(bench: Bench) -> list[str]:
    """Every write to the record in turn finds the disk full or broken."""
    problems: list[str] = []
    for code in (NO_SPACE, FAILS):
        for once in (False,) if bench.quick else (False, True):
            for number in itertools.count(1):
                where = f"write {number}, {os.strerror(code)}, {'once' if once else 'from then on'}"
                before = bench.reading()
                ended = bench.warm.grade(disk=(number, code, once))
                problems += [f"{where}: {what}" for what in _after_failure(bench, ended, before)]
                if ended.writes < number:  # it was not reached any more
                    break
            if number < 6:
                problems.append(f"only {number - 1} writes were seen; the shim misses them")
            if bench.quick:
                break
    return problems


def _after_failure(bench: Bench, ended: Ended, before: JournalReading) -> list[str]:
    problems = bench.expected(ended, {0, 3}, cold=False)
    if ended.report.get("verdict") != "PASSED":
        problems.append(f"the verdict was not shown: {ended.described()}")
    after = bench.reading()
    if after.records[: len(before.records)] != before.records:
        problems.append("an earlier record is gone")
    more = len(after.records) - len(before.records)
    if ended.saved and more != 1:
        problems.append(f"it was called saved, and {more} records were added")
    if not ended.saved and "was not saved" not in ended.err:
        problems.append(f"it was not saved and did not say so: {ended.err!r}")
    if strays := list(bench.mark.glob(".*.tmp")):
        problems.append(f"{strays[0].name} is left")
    new = set(after.problems) - set(before.problems)
    if any("cut short" not in said for said in new) or len(new) > 1:
        problems.append(f"the record says {sorted(new)}")
    # What a failed write left of a line stays; nothing is ever cut off. The bench starts over.
    if after.problems:
        journal = bench.mark / JOURNAL
        journal.write_bytes(journal.read_bytes().rpartition(b"\n")[0] + b"\n")
    return problems


# ---------------------------------------------------------------------------------------------
# What is called kernel.py


def _large(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(100_000_000)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as ours:
        here = Path.cwd()
        os.chdir(path.parent)  # the whole path may be too long for an address
        try:
            ours.bind(path.name)
        finally:
            os.chdir(here)


NO_FILES: Mapping[str, Callable[[Path], object]] = {
    "100 MB": _large,
    "a pipe": os.mkfifo,
    "a device": lambda path: path.symlink_to("/dev/zero"),
    "a terminal": lambda path: path.symlink_to("/dev/tty"),
    "a symlink loop": lambda path: path.symlink_to(path.name),
    "a dangling link": lambda path: path.symlink_to("nothing"),
    "a folder": lambda path: path.mkdir(),
    "a socket": _socket,
    "nothing": lambda path: None,
}

HEALTHY = module.HEALTHY.encode()
TEXTS: Mapping[str, tuple[bytes, int, str]] = {  # content, exit code, code of the finding
    "a byte order mark and CRLF": (b"\xef\xbb\xbf" + HEALTHY.replace(b"\n", b"\r\n"), 0, ""),
    "CR alone": (HEALTHY.replace(b"\n", b"\r"), 0, ""),
    "latin-1, declared": (b"# -*- coding: latin-1 -*-\n# \xe9\xe8\n" + HEALTHY, 0, ""),
    "latin-1, not declared": (b"# \xe9\xe8\n" + HEALTHY, 1, "P02"),
    "UTF-16": (module.HEALTHY.encode("utf-16"), 1, "P02"),
    "an unknown encoding": (b"# coding: klingon\n" + HEALTHY, 1, "P02"),
    "zeros": (bytes(1000), 1, "P02"),
    "no byte": (b"", 1, "P03"),
    "a thousand brackets": (b"x = " + b"(" * 1000, 1, "P02"),
    "an expression 100 000 deep": (b"x = " + b"-" * 100_000 + b"1\n" + HEALTHY, 1, "P02"),
    "900 000 bytes of comments": (HEALTHY + b"# much\n" * 128_000, 0, ""),
}


def no_file(bench: Bench, make: Callable[[Path], object]) -> list[str]:
    """What is no file is refused in one sentence, at once, and nothing is recorded."""
    before = bench.recorded()
    bench.kernel.unlink(missing_ok=True)
    make(bench.kernel)
    try:
        ended = bench.warm.run("grade", "--again", module.NAME, "--json")
    finally:
        if bench.kernel.is_dir():
            bench.kernel.rmdir()
        else:
            bench.kernel.unlink(missing_ok=True)
    problems = bench.expected(ended, {2}, cold=False)
    if ended.err.count("\n") != 1:
        problems.append(f"no sentence: {ended.err!r}")
    if bench.recorded() != before:
        problems.append("something was recorded")
    return [*problems, *bench.store(), *bench.leftovers()]


def odd_text(bench: Bench, content: bytes, code: int, finding: str) -> list[str]:
    """Text in any encoding that Python takes is graded; what is no text fails with its code."""
    ended = bench.warm.grade(content)
    problems = bench.expected(ended, {code}, {finding}, cold=False)
    return [*problems, *bench.warm.left(), *bench.store(), *bench.leftovers()]


def kernel(bench: Bench, name: str) -> list[str]:
    """A kernel that misbehaves costs its own grade, or one case of it, and nothing else."""
    hostile = HOSTILE[name]
    limit = bench.limits[hostile.limit] if hostile.limit else 0.0
    ended = bench.warm.grade(hostile.source)
    codes = {1} if hostile.codes else {0}
    if name == "SIGKILL to its parent and itself":
        codes = {1, 3}  # where it reaches its parent, nothing is known of the kernel
    problems = bench.expected(ended, codes, hostile.codes, limit, cold=3 in codes)
    following = bench.warm.grade()
    if following.code != 0:
        problems.append(f"the next grade ended with {following.described()}")
    return [*problems, *bench.warm.left(), *bench.store(), *bench.leftovers()]
