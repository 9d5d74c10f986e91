"""Claims: what a certificate says, read from a file that anybody may have written."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from tritonlab import certificate
from tritonlab.certificate import EVIDENCE, State
from tritonlab.course import Course
from tritonlab.errors import TritonlabError, shown
from tritonlab.journal import CERTIFICATE, LOST
from tritonlab.records import SHIPPED
from tritonlab.workspace import MARK, Workspace

MARKER = '<script type="application/json" id="certificate">'  # before the data in a page
SCHEMAS = (1, 2)  # of certificates; in the first, what earlier tests had passed did not count
LARGEST = 4_000_000  # bytes; a page of 26 modules has about 50 000
MOST_MODULES = 500
_END = "</script>"
_DIGITS = 15  # of a number; no certificate counts further
_LONGEST = 200  # characters of a text that is shown
_SHA256 = re.compile(r"[0-9a-f]{64}")
_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,63}/[a-z0-9][a-z0-9-]{0,63}")
_TRACK = re.compile(r"track[0-9]{1,3}")


class NoCertificate(TritonlabError):
    """The file is no certificate, or none that this version can read."""


@dataclass(frozen=True)
class Claim:
    """What is claimed of one module."""

    module: str
    title: str
    core: bool
    state: State
    evidence: str
    source_sha256: str
    suite_sha256: str
    solution_seen: bool


@dataclass(frozen=True)
class Claims:
    """What a certificate claims as a whole. ``totals`` are (passed, total) by what they count."""

    schema: int
    course: str
    name: str
    updated: str
    version: str  # of the tritonlab that made it
    fingerprint: str
    records: int
    head: str
    totals: Mapping[str, tuple[int, int]]
    claims: tuple[Claim, ...]

    @property
    def passed(self) -> tuple[Claim, ...]:
        """What counts as passed."""
        return tuple(claim for claim in self.claims if claim.state is State.PASSED
                     or (claim.state is State.OUTDATED and self.schema > 1))

    @property
    def miscounted(self) -> tuple[str, ...]:
        """The totals that say more or less than the modules do."""
        counted = dict.fromkeys(self.totals, 0)
        for claim in self.passed:
            for name in (*([claim.module.partition("/")[0]] if claim.core else []),
                         "core" if claim.core else "electives"):
                counted[name] = counted.get(name, 0) + 1
        return tuple(sorted(name for name, number in counted.items()
                            if name not in self.totals or self.totals[name][0] != number))


def fingerprint(data: Mapping[str, Any]) -> str:
    """The SHA-256 by which a certificate is known, however its JSON is laid out."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Located:
    """A certificate: its file, its claims, and the damage of the journal that it was made from."""

    file: Path
    claims: Claims
    problems: tuple[str, ...] = ()


def locate(course: Course, path: Path) -> Located:
    """The certificate in a file, or that which the journal of a workspace gives now.

    Where the journal has lost records, it is the certificate.json that was made from them.

    Raises:
        NoCertificate: the file is not a certificate, or the folder not a workspace with a record.
        NotSaved: the journal cannot be read.
        OtherCourse: the workspace belongs to another course.
    """
    if not path.is_dir():
        return Located(path, read(path))
    folder = path if path.name == MARK else path / MARK
    if not folder.is_dir():
        raise NoCertificate(f"{shown(path)} is a folder and no workspace.",
                            "Name a certificate: a page, a certificate.json or a workspace.")
    file = folder / CERTIFICATE
    reading = Workspace(folder.parent).journal(course).read()
    if file.exists() and (LOST in reading.problems or not reading.records):
        return Located(file, read(file), reading.problems)
    if not reading.records:
        raise NoCertificate(f"The workspace {shown(path)} holds no record yet.",
                            "`tritonlab grade`, typed there, makes the first.")
    current = certificate.build(course, reading).to_dict()
    return Located(file, _claims(current), reading.problems)


def read(path: Path) -> Claims:
    """Read a certificate, or the one in a page. Nothing in it is believed, or run.

    Raises:
        NoCertificate: says what is wrong with it.
    """
    text = _text(path)
    if text.lstrip()[:1] == "<":
        parts = text.split(MARKER)
        if len(parts) != 2:
            raise _unusable(path, "the page holds no certificate" if len(parts) == 1 else
                            "the page holds more than one certificate")
        text = parts[1].partition(_END)[0]
    try:
        data = json.loads(text, object_pairs_hook=_object, parse_int=_integer, parse_float=_number,
                          parse_constant=_constant)
        return _claims(data)
    except RecursionError:
        raise _unusable(path, "it is nested too deeply") from None
    except _Odd as error:
        raise _unusable(path, str(error)) from error
    except json.JSONDecodeError as error:
        raise _unusable(path, f"it is no JSON (line {error.lineno}, column {error.colno})") \
            from error
    except ValueError as error:
        raise _unusable(path, str(error)) from error


