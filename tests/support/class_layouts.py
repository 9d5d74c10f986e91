"""Submissions of a class as Canvas, Moodle, Gradescope and Classroom 50 arrange them.

Each function takes a folder, the roster, and what each student hands in: the bytes of kernel.py, or
files by name. It returns the path to import.
"""

from __future__ import annotations

import hashlib
import json
import re
import zipfile
import zlib
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tritonlab.classroom.roster import COLUMNS, Roster, Student

Content = bytes | Mapping[str, bytes]
Writer = Callable[[Path, Roster, Mapping[str, Content]], Path]
BEGIN = datetime(2026, 10, 12, 12, 0, tzinfo=UTC)  # when the first one is handed in
STEP = timedelta(minutes=1)  # until the next
_FIRST = ("Alice", "Bob", "José", "Ngọc", "Søren", "Zoë", "Chloé", "Dmitri", "Eun-ji", "Fatima",
          "Gülşen", "Hiro", "Ines", "Jürgen", "Kofi", "Łukasz", "Mary Ann", "Nadia", "Oluwaseun",
          "Priya", "Quentin", "Rosa", "Siobhán", "Tomás", "Uma", "Valentín")
_LAST = ("Smith", "O'Brien", "García Márquez", "Müller", "van der Berg", "Nguyễn", "Öztürk",
         "Kowalski", "Smith-Jones", "Tanaka", "Okafor", "Petrov", "Sánchez", "Larsen", "Patel",
         "Rossi", "Dubois", "Haddad", "Jansen", "Kim", "Lindqvist", "Moreau", "Ferrari", "Costa")


def roster(number: int) -> Roster:
    """Students with names from many languages, no two alike."""
    students = []
    for index in range(number):
        last, first = divmod(index, len(_FIRST))
        name = f"{_FIRST[first]} {_LAST[last % len(_LAST)]}{' Junior' * (last // len(_LAST))}"
        student = f"s{index:04d}"
        students.append(Student(student, name, f"{student}@uni.example", f"9{index:05d}",
                                f"login{index}", f"Section {index % 3 + 1}", f"gh-{student}x",
                                aliases=(f"canvas:{340_000 + index}",)))
    return Roster(tuple(students))


def write_roster(path: Path, the_roster: Roster) -> Path:
    """Writes the roster in our own format."""
    lines = [",".join(COLUMNS)]
    for one in the_roster:
        values = (one.id, one.name, *(getattr(one, column) for column in COLUMNS[2:]))
        lines.append(",".join(f'"{value}"' if "," in value else value for value in values))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def canvas(folder: Path, the_roster: Roster, handed_in: Mapping[str, Content]) -> Path:
    """``submissions.zip``; every seventh is late. Non-ASCII names lack the UTF-8 flag."""
    path = folder / "submissions.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as content:
        for index, (student, files) in enumerate(_files(the_roster, handed_in)):
            late = "LATE_" * (index % 7 == 6)
            user = 340_000 + int(student.id[1:])
            for number, (name, data) in enumerate(files.items()):
                entry = f"{sortable(student.name)}_{late}{user}_{8_000 + 10 * index + number}_" \
                        f"{name}"
                content.writestr(_Unflagged(entry), data)
    return path


class _Unflagged(zipfile.ZipInfo):
    """An entry whose name is UTF-8 without the flag that says so, as Ruby writes it."""

    def _encodeFilenameFlags(self) -> tuple[bytes, int]:  # noqa: N802 - zipfile's own name
        return self.filename.encode(), self.flag_bits


def sortable(name: str) -> str:
    """The name as Canvas writes it: the last name first, and letters and digits only."""
    first, _, last = name.partition(" ")
    return re.sub(r"[^\w]", "", f"{last}{first}".lower())


def moodle(folder: Path, the_roster: Roster, handed_in: Mapping[str, Content]) -> Path:
    """``CS149-hw1-77.zip`` with a folder for each student."""
    path = folder / "CS149-hw1-77.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as content:
        for student, files in _files(the_roster, handed_in):
            number = 1_170_000 + int(student.id[1:])
            for name, data in files.items():
                content.writestr(f"{student.name.replace('_', ' ')}_{number}"
                                 f"_assignsubmission_file_/{name}", data)
    return path


