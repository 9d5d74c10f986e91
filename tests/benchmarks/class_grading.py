"""Grading a synthetic class: submissions of all kinds, from four platforms and back to them.

    python -m tests.benchmarks.class_grading [--submissions N] [--jobs J] [--json FILE]

Right, mutated, unfinished, hanging and hostile files, strange encodings and notebooks are arranged
as Canvas, Moodle, Gradescope and Classroom 50 do, imported, graded, reported and exported. Fails
unless each submission gets the state that its kind must get, and nothing hostile reached the decoys
of ``grader.attacks``. CPU seconds are those of all processes.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from grader.attacks import attacks
from tests.fidelity import cheats, variants
from tests.support import class_layouts
from tritonlab.authoring import module_files
from tritonlab.classroom import classroom
from tritonlab.classroom.book import Handed, State
from tritonlab.classroom.classroom import Classroom
from tritonlab.classroom.roster import Roster
from tritonlab.course import course
from tritonlab.course.course import Module

MODULE, DEBUGGING = "track1/softmax", "track3/basic-debugging"
REFUSED_MS = 20.0  # CPU of a file that is refused as it stands, in a batch
IMPORT_S = 2.0
SEED = 28
CLASS = f"""
name = "synthetic"
[assignments.hw1]
modules = ["{MODULE}"]
[assignments.hw2]
modules = ["{DEBUGGING}"]
"""


@dataclass(frozen=True)
class Specimen:
    """A submission and what it must get: a state, and one of ``codes``, where any are named.

    Without a state it may get any but passed.
    """

    kind: str
    name: str
    files: Mapping[str, bytes]
    state: State | None = None
    codes: tuple[str, ...] = ()

    def of(self, student: str) -> Specimen:
        """The same submission with the student's name in a comment."""
        kernel = self.files["kernel.py"]
        line = f"# {student}".encode()
        return replace(self, files={**self.files, "kernel.py": kernel.rstrip() + b"\n" + line})


