"""A course of one's own: modules that `new` makes, whole once their prompts are answered."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tests.support import toy
from tritonlab.authoring import checks, module_files, scaffold
from tritonlab.course import course

STARTERS = {"track1": "blanks", "track2": "slow", "track3": "broken", "track4": "specification"}


@dataclass(frozen=True)
class Made:
    """A module of a course that lies in ``root``."""

    root: Path
    module: course.Module
    starter: str

    def file(self, name: str) -> Path:
        """``tracks/kernel.py`` is the exercise, ``suites/suite.py`` the suite, and so on."""
        kind, _, rest = name.partition("/")
        folders = {"tracks": self.module.folder, "solutions": self.module.solution.parent,
                   "suites": self.module.suite.parent}
        return folders[kind] / rest

    def edit(self, name: str, find: str, put: str) -> Made:
        path = self.file(name)
        text = path.read_text()
        assert find in text
        path.write_text(text.replace(find, put))
        return self.again()

    def again(self) -> Made:
        """The same, read anew."""
        return make(self.root, self.module.id)

    @property
    def material(self) -> module_files.Material:
        return module_files.read(self.module, self.starter)


def empty_course(root: Path) -> Path:
    """Four tracks without a module."""
    for folder, number, title in toy.TRACKS:
        path = root / "tracks" / folder
        path.mkdir(parents=True)
        (path / "track.toml").write_text(
            f'number = {number}\ntitle = "{title}"\nblurb = "About {title}."\n'
            f'starter = "{STARTERS[f"track{number}"]}"\n')
    (root / "course.toml").write_text('id = "own"\n')
    return root


def make(root: Path, module_id: str = "track1/doubling") -> Made:
    """The module of this id, made and with all prompts answered unless it is there."""
    if not (root / "tracks").exists():
        empty_course(root)
    roots = course.roots_in(root)
    if course.load(roots).get(module_id) is None:
        paths = scaffold.write(scaffold.plan(course.load(roots), roots, module_id))
        answer(paths)
    module = course.load(roots).find(module_id)
    return Made(root, module, STARTERS[module_id.partition("/")[0]])


def answer(paths: list[Path]) -> None:
    """Put words where the scaffold asks for them."""
    for path in paths:
        path.write_text(re.sub(rf"{checks.PROMPT}: ", "Words about ", path.read_text()))
