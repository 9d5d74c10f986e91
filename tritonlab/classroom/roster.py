"""The roster of a class: its students, and the student that a text names."""

import csv
import difflib
import io
import os
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from tritonlab.errors import TritonlabError, reason_of, shown

K = TypeVar("K")

MOST_BYTES = 16_000_000  # of a roster; 600 students have about 60,000
COLUMNS = ("student", "name", "email", "sis_id", "login", "section", "github", "group")
_NEAREST = 3
_CLOSE = 0.6  # of difflib's ratio
_COMPARED = 40  # texts
# Columns of our own file, and of those that Canvas, Gradescope, Moodle, GitHub Classroom and
# Classroom 50 export. Letters and digits only, in lower case.
_HEADERS = {
    "student": "student", "id": "student", "name": "name", "fullname": "name",
    "studentname": "name", "displayname": "name", "firstname": "first", "givenname": "first",
    "lastname": "last", "surname": "last", "familyname": "last", "email": "email",
    "emailaddress": "email", "mail": "email", "sisid": "sis_id", "sisuserid": "sis_id",
    "sid": "sis_id", "idnumber": "sis_id", "studentid": "sis_id", "studentnumber": "sis_id",
    "login": "login", "loginid": "login", "sisloginid": "login", "username": "login",
    "netid": "login", "section": "section", "sections": "section", "sectionname": "section",
    "github": "github", "githubusername": "github", "githublogin": "github", "group": "group",
    "groups": "group", "groupname": "group", "team": "group", "canvasid": "canvas",
    "identifier": "moodle", "role": "role", "githubid": "",
}
# The first of these columns that names every student becomes the id where there is no `student`.
_IDENTIFYING = ("login", "sis_id", "github", "email", "canvas", "moodle")
_EXACT = ("login", "sis_id", "email", "github")
# Letters that are not decomposed into a base letter and an accent.
_LETTERS = str.maketrans({"ø": "o", "đ": "d", "ð": "d", "ł": "l", "æ": "ae", "œ": "oe", "þ": "th",
                          "ı": "i"})


@dataclass(frozen=True)
class Student:
    """A row of the roster; ``aliases`` are ids on other platforms, such as ``canvas:340934``."""

    id: str
    name: str = ""
    email: str = ""
    sis_id: str = ""
    login: str = ""
    section: str = ""
    github: str = ""
    group: str = ""
    aliases: tuple[str, ...] = ()
    first: str = ""  # both names only where the roster has columns for them
    last: str = ""

    def __str__(self) -> str:
        return f"{self.id} ({self.name})" if self.name and self.name != self.id else self.id


@dataclass(frozen=True)
class Match:
    """The student that a text names, if it names exactly one.

    ``how`` is the column that decided, ``alias``, ``lastfirst`` (Canvas's file names),
    ``ambiguous``, where ``nearest`` lists the students, or empty.
    """

    student: Student | None = None
    how: str = ""
    nearest: tuple[str, ...] = ()


