"""Forks writers of one journal and kills each at a random moment; prints what became of it.

A writer acknowledges a commit on a pipe only after ``append`` returned. After every kill the
certificate must load. Run as ``python kill_loop.py FOLDER KILLS``; the output is one JSON object.
"""

from __future__ import annotations

import json
import os
import random
import select
import signal
import sys
import time
from pathlib import Path

from tritonlab.progress.journal import Journal, JournalReading

SHORTEST_S, LONGEST_S = 0.03, 0.4  # between which the longest wait for a kill lies


def view(reading: JournalReading) -> str:
    return json.dumps({"schema": 1, "records": len(reading.records), "head": reading.head})


def write_forever(folder: Path, writer: int, acknowledge: int) -> None:
    journal = Journal(folder, view)
    number = 0
    while True:
        journal.append("graded", f"track1/m{writer}", number=number, padding="x" * 200)
        os.write(acknowledge, f"{writer} {number}\n".encode())
        number += 1


def kill_one(folder: Path, writer: int, pause: float) -> list[str]:
    """Start a writer, kill it ``pause`` seconds after it began, and return its commits."""
    reader, acknowledge = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        os.write(acknowledge, b"ready\n")
        write_forever(folder, writer, acknowledge)
    os.close(acknowledge)
    select.select([reader], [], [], 10)
    time.sleep(pause)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with os.fdopen(reader, "rb") as pipe:
        words = pipe.read().decode().splitlines()
    return [word for word in words if word != "ready"]


def main(folder: Path, kills: int) -> None:
    chance = random.Random(2024)
    acknowledged: list[str] = []
    unreadable = 0
    longest = SHORTEST_S
    for writer in range(kills):
        commits = kill_one(folder, writer, chance.uniform(0, longest))
        acknowledged += commits
        # A busy machine takes longer over a commit: wait so that about every other kill finds one.
        longest = max(SHORTEST_S, longest * 0.8) if commits else min(LONGEST_S, longest * 1.25)
        certificate = folder / "certificate.json"
        if certificate.exists():
            try:
                json.loads(certificate.read_bytes())
            except ValueError:
                unreadable += 1
    reading = Journal(folder, view).read()
    there = {f"{record.module.removeprefix('track1/m')} {record['number']}"
             for record in reading.records}
    print(json.dumps({
        "kills": kills,
        "acknowledged": len(acknowledged),
        "lost": sorted(set(acknowledged) - there),
        "unreadable": unreadable,
        "records": len(reading.records),
        "problems": reading.problems,
        "stray": len(list(folder.glob(".*.tmp"))),
    }))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
