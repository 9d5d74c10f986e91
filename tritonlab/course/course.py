"""The course: tracks and modules read from disk, and the lookup of a module by name."""

import difflib
import os
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import msgspec

import grader
from tritonlab.errors import BadCourse, OtherCourse, UnknownModule

T = TypeVar("T")

SHIPPED = "tritonlab"  # the id of the shipped course; records without a course belong to it
EXERCISE = "kernel.py"
LESSON = "README.md"
PICTURE = "picture.svg"
ANSWERS = "answers.md"  # to the questions of the lesson, beside the solution
GRADING = "grading.md"  # in the folder of the tracks: the checks that all modules share
SETTINGS = "course.toml"  # at the root of a course other than the shipped one
_ID = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_FOLDER = re.compile(r"(\d\d)-([a-z0-9]+(?:-[a-z0-9]+)*)")


@dataclass(frozen=True)
class Roots:
    """The three mirrored folders of a course."""

    tracks: Path
    solutions: Path
    suites: Path


def default_roots() -> Roots:
    """Returns the folders of the course in use: that of TRITONLAB_COURSE, or the shipped one."""
    other = os.environ.get("TRITONLAB_COURSE")
    return roots_in(Path(other)) if other else shipped_roots()


def package() -> Path:
    """Returns the folder of the package tritonlab."""
    return Path(__file__).resolve().parents[1]


def shipped_roots() -> Roots:
    """Returns the folders of the shipped course: beside the package, in a wheel inside it."""
    root = package() if (package() / "tracks").is_dir() else package().parent
    suites = Path(grader.__file__).resolve().parent / "suites"
    return Roots(root / "tracks", root / "solutions", suites)


def roots_in(folder: Path) -> Roots:
    """Returns the folders of a course that lies in one folder."""
    root = folder.absolute()
    return Roots(root / "tracks", root / "solutions", root / "suites")


@dataclass(frozen=True)
class HintGroup:
    """Three rungs of help for TODOs or functions: a question, a tool, code of another kernel."""

    group: str
    title: str
    rungs: tuple[str, ...]
    todos: tuple[int, ...] = ()
    functions: tuple[str, ...] = ()


