"""Odd surroundings: folders, descriptors, variables, clocks and company that nobody tidied up."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.fidelity.chaos import module
from tests.fidelity.chaos.bench import Bench, Ended, Environment, orphans, text


@dataclass(frozen=True)
class Oddity:
    """Surroundings in which a grade has to end as anywhere else."""

    environment: Environment = field(default_factory=dict)
    shell: str = ""
    hooks: Mapping[str, Any] = field(default_factory=dict)


HARMLESS: Mapping[str, Oddity] = {
    "the locale C": Oddity({"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0",
                            "PYTHONCOERCECLOCALE": "0"}),
    "a HOME that does not exist": Oddity({"HOME": "/nonexistent"}),
    "no HOME": Oddity({"HOME": None}),
    "a umask of 077": Oddity(shell="umask 077;"),
    "a closed standard input": Oddity(shell="exec <&-;"),
    "a dumb terminal": Oddity({"TERM": "dumb"}),
    "no terminal type": Oddity({"TERM": None}),
    "no GPU to be seen": Oddity({"CUDA_VISIBLE_DEVICES": ""}),
    "a clock that jumps a year ahead": Oddity(hooks={"clock": 365 * 86_400.0}),
    "a clock that jumps back by a day": Oddity(hooks={"clock": -86_400.0}),
    "all of these at once": Oddity(
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "HOME": "/nonexistent",
         "TERM": "dumb", "CUDA_VISIBLE_DEVICES": ""},
        "umask 077; exec <&-;", {"clock": 365 * 86_400.0}),
}


def harmless(bench: Bench, oddity: Oddity) -> list[str]:
    """The right kernel passes, a wrong one fails."""
    how: dict[str, Any] = {"environment": oddity.environment, "shell": oddity.shell,
                           "hooks": oddity.hooks}
    problems = []
    for source, code in ((module.HEALTHY, 0), (module.WRONG, 1))[: 1 if bench.quick else 2]:
        with orphans() as left:
            ended = bench.grade(source, **how)
            problems += bench.expected(ended, {code}, {"N01"})
        if not ended.saved:
            problems.append("it was not saved")
        problems += [*left, *bench.leftovers(), *bench.store()]
    return problems


# ---------------------------------------------------------------------------------------------
# Nobody listens


def unheard(bench: Bench, shell: str, codes: set[int]) -> list[str]:
    """What a failed grade prints is heard by nobody; it is recorded, and its exit code is right."""
    before = bench.recorded()
    problems = []
    with orphans() as left:
        bench.kernel.write_text(module.WRONG)
        started = time.monotonic()
        with (bench.folder / "err").open("w+b") as err:
            reader = subprocess.DEVNULL
            if shell == "a broken pipe":
                read, reader = os.pipe()
                os.close(read)
            process = bench.start("grade", "--again", module.NAME, stdout=reader, stderr=err,
                                  shell="" if shell == "a broken pipe" else shell)
            process.wait(60)
            if reader >= 0:
                os.close(reader)
            ended = Ended(process.returncode, "", text(err), time.monotonic() - started)
    if bench.recorded() != before + 1:
        problems.append("the result is not recorded")
    problems += bench.expected(ended, codes)
    return [*problems, *left, *bench.leftovers(), *bench.store()]


# ---------------------------------------------------------------------------------------------
# Folders


def read_only_home(bench: Bench) -> list[str]:
    """A workspace in a HOME that is read-only: the verdict is shown, and that it was not saved."""
    problems = []
    with _disk("1m") as home:
        place = home / "work"
        changes = {"HOME": str(home), "TRITONLAB_WORKSPACE": str(place)}
        bench.run("start", module.NAME, environment=changes)
        (place / module.PLACE).write_text(module.HEALTHY)
        with _read_only(home), orphans() as left:
            ended = bench.run("grade", "--again", module.NAME, "--json", environment=changes)
            problems += bench.expected(ended, {3})
            if ended.report.get("verdict") != "PASSED" or ended.saved:
                problems.append(f"not graded, or called saved: {ended.described()}")
            if "was not saved" not in ended.err:
                problems.append(f"it does not say that: {ended.err!r}")
        return [*problems, *left, *bench.leftovers()]


def full_disk(bench: Bench) -> list[str]:
    """The folder for temporary files is full: nothing can be graded, and that is said."""
    problems = []
    with _disk("64k") as disk:
        with contextlib.suppress(OSError):
            (disk / "ballast").write_bytes(b"x" * (1 << 20))
        with orphans() as left:
            ended = bench.grade(environment={"TMPDIR": str(disk)})
            problems += bench.expected(ended, {0, 3})
        problems += [*left, *bench.store()]
        problems += [f"{path.name} is left" for path in disk.iterdir() if path.name != "ballast"]
    return problems


def no_temporary_folder(bench: Bench) -> list[str]:
    """TMPDIR is no folder, and no other can be written."""
    with orphans() as left:
        ended = bench.grade(hooks={"temporary": False})
        problems = bench.expected(ended, {3})
    if "temporary" not in ended.err:
        problems.append(f"it does not say what is missing: {ended.err!r}")
    return [*problems, *left, *bench.store()]


@contextlib.contextmanager
def _disk(size: str) -> Iterator[Path]:
    """A file system of its own."""
    with tempfile.TemporaryDirectory() as place:
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", place], check=True,
                       capture_output=True)
        try:
            yield Path(place)
        finally:
            subprocess.run(["umount", place], check=True)


@contextlib.contextmanager
def _read_only(place: Path) -> Iterator[None]:
    subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)
    try:
        yield
    finally:
        subprocess.run(["mount", "-o", "remount,rw", str(place)], check=True)


def can_mount() -> bool:
    """Whether small disks can be made here; that takes root."""
    if os.geteuid() != 0 or sys.platform != "linux":
        return False
    try:
        with _disk("64k"):
            return True
    except (OSError, subprocess.CalledProcessError):
        return False


# ---------------------------------------------------------------------------------------------
# Company


def company(bench: Bench, graders: int = 2) -> list[str]:
    """Several graders at once in one workspace: all pass, and all are recorded."""
    before = bench.recorded()
    problems = []
    with orphans() as left:
        bench.kernel.write_text(module.HEALTHY)
        started = time.monotonic()
        running = [bench.start("grade", "--again", module.NAME, "--json", stderr=subprocess.STDOUT)
                   for _ in range(graders)]
        said = [process.communicate(timeout=120)[0].decode() for process in running]
    took, recorded = time.monotonic() - started, bench.recorded() - before
    for process, out in zip(running, said, strict=True):
        ended = bench.note(Ended(process.returncode, out, "", took / graders))
        problems += bench.expected(ended, {0})
        if not ended.saved:
            problems.append(f"not saved: {out[-300:]!r}")
    if recorded != graders:
        problems.append(f"{recorded} of {graders} are recorded")
    return [*problems, *left, *bench.leftovers(), *bench.store()]
