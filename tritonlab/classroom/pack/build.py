"""Builds of an assignment or a course for other places."""

import functools
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from grader.text import toml_value
from tritonlab.classroom import grading
from tritonlab.classroom.pack import wheel
from tritonlab.classroom.pack.wheel import NAME, Contents, Wheel, zipped
from tritonlab.classroom.settings import SETTINGS, ClassAssignment, ClassSettings
from tritonlab.classroom.store import FOLDER, SECRET, Store
from tritonlab.course.course import EXERCISE, Course, Module, Roots
from tritonlab.course.override import NOTHING
from tritonlab.errors import TritonlabError, not_saved, shown

TORCH_INDEX = "https://download.pytorch.org/whl/cpu"
TARGETS = ("gradescope", "classroom50", "github-actions", "docker", "student")
SHARDS = 4


@dataclass(frozen=True)
class Pack:
    """Files by name. ``archived``: they are written as one zip archive."""

    files: Mapping[str, bytes]
    programs: tuple[str, ...] = ()
    archived: bool = False
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Source:
    """An assignment to build: its modules, and what templates need."""

    course: Course
    roots: Roots
    modules: tuple[Module, ...]
    name: str
    values: dict[str, Any] = field(default_factory=dict)

    def wheel(self, contents: Contents) -> Wheel:
        label = f"{self.name}.public" if contents is Contents.PUBLIC else self.name
        return wheel.build(self.course, self.roots, self.modules, contents, label)

    def render(self, name: str, built: Wheel, **more: object) -> bytes:
        return _render(name, {**self.values, "wheel": built.name, **more})

    def install(self, folder: str, built: Wheel) -> str:
        return self.render("install", built, folder=folder).decode().strip()


def of_assignment(settings: ClassSettings, store: Store, assignment: ClassAssignment,
                  target: str, *, torch_index: str = TORCH_INDEX) -> Pack:
    """Builds an assignment for a target.

    Args:
        store: of the class, with the seed of its secret inputs.
        target: one of ``TARGETS``.
        torch_index: the package index of a CPU build of PyTorch.

    Raises:
        TritonlabError: the target is unknown, or the assignment has no modules.
        BadCourse: a file of a module is missing or cannot be used.
    """
    if target not in TARGETS:
        raise TritonlabError(f"'{target}' is not a target of a pack." if target else
                             "The target of the pack is missing.",
                             f"Add --for with one of {', '.join(TARGETS)}.")
    course, roots = grading.course_of(settings, settings.root)
    source = _source(course, roots, [course.find(name) for name in assignment.modules],
                     assignment.name, torch_index)
    if target == "student":
        return _student(source)
    if target == "docker":
        return _docker(source)
    if target == "github-actions":
        return _github_actions(source)
    return _autograder(source, settings, store, assignment, target)


def of_course(course: Course, roots: Roots, *, torch_index: str = TORCH_INDEX) -> Pack:
    """Builds a whole course for students, without hidden cases and solutions.

    Raises:
        BadCourse: a file of a module is missing or cannot be used.
    """
    return _student(_source(course, roots, list(course.modules), course.id, torch_index))


def write(pack: Pack, place: Path) -> list[Path]:
    """Writes a pack to a path that does not exist yet; returns its files.

    Raises:
        TritonlabError: the path exists.
        NotSaved: a file cannot be written.
    """
    if place.exists() or place.is_symlink():
        raise TritonlabError(f"{shown(place)} already exists, so nothing was written.",
                             "Remove it, or name another path with --out.")
    files = {"": zipped(pack.files, pack.programs)} if pack.archived else pack.files
    try:
        for name, content in files.items():
            path = place / name if name else place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            if name in pack.programs:
                path.chmod(0o755)
    except OSError as error:
        raise not_saved("The pack", error, place) from error
    return [place / name if name else place for name in files]


def default_place(root: Path, name: str, target: str) -> Path:
    """Returns where a pack is written unless another place is named."""
    return root / "packs" / f"{name}-{target}{'.zip' * (target == 'gradescope')}"


def _source(course: Course, roots: Roots, modules: list[Module], name: str,
            torch_index: str) -> _Source:
    alone = len(modules) == 1
    paths = [EXERCISE if alone else f"{module.id}/{EXERCISE}" for module in modules]
    values = {
        "assignment": name, "course": course.id, "torch": _torch(), "torch_index": torch_index,
        "shards": SHARDS,
        "shard_numbers": [*range(1, SHARDS + 1)],
        "handed_in": " and ".join(f"`{path}`" for path in paths),
        "modules": [{"id": module.id, "path": path, "file": module.id.replace("/", "-")}
                    for module, path in zip(modules, paths, strict=True)]}
    return _Source(course, roots, tuple(modules), name, values)