@dataclass(frozen=True)
class Roster:
    """The students of a class, and sentences about rows that could not be used.

    ``aliases`` are further texts that name a student, with the student's id.
    """

    students: tuple[Student, ...]
    problems: tuple[str, ...] = ()
    aliases: Mapping[str, str] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Student]:
        return iter(self.students)

    def __len__(self) -> int:
        return len(self.students)

    @classmethod
    def read(cls, path: Path, *, may_be_empty: bool = False) -> "Roster":
        """Reads a roster: a CSV file of our own, or one of the platforms' exports.

        Raises:
            TritonlabError: it cannot be read, no column identifies the students, or it has none;
                with ``may_be_empty``, a header alone, or nothing, is a roster without students.
        """
        text, problems = _text(path)
        if may_be_empty and len(rows_of(text, shown(path))[0]) < 2:
            return cls((), tuple(problems))
        return cls.parse(text, shown(path), problems)

    @classmethod
    def parse(cls, text: str, name: str = "roster.csv", problems: Sequence[str] = ()) -> "Roster":
        """Parses the text of a roster called ``name``; raises as ``read``."""
        rows, ragged = rows_of(text, name)
        if not rows:
            raise _unusable(f"{name} is empty.")
        header, platform, unknown = _header(rows[0][1])
        problems = [*problems, *ragged, *unknown]
        records = [(line, row) for line, cells in rows[1:]
                   if (row := _record(header, cells)) and not _is_skipped(row, platform)]
        key = "student" if "student" in header else _identifying([row for _, row in records])
        if not key:
            raise _unusable(f"{name} has no column that identifies the students.")
        students: dict[str, Student] = {}
        lines: dict[str, int] = {}
        for line, row in records:
            own = row.get(key, "")
            if reason := unusable_id(own):
                problems.append(f"Line {line} is left out: {reason}.")
            elif own.casefold() in lines:
                problems.append(f"Line {line} is left out: '{own}' is already on line "
                                f"{lines[own.casefold()]}.")
            else:
                lines[own.casefold()] = line
                students[own] = _student(own, row)
        if not students:
            raise _unusable(f"{name} has no students.")
        problems += _shared(students.values(), lines)
        return cls(tuple(students.values()), tuple(problems))

    def with_aliases(self, aliases: Mapping[str, str]) -> "Roster":
        """Returns the roster with further texts that name a student.

        Args:
            aliases: texts such as an address, and what the roster calls the student.

        Raises:
            TritonlabError: an alias is of no student, or of several.
        """
        ids = {}
        for alias, text in aliases.items():
            match = self.match(text)
            if match.student is None:
                nearest = f" The nearest: {', '.join(match.nearest)}." if match.nearest else ""
                raise TritonlabError(f"The alias '{alias}' of class.toml is of '{text}', who is "
                                     f"not a student of the roster.{nearest}",
                                     "Write the id of a student behind it.")
            ids[_key(alias)] = match.student.id
        return replace(self, aliases=ids)

    def get(self, student_id: str) -> Student | None:
        """Returns the student with this id."""
        return self._ids.get(student_id)

    def members(self, group: str) -> tuple[Student, ...]:
        """Returns the students of a group, for platforms that hand in by group."""
        return tuple(self._groups.get(tuple(_words(group)), ()))

    def match(self, text: str, ids: Sequence[str] = ()) -> Match:
        """Returns the student that a text names, never by resemblance.

        Aliases decide first, then exact ids, then Canvas's ``lastfirst`` and the full name, without
        regard to case, accents, punctuation and the order of names. Where several students fit,
        none does.

        Args:
            text: an id, a login, a SIS id, an address, a GitHub name or a name.
            ids: identifiers that a platform gave, such as ``email:a@b.edu`` or
                ``canvas:340934``; they go before the text, and must agree.
        """
        values = (text, *(one.partition(":")[2] for one in ids)) if self.aliases else ()
        if aliased := {self.aliases[key] for value in values
                       if (key := _key(value)) in self.aliases}:
            students = [self._ids[one] for one in sorted(aliased)]
            return Match(students[0], "alias") if len(students) == 1 else _ambiguous(students)
        pools = [(kind, pool) for kind, _, value in (one.partition(":") for one in ids)
                 if (pool := self._identified(kind, value))]
        exact = [(kind, pool) for kind, pool in pools if kind != "repository"] or pools
        if exact:
            everyone = list(dict.fromkeys(one for _, pool in exact for one in pool))
            if all(kind == "moodle" for kind, _ in exact) and not re.search(r"\d", text):
                # Moodle numbers participants anew for each assignment, and the roster may have the
                # numbers of another one: a name has to agree.
                named = list(dict.fromkeys(one for _, one in self._named(text)))
                if not set(everyone) & set(named):
                    return _ambiguous([*everyone, *named])
            return Match(everyone[0], exact[0][0]) if len(everyone) == 1 else _ambiguous(everyone)
        if any(self._is_stranger(*one.partition(":")[::2]) for one in ids):
            return Match(nearest=self._nearest(text))
        if own := self._ids.get(text.strip()):
            return Match(own, "id")
        columns = [(kind, one) for kind in ("id", *_EXACT)
                   for one in self._columns[kind].get(_key(text), ())]
        for pairs in (columns, self._named(text)):
            if everyone := list(dict.fromkeys(one for _, one in pairs)):
                return Match(everyone[0], pairs[0][0]) if len(everyone) == 1 else \
                    _ambiguous(everyone)
        return Match(nearest=self._nearest(text))

    def _named(self, text: str) -> list[tuple[str, Student]]:
        """The students with this name, and how it is written."""
        words = _words(text)
        return [*(("name", one) for one in self._names.get(tuple(sorted(words)), ())),
                *(("lastfirst", one) for one in self._joined.get("".join(words), ()))]

    def _is_stranger(self, kind: str, value: str) -> bool:
        """Whether every student has a number of this kind, and none has this one.

        Somebody who is not on the roster may have the same name as somebody who is.
        """
        numbers = self._columns["sis_id"] if kind == "sis_id" else {
            alias.removeprefix("canvas:"): pool for alias, pool in self._aliases.items()
            if alias.startswith("canvas:")} if kind == "canvas" else {}
        numbered = {one.id for pool in numbers.values() for one in pool}
        return len(numbered) == len(self.students) and _key(value) not in numbers

    def _identified(self, kind: str, value: str) -> tuple[Student, ...]:
        if kind == "repository":  # CLASSROOM-ASSIGNMENT-USERNAME, where any part may have hyphens
            return tuple(one for one in self.students
                         if one.github and _key(value).endswith(f"-{_key(one.github)}"))
        columns = self._columns.get(kind)
        return tuple(columns.get(_key(value), ()) if columns is not None
                     else self._aliases.get(f"{kind}:{_key(value)}", ()))

    def _nearest(self, text: str) -> tuple[str, ...]:
        wanted = " ".join(_words(text))
        shared = Counter(key for pair in _pairs(wanted) for key in self._by_pair.get(pair, ()))
        keys = difflib.get_close_matches(
            wanted, [key for key, _ in shared.most_common(_COMPARED)], 2 * _NEAREST, _CLOSE)
        close = dict.fromkeys(str(one) for key in keys for one in self._resembling[key])
        return tuple(close)[:_NEAREST]

    @cached_property
    def _ids(self) -> dict[str, Student]:
        return {student.id: student for student in self.students}

    @cached_property
    def _columns(self) -> dict[str, dict[str, list[Student]]]:
        return {column: _index((_key(getattr(one, column)), one) for one in self.students)
                for column in ("id", *_EXACT)}

    @cached_property
    def _aliases(self) -> dict[str, list[Student]]:
        return _index((alias, student) for student in self.students for alias in student.aliases)

    @cached_property
    def _groups(self) -> dict[tuple[str, ...], list[Student]]:
        return _index((tuple(_words(student.group)), student) for student in self.students)

    @cached_property
    def _names(self) -> dict[tuple[str, ...], list[Student]]:
        return _index((tuple(sorted(_words(student.name))), student) for student in self.students)

    @cached_property
    def _joined(self) -> dict[str, list[Student]]:
        """Names as Canvas joins them; which of several words are the last name is not given."""
        return _index(("".join(words[first:] + words[:first]), student)
                      for student in self.students for words in [_words(student.name)]
                      for first in range(len(words)))

    @cached_property
    def _resembling(self) -> dict[str, list[Student]]:
        texts = [(" ".join(_words(text)), student) for student in self.students
                 for text in (student.id, student.name, student.login,
                              student.email.partition("@")[0], student.github)]
        words = [(word, student) for student in self.students for word in _words(student.name)]
        return _index([*texts, *words, *((key, student) for key, students in self._joined.items()
                                 for student in students)])

    @cached_property
    def _by_pair(self) -> dict[str, list[str]]:
        """Which texts have a pair of letters: difflib compares those with most in common."""
        index = defaultdict(list)
        for key in self._resembling:
            for pair in _pairs(key):
                index[pair].append(key)
        return index


