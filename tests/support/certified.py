"""Certificates and journals that nobody earned, for tests and for looking at pages.

``python tests/certified.py FOLDER`` writes the pages that there are to be looked at.
"""

from __future__ import annotations

import hashlib
import sys
from datetime import date, timedelta
from pathlib import Path

from tests.support.benched import benchmark
from tritonlab.course import course
from tritonlab.course.course import Course
from tritonlab.progress import caches, progress_report
from tritonlab.progress.certificate import Certificate, CertificateEntry, ModuleState, Total
from tritonlab.progress.journal import JournalReading, Record
from tritonlab.progress.progress_report import Overview
from tritonlab.workspace.workspace import Workspace

TRACKS = (("track1", "Missing Elements", 5, 1), ("track2", "Optimization", 5, 4),
          ("track3", "Debugging", 4, 1), ("track4", "Mastery", 5, 1))
WORKSTATION = "NVIDIA RTX PRO 6000 Blackwell Workstation Edition"
VERSIONS = {"numpy": "2.3.5", "python": "3.11.14", "torch": "2.13.0+cu130", "triton": "3.9.0"}
LONG_NAME = "Wolfeschlegelsteinhausenbergerdorff, Maria Magdalena Theodora Philippa von und zu"


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def entry(module: str, title: str, core: bool = True, evidence: str = "efficient",
          settings: int = 0, **more: object) -> CertificateEntry:
    """A passed module; ``settings`` numbers the versions that it was graded with."""
    on_gpu = evidence == "fast"
    facts = {
        "grades": 12, "cases_passed": 34, "cases_skipped": 0 if on_gpu else 3,
        "cases_total": 34 if on_gpu else 37, "source_sha256": sha256(f"source of {module}"),
        "suite_sha256": sha256(f"suite of {module}"), "grader_version": "0.4.0",
        "versions": VERSIONS | ({"torch": f"2.{settings}.0"} if settings else {}),
        "engine": "interpreter, every access checked",
        "isolation": "tier 2: landlock ABI 7, seccomp, unprivileged user", "seed": "00ff",
        "target": WORKSTATION if on_gpu else "NVIDIA H100 SXM",
        "device": WORKSTATION if on_gpu else None,
        "ceilings": {"copy_gb_s": 1_582.0, "matmul_tflops": 402.0,
                     "measured_at": "2026-11-22"} if on_gpu else {},
        "date": "2026-11-22"}
    return CertificateEntry(module, title, core,
                            **{"state": ModuleState.PASSED, "evidence": evidence, **facts, **more})


def certificate(entries: tuple[CertificateEntry, ...], name: str | None = "Ada Lovelace",
                problems: tuple[str, ...] = ()) -> Certificate:
    """With the totals that follow from the entries."""
    def passed(core: bool, track: str = "") -> int:
        return sum(one.core is core and one.state is ModuleState.PASSED
                   and one.module.startswith(track) for one in entries)

    return Certificate(
        name, "2026-11-22", 412, sha256("the last record"),
        (sha256("the last record"),), problems,
        {track: Total(passed(True, track), core) for track, _, core, _ in TRACKS},
        {track: title for track, title, *_ in TRACKS},
        Total(passed(True), 19), Total(passed(False), 7), entries)


def everything(title: str = "Numerically stable softmax over the rows of a strided matrix",
               settings: int = 3) -> Certificate:
    """All modules passed, with long names, help and several versions."""
    made = []
    for track, _, core, electives in TRACKS:
        for number in range(core + electives):
            made.append(entry(
                f"{track}/a-module-with-a-long-name-{number + 1}", f"{title} {number + 1}",
                core=number < core, evidence=("fast", "efficient", "correct")[number % 3],
                settings=len(made) % settings, hints_used=len(made) % 4,
                solution_seen=number == 2))
    return certificate(tuple(made), LONG_NAME)


def beginner() -> Certificate:
    """One module passed, one begun."""
    return certificate((
        entry("track1/vector-add", "Vector addition"),
        CertificateEntry("track1/softmax", "Stable softmax", True, ModuleState.TRIED, grades=2),
        CertificateEntry("track1/conv2d", "Convolution", True, ModuleState.WAITING)))


def record(seq: int, event: str, module: str, day: date | str, **data: object) -> Record:
    return Record(seq, event, module, str(day), sha256(str(seq)), sha256(str(seq - 1)), data)


def journal(course: Course, days: int = 40, first: date = date(2026, 10, 14)) -> JournalReading:
    """Some grades on most days, a module after the other, the last of them open."""
    modules, records = list(course.modules), []
    for number in range(days):
        module = modules[number * (len(modules) - 1) // days]
        day = first + timedelta(days=number)
        for grade in range(0 if number % 7 == 3 else 1 + (number * 5) % 9):
            passed = (number + 1) * (len(modules) - 1) // days > modules.index(module) and grade > 1
            records.append(record(
                len(records) + 1, "graded", module.id, day,
                verdict="PASSED" if passed else "FAILED",
                evidence=("efficient", "fast")[number % 2] if passed else "",
                cases={"passed": 40 if passed else 10 + number % 20, "total": 41},
                suite_sha256=module.suite_sha256, source_sha256=sha256(f"{number} {grade}"),
                versions=VERSIONS, grader_version="0.4.0", target="NVIDIA H100 SXM"))
        if number % 6 == 1:
            records.append(record(len(records) + 1, "hint", module.id, day, group="A",
                                  rung=1 + number % 3))
    return JournalReading(tuple(records))


def progress(place: Workspace, days: int = 40, benched: bool = True) -> Overview:
    """A learner's way through the real course, with three benchmarks kept in ``place``."""
    the_course = course.load()
    for number, name in enumerate(("missing-elements/03-softmax", "mastery/01-custom-kernels",
                                   "optimization/01-tiling") if benched else ()):
        module = next(m for m in the_course.modules if str(m.suite.parent).endswith(name))
        caches.save_benchmark(place.mark, module, benchmark(name, measured=number != 1))
    return progress_report.build(the_course, journal(the_course, days), place.mark)


if __name__ == "__main__":
    from tritonlab.render import pages

    folder = Path(sys.argv[1])
    folder.mkdir(exist_ok=True)
    for name, way in (("long", progress(Workspace(folder), 200)),
                      ("usual", progress(Workspace(folder))),
                      ("new", progress(Workspace(folder / "new"), 1, benched=False))):
        (folder / f"report-{name}.html").write_text(pages.report(way))
    for name, made in (("everything", everything()), ("beginner", beginner()),
                       ("nothing", certificate((), None))):
        path = folder / f"certificate-{name}.html"
        path.write_text(pages.certificate(made, path.name))
