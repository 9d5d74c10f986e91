"""The course that is shipped, each of its modules read once."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from tritonlab.authoring import module_files
from tritonlab.course import course

ROOT = Path(__file__).parents[2]
ROOTS = course.Roots(ROOT / "tracks", ROOT / "solutions", ROOT / "grader" / "suites")
COURSE = course.load(ROOTS)
MODULES = {module.id: module for module in COURSE.modules}
STARTERS = {track.folder: track.starter for track in COURSE.tracks}


@cache
def material_of(module_id: str) -> module_files.Material:
    module = MODULES[module_id]
    return module_files.read(module, STARTERS[module.track])