def rows_of(text: str, name: str) -> tuple[list[tuple[int, list[str]]], list[str]]:
    """Returns the rows of a CSV text with their line numbers, and sentences about ragged ones.

    Commas, semicolons and tabs separate; rows without a value are left out, and rows with too few
    cells are filled.

    Raises:
        TritonlabError: it is not CSV.
    """
    text = re.sub(r"\Asep=.\r?\n", "", text)  # Excel's own first line
    first = text.partition("\n")[0]
    delimiter = max(",;\t", key=re.sub(r'"[^"]*"', "", first).count)
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))  # a cell may hold a whole file
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    rows: list[tuple[int, list[str]]] = []
    problems = []
    try:
        for cells in reader:
            values = [cell.strip() for cell in cells]
            if not any(values):
                continue
            width = len(rows[0][1]) if rows else len(values)
            if len(values) != width:
                problems.append(f"Line {reader.line_num} has {len(values)} cells; the header has "
                                f"{width}.")
            rows.append((reader.line_num, values + [""] * (width - len(values))))
    except csv.Error as error:
        raise _unusable(f"Line {reader.line_num} of {name} is not CSV: {error}.") from error
    return rows, problems


def decoded(data: bytes) -> tuple[str, bool]:
    """Returns the text of a spreadsheet's file, and whether its encoding had to be assumed."""
    for start, encoding in ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"),
                            (b"\xfe\xff", "utf-16")):
        if data.startswith(start):
            return data.decode(encoding, "replace"), False
    try:
        return data.decode(), False
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace"), True


def _text(path: Path) -> tuple[str, list[str]]:
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)
                  ) as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise _unusable(f"{shown(path)} cannot be read: {reason_of(error)}.") from error
    if len(data) > MOST_BYTES:
        raise _unusable(f"{shown(path)} has more than {MOST_BYTES:,} bytes.")
    text, assumed = decoded(data)
    return text, ["The roster is not UTF-8; it was read as Windows-1252."] if assumed else []