def _autograder(source: _Source, settings: ClassSettings, store: Store,
                assignment: ClassAssignment, target: str) -> Pack:
    """Builds for Gradescope or Classroom 50; what the latter gets, students can read."""
    secret = target == "gradescope"
    built = source.wheel(Contents.WHOLE if secret else Contents.TESTS)
    files = {f"class/{SETTINGS}": _settings(settings, source, assignment, secret),
             "constraints.txt": _constraints(), f"dist/{built.name}": built.content,
             "README.md": source.render(f"{target}.md", built,
                                        archive=f"{assignment.name}-gradescope.zip")}
    if not secret:
        return Pack(files | {"autograder.py": source.render("autograder.py", built)})
    files[f"class/{FOLDER}/{SECRET}"] = (store.folder / SECRET).read_bytes()
    programs = ("setup.sh", "run_autograder")
    files |= {name: source.render(name, built) for name in programs}
    return Pack(files, programs, archived=True)


def _settings(settings: ClassSettings, source: _Source, assignment: ClassAssignment,
              secret: bool) -> bytes:
    """Returns a class.toml with one assignment; its due time is the other system's."""
    weights = assignment.weights
    table = {"modules": assignment.modules, "points": assignment.points,
             "weights": "all-or-nothing" if weights.all_or_nothing else {
                 kind: weights.of(kind)
                 for kind in ("correctness", "edge", "property", "performance")},
             "reveal": assignment.reveal}
    lines = ["schema = 1", *(f"{key} = {toml_value(value)}" for key, value in (
        ("name", settings.name), ("course", source.course.id), ("target", settings.target),
        ("require_isolation", 0), ("seed", settings.seed if secret else "fresh"),
        ("limit_cpu_s", settings.limit_cpu_s))),
        f"[assignments.{toml_value(assignment.name)}]",
        *(f"{key} = {toml_value(value)}" for key, value in table.items())]
    for module, override in assignment.override.items():
        if override != NOTHING:
            lines += [f"[assignments.{toml_value(assignment.name)}.override.{toml_value(module)}]",
                      *[f"pass_at = {toml_value(override.pass_at)}"]
                      * (override.pass_at is not None),
                      f"ignore = {toml_value(override.ignore)}"]
    return ("\n".join(lines) + "\n").encode()


def _github_actions(source: _Source) -> Pack:
    whole, public = source.wheel(Contents.WHOLE), source.wheel(Contents.PUBLIC)
    name = f"{source.name}.yml"
    files = {"README.md": source.render("github-actions.md", whole)}
    for folder, built in (("class", whole), ("student", public)):
        inner = ".github/tritonlab"
        files |= {
            f"{folder}/.github/workflows/{name}": source.render(
                f"{folder}.yml", built, install=source.install(inner, built)),
            f"{folder}/{inner}/constraints.txt": _constraints(),
            f"{folder}/{inner}/dist/{built.name}": built.content}
    return Pack(files, left_out=public.left_out)


def _docker(source: _Source) -> Pack:
    built = source.wheel(Contents.WHOLE)
    install = source.install("/opt/pack", built)
    return Pack({
        "Dockerfile": source.render("Dockerfile", built, install=install),
        "README.md": source.render("docker.md", built), "constraints.txt": _constraints(),
        f"dist/{built.name}": built.content})


def _student(source: _Source) -> Pack:
    built = source.wheel(Contents.PUBLIC)
    return Pack({"README.md": source.render("student.md", built),
                 f"dist/{built.name}": built.content}, left_out=built.left_out)


@functools.cache
def _templates() -> Environment:
    environment = Environment(
        loader=PackageLoader("tritonlab.classroom.pack"), autoescape=False,
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)
    environment.filters.update(shell=shlex.quote, python=repr)
    return environment


def _render(name: str, values: Mapping[str, Any]) -> bytes:
    return _templates().get_template(f"{name}.jinja").render(values).encode()


def _torch() -> str:
    """Returns the requirement of PyTorch as tritonlab states it."""
    return next(f"torch{one.specifier}" for one in _requirements(NAME) if one.name == "torch")


def _requirements(name: str) -> Iterable[Requirement]:
    for text in distribution(name).requires or ():
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            yield requirement


@functools.cache
def _constraints() -> bytes:
    """Returns the versions of all packages that tritonlab uses here, one a line."""
    versions: dict[str, str] = {}
    waiting = [NAME]
    while waiting:
        name = waiting.pop()
        try:
            new = [canonicalize_name(one.name) for one in _requirements(name)]
        except PackageNotFoundError:  # of another platform
            continue
        if name != NAME:
            version = distribution(name).version
            versions[name] = re.sub(r"\+.*", "", version)  # torch 2.13.0+cpu is 2.13.0 elsewhere
        waiting += [one for one in new if one not in versions and one not in waiting]
    return "".join(f"{name}=={version}\n" for name, version in sorted(versions.items())).encode()
