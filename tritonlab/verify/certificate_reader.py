"""Reads the claims of a certificate from an untrusted file."""

import hashlib
import json
import math
import os
import re
import stat
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn, TypeVar

import msgspec
from msgspec import Meta, Struct

from tritonlab.course.course import SHIPPED, Course
from tritonlab.errors import TritonlabError, reason_of, shown
from tritonlab.progress import certificate
from tritonlab.progress.certificate import ModuleState
from tritonlab.progress.journal import CERTIFICATE, LOST, MARK, canonical
from tritonlab.workspace.workspace import Workspace

MARKER = '<script type="application/json" id="certificate">'  # before the data in a page
LARGEST = 4_000_000  # bytes; a page of all modules has about 50 000
MOST_MODULES = 500
_END = "</script>"
_DIGITS = 15  # of a number
_LONGEST = 200  # characters of a text
_Text = Annotated[str, Meta(max_length=_LONGEST)]
_Count = Annotated[int, Meta(ge=0)]
_Id = Annotated[_Text, Meta(pattern=r"\A[a-z0-9][a-z0-9-]{0,63}/[a-z0-9][a-z0-9-]{0,63}\Z")]
_Track = Annotated[str, Meta(pattern=r"\Atrack[0-9]{1,3}\Z")]
_Sha256 = Annotated[_Text, Meta(pattern=r"\A([0-9a-f]{64})?\Z")]
_WRONG_TYPE = "has the wrong type"
T = TypeVar("T")


class NoCertificate(TritonlabError):
    """The file is not a certificate, or not one that this version can read."""

    usual_step = "Name a certificate: a page, a certificate.json or a workspace."


class Claim(Struct, frozen=True):
    """The claim of a certificate about one module. A passed one has both digests."""

    module: _Id
    title: _Text
    state: ModuleState
    evidence: Literal["", "correct", "efficient", "fast"]
    core: bool
    source_sha256: _Sha256 | None
    suite_sha256: _Sha256 | None
    solution_seen: bool

    def __post_init__(self) -> None:
        for name in ("source_sha256", "suite_sha256"):
            digest = getattr(self, name)
            if self.state in (ModuleState.PASSED, ModuleState.OUTDATED) and not digest:
                raise ValueError(f"{name} {_WRONG_TYPE if digest is None else 'is not a SHA-256'}")


class ClaimedTotal(Struct, frozen=True):
    """The numbers of passed and of all modules."""

    passed: _Count
    total: _Count


class Totals(Struct, frozen=True):
    """The totals of core modules by track, of all core modules and of electives."""

    tracks: dict[_Track, Any]  # of ClaimedTotal
    core: ClaimedTotal
    electives: ClaimedTotal


class JournalEnd(Struct, frozen=True):
    """The number of records and the SHA-256 of the last one."""

    records: _Count
    head: Annotated[_Text, Meta(pattern=r"\A[0-9a-f]{64}\Z")]


class Claims(Struct, frozen=True, kw_only=True):
    """All claims of a certificate; ``fingerprint`` is its SHA-256."""

    schema: Literal[1, 2]  # in the first, what earlier tests had passed did not count
    modules: Annotated[tuple[Claim, ...], Meta(max_length=MOST_MODULES)]
    totals: Totals
    course: _Text = SHIPPED
    course_version: _Text = ""
    name: _Text | None
    updated: _Text | None
    tritonlab: _Text  # the version that made it
    journal: JournalEnd
    fingerprint: str = ""

    @property
    def passed(self) -> tuple[Claim, ...]:
        """The claims that count as passed."""
        return tuple(claim for claim in self.modules if claim.state is ModuleState.PASSED
                     or (claim.state is ModuleState.OUTDATED and self.schema > 1))

    @property
    def counts(self) -> Mapping[str, ClaimedTotal]:
        """The totals by track and kind."""
        return {**self.totals.tracks, "core": self.totals.core, "electives": self.totals.electives}

    @property
    def miscounted(self) -> list[str]:
        """The totals that differ from the sum over the modules."""
        passed = Counter(name for claim in self.passed for name in (
            (claim.module.partition("/")[0], "core") if claim.core else ("electives",)))
        return sorted(name for name in self.counts.keys() | passed
                      if name not in self.counts or self.counts[name].passed != passed[name])


def fingerprint(data: Mapping[str, Any]) -> str:
    """Returns the SHA-256 of a certificate, whatever the layout of its JSON."""
    return hashlib.sha256(canonical(data)).hexdigest()