def _unusable(path: Path, why: str) -> NoCertificate:
    return NoCertificate(f"{shown(path)} is no certificate that can be verified: {why}.",
                         "`tritonlab certificate --html FILE` makes one.")


def _text(path: Path) -> str:
    """The file, without waiting for a pipe and without reading more than a certificate has."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise _unusable(path, "it is no regular file")
            content = file.read(LARGEST + 1)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise NoCertificate(f"{shown(path)} cannot be read: {reason}.",
                            "Name a certificate: a page, a certificate.json or a workspace.",
                            ) from error
    if len(content) > LARGEST:
        raise _unusable(path, f"it has more than {LARGEST / 1e6:.0f} MB")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _unusable(path, "it is no text in UTF-8") from error


# ---------------------------------------------------------------------------------------------
# JSON that says one thing only


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("a field is given twice")
    return made


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
    raise ValueError(f"{text} is no number")


# ---------------------------------------------------------------------------------------------
# Fields of the right type


class _Odd(Exception):
    """A field is missing or of another type than it has to be."""


def _claims(data: Any) -> Claims:
    if not isinstance(data, dict):
        raise _Odd("it is no object")
    schema = _get(data, "schema", int)
    if schema not in SCHEMAS:
        raise _Odd(f"its schema is not one of {SCHEMAS}, which this tritonlab reads")
    modules = _get(data, "modules", list)
    if len(modules) > MOST_MODULES:
        raise _Odd(f"it has more than {MOST_MODULES} modules")
    claims = tuple(_claim(one, f"modules[{number}]") for number, one in enumerate(modules))
    if len({claim.module for claim in claims}) < len(claims):
        raise _Odd("a module is there twice")
    totals = _get(data, "totals", dict)
    tracks = _get(totals, "tracks", dict, "totals")
    if not all(_TRACK.fullmatch(name) for name in tracks):
        raise _Odd("totals.tracks holds what is no id of a track")
    counted = {name: _total(tracks, name, "totals.tracks") for name in tracks}
    counted |= {name: _total(totals, name, "totals") for name in ("core", "electives")}
    journal = _get(data, "journal", dict)
    return Claims(
        schema, _text_of({"course": SHIPPED} | data, "course", ""),
        _text_of(data, "name", "", empty=True), _text_of(data, "updated", "", empty=True),
        _text_of(data, "tritonlab", ""), fingerprint(data),
        _count(journal, "records", "journal"), _sha256(journal, "head", "journal"), counted,
        claims)


def _claim(data: Any, where: str) -> Claim:
    if not isinstance(data, dict):
        raise _Odd(f"{where} is no object")
    module = _text_of(data, "module", where)
    if not _ID.fullmatch(module):
        raise _Odd(f"{where}.module is no id of a module")
    state, evidence = _text_of(data, "state", where), _text_of(data, "evidence", where)
    if state not in set(State) or evidence not in EVIDENCE:
        raise _Odd(f"{where} has a state or an evidence that there is not")
    passed = state in (State.PASSED, State.OUTDATED)
    return Claim(module, _text_of(data, "title", where), _get(data, "core", bool, where),
                 State(state), evidence, _sha256(data, "source_sha256", where, empty=not passed),
                 _sha256(data, "suite_sha256", where, empty=not passed),
                 _get(data, "solution_seen", bool, where))


def _get(data: Mapping[str, Any], name: str, kind: type, where: str = "") -> Any:
    place = f"{where}.{name}" if where else name
    if name not in data:
        raise _Odd(f"{place} is missing")
    if not isinstance(data[name], kind) or (kind is int and isinstance(data[name], bool)):
        raise _Odd(f"{place} is not of the type that it has to be")
    return data[name]


def _text_of(data: Mapping[str, Any], name: str, where: str, *, empty: bool = False) -> str:
    if empty and data.get(name, "") is None:
        return ""
    text = _get(data, name, str, where)
    assert isinstance(text, str)
    if len(text) > _LONGEST:
        raise _Odd(f"{f'{where}.' if where else ''}{name} has more than {_LONGEST} characters")
    return text


def _sha256(data: Mapping[str, Any], name: str, where: str, *, empty: bool = False) -> str:
    text = _text_of(data, name, where, empty=empty)
    if (text and not _SHA256.fullmatch(text)) or not (text or empty):
        raise _Odd(f"{where}.{name} is no SHA-256")
    return text


def _count(data: Mapping[str, Any], name: str, where: str) -> int:
    number = _get(data, name, int, where)
    assert isinstance(number, int)
    if number < 0:
        raise _Odd(f"{where}.{name} is below zero")
    return number


def _total(data: Mapping[str, Any], name: str, where: str) -> tuple[int, int]:
    one = _get(data, name, dict, where)
    return _count(one, "passed", f"{where}.{name}"), _count(one, "total", f"{where}.{name}")
