"""The chaos list: every entry by name, and what runs it."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from tests.fidelity.chaos import classroom, files, kills, surroundings
from tests.fidelity.chaos.bench import Bench
from tests.fidelity.chaos.hooks import STAGES
from tests.fidelity.chaos.kernels import HOSTILE

SLOW_ONES = ("SIGKILL to its parent and itself", "a hog of memory at import")
Run = Callable[[Bench], list[str]]


@dataclass(frozen=True)
class Entry:
    """One entry: it returns what went wrong, and nothing when all invariants hold.

    ``quick``: whether the quick form runs it too; what it leaves out differs only in details from
    what it runs. ``mounts``: whether it needs a disk of its own, which takes root.
    """

    name: str
    run: Run
    quick: bool = True
    mounts: bool = False


NOT_RUN_HERE = (
    "a hang on the GPU",
    "no free memory on the GPU",
    "a GPU that is lost in the middle of a grade",
)


def entries(number_of_kills: int) -> Iterator[Entry]:
    """All entries, with so many kills of the judge."""
    yield from _signals(number_of_kills)
    for name in HOSTILE:
        yield Entry(f"a kernel with {name}", partial(files.kernel, name=name),
                    quick=name not in SLOW_ONES)
    for name, make in files.NO_FILES.items():
        yield Entry(f"kernel.py is {name}", partial(files.no_file, make=make))
    for name, (content, code, finding) in files.TEXTS.items():
        yield Entry(f"kernel.py holds {name}",
                    partial(files.odd_text, content=content, code=code, finding=finding))
    yield Entry("a damaged journal", files.damaged_journal)
    yield Entry("a damaged certificate", files.damaged_certificate)
    yield Entry("a damaged workspace", files.damaged_workspace)
    yield Entry("a disk that fails at every write", files.failing_disk)
    yield from _surroundings()
    yield Entry("a class with hostile members", a_class)


def _signals(number_of_kills: int) -> Iterator[Entry]:
    yield Entry("SIGKILL of the judge", partial(kills.judge, kills=number_of_kills))
    yield Entry("SIGKILL of the judge of a cold zygote", kills.judge_of_a_cold_zygote)
    for name, number in (("SIGTERM", signal.SIGTERM), ("SIGHUP", signal.SIGHUP),
                         ("SIGINT", signal.SIGINT)):
        few = max(2, number_of_kills // 10)
        yield Entry(f"{name} to the judge", partial(kills.ended_by, number, kills=few),
                    quick=False)
    for name, number in (("SIGKILL", signal.SIGKILL), ("SIGSTOP", signal.SIGSTOP)):
        times = max(1, number_of_kills // 30)
        yield Entry(f"{name} of a child", partial(kills.child, number=number, times=times))
        yield Entry(f"{name} of the zygote", partial(kills.zygote, number=number, times=times))
    for stage in STAGES:
        yield Entry(f"Ctrl-C while {stage}", partial(kills.interrupted, stage=stage))
        yield Entry(f"Ctrl-C twice while {stage}", partial(kills.interrupted, stage=stage, times=2),
                    quick=False)


def _surroundings() -> Iterator[Entry]:
    for name, oddity in surroundings.HARMLESS.items():
        yield Entry(name, partial(surroundings.harmless, oddity=oddity),
                    quick=name == "all of these at once")
    for name, shell, codes in (("a broken pipe", "a broken pipe", {1}),
                               ("a closed standard output", "exec >&-;", {1}),
                               ("all streams closed", "exec <&- >&- 2>&-;", {1}),
                               ("a full standard output", "exec >/dev/full;", {1})):
        yield Entry(name, partial(surroundings.unheard, shell=shell, codes=codes), quick=False)
    yield Entry("a read-only HOME", surroundings.read_only_home, mounts=True, quick=False)
    yield Entry("a full folder for temporary files", surroundings.full_disk, mounts=True,
                quick=False)
    yield Entry("no folder for temporary files", surroundings.no_temporary_folder)
    yield Entry("two graders in one folder", surroundings.company)


def a_class(bench: Bench) -> list[str]:
    hostile = list(classroom.QUICK) if bench.quick else list(HOSTILE)[:10]
    return classroom.grades(bench, 20 if bench.quick else 200, hostile)
