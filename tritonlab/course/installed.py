"""Courses that are installed as packages: entry points of the group tritonlab.courses."""

import importlib.util
from importlib.metadata import entry_points
from pathlib import Path

GROUP = "tritonlab.courses"


def ids() -> list[str]:
    """Returns the ids of all installed courses."""
    return sorted({entry.name for entry in entry_points(group=GROUP)})


def folder_of(course_id: str) -> Path | None:
    """Returns the folder of an installed course, that of the package its entry point names.

    The package is located and not run; it needs no ``__init__.py``.
    """
    for entry in entry_points(group=GROUP, name=course_id):
        try:
            spec = importlib.util.find_spec(entry.module)
        except (ImportError, ValueError):
            spec = None
        for place in (spec.submodule_search_locations or ()) if spec else ():
            return Path(place)
    return None
