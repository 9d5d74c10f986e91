"""The file course.toml: the id of a course, what it builds on, its choice and its overrides."""

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tritonlab.course.override import Override
from tritonlab.errors import BadCourse, TritonlabError
from tritonlab.version import __version__

FILE = "course.toml"
SHIPPED = "tritonlab"  # the id of the shipped course; records without a course belong to it
ID = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_TEXTS = ("id", "version", "title", "extends", "requires")
KEYS = (*_TEXTS, "modules", "override")
_PACKED = "public_only"  # a key that only `tritonlab class pack` writes


@dataclass(frozen=True)
class CourseSettings:
    """A course's own settings. Without ``modules`` it has all of its own and of ``extends``.

    ``public_only``: a build for students, which has the public cases only.
    """

    id: str
    version: str = ""
    title: str = ""
    extends: str = ""
    requires: str = ""
    modules: tuple[str, ...] = ()
    override: Mapping[str, Override] = field(default_factory=dict)
    public_only: bool = False


def settings(file: Path, data: Mapping[str, Any], *, packed: bool = False) -> CourseSettings:
    """Checks the data of a course.toml; without the file, the name of its folder is the id.

    ``packed``: the file was written by `tritonlab class pack`, for an installation of its own.

    Raises:
        BadCourse: a key is unknown or has a wrong value; the message has file, line and cure.
        TritonlabError: this tritonlab is not a version that the course requires.
    """
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    for key in data:
        if key not in KEYS and not (packed and key == _PACKED):
            raise fault(file, text, key, f"'{key}' is not a setting.{nearest(key, KEYS)}",
                        f"The settings are {', '.join(KEYS)}.")
    usual = re.sub(r"[^a-z0-9]+", "-", file.parent.resolve().name.lower()).strip("-")
    own = data.get("id", None if file.exists() else usual)
    if not isinstance(own, str) or not ID.fullmatch(own) or (own == SHIPPED and not packed):
        why = "belongs to the shipped course" if own == SHIPPED else "cannot be a course's id"
        raise BadCourse(f"{own!r} {why} ({file}).",
                        f'Write a line such as id = "cs149" into {FILE}: small letters, digits '
                        "and single hyphens.")
    for key in _TEXTS:
        if not isinstance(data.get(key, ""), str):
            raise fault(file, text, key, f"'{key}' is not a text.", f'Write {key} = "…".')
    names = data.get("modules", [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise fault(file, text, "modules", "'modules' is not a list of ids.",
                    'Write modules = ["track1/vector-add", …].')
    if "requires" in data:
        _check_version(file, text, own, data["requires"])
    version, title, extends, requires = (data.get(key, "") for key in _TEXTS[1:])
    return CourseSettings(own, version, title, extends, requires, tuple(names),
                          _overrides(file, text, data.get("override", {})),
                          bool(data.get(_PACKED)))


def _overrides(file: Path, text: str, data: Any) -> dict[str, Override]:
    overrides = {}
    for module, values in data.items() if isinstance(data, dict) else ():
        for key, value in values.items() if isinstance(values, dict) else [(module, values)]:
            if key != "pass_at":
                raise fault(file, text, key, f"'{key}' cannot be overridden."
                            f"{nearest(key, ['pass_at'])}", f'Write [override."{module}"] and '
                            "below it pass_at = 0.6, say.")
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
                raise fault(file, text, key, f"pass_at = {value!r} is not a share between 0 and 1.",
                            "Write pass_at = 0.6 for 60 %.")
        overrides[module] = Override(pass_at=values.get("pass_at"))
    return overrides


def _check_version(file: Path, text: str, course_id: str, requires: str) -> None:
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        requirement = Requirement(requires)
    except InvalidRequirement:
        requirement = None
    if requirement is None or requirement.name != "tritonlab":
        raise fault(file, text, "requires", f"{requires!r} does not name versions of tritonlab.",
                    'Write requires = "tritonlab>=0.2", say.')
    if not requirement.specifier.contains(__version__, prereleases=True):
        raise TritonlabError(f"The course {course_id} requires {requires}, and {__version__} is "
                             "installed.", f"Type pip install '{requires}'.")


def fault(file: Path, text: str, key: str, cause: str, cure: str) -> BadCourse:
    """Returns the error for a key of a file, with its line."""
    return BadCourse(f"{file}, line {line_of(text, key)}: {cause}", cure)


def line_of(text: str, key: str) -> int:
    """Returns the number of the first line that sets a key, opens its table or lists it."""
    word = re.compile(rf'^\s*(\[.*)?"?{re.escape(key)}"?\s*[=\].]|"{re.escape(key)}"')
    return next((number for number, line in enumerate(text.splitlines(), 1)
                 if word.search(line)), 1)


def nearest(name: str, names: Iterable[str]) -> str:
    """Returns " Did you mean '…'?" with the name that is most alike; empty if none is."""
    close = difflib.get_close_matches(name, list(names), n=1)
    return f" Did you mean '{close[0]}'?" if close else ""
