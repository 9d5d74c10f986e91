"""The settings of a class: ``class.toml``."""

import dataclasses
import difflib
import re
import tomllib
import zoneinfo
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_type_hints

import msgspec
from msgspec import Meta

from tritonlab.course.override import Override
from tritonlab.errors import TritonlabError, reason_of, shown
from tritonlab.grading.points import Weights

SETTINGS = "class.toml"
SCHEMA = 1
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")  # of an assignment, which names files too
_PLACE = re.compile(r" - at `\$\.?(.*)`$")

Positive = Annotated[float, Meta(gt=0)]


@dataclass(frozen=True)
class Late:
    """What a late submission costs: a percentage of the points for each day begun."""

    percent_per_day: Annotated[float, Meta(ge=0, le=100)] = 10
    days: Annotated[int, Meta(ge=0)] = 365  # later ones get no points


@dataclass(frozen=True)
class ClassAssignment:
    """One assignment: its modules, and how grades become points.

    ``late``: without it, late submissions are marked and cost nothing. ``take``: which submission
    counts. ``reveal``: how much feedback shows.
    """

    name: str
    modules: tuple[str, ...]
    due: datetime | None = None
    points: Positive = 100
    weights: Weights = field(default_factory=Weights)
    late: Late | None = None
    take: Literal["best", "last", "last-before-due"] = "best"
    reveal: Literal["verdict", "first-failure", "all"] = "first-failure"
    override: Mapping[str, Override] = field(default_factory=dict)

    def of(self, module: str) -> Override:
        """The change of a module's hidden tests."""
        return self.override.get(module, Override())


@dataclass(frozen=True)
class ClassSettings:
    """All of class.toml.

    ``aliases``: what a platform calls a student, such as another address, and the student.
    ``seed``: ``per-assignment`` gives every student the same secret inputs, ``fresh`` draws them
    anew for every grade. The limits are of one submission; the memory is that of each process that
    runs its code.
    """

    name: str
    course: str = "tritonlab"
    timezone: str = "UTC"
    target: str = "h100"
    require_isolation: Literal[0, 1, 2] = 2
    seed: Literal["per-assignment", "fresh"] = "per-assignment"
    limit_cpu_s: Positive = 300
    limit_memory_mb: Annotated[float, Meta(ge=256)] = 4000
    aliases: Mapping[str, str] = field(default_factory=dict)
    assignments: Mapping[str, ClassAssignment] = field(default_factory=dict)
    root: Path = Path()

    @property
    def zone(self) -> zoneinfo.ZoneInfo:
        return zoneinfo.ZoneInfo(self.timezone)

    def assignment(self, name: str) -> ClassAssignment:
        """Returns an assignment by name; raises TritonlabError if there is none."""
        if name in self.assignments:
            return self.assignments[name]
        close = difflib.get_close_matches(name, self.assignments, n=1)
        hint = f" Did you mean {close[0]}?" if close else ""
        names = ", ".join(self.assignments) or "none"
        raise TritonlabError(f"{SETTINGS} has no assignment '{name}'.{hint}",
                             f"Its assignments: {names}.")


def find() -> Path:
    """Returns the folder of the class around the current folder.

    Raises:
        TritonlabError: there is none.
    """
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / SETTINGS).is_file():
            return folder
    raise TritonlabError(f"There is no {SETTINGS} in this folder or above it.",
                         "`tritonlab class init DIR` creates a class.")


def load(root: Path) -> ClassSettings:
    """Reads ``class.toml``.

    Raises:
        TritonlabError: it cannot be read, or a key or value in it is wrong.
    """
    file = root / SETTINGS
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise _wrong(file, f"cannot be read: {reason_of(error)}") from error
    except UnicodeDecodeError as error:
        raise _wrong(file, f"is not valid TOML: {error}") from error
    except tomllib.TOMLDecodeError as error:
        lines = file.read_text(encoding="utf-8").splitlines()
        line = re.search(r"at line (\d+)", str(error))
        if line and re.match(r"\s*due\s*=\s*\d", text := lines[int(line[1]) - 1]):
            raise _wrong(file, f"has a due time on line {line[1]} that is not a time such as "
                         f"2026-10-12T23:59:00: {text.partition('=')[2].strip()}") from error
        raise _wrong(file, f"is not valid TOML: {error}") from error
    if data.pop("schema", SCHEMA) != SCHEMA:
        raise _wrong(file, f"has a schema other than {SCHEMA}")
    return _settings(file, data)


