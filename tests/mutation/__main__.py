"""The tests tested: defects are planted in the grader, one at a time, and some test must fail.

    python -m tests.mutation [--only ID ...] [--course] [--jobs 1] [--workers 2] [--json FILE]

Each defect of ``defects.toml`` is planted in a temporary copy of this checkout. Tests run there in
steps, each up to its first failure: those that the defect names, those of its package, the rest of
the default tier, and with ``--course`` the course tier, in which the package and all modules come
first. A test counts as noticing a defect if it fails again alone, and passes once the defect is
gone. Tests that do not end within ``LIMIT_S`` count too, and are reported as a time limit.

The file of results is written after each defect; with ``--only`` other rows stay as they were.
Exits with 1 if a tier notices less than it must: 85 % in the default tier, 97 % with the course.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import venv
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from grader.report import versions
from tests.mutation import defects, first_failure
from tests.mutation.defects import Defect

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "tests" / "benchmarks" / "results" / "mutation.json"
LIMIT_S = {"nearest": 600.0, "package": 900.0, "default": 1800.0, "course": 5400.0}
TIME_LIMIT = "time limit"  # in the place of a test's name
LEAST = {"default": 0.85, "course": 0.97}  # shares of all defects
# What a defect makes of compiled code is not kept for grades without it.
_PYTEST = ["-x", "-q", "-p", "no:cacheprovider", "--no-cache", "-p", first_failure.__name__]
_UNIT_AND_GRADING = ["-m", "not course"]  # a path that is named would run the course tier too


def steps(defect: Defect, *, course: bool, workers: int) -> Iterator[tuple[str, list[str]]]:
    """Names and pytest arguments of the runs that may notice a defect, nearest first."""
    package = f"tests/{defect.room}"
    if defect.nearest:
        yield "nearest", [*_UNIT_AND_GRADING, *defect.nearest]
    yield "package", [*_UNIT_AND_GRADING, package]
    yield "default", ["-n", str(workers), "--dist", "worksteal", f"--ignore={package}"]
    if course:
        modules = "tests/course/test_modules.py"
        yield "course", ["-m", "course", *defect.nearest, package]
        yield "course", ["-m", "course", modules]
        yield "course", ["--course", "-m", "course", f"--ignore={modules}", f"--ignore={package}"]


@contextmanager
def copied_checkout() -> Iterator[Path]:
    """A copy of this checkout, uncommitted changes included, with a Python that imports it."""
    listed = subprocess.run(["git", "ls-files", "-coz", "--exclude-standard"], cwd=ROOT, text=True,
                            capture_output=True, check=True).stdout
    with tempfile.TemporaryDirectory(prefix="tritonlab-mutation-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # sandboxed processes of another user read it
        for path in filter(None, listed.split("\0")):
            if (ROOT / path).is_file():
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / path, folder / path)
        venv.create(folder / ".venv", symlinks=True)
        [packages] = (folder / ".venv").glob("lib/python*/site-packages")
        installed = [path for path in sys.path if Path(path).name == "site-packages"]
        (packages / "checkout.pth").write_text("\n".join([str(folder), *installed]) + "\n")
        yield folder


def failure(folder: Path, arguments: Sequence[str], limit_s: float) -> str:
    """The first test that fails in a checkout; ``TIME_LIMIT`` without an end, empty without any.

    Raises:
        RuntimeError: pytest could not run the tests.
    """
    with tempfile.TemporaryFile("w+") as output, tempfile.NamedTemporaryFile("r") as failures:
        process = subprocess.Popen(
            [folder / ".venv" / "bin" / "python", "-m", "pytest", *_PYTEST, *arguments],
            cwd=folder, stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
            env=os.environ | {first_failure.FILE: failures.name})
        try:
            code = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            return TIME_LIMIT
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        output.seek(0)
        failed = failures.readline().rstrip("\n")
        if code not in (0, 5) and not failed:  # 5: no test has such a marker
            raise RuntimeError(
                f"pytest {' '.join(arguments)} ended with {code}:\n{output.read()[-3000:]}")
        return failed


def _reliable(folder: Path, arguments: Sequence[str], limit_s: float) -> str:
    """The first test that fails in a checkout, and again alone."""
    while failed := failure(folder, arguments, limit_s):
        if failed == TIME_LIMIT or failure(folder, [failed], LIMIT_S["nearest"]):
            break
        arguments = [*arguments, f"--deselect={failed}"]
    return failed


def noticed(defect: Defect, folder: Path, *, course: bool, workers: int) -> dict[str, Any]:
    """Who notices a defect in a checkout, in which tier, after how many seconds of testing.

    ``tier`` is ``none`` where no test does, and ``not default`` where the course tier did not run.
    """
    path = folder / defect.file
    text = path.read_text(encoding="utf-8")
    tier, by = "none" if course else "not default", ""
    started = time.monotonic()
    path.write_text(defect.planted(text), encoding="utf-8")
    try:
        for step, arguments in steps(defect, course=course, workers=workers):
            if by := _reliable(folder, arguments, LIMIT_S[step]):
                tier = "course" if step == "course" else "default"
                break
    finally:
        path.write_text(text, encoding="utf-8")
    seconds = round(time.monotonic() - started, 1)
    if by not in ("", TIME_LIMIT) and failure(folder, [by], LIMIT_S["nearest"]):
        tier, by = "none", f"{by} fails without the defect too"
    return {"id": defect.id, "file": defect.file, "why": defect.why, "tier": tier, "by": by,
            "seconds": seconds, "date": datetime.date.today().isoformat(), "commit": commit()}


@cache  # before results are written, which are tracked
def commit() -> str:
    """The commit that is checked out, with a word on changes that are not committed."""
    described = subprocess.run(["git", "describe", "--always", "--dirty", "--exclude=*"],
                               cwd=ROOT, text=True, capture_output=True, check=True)
    return described.stdout.strip()


def summary(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Shares of the defects that each tier notices, and the names of the others."""
    tiers = Counter(row["tier"] for row in rows)
    shares = {"default": round(tiers["default"] / len(rows), 3)}
    if not tiers["not default"]:
        shares["course"] = round((tiers["default"] + tiers["course"]) / len(rows), 3)
    return {"defects": len(rows), "noticed": shares, "survivors": [
        row["id"] for row in rows if row["tier"] in ("none", "not default")]}