def _header(cells: Sequence[str]) -> tuple[list[str], str, list[str]]:
    """The fields of the columns, the platform that wrote them, and sentences about the others."""
    names = ["".join(_words(cell)) for cell in cells]
    headers = set(names)
    special: dict[str, str] = {}
    platform = ""
    if headers & {"sisloginid", "sisuserid"} or headers >= {"student", "id", "section"}:
        platform, special = "Canvas", {"student": "name", "id": "canvas"}
    elif headers >= {"identifier", "githubusername"}:
        platform, special = "GitHub Classroom", {"identifier": "student"}
    elif headers >= {"username", "githubid"}:
        platform, special = "Classroom 50", {"username": "github"}
    elif headers >= {"sid", "email"} and headers & {"firstname", "name"}:
        platform = "Gradescope"
    elif headers >= {"identifier", "fullname"} or headers >= {"firstname", "emailaddress"}:
        platform = "Moodle"
    fields: list[str] = []
    problems = []
    for cell, name in zip(cells, names, strict=True):
        column = special.get(name, _HEADERS.get(name))
        if column and column in fields:
            problems.append(f"The column '{cell}' is not used, as another one gives the same.")
            column = ""
        elif column is None and name and not platform:
            problems.append(f"The column '{cell}' is unknown and not used; the columns are "
                            f"{', '.join(COLUMNS)}.")
        fields.append(column or "")
    return fields, platform, problems


def _record(header: Sequence[str], cells: Sequence[str]) -> dict[str, str]:
    row = {column: unicodedata.normalize("NFC", cell)
           for column, cell in zip(header, cells, strict=False) if column and cell}
    if "name" not in row and ("first" in row or "last" in row):
        row["name"] = f"{row.get('first', '')} {row.get('last', '')}".strip()
    return row


def _is_skipped(row: Mapping[str, str], platform: str) -> bool:
    """Whether a row belongs to a teacher, Canvas's test student, or its points possible."""
    if row.get("role", "student").casefold() not in ("student", "learner"):
        return True
    words = _words(row.get("name", ""))
    return platform == "Canvas" and (
        not row.keys() & set(_IDENTIFYING) or words[:2] == ["points", "possible"]
        or sorted(words) == ["student", "test"])


def _identifying(rows: Sequence[Mapping[str, str]]) -> str:
    filled = Counter(column for row in rows for column in row)
    return max(_IDENTIFYING, key=lambda column: filled[column]) \
        if any(filled[column] for column in _IDENTIFYING) else ""


def unusable_id(student_id: str) -> str:
    """Why a text cannot be a student's id, which names files; empty if it can."""
    if not student_id:
        return "it has no id"
    if len(student_id) > 128:
        return "its id has more than 128 characters"
    if "/" in student_id or "\\" in student_id or student_id.startswith(".") or \
            not student_id.isprintable():
        return f"the id {student_id!r} has a slash, a control character or a dot in front"
    return ""


def _student(own: str, row: Mapping[str, str]) -> Student:
    numbers = {"canvas": row.get("canvas", ""),
               "moodle": row.get("moodle", "").rpartition(" ")[2]}  # "Participant 1234"
    return Student(own, **{column: row.get(column, "")
                           for column in (*COLUMNS[1:], "first", "last")},
                   aliases=tuple(f"{kind}:{_key(value)}" for kind, value in numbers.items()
                                 if value))


def _shared(students: Iterable[Student], lines: Mapping[str, int]) -> list[str]:
    """Sentences about values that should be one student's alone; they match nobody."""
    problems = []
    for column in _EXACT:
        for pool in _index((_key(getattr(one, column)), one) for one in students).values():
            if len(pool) > 1:
                places = ", ".join(str(lines[one.id.casefold()]) for one in pool)
                problems.append(f"Lines {places} have the same {column}, "
                                f"'{getattr(pool[0], column)}'; it identifies nobody.")
    return problems


def _index(pairs: Iterable[tuple[K, Student]]) -> dict[K, list[Student]]:
    index: dict[K, list[Student]] = defaultdict(list)
    for key, student in pairs:
        if key and student not in index[key]:
            index[key].append(student)
    return dict(index)


def _ambiguous(students: Sequence[Student]) -> Match:
    return Match(how="ambiguous", nearest=tuple(map(str, students)))


def _pairs(text: str) -> set[str]:
    return {text[at:at + 2] for at in range(len(text) - 1)}


def _key(text: str) -> str:
    return unicodedata.normalize("NFC", text).strip().casefold()


def _words(text: str) -> list[str]:
    """The words of a name without case, accents and punctuation."""
    plain = unicodedata.normalize("NFKD", text.casefold())
    letters = "".join(char for char in plain if not unicodedata.combining(char))
    return re.findall(r"[^\W_]+", re.sub(r"['’`´ʼ]", "", letters.translate(_LETTERS)))


def _unusable(sentence: str) -> TritonlabError:
    return TritonlabError(sentence, "A roster is a CSV file with the column student, and any of "
                          f"{', '.join(COLUMNS[1:])}; the exports of Canvas, Gradescope, Moodle "
                          "and GitHub work too.")