def gradescope(folder: Path, the_roster: Roster, handed_in: Mapping[str, Content]) -> Path:
    """``submissions.zip`` with the metadata as Ruby writes them."""
    path = folder / "submissions.zip"
    root = "assignment_4812_export"
    metadata = ["---"]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as content:
        for index, (student, files) in enumerate(_files(the_roster, handed_in)):
            submission = f"submission_{30_000 + index}"
            at = BEGIN + index * STEP
            name = student.name.replace("'", "''")
            metadata += [
                f"{submission}:", "  :submitters:", f"  - :name: '{name}'",
                f"    :sid: '{student.sis_id}'", f"    :email: {student.email}",
                f"  :created_at: {at:%Y-%m-%d %H:%M:%S}.123456000 Z", "  :score: 0.0",
                "  :status: processed", "  :results:", "    output: |-",
                "      :submitters: are not read from here", f"  :id: {30_000 + index}",
                "  :history: []"]
            for file, data in files.items():
                content.writestr(f"{root}/{submission}/{file}", data)
        content.writestr(f"{root}/submission_metadata.yml", "\n".join(metadata) + "\n")
    return path


def classroom50(folder: Path, the_roster: Roster, handed_in: Mapping[str, Content]) -> Path:
    """The folder of ``gh teacher download``: clones with the results of their runs beside."""
    root = folder / "cs149-hw1_submissions_2026_10_20_T_09_30_00"
    root.mkdir()
    for index, (student, files) in enumerate(_files(the_roster, handed_in)):
        at = BEGIN + index * STEP
        clone = root / f"cs149-hw1-{student.github}"
        marked = {".classroom50.yaml": b"classroom: cs149\nassignment: hw1\n",
                  ".github/workflows/autograde.yaml": b"on: push\n", **files}
        commit = git_clone(clone, marked, at - timedelta(seconds=30))
        result = {"schema": "classroom50/result/v1", "classroom": "cs149", "assignment": "hw1",
                  "owner": student.github, "submission": f"submit/{index}",
                  "commit": f"https://github.com/cs149/{clone.name}/commit/{commit}",
                  "datetime": f"{at:%Y-%m-%dT%H:%M:%SZ}", "score": 0, "max-score": 1, "tests": []}
        (clone / "result.json").write_text(json.dumps(result))
    (root / "scores.csv").write_text("username,score\n")
    return root


def git_clone(clone: Path, files: Mapping[str, bytes], at: datetime) -> str:
    """Writes a repository with one commit of these files, and returns its id."""
    for name, data in files.items():
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        (clone / name).write_bytes(data)
    git = clone / ".git"
    for part in ("objects/pack", "refs/heads", "refs/tags"):
        (git / part).mkdir(parents=True)
    when = f"{int(at.timestamp())} +0000"
    text = f"tree {_tree(git, files)}\nauthor S <s@uni.example> {when}\n" \
           f"committer S <s@uni.example> {when}\n\nsubmit\n"
    commit = _object(git, "commit", text.encode())
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / "refs/heads/main").write_text(f"{commit}\n")
    (git / "config").write_text("[core]\n\trepositoryformatversion = 0\n\tbare = false\n")
    return commit


def _tree(git: Path, files: Mapping[str, bytes]) -> str:
    entries: dict[str, tuple[str, str]] = {}
    folders: dict[str, dict[str, bytes]] = {}
    for path, data in files.items():
        name, slash, rest = path.partition("/")
        if slash:
            folders.setdefault(name, {})[rest] = data
        else:
            entries[name] = ("100644", _object(git, "blob", data))
    entries |= {name: ("40000", _tree(git, inside)) for name, inside in folders.items()}
    ordered = sorted(entries.items(), key=lambda item: item[0] + "/" * (item[1][0] == "40000"))
    return _object(git, "tree", b"".join(f"{mode} {name}\0".encode() + bytes.fromhex(target)
                                         for name, (mode, target) in ordered))


def _object(git: Path, kind: str, data: bytes) -> str:
    content = f"{kind} {len(data)}\0".encode() + data
    name = hashlib.sha1(content).hexdigest()
    path = git / "objects" / name[:2] / name[2:]
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(zlib.compress(content, 1))
    return name


def _files(the_roster: Roster, handed_in: Mapping[str, Content]
           ) -> list[tuple[Student, dict[str, bytes]]]:
    return [(student, {"kernel.py": content} if isinstance(content, bytes) else dict(content))
            for student in the_roster if (content := handed_in.get(student.id)) is not None]


LAYOUTS: dict[str, Writer] = {"canvas": canvas, "moodle": moodle, "gradescope": gradescope,
                              "classroom50": classroom50}
