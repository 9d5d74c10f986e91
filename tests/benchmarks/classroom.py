"""What importing, comparing and reporting a class take, in CPU seconds of one process.

    python -m tests.benchmarks.classroom [--students N] [--json FILE]

Import: 600 files from each platform are read and matched with the roster, in 2 s a layout; keeping
the files comes on top. One row has a roster on which no student is, so that the nearest ones are
looked up for each. Similarity: 600 submissions of softmax are compared in 5 s: of students who work
alone, 20 of them with a running maximum, and a copy of each of these under a disguise of the tests.
Report: 10 assignments with two submissions of each student, in 3 s. Status: 10 assignments with
three submissions of each student, in 0.3 s.
"""

import argparse
import contextlib
import io
import json
import os
import random
import sys
import tempfile
import time
from pathlib import Path

from grader.suite.mutants import read_mutants
from tests.classroom import test_report
from tests.classroom.similarity import population
from tests.classroom.similarity.disguises import DISGUISES
from tests.support import class_layouts
from tritonlab.classroom import book, importers
from tritonlab.classroom.classroom import Classroom
from tritonlab.classroom.report import pages
from tritonlab.classroom.roster import Roster, Student
from tritonlab.classroom.similarity.compare import ClassSource, compare
from tritonlab.classroom.similarity.page import ModulePage, page
from tritonlab.course import course
from tritonlab.render import classroom as view
from tritonlab.render.screen import Screen

LIMIT_CPU_S = 2.0  # of one import
SIMILAR_CPU_S = 5.0
COPIES = 20
REPORT_CPU_S = 3.0
STATUS_CPU_S = 0.3


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--students", type=int, default=600)
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    roster = class_layouts.roster(chosen.students)
    solution = course.load().find("track1/softmax").solution.read_bytes()
    sources = {one.id: solution + f"# {one.id}\n".encode() for one in roster}
    seconds: dict[str, dict[str, float]] = {}
    for layout, write in class_layouts.LAYOUTS.items():
        with tempfile.TemporaryDirectory() as folder:
            path = write(Path(folder), roster, sources)
            seconds[layout] = measured(path, roster, chosen.students)
            if layout == "moodle":
                strangers = Roster(tuple(Student(f"x{one.id}", f"{one.name} Q") for one in roster))
                seconds["moodle, strangers"] = measured(path, strangers, 0)
    figures = {"students": chosen.students, "bytes": len(solution), "limit_cpu_s": LIMIT_CPU_S,
               "cpus": len(os.sched_getaffinity(0)), "cpu_seconds": seconds,
               "similarity": similar(chosen.students), "report": report(chosen.students),
               "status": status(chosen.students)}
    print(json.dumps(figures, indent=1))
    if chosen.json:
        chosen.json.write_text(json.dumps(figures, indent=1) + "\n")
    return int(figures["similarity"]["total"] > SIMILAR_CPU_S or
               figures["report"]["total"] > REPORT_CPU_S or
               figures["status"]["total"] > STATUS_CPU_S or any(
        row["total"] > LIMIT_CPU_S for name, row in seconds.items() if "strangers" not in name))


def measured(path: Path, roster: Roster, matches: int) -> dict[str, float]:
    """CPU seconds to read and to match; raises RuntimeError unless so many students match."""
    started = time.process_time()
    incoming = list(importers.read(path))
    is_read = time.process_time()
    students = {match.student.id for one in incoming
                if (match := roster.match(one.student_text, one.ids)).student}
    ended = time.process_time()
    if len(students) != matches:
        raise RuntimeError(f"{path}: {len(students)} of {matches} students match")
    return {"read": round(is_read - started, 3), "match": round(ended - is_read, 3),
            "total": round(ended - started, 3)}


def similar(students: int) -> dict[str, float]:
    """CPU seconds to compare a class and to write the page, and which of the copies are listed."""
    draw = random.Random(1)
    family = [ClassSource(f"f{n}", *population.of_family(n)) for n in range(COPIES)]
    disguises = list(DISGUISES.values())
    copies = [ClassSource(f"{one.student} copied", disguises[n % len(disguises)](one.source, draw))
              for n, one in enumerate(family)]
    entries = [*population.honest(students - 2 * COPIES), *family, *copies]
    started = time.process_time()
    similarity = compare(entries, population.given())
    is_compared = time.process_time()
    text = page("hw1", [ModulePage("track1/softmax", similarity,
                                   {one.student: one.source for one in entries})])
    ended = time.process_time()
    right = sum(len({student.partition(" ")[0] for student in one.students}) == 1
                for one in similarity.pairs)
    return {"compare": round(is_compared - started, 3), "page": round(ended - is_compared, 3),
            "total": round(ended - started, 3), "limit_cpu_s": SIMILAR_CPU_S,
            "page_bytes": len(text.encode()), "copies": COPIES, "copies_listed": right,
            "other_pairs": len(similarity.pairs) - right}


def report(students: int, assignments: int = 10) -> dict[str, float]:
    """CPU seconds to read the events of a class, and to build and write its pages."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        settings, store, roster = test_report.a_class(Path(folder), students, assignments)
        module = course.load().find(test_report.MODULE)
        started = time.process_time()
        with book.collecting_rarely():
            the_book = book.read(settings, store.log())
        is_read = time.process_time()
        its = [*settings.assignments.values()]
        result = pages.build(settings, the_book, store, roster, its,
                             {module.id: test_report.STARTER},
                             {module.id: read_mutants(module.suite.with_name("mutants.toml"))})
        is_built = time.process_time()
        pages.write(Path(folder, "reports"), result)
        ended = time.process_time()
    return {"read": round(is_read - started, 3), "build": round(is_built - is_read, 3),
            "write": round(ended - is_built, 3), "total": round(ended - started, 3),
            "limit_cpu_s": REPORT_CPU_S, "assignments": assignments,
            "index_bytes": len(result[pages.INDEX].encode()),
            "bytes": sum(len(text.encode()) for text in result.values())}


def status(students: int, assignments: int = 10) -> dict[str, float]:
    """CPU seconds of ``class status``, without the start of Python and its imports."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        settings, store, roster = test_report.a_class(Path(folder), students, assignments, tries=3)
        started = time.process_time()
        with book.collecting_rarely():
            book.read(settings, store.log())
        is_read = time.process_time()
        Classroom(Path(folder), settings, roster, store, quick=True).book  # noqa: B018 (a snapshot)
        begun = time.process_time()
        the_class = Classroom(Path(folder), settings, roster, store, quick=True)
        the_class.book  # noqa: B018 (read lazily)
        is_booked = time.process_time()
        tables = {one.name: the_class.scores(one) for one in the_class.assignments(())}
        is_scored = time.process_time()
        with contextlib.redirect_stdout(io.StringIO()):
            view.show_status(Screen(plain=False), the_class, tables)
        ended = time.process_time()
    return {"without_snapshot": round(is_read - started, 3), "book": round(is_booked - begun, 3),
            "scores": round(is_scored - is_booked, 3), "show": round(ended - is_scored, 3),
            "total": round(ended - begun, 3), "limit_cpu_s": STATUS_CPU_S,
            "assignments": assignments}


if __name__ == "__main__":
    sys.exit(main())