def specimens(module: Module, target: attacks.Scene, folder: Path) -> Iterator[Specimen]:
    """One submission of every sort that the project has for a module of one file."""
    material = module_files.read(module, "blanks")
    right, exercise = material.solution["kernel.py"], material.exercise["kernel.py"]

    def one(kind: str, name: str, source: str | bytes, state: State | None = State.OPEN,
            *codes: str) -> Specimen:
        content = source.encode() if isinstance(source, str) else source
        return Specimen(kind, name, {"kernel.py": content}, state, codes)

    yield one("right", "solution", right, State.PASSED)
    for path in variants.of(module.slug):
        whole = variants.whole(path, module.solution, folder / path.stem)
        yield one("right in another form", path.stem, whole.read_bytes(), State.PASSED)
    wrong = {mutant.id: mutant.apply(right) for mutant in material.suite.mutants}
    for mutant in material.suite.mutants:
        yield one("mutant", mutant.id, wrong[mutant.id], State.OPEN, *mutant.codes)
    yield one("unfinished", "as handed out", exercise, State.OPEN, "P01", "P02")
    lines = right.splitlines(keepends=True)
    yield one("unfinished", "half", "".join(lines[: len(lines) // 2]))
    yield one("unfinished", "a blank", right.replace("tl.exp(shifted)", "..."), State.OPEN, "P01")
    yield one("unfinished", "syntax error", f"{right}\ndef f(:\n", State.OPEN, "P02")
    yield one("unfinished", "empty", "", State.OPEN)
    entry = material.suite.entry
    yield one("hanging", "host loop", f"{right}\ndef {entry}(x):\n    while True: pass\n",
              State.OPEN, "R02")
    yield one("hanging", "import loop", f"{right}\nwhile True: pass\n", State.OPEN, "R02")
    yield one("hanging", "sleep", f"{right}\nimport time\ntime.sleep(10**6)\n", None)
    store = "    tl.store(out_ptr"
    yield one("hanging", "kernel loop", right.replace(
        store, f"    for _ in range(1 << 40):\n        y = y * 1.0 + 0.0\n{store}"),
        State.OPEN, "R02")
    yield one("hanging", "kernel while", right.replace(
        store, f"    while row >= 0:\n        y = y * 1.0 + 0.0\n{store}"), State.OPEN, "R02")
    for cheat in cheats.cheats():
        if cheat.module == module.slug:
            yield one("hostile", f"cheat {cheat.name}", cheat.source, None)
    words = "\n".join(f"{name} = {value!r}" for name, value in target.words().items())
    base = next(iter(wrong.values()))
    for attack in attacks.ATTACKS:
        yield one("hostile", attack.name, "\n".join((base, words, attacks._TRY, attack.source)),
                  None)
    accented = right.replace("# ", "# é ", 1)
    yield one("encoding", "UTF-16", right.encode("utf-16"), State.OPEN)
    yield one("encoding", "Latin-1", accented.encode("latin-1"), State.OPEN)
    yield one("encoding", "Latin-1, declared",
              b"# -*- coding: latin-1 -*-\n" + accented.encode("latin-1"), State.PASSED)
    yield one("encoding", "byte order mark", right.encode("utf-8-sig"), State.PASSED)
    yield one("encoding", "NUL bytes", right.encode() + b"\0\0", State.OPEN)
    yield one("encoding", "Windows lines", right.replace("\n", "\r\n"), State.PASSED)
    for name, source, state in (("right", right, State.PASSED), ("blanks", exercise, State.OPEN)):
        cells = [{"cell_type": "markdown", "source": "# hw1", "metadata": {}},
                 {"cell_type": "code", "source": f"%%kernel\n{source}", "metadata": {}}]
        yield Specimen("notebook", name, {"hw1.ipynb": json.dumps(
            {"cells": cells, "nbformat": 4, "metadata": {}}).encode()}, state)


def handed_in(roster: Roster, sorts: Sequence[Specimen], random_: random.Random
              ) -> dict[str, Specimen]:
    """What each student hands in: every sort once, then the usual ones, a part of them copied."""
    by_kind = defaultdict(list)
    for sort in sorts:
        by_kind[sort.kind].append(sort)
    first = [*sorts]
    random_.shuffle(first)
    first.sort(key=lambda sort: sort.kind == "hostile")
    result = {}
    for student in roster:
        if first:
            result[student.id] = first.pop(0)
            continue
        kind = random_.choices(("right", "mutant", "unfinished"), (4, 4, 2))[0]
        sort = random_.choice(by_kind[kind])
        copied = random_.random() < (0.85 if kind == "right" else 0.5)
        result[student.id] = sort if copied else sort.of(student.name)
    return result


def debugging(module: Module) -> list[Specimen]:
    """A few submissions of a module whose exercise is broken code."""
    material = module_files.read(module, "broken")

    def one(kind: str, files: Mapping[str, str], state: State) -> Specimen:
        return Specimen(kind, kind, {name: text.encode() for name, text in files.items()}, state)

    right = {name: material.solution[name] for name in material.solution}
    mutant = material.suite.mutants[0]
    return [one("right", right, State.PASSED), one("right", right, State.PASSED),
            one("unfinished", material.exercise, State.OPEN),
            replace(one("mutant", mutant.apply_to(right), State.OPEN), codes=mutant.codes)]


def command(root: Path, *words: str, expect: Sequence[int] = (0,)) -> dict[str, Any]:
    """Runs a verb of a class; returns its seconds and its output.

    Raises:
        RuntimeError: it ended with another exit code.
    """
    before, started = _children_s(), time.monotonic()
    done = subprocess.run((sys.executable, "-m", "tritonlab", "class", *words), cwd=root,
                          capture_output=True, text=True)
    if done.returncode not in expect:
        raise RuntimeError(f"{' '.join(words)}: exit {done.returncode}\n{done.stderr[-3000:]}")
    return {"wall_s": round(time.monotonic() - started, 2),
            "cpu_s": round(_children_s() - before, 2), "output": done.stdout}


def _children_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def worksheets(root: Path, roster: Roster) -> None:
    """Writes the files that Canvas and Moodle export, to be filled in."""
    canvas, moodle = io.StringIO(newline=""), io.StringIO(newline="")
    rows = csv.writer(canvas, lineterminator="\r\n")
    rows.writerow(("Student", "ID", "SIS User ID", "SIS Login ID", "Section", "hw1 (77)"))
    rows.writerow(("    Points Possible", "", "", "", "", "100.00"))
    sheet = csv.writer(moodle)
    sheet.writerow(("Identifier", "Full name", "Email address", "Status", "Grade", "Maximum Grade",
                    "Grade can be changed", "Last modified (grade)", "Feedback comments"))
    for number, one in enumerate(roster):
        rows.writerow((one.name, 340_000 + number, one.sis_id, one.login, one.section, ""))
        sheet.writerow((f"Participant {1_170_000 + number}", one.name, one.email, "Submitted", "",
                        "100.00", "Yes", "-", ""))
    (root / "canvas.csv").write_text(canvas.getvalue(), encoding="utf-8")
    (root / "moodle.csv").write_text(moodle.getvalue(), encoding="utf-8")


def write(root: Path, roster: Roster) -> Path:
    """Writes a class."""
    root.mkdir(parents=True)
    (root / "class.toml").write_text(CLASS)
    class_layouts.write_roster(root / "roster.csv", roster)
    return root


def take_in(root: Path, folder: Path, roster: Roster, assignment: str,
            handed: Mapping[str, Specimen]) -> dict[str, Any]:
    """Imports the submissions, a quarter from each platform."""
    figures = {}
    for number, (layout, arrange) in enumerate(class_layouts.LAYOUTS.items()):
        part = Roster(tuple(one for index, one in enumerate(roster)
                            if index % len(class_layouts.LAYOUTS) == number and one.id in handed))
        if not part:
            continue
        (folder / layout).mkdir(parents=True)
        path = arrange(folder / layout, part, {one.id: handed[one.id].files for one in part})
        row = command(root, "import", assignment, str(path), "--json")
        taken = json.loads(row.pop("output"))
        if len(taken["imported"]) != len(part):
            raise RuntimeError(f"{layout}: {len(taken['imported'])} of {len(part)} imported; "
                               f"{taken['refused'] or taken['unmatched'] or taken['problems']}")
        figures[layout] = {"submissions": len(part), **row}
    return figures


def verdicts(the_class: Classroom, assignment: str, handed: Mapping[str, Specimen]
             ) -> tuple[dict[str, Any], list[str]]:
    """States, codes and CPU seconds by kind, and sentences about what should be otherwise."""
    rows: dict[str, dict[str, Any]] = {}
    wrong = []
    seen: set[str] = set()
    for student, specimen in handed.items():
        score = the_class.book.score(student, the_class.settings.assignment(assignment))
        graded = score.modules[0].graded
        row = rows.setdefault(specimen.kind, {"submissions": 0, "states": Counter(),
                                              "codes": Counter(), "cpu": []})
        row["submissions"] += 1
        row["states"][str(score.state)] += 1
        if graded is None:
            wrong.append(f"{specimen.kind} {specimen.name}: has no grade")
            continue
        row["codes"][graded.code] += 1
        if graded.key not in seen:
            seen.add(graded.key)
            row["cpu"].append(graded.cpu_s)
        expected = score.state is specimen.state if specimen.state else \
            score.state is not State.PASSED
        if not expected or (specimen.codes and graded.code not in specimen.codes):
            wrong.append(f"{specimen.kind} {specimen.name}: {score.state} {graded.code} "
                         f"{graded.reason}")
    for row in rows.values():
        cpu = row.pop("cpu") or [0.0]
        row |= {"grades": len(cpu), "cpu_s_median": round(statistics.median(cpu), 2),
                "cpu_s_max": max(cpu), "cpu_s_total": round(sum(cpu), 1)}
    return rows, sorted(set(wrong))


def harm(target: attacks.Scene, the_class: Classroom) -> Iterator[str]:
    """Yields evidence that a hostile submission reached a decoy or read a secret."""
    reports = "".join(json.dumps(the_class.store.result(graded.key))
                      for grades in the_class.book.grades.values() for graded in grades)
    nobody = attacks.RunningAttack(0, "", lambda: reports)
    for judgement in (attacks.printed_secret, attacks.forged, attacks.deleted, attacks.killed,
                      attacks.traced, attacks.exists("package"), attacks.exists("temporary"),
                      attacks.exists("shared"), attacks.connected, attacks.verdict,
                      attacks.stored):
        if proof := judgement(target, nobody):
            yield proof


def refusals(folder: Path, exercise: bytes, count: int, jobs: int) -> dict[str, float]:
    """CPU ms of one file that is refused as it stands: a batch of many, less one of a few."""
    seconds = {}
    for number in (4, count):
        roster = class_layouts.roster(number)
        root = write(folder / f"refused{number}", roster)
        (folder / f"files{number}").mkdir()
        handed = {one.id: exercise + f"\n# {one.id}\n".encode() for one in roster}
        path = class_layouts.canvas(folder / f"files{number}", roster, handed)
        command(root, "import", "hw1", str(path))
        seconds[number] = command(root, "grade", "--json", "--jobs", str(jobs))["cpu_s"]
    each = (seconds[count] - seconds[4]) / (count - 4)
    return {"submissions": count, "cpu_s": seconds[count], "cpu_ms_each": round(1000 * each, 1)}


def again_alone(root: Path, folder: Path, roster: Roster, handed: Mapping[str, Specimen],
                most: int, jobs: int) -> list[str]:
    """Grades honest submissions of the class by themselves; names those with another result."""
    honest = {student: one for student, one in handed.items()
              if one.kind not in ("hostile", "hanging")}
    chosen = dict(random.Random(SEED).sample(sorted(honest.items()), min(most, len(honest))))
    alone = write(folder / "alone", roster)
    classroom.load(alone)
    shutil.copy(*(one / classroom.FOLDER / "secret" for one in (root, alone)))
    take_in(alone, folder / "honest", roster, "hw1", chosen)
    command(alone, "grade", "hw1", "--json", "--jobs", str(jobs))
    first, second = (_results(classroom.load(one), chosen) for one in (root, alone))
    return [f"{chosen[student].kind} {chosen[student].name}" for student in chosen
            if first[student] != second[student]]


def _results(the_class: Classroom, students: Mapping[str, Any]) -> dict[str, Any]:
    found = {}
    for student in students:
        one: Handed = the_class.book.of(student, "hw1")[-1]
        graded = the_class.book.grade_of(one)
        found[student] = untimed(the_class.store.result(graded.key) if graded else None)
    return found


def untimed(data: Any) -> Any:
    """A result without the seconds that it took."""
    if isinstance(data, dict):
        return {key: untimed(value) for key, value in data.items()
                if key not in ("seconds", "cpu_s")}
    return [untimed(one) for one in data] if isinstance(data, list) else data


def run(folder: Path, count: int, jobs: int, alone: int) -> dict[str, Any]:
    """Makes a class, and brings it from import to export."""
    the_course = course.load()
    roster = class_layouts.roster(count)
    root = write(folder / "class", roster)
    with attacks.scene() as target:
        sorts = [*specimens(the_course.find(MODULE), target, folder / "variants")]
        handed = handed_in(roster, sorts, random.Random(SEED))
        second = dict(zip((one.id for one in roster), debugging(the_course.find(DEBUGGING)),
                          strict=False))
        figures: dict[str, Any] = {
            "submissions": len(handed) + len(second), "jobs": jobs,
            "cpus": len(os.sched_getaffinity(0)),
            "import": take_in(root, folder / "hw1", roster, "hw1", handed)}
        take_in(root, folder / "hw2", roster, "hw2", second)
        row = command(root, "grade", "--json", "--jobs", str(jobs))
        summary = json.loads(row.pop("output").splitlines()[-1])
        the_class = classroom.load(root)
        figures["grade"] = {**row, "grades": summary["graded"], "failed": summary["failed"],
                            "grades_cpu_s": summary["cpu_s"]}
        figures["harm"] = [*harm(target, the_class)]
    figures["kinds"], figures["wrong"] = verdicts(the_class, "hw1", handed)
    figures["hw2"], wrong = verdicts(the_class, "hw2", second)
    figures["wrong"] += wrong
    row = command(root, "grade", "--json")
    figures["resume"] = {**row, "output": json.loads(row["output"].splitlines()[-1])["graded"]}
    worksheets(root, roster)
    for name, words in {
            "status": ("status",), "report": ("report", "--html", "report"),
            "feedback": ("feedback", "hw1", "--out", "feedback"),
            "canvas": ("export", "hw1", "--to", "canvas", "--fill", "canvas.csv"),
            "moodle": ("export", "hw1", "--to", "moodle", "--fill", "moodle.csv"),
            "gradescope": ("export", "hw1", "--to", "gradescope"),
            "classroom50": ("export", "hw1", "--to", "classroom50")}.items():
        row = command(root, *words)
        figures[name] = {key: row[key] for key in ("wall_s", "cpu_s")}
    figures["exported"] = {
        "canvas": (root / "exports/hw1-canvas.csv").read_text().count("\n") - 2,
        "moodle": (root / "exports/hw1-moodle.csv").read_text().count("Participant"),
        **{name: len([*(root / f"exports/hw1-{name}").iterdir()])
           for name in ("gradescope", "classroom50")}}
    exercise = (the_course.find(MODULE).folder / "kernel.py").read_bytes()
    figures["refusals"] = refusals(folder, exercise, 100, jobs)
    figures["changed_by_hostile"] = again_alone(root, folder, roster, handed, alone, jobs) \
        if alone else None
    return figures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--submissions", type=int, default=300)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--alone", type=int, default=12,
                        help="honest submissions that are graded without the others too")
    parser.add_argument("--folder", type=Path, help="where to leave the class")
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    folder = chosen.folder or Path(tempfile.mkdtemp(prefix="class-grading-"))
    folder.mkdir(parents=True, exist_ok=True)
    try:
        figures = run(folder, chosen.submissions, chosen.jobs, chosen.alone)
    finally:
        if chosen.folder is None:
            shutil.rmtree(folder, ignore_errors=True)
    text = json.dumps(figures, indent=1)
    print(text)
    if chosen.json:
        chosen.json.write_text(text + "\n")
    slow = [row for row in figures["import"].values() if row["cpu_s"] > IMPORT_S]
    return int(bool(figures["wrong"] or figures["harm"] or figures["changed_by_hostile"] or slow
                    or figures["refusals"]["cpu_ms_each"] > REFUSED_MS))


if __name__ == "__main__":
    sys.exit(main())