def _settings(file: Path, data: dict[str, Any]) -> ClassSettings:
    assignments = data.get("assignments", {})
    if not isinstance(assignments, dict):
        raise _wrong(file, "has no table [assignments.NAME]")
    for name, one in assignments.items():
        if not _NAME.fullmatch(name):
            raise _wrong(file, f"has an assignment called '{name}': use letters, digits, '.', '_' "
                         "and '-'")
        if isinstance(one, dict):
            one["name"] = name
            weights = one.get("weights")
            if isinstance(weights, str):
                if weights != "all-or-nothing":
                    raise _wrong(file, f"assignments.{name}.weights is '{weights}'; it is a table "
                                 "or \"all-or-nothing\"")
                one["weights"] = {"all_or_nothing": True}
    _check_keys(file, data, ClassSettings, "")
    try:
        zone = zoneinfo.ZoneInfo(str(data.get("timezone", "UTC")))
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise _wrong(file, f"names an unknown timezone, '{data['timezone']}'") from error
    for name, one in assignments.items():
        due = one.get("due") if isinstance(one, dict) else None
        if isinstance(due, datetime) and due.tzinfo is None:
            one["due"] = due.replace(tzinfo=zone)
        elif due is not None and not isinstance(due, datetime):
            raise _wrong(file, f"assignments.{name}.due is not a time such as 2026-10-12T23:59:00")
    try:
        return msgspec.convert({**data, "root": str(file.parent)}, ClassSettings,
                               dec_hook=lambda kind, value: kind(value))
    except msgspec.ValidationError as error:
        place = _PLACE.search(str(error))
        reason = _PLACE.sub("", str(error))
        reason = re.sub(r"Object missing required field `(\w+)`", r"lacks '\1'", reason)
        reason += _choices(place[1]) if place and reason.startswith("Invalid enum value") else ""
        where = f"{place[1]}: ".replace("[...]", ".*") if place and place[1] else ""
        raise _wrong(file, f"cannot be used: {where}{reason}") from error


def _choices(place: str) -> str:
    """The allowed values of a key, as the end of a sentence."""
    key = place.rpartition(".")[2]
    for kind in (ClassSettings, ClassAssignment):
        if values := get_args(get_type_hints(kind).get(key)):
            return f"; it is one of {', '.join(map(str, values))}"
    return ""


def _check_keys(file: Path, data: Any, kind: type, place: str) -> None:
    """Refuses unknown keys, at all levels; values are checked by msgspec."""
    if not isinstance(data, dict):
        return
    names = {one.name for one in dataclasses.fields(kind)}
    fields = names - {"root", "all_or_nothing"} - (
        {"name"} if kind is ClassAssignment else set())
    for key in data:
        if key not in fields and key not in ("name", "all_or_nothing"):
            close = difflib.get_close_matches(key, fields, n=1)
            hint = f"; did you mean '{close[0]}'?" if close else \
                f"; it knows {', '.join(sorted(fields))}"
            raise _wrong(file, f"has an unknown key '{place}{key}'{hint}")
    parts: dict[str, tuple[type, bool]] = {
        "assignments": (ClassAssignment, True), "weights": (Weights, False), "late": (Late, False),
        "override": (Override, True)}
    for key, (part, keyed) in parts.items():
        for name, one in (data.get(key, {}).items() if keyed and isinstance(data.get(key), dict)
                          else [("", data.get(key))]):
            _check_keys(file, one, part, f"{place}{key}.{name}." if keyed else f"{place}{key}.")


def _wrong(file: Path, reason: str) -> TritonlabError:
    end = "" if reason.endswith("?") else "."
    return TritonlabError(f"{shown(file)} {reason}{end}", "Edit it, then repeat the command.")


def days_late(due: datetime | None, at: datetime | None) -> int:
    """The number of days, begun ones included, by which ``at`` is after ``due``."""
    if due is None or at is None or at <= due:
        return 0
    return -((due - at) // timedelta(days=1))
