"""Reads the claims of a certificate from an untrusted file."""

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

from tritonlab.course.course import SHIPPED, Course
from tritonlab.errors import TritonlabError, shown
from tritonlab.progress import certificate
from tritonlab.progress.certificate import EVIDENCE, ModuleState
from tritonlab.progress.journal import CERTIFICATE, LOST, MARK
from tritonlab.workspace.workspace import Workspace

MARKER = '<script type="application/json" id="certificate">'  # before the data in a page
SCHEMAS = (1, 2)  # of certificates; in the first, what earlier tests had passed did not count
LARGEST = 4_000_000  # bytes; a page of 26 modules has about 50 000
MOST_MODULES = 500
_END = "</script>"
_DIGITS = 15  # of a number
_LONGEST = 200  # characters of a text
_SHA256 = re.compile(r"[0-9a-f]{64}")
_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,63}/[a-z0-9][a-z0-9-]{0,63}")
_TRACK = re.compile(r"track[0-9]{1,3}")


class NoCertificate(TritonlabError):
    """The file is not a certificate, or not one that this version can read."""


@dataclass(frozen=True)
class Claim:
    """The claim of a certificate about one module."""

    module: str
    title: str
    core: bool
    state: ModuleState
    evidence: str
    source_sha256: str
    suite_sha256: str
    solution_seen: bool


@dataclass(frozen=True)
class Claims:
    """All claims of a certificate. ``totals`` are (passed, total) by track or kind."""

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
        """The claims that count as passed."""
        return tuple(claim for claim in self.claims if claim.state is ModuleState.PASSED
                     or (claim.state is ModuleState.OUTDATED and self.schema > 1))

    @property
    def miscounted(self) -> tuple[str, ...]:
        """The totals that differ from the sum over the modules."""
        counts = dict.fromkeys(self.totals, 0)
        for claim in self.passed:
            for name in (*([claim.module.partition("/")[0]] if claim.core else []),
                         "core" if claim.core else "electives"):
                counts[name] = counts.get(name, 0) + 1
        return tuple(sorted(name for name, number in counts.items()
                            if name not in self.totals or self.totals[name][0] != number))


def fingerprint(data: Mapping[str, Any]) -> str:
    """Returns the SHA-256 of a certificate, whatever the layout of its JSON."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class LocatedCertificate:
    """A certificate with its file and the damage of its journal."""

    file: Path
    claims: Claims
    problems: tuple[str, ...] = ()


def locate(course: Course, path: Path) -> LocatedCertificate:
    """Returns the certificate in a file, or the current one of a workspace.

    If the journal has lost records, it is the certificate.json that was made from them.

    Raises:
        NoCertificate: the file is not a certificate, or the folder not a workspace with a record.
        NotSaved: the journal cannot be read.
        OtherCourse: the workspace belongs to another course.
    """
    if not path.is_dir():
        return LocatedCertificate(path, read(path))
    folder = path if path.name == MARK else path / MARK
    if not folder.is_dir():
        raise NoCertificate(f"{shown(path)} is a folder and no workspace.",
                            "Name a certificate: a page, a certificate.json or a workspace.")
    file = folder / CERTIFICATE
    reading = Workspace(folder.parent).journal(course).read()
    if file.exists() and (LOST in reading.problems or not reading.records):
        return LocatedCertificate(file, read(file), reading.problems)
    if not reading.records:
        raise NoCertificate(f"The workspace {shown(path)} holds no record yet.",
                            "`tritonlab grade`, typed there, makes the first.")
    current = certificate.build(course, reading).to_dict()
    return LocatedCertificate(file, _claims(current), reading.problems)


def read(path: Path) -> Claims:
    """Reads a certificate from JSON or from a page. Nothing in it is trusted.

    Raises:
        NoCertificate: the message says why it cannot be verified.
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
    except _InvalidField as error:
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
    """Returns the text of a file, without blocking on a pipe and with bounded size."""
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
    raise ValueError(f"{text} is no number")


