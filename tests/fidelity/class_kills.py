"""Kills the grading of a class at random moments, and checks that nothing is lost or done twice.

``python -m tests.fidelity.class_kills --rounds 60`` kills the command, one of its workers, or
all of its processes. With ``--ray`` the workers are actors on two Ray nodes of this machine, one of
which is killed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from grader.sandbox.processes import children, descendants
from tritonlab.classroom import book, events, settings
from tritonlab.classroom.store import Store

MODULE = "track1/vector-add"
COUNT = 40  # submissions; every eighth runs, the others are refused by their syntax
CLASS = f"""
name = "kills"
require_isolation = 0
[assignments.hw1]
modules = ["{MODULE}"]
"""
OUTLIVING_S = 120.0  # for an uninterrupted run too
KINDS = ("command", "worker", "everything")


def write(root: Path, count: int = COUNT) -> None:
    """Writes a class with submissions of as many students, all different."""
    root.mkdir(parents=True)
    (root / settings.SETTINGS).write_text(CLASS)
    store = Store(root)
    store.create()
    imported = []
    for number in range(count):
        source = f"# {number}\n" + ("import missing\n" if number % 8 == 0 else "def f(:\n")
        imported.append({"event": "imported", "student": f"s{number}", "assignment": "hw1",
                         "module": MODULE, "blob": store.add({"kernel.py": source.encode()})})
    store.append(*imported)


COMMAND = (sys.executable, "-m", "tritonlab", "class", "grade", "--json", "--jobs", "2")


def grade(root: Path, *options: str) -> subprocess.Popen[bytes]:
    """Starts a grading in a session of its own."""
    return subprocess.Popen(
        [*COMMAND, *options], cwd=root, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        start_new_session=True)


def kill(process: subprocess.Popen[bytes], kind: str, random_: random.Random) -> None:
    """Kills the command, one of the processes below it, or all of them."""
    if kind == "worker":
        below = [pid for child in children(process.pid) for pid in (child, *descendants(child))]
        pids = [random_.choice(below)] if below else []
    elif kind == "everything":
        pids = [process.pid, *descendants(process.pid)]
    else:
        pids = [process.pid]
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _error(process: subprocess.Popen[bytes]) -> bytes | None:
    """What the command printed; None if processes that it started outlive it, which are killed."""
    try:
        return process.communicate(timeout=OUTLIVING_S)[1]
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return None


def results(root: Path) -> dict[str, tuple[int, bytes]]:
    """The files of results, by name: inode and content; a rewritten one has another inode."""
    folder = Store(root).folder / "results"
    return {path.name: (path.stat().st_ino, path.read_bytes())
            for path in folder.glob("*.json.gz")}


def faults(root: Path, before: dict[str, tuple[int, bytes]]) -> Iterator[str]:
    """Yields what a kill has lost, spoiled or had done twice."""
    now = results(root)
    yield from (f"{name} was lost" for name in before.keys() - now.keys())
    yield from (f"{name} was graded twice" for name, was in before.items()
                if name in now and now[name] != was)
    store = Store(root)
    yield from (f"{name} is damaged" for name in now
                if store.result(name.removesuffix(".json.gz")) is None)
    yield from events.read(store.folder).problems


def run(rounds: int, seed: int, root: Path, *options: str) -> tuple[Counter[str], list[str]]:
    """Grades one class after the other, each killed until it is done; returns kills and faults."""
    random_ = random.Random(seed)
    kills: Counter[str] = Counter()
    wrong: list[str] = []
    number = 0
    while sum(kills.values()) < rounds:
        folder = root / f"class{number}"
        number += 1
        write(folder)
        for _ in range(40):
            before = results(folder)
            process = grade(folder, *options)
            kind = random_.choice(KINDS)
            if sum(kills.values()) < rounds:
                try:
                    process.wait(random_.uniform(0.3, 8))
                except subprocess.TimeoutExpired:
                    kill(process, kind, random_)
                    kills[kind] += 1
            error = _error(process)
            if error is None:
                wrong.append(f"after a kill of the {kind}, its processes went on")
                continue
            wrong += faults(folder, before)
            if process.returncode == 0:
                break
            if process.returncode not in (-signal.SIGKILL, 1):
                wrong.append(f"exit {process.returncode} after {kind}: {error.decode()[-500:]}")
        book_ = book.read(settings.load(folder), Store(folder).log())
        graded = {key for key, grades in book_.grades.items() if grades}
        if len(graded) != COUNT:
            wrong.append(f"{len(graded)} of {COUNT} submissions are graded at the end")
    return kills, wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ray", action="store_true")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    started = time.monotonic()
    root = Path(tempfile.mkdtemp(prefix="class-kills-"))
    try:
        options = ("--executor", "ray") if arguments.ray else ()
        kills, wrong = run(arguments.rounds, arguments.seed, root, *options)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    seconds = round(time.monotonic() - started)
    print(f"{sum(kills.values())} kills ({dict(kills)}) in {seconds} s, {len(wrong)} faults")
    print(*wrong[:20], sep="\n")
    if arguments.json:
        arguments.json.write_text(json.dumps({
            "rounds": arguments.rounds, "seed": arguments.seed, "ray": arguments.ray,
            "submissions": COUNT, "kills": kills, "faults": wrong, "seconds": seconds}, indent=1)
            + "\n")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