def show(row: dict[str, Any]) -> None:
    print(f"{row['id']:34} {row['tier']:12}{row['seconds']:7.1f} s  "
          f"{row['by'].removeprefix('tests/'):.110}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="+", default=[], metavar="ID")
    parser.add_argument("--course", action="store_true", help="survivors meet the course tier too")
    parser.add_argument("--jobs", type=int, default=1, help="defects at the same time")
    parser.add_argument("--workers", type=int, default=2, help="of pytest, for the whole tier")
    parser.add_argument("--json", type=Path, default=RESULTS, metavar="FILE")
    options = parser.parse_args()
    table = {defect.id: defect for defect in defects.load()}
    if unknown := set(options.only) - table.keys():
        parser.error(f"no such defect: {', '.join(sorted(unknown))}")
    kept = json.loads(options.json.read_text())["rows"] if options.json.exists() else []
    rows = {row["id"]: row for row in kept if row["id"] in table} if options.only else {}
    folders: queue.SimpleQueue[Path] = queue.SimpleQueue()

    def judge(defect: Defect) -> dict[str, Any]:
        folder = folders.get()
        try:
            return noticed(defect, folder, course=options.course, workers=options.workers)
        finally:
            folders.put(folder)

    with ExitStack() as copies, ThreadPoolExecutor(options.jobs) as pool:
        for _ in range(options.jobs):
            folders.put(copies.enter_context(copied_checkout()))
        for row in pool.map(judge, [table[name] for name in options.only or table]):
            show(row)
            rows[row["id"]] = row
            ordered = [rows[name] for name in table if name in rows]
            result = summary(ordered)
            options.json.write_text(json.dumps({
                "date": row["date"], "commit": row["commit"], "cores": os.cpu_count(),
                "versions": versions(), **result, "rows": ordered}, indent=1) + "\n")
    print(f"{result['defects']} defects; noticed: " + ", ".join(
        f"{share:.1%} ({tier} tier)" for tier, share in result["noticed"].items()))
    if result["survivors"]:
        print(f"survivors: {', '.join(result['survivors'])}")
    return 1 if any(share < LEAST[tier] for tier, share in result["noticed"].items()) else 0


if __name__ == "__main__":
    sys.exit(main())