# ---------------------------------------------------------------------------------------------
# Fields of the right type


class _InvalidField(Exception):
    """A field is missing or has the wrong type."""


class _Fields:
    """An object of the certificate; each method checks and returns one field.

    ``place`` is the path of the object, for messages.
    """

    def __init__(self, data: Any, place: str = "") -> None:
        if not isinstance(data, dict):
            raise _InvalidField(f"{place or 'it'} is no object")
        self.data = data
        self.place = place

    def path(self, name: str) -> str:
        return f"{self.place}.{name}" if self.place else name

    def get(self, name: str, kind: type) -> Any:
        if name not in self.data:
            raise _InvalidField(f"{self.path(name)} is missing")
        value = self.data[name]
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise _InvalidField(f"{self.path(name)} is not of the type that it has to be")
        return value

    def object(self, name: str) -> _Fields:
        return _Fields(self.get(name, dict), self.path(name))

    def text(self, name: str, *, empty: bool = False) -> str:
        if empty and self.data.get(name, "") is None:
            return ""
        text = str(self.get(name, str))
        if len(text) > _LONGEST:
            raise _InvalidField(f"{self.path(name)} has more than {_LONGEST} characters")
        return text

    def sha256(self, name: str, *, empty: bool = False) -> str:
        text = self.text(name, empty=empty)
        if not _SHA256.fullmatch(text) and (text or not empty):
            raise _InvalidField(f"{self.path(name)} is no SHA-256")
        return text

    def count(self, name: str) -> int:
        number = int(self.get(name, int))
        if number < 0:
            raise _InvalidField(f"{self.path(name)} is below zero")
        return number

    def total(self, name: str) -> tuple[int, int]:
        total = self.object(name)
        return total.count("passed"), total.count("total")


def _claims(data: Any) -> Claims:
    fields = _Fields(data)
    schema = fields.get("schema", int)
    if schema not in SCHEMAS:
        raise _InvalidField(f"its schema is not one of {SCHEMAS}, which this tritonlab reads")
    modules = fields.get("modules", list)
    if len(modules) > MOST_MODULES:
        raise _InvalidField(f"it has more than {MOST_MODULES} modules")
    claims = tuple(_claim(_Fields(module, f"modules[{number}]"))
                   for number, module in enumerate(modules))
    if len({claim.module for claim in claims}) < len(claims):
        raise _InvalidField("a module is there twice")
    totals = fields.object("totals")
    tracks = totals.object("tracks")
    if not all(_TRACK.fullmatch(name) for name in tracks.data):
        raise _InvalidField("totals.tracks holds what is no id of a track")
    counts = {name: tracks.total(name) for name in tracks.data}
    counts |= {name: totals.total(name) for name in ("core", "electives")}
    journal = fields.object("journal")
    return Claims(
        schema, fields.text("course") if "course" in data else SHIPPED,
        fields.text("name", empty=True), fields.text("updated", empty=True),
        fields.text("tritonlab"), fingerprint(data), journal.count("records"),
        journal.sha256("head"), counts, claims)


def _claim(fields: _Fields) -> Claim:
    module = fields.text("module")
    if not _ID.fullmatch(module):
        raise _InvalidField(f"{fields.path('module')} is no id of a module")
    state, evidence = fields.text("state"), fields.text("evidence")
    if state not in set(ModuleState) or evidence not in EVIDENCE:
        raise _InvalidField(f"{fields.place} has a state or an evidence that there is not")
    empty = state not in (ModuleState.PASSED, ModuleState.OUTDATED)
    return Claim(module, fields.text("title"), fields.get("core", bool), ModuleState(state),
                 evidence, fields.sha256("source_sha256", empty=empty),
                 fields.sha256("suite_sha256", empty=empty), fields.get("solution_seen", bool))