def locate(course: Course, path: Path) -> tuple[Path, Claims, tuple[str, ...]]:
    """Returns the certificate in a file, or the current one of a workspace.

    If the journal has lost records, it is the certificate.json that was made from them.

    Returns:
        The file, its claims and the damage of its journal.

    Raises:
        NoCertificate: the file is not a certificate, or the folder not a workspace with a record.
        NotSaved: the journal cannot be read.
        OtherCourse: the workspace belongs to another course.
    """
    if not path.is_dir():
        return path, read(path), ()
    folder = path if path.name == MARK else path / MARK
    if not folder.is_dir():
        raise NoCertificate(f"{shown(path)} is a folder but not a workspace.")
    file = folder / CERTIFICATE
    reading = Workspace(folder.parent).journal(course).read()
    if file.exists() and (LOST in reading.problems or not reading.records):
        return file, read(file), reading.problems
    if not reading.records:
        raise NoCertificate(f"The workspace {shown(path)} contains no record yet.",
                            "`tritonlab grade`, typed there, makes the first.")
    return file, _claims(certificate.build(course, reading).to_dict()), reading.problems


def read(path: Path) -> Claims:
    """Reads a certificate from JSON or from a page. Nothing in it is trusted.

    Raises:
        NoCertificate: the message says why it cannot be verified.
    """
    text = _text(path)
    if text.lstrip()[:1] == "<":
        parts = text.split(MARKER)
        if len(parts) != 2:
            raise _unusable(path, "the page contains no certificate" if len(parts) == 1 else
                            "the page contains more than one certificate")
        text = parts[1].partition(_END)[0]
    try:
        data = json.loads(text, object_pairs_hook=_object, parse_int=_integer, parse_float=_number,
                          parse_constant=_constant)
        return _claims(data)
    except RecursionError:
        raise _unusable(path, "it is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise _unusable(path, f"it is not JSON (line {error.lineno}, column {error.colno})") \
            from error
    except ValueError as error:
        raise _unusable(path, str(error)) from error


def _unusable(path: Path, why: str) -> NoCertificate:
    return NoCertificate(f"{shown(path)} is not a certificate that can be verified: {why}.",
                         "`tritonlab certificate --html FILE` makes one.")


def _text(path: Path) -> str:
    """Returns the text of a file, without blocking on a pipe and with bounded size."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise _unusable(path, "it is not a regular file")
            content = file.read(LARGEST + 1)
    except OSError as error:
        raise NoCertificate(f"{shown(path)} cannot be read: {reason_of(error)}.") from error
    if len(content) > LARGEST:
        raise _unusable(path, f"it has more than {LARGEST / 1e6:.0f} MB")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _unusable(path, "it is not UTF-8 text") from error


# Strict JSON: no duplicate fields, long numbers or constants


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError("a field is given twice")
    return fields


def _integer(text: str) -> int:
    if len(text) > _DIGITS:
        raise ValueError(f"a number has more than {_DIGITS} digits")
    return int(text)


def _number(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number is too large")
    return number


def _constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number")


# Fields of the right type


def _claims(data: Any) -> Claims:
    claims = _converted(data, Claims)
    tracks = {name: _converted(total, ClaimedTotal, f"totals.tracks.{name}")
              for name, total in claims.totals.tracks.items()}
    if len({claim.module for claim in claims.modules}) < len(claims.modules):
        raise ValueError("a module occurs twice")
    return msgspec.structs.replace(claims, fingerprint=fingerprint(data),
                                   totals=msgspec.structs.replace(claims.totals, tracks=tracks))


def _converted(data: Any, kind: type[T], place: str = "") -> T:
    """Checks the types and bounds of data.

    Args:
        place: the path of the data, for messages.

    Raises:
        ValueError: the message names the field that is wrong.
    """
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        message, _, path = str(error).partition(" - at `")
    path = f"{place}{path.rstrip('`').replace('key` in `', '').removeprefix('$')}".lstrip(".")
    if match := re.match(r"Object missing required field `(\w+)`", message):
        raise ValueError(f"{path}.{match[1]} is missing".lstrip("."))
    for start, field, fault in _FAULTS:
        if message.startswith(start) and re.search(field, path):
            parent = path.rpartition(".")[0]
            raise ValueError(fault.format(path=path or "it", parent=parent))
    raise ValueError(f"{path}.{message}")


_FAULTS = (  # how a message of msgspec begins, the field that it is about, our message
    ("Invalid enum value", "^schema$",
     "its schema is not one of (1, 2), which this tritonlab reads"),
    ("Invalid enum value", "", "{parent} has an unknown state or evidence"),
    ("Expected `array` of length <=", "", f"it has more than {MOST_MODULES} modules"),
    ("Expected `str` of length <=", "", f"{{path}} has more than {_LONGEST} characters"),
    ("Expected `int` >=", "", "{path} is below zero"),
    ("Expected `str` matching", "module$", "{path} is not the id of a module"),
    ("Expected `str` matching", "tracks$", "{path} contains an invalid id of a track"),
    ("Expected `str` matching", "", "{path} is not a SHA-256"),
    ("Expected `object`", r"(^|\])$", "{path} is not an object"),
    ("Expected", "", f"{{path}} {_WRONG_TYPE}"),
)