@dataclass(frozen=True)
class Module:
    """A lesson with its exercise, solution and hidden tests."""

    id: str       # track1/softmax
    number: str   # 1.3
    track: str    # missing-elements
    slug: str
    title: str
    summary: str
    core: bool
    minutes: int  # planned
    objectives: tuple[str, ...]
    prerequisites: tuple[str, ...]
    folder: Path
    solution: Path
    suite: Path
    hints: tuple[HintGroup, ...] = ()
    marker: str = "TODO"  # the word before the numbers of the exercise's places
    files: tuple[str, ...] = ()  # further files of the exercise, by their paths
    before: str = ""  # a warm-up: the id of the module that it directly precedes in its track
    course: str = SHIPPED  # the id of its course

    @property
    def packages(self) -> tuple[str, ...]:
        """The folders of Python files to edit; if there is none, kernel.py is edited."""
        nested = (Path(name) for name in self.files if name.endswith(".py"))
        return tuple(sorted({path.parts[0] for path in nested if len(path.parts) > 1}))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the module but for the bare slug, which may not be unique."""
        alias = self.id.partition("/")[0]
        return (self.id, f"{self.track}/{self.slug}", self.number,
                f"{self.track}/{self.folder.name}", f"{alias}/{self.folder.name}")

    @property
    def suite_sha256(self) -> str:
        """The SHA-256 of the hidden tests; empty if they are missing."""
        from grader.suite import digest  # imports slowly, and only certificates need it

        try:
            return digest(self.suite)
        except OSError:
            return ""

    def lesson(self) -> str:
        """The lesson as Markdown; raises BadCourse if it cannot be read."""
        return _text(f"The lesson of {self.id}", self.folder / LESSON)

    def picture(self) -> str:
        """The picture of its lesson as SVG; empty if it has none."""
        file = self.folder / PICTURE
        return _text(f"The picture of {self.id}", file) if file.is_file() else ""

    @property
    def has_answers(self) -> bool:
        return self.solution.with_name(ANSWERS).is_file()

    def answers(self) -> str:
        """The answers to its questions as Markdown; raises BadCourse if they cannot be read."""
        return _text(f"The file of answers of {self.id}", self.solution.with_name(ANSWERS))

    def hint_group(self, todo: int | None = None, function: str = "") -> HintGroup | None:
        """Returns the group for a TODO, otherwise for a function or a title."""
        by_todo = (group for group in self.hints if todo in group.todos)
        by_function = (group for group in self.hints
                       if function.casefold() in map(str.casefold, (*group.functions, group.title)))
        return next(by_todo, None) or next(by_function, None)


@dataclass(frozen=True)
class Track:
    """An ordered row of modules."""

    number: int
    folder: str
    title: str
    blurb: str
    starter: str
    modules: tuple[Module, ...] = ()

    @property
    def id(self) -> str:
        return f"track{self.number}"


@dataclass(frozen=True)
class Course:
    """All tracks of a course, and its id."""

    tracks: tuple[Track, ...]
    id: str = SHIPPED

    @property
    def modules(self) -> Iterator[Module]:
        return (module for track in self.tracks for module in track.modules)

    @property
    def example(self) -> str:
        """The id of the first module, for messages."""
        return next((module.id for module in self.modules), "ID")

    def find(self, name: str) -> Module:
        """Returns the module called ``name``.

        Args:
            name: ``track1/softmax``, ``missing-elements/softmax``, ``1.3`` or ``softmax``.

        Raises:
            UnknownModule: no module or several have that name.
        """
        wanted = name.strip().strip("/").lower()
        matches = [module for module in self.modules if wanted in module.names][:1] or \
            [module for module in self.modules if wanted == module.slug]
        if len(matches) == 1:
            return matches[0]
        if matches:
            choice = " or ".join(module.id for module in matches)
            raise UnknownModule(f"{len(matches)} modules are called '{name}': {choice}.",
                                "Type one of these ids.")
        ids = {name: m.id for m in self.modules for name in (m.slug, *m.names)}
        close = difflib.get_close_matches(wanted, ids, n=1)
        if not close and "/" in wanted:  # the right module under a wrong track
            close = difflib.get_close_matches(wanted.rpartition("/")[2], ids, n=1)
        suggestion = f" Did you mean {ids[close[0]]}?" if close else ""
        raise UnknownModule(f"No module is called '{name}'.{suggestion}",
                            "`tritonlab list` shows all.")

    def get(self, module_id: str) -> Module | None:
        """Returns the module with this canonical id."""
        return next((module for module in self.modules if module.id == module_id), None)

    def module_of(self, path: Path) -> Module | None:
        """Returns the module of a file by the names of the two folders above it."""
        name = f"{path.parent.parent.name}/{path.parent.name}"
        return next((module for module in self.modules if name in module.names), None)


def other_course(subject: str, own: str, used: str) -> OtherCourse:
    """Returns the error for ``subject`` of the course ``own`` in the course ``used``."""
    way = "Unset TRITONLAB_COURSE" if own == SHIPPED else \
        f"Let TRITONLAB_COURSE name the folder of {own}"
    return OtherCourse(f"{subject} belongs to the course {own}, and the course in use is {used}.",
                       f"{way}, then repeat the command.")


def load(roots: Roots | None = None) -> Course:
    """Reads all tracks and modules; raises BadCourse if a file is missing or malformed."""
    roots = roots or default_roots()
    files = sorted(roots.tracks.glob("*/track.toml"))
    if not files:
        other = os.environ.get("TRITONLAB_COURSE")
        raise BadCourse(f"There are no tracks in {roots.tracks}.",
                        "Let TRITONLAB_COURSE name the folder of a course, or unset it." if other
                        else "")
    own_id = _id(roots)
    tracks = (_track(file, roots, own_id) for file in files)
    return Course(tuple(sorted(tracks, key=lambda t: t.number)), own_id)


def grading_page() -> str:
    """Returns the page on the checks that all modules share, as Markdown.

    Raises:
        BadCourse: it cannot be read.
    """
    own = default_roots().tracks / GRADING
    return _text("The page on grading", own if own.exists() else shipped_roots().tracks / GRADING)


def _text(subject: str, file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadCourse(f"{subject} cannot be read: {file}.") from error


def _id(roots: Roots) -> str:
    """Returns the id of a course: from its course.toml, otherwise the name of its folder."""
    if roots == shipped_roots():
        return SHIPPED
    file = roots.tracks.parent / SETTINGS
    if file.exists():
        own = _load(file, dict[str, Any]).get("id")
    else:
        own = re.sub(r"[^a-z0-9]+", "-", file.parent.resolve().name.lower()).strip("-")
    if not isinstance(own, str) or not _ID.fullmatch(own) or own == SHIPPED:
        why = "belongs to the shipped course" if own == SHIPPED else "cannot be a course's id"
        raise BadCourse(f"{own!r} {why} ({file}).",
                        f'Write a line such as id = "cs149" into {SETTINGS}: small letters, digits '
                        "and single hyphens.")
    return own


def _track(file: Path, roots: Roots, course_id: str) -> Track:
    track = _load(file, Track, folder=file.parent.name)
    return replace(track, modules=_in_order([
        _module(folder, track, roots, course_id) for folder in sorted(file.parent.iterdir())
        if _FOLDER.fullmatch(folder.name) and (folder / "module.toml").is_file()]))


def _in_order(modules: Sequence[Module]) -> tuple[Module, ...]:
    """Returns modules in the order of their folders, warm-ups directly before their modules."""
    places = {module.id: place for place, module in enumerate(modules)}
    return tuple(sorted(modules, key=lambda m: (places.get(m.before, places[m.id]), not m.before)))


def _module(folder: Path, track: Track, roots: Roots, course_id: str) -> Module:
    number, _, slug = folder.name.partition("-")
    mirrored = Path(track.folder, folder.name)
    return _load(
        folder / "module.toml", Module,
        id=f"{track.id}/{slug}", number=f"{track.number}.{int(number)}", track=track.folder,
        slug=slug, folder=folder, solution=roots.solutions / mirrored / EXERCISE,
        suite=roots.suites / mirrored / "suite.py", marker=marker_of(track.starter),
        course=course_id)


def marker_of(starter: str) -> str:
    """Returns the word before the numbers of an exercise's TODOs or decisions."""
    return "DECIDE" if starter == "slow" else "TODO"


def _load(file: Path, kind: type[T], **more: Any) -> T:
    """Reads a TOML file, and ``more``, as a dataclass; other fields of the file are ignored."""
    try:
        return msgspec.convert(tomllib.loads(file.read_text(encoding="utf-8")) | more, kind)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        reason = re.sub(r"Object missing required field `(\w+)`", r"it has no '\1'", str(error))
        raise BadCourse(f"{file} cannot be used: {reason}.",
                        "Repair it, or install tritonlab again.") from error
