"""The course: tracks and modules read from disk, and the lookup of a module by name."""

import difflib
import os
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

import grader
from grader.text import toml_line
from tritonlab.course import settings as course_settings
from tritonlab.course.override import NOTHING, Override
from tritonlab.course.settings import CourseSettings
from tritonlab.errors import BadCourse, OtherCourse, UnknownModule
from tritonlab.version import __version__

if TYPE_CHECKING:
    from grader.suite import Suite

T = TypeVar("T")

SHIPPED = course_settings.SHIPPED
EXERCISE = "kernel.py"
LESSON = "README.md"
ENGLISH = "en"
LANGUAGE = re.compile(r"[a-z]{2,3}(?:-[A-Za-z0-9]{2,8})?")  # as in BCP 47
_GRADED = "\n## How it is graded\n\n"
PICTURE = "picture.svg"
ANSWERS = "answers.md"  # to the questions of the lesson, beside the solution
PAGES = ("grading", "blackwell")  # in the folder of the tracks: Markdown that several lessons link
_FOLDER = re.compile(r"(\d\d)-([a-z0-9]+(?:-[a-z0-9]+)*)")


@dataclass(frozen=True)
class Roots:
    """The three mirrored folders of a course."""

    tracks: Path
    solutions: Path
    suites: Path


def default_roots() -> Roots:
    """Returns the folders of the course of TRITONLAB_COURSE, or of the shipped one.

    The variable names a folder, or the id of an installed course.
    """
    other = os.environ.get("TRITONLAB_COURSE")
    return roots_of(other) if other else shipped_roots()


def roots_of(name: str) -> Roots:
    """Returns the folders of a course, by its folder or by the id of an installed one."""
    folder = Path(name)
    is_course = (folder / "tracks").is_dir() or (folder / course_settings.FILE).is_file()
    if is_course or not course_settings.ID.fullmatch(name):
        return roots_in(folder)
    return roots_of_id(name)


def roots_of_id(course_id: str) -> Roots:
    """Returns the folders of the shipped course or of an installed one, by its id.

    Raises:
        BadCourse: no installed course has the id.
    """
    if course_id == settings_of(shipped_roots()).id:
        return shipped_roots()
    from tritonlab.course import installed  # reads the metadata of packages

    if folder := installed.folder_of(course_id):
        return roots_in(folder)
    near = course_settings.nearest(course_id, installed.ids())
    raise BadCourse(f"No installed course is called '{course_id}'.{near}",
                    "Install the course with pip, or name its folder.")


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
class Translation:
    """The words of a group of hints in another language: its table ``[hints.de]``."""

    language: str
    title: str
    rungs: tuple[str, ...]


@dataclass(frozen=True)
class HintGroup:
    """Three rungs of help for TODOs or functions: a question, a tool, code of another kernel."""

    group: str
    title: str
    rungs: tuple[str, ...]
    todos: tuple[int, ...] = ()
    functions: tuple[str, ...] = ()
    translations: tuple[Translation, ...] = ()

    def translated(self, language: str) -> "HintGroup | None":
        """Returns the group in another language; None if it is not translated."""
        return next((replace(self, title=one.title, rungs=one.rungs)
                     for one in self.translations if one.language == language), None)


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
    override: Override = NOTHING
    public_only: bool = False  # a build for students: neither hidden cases nor a solution

    @property
    def qualified(self) -> str:
        """The id with that of its course, where several courses are spoken of."""
        return f"{self.course}:{self.id}"

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
        from grader.suite.override import overridden_sha256

        try:
            return overridden_sha256(digest(self.suite), **asdict(self.override))
        except OSError:
            return ""

    def load_suite(self, *, whole: bool = False) -> "Suite":
        """Loads the hidden tests, as the course overrides them.

        Args:
            whole: with the exercise and the solution, as a grade needs them.

        Raises:
            FileNotFoundError: there are none.
            BadCourse: they have a mistake, or cannot be overridden so.
        """
        from grader.suite.mistakes import SuiteMistake
        from grader.suite.override import overridden

        try:
            suite = grader.load_suite(self.suite, self.folder, self.solution.parent) if whole \
                else grader.load_suite(self.suite)
        except SuiteMistake as error:
            raise BadCourse(f"The hidden tests of {self.id} cannot be loaded. {error}",
                            f"`tritonlab check {self.id}` shows whether the module is whole."
                            ) from error
        try:
            suite = overridden(suite, **asdict(self.override))
            return replace(suite, public_only=True) if self.public_only else suite
        except ValueError as error:
            raise BadCourse(f"The course {self.course} overrides {self.id}, and {error}.",
                            "Remove that override from its course.toml.") from error

    def lesson(self, language: str = ENGLISH) -> str:
        """The lesson as Markdown, in English where it is not translated.

        Raises:
            BadCourse: it cannot be read.
        """
        file = self.translated_lesson(language) if language != ENGLISH else None
        text = _text(f"The lesson of {self.id}", file or self.folder / LESSON)
        if self.override.pass_at is None or file:
            return text
        return text.replace(_GRADED, f"{_GRADED}{self._override_note()}\n\n", 1)

    def _override_note(self) -> str:
        """The sentence on a share of the speed that the course sets itself."""
        return (f"**In this course, performance cases require {self.override.pass_at:.0%} of the "
                "speed, not the share that is named below.**")

    def translated_lesson(self, language: str) -> Path | None:
        """Returns the file of the lesson in another language; None if there is none."""
        file = self.folder / f"README.{language}.md"
        return file if LANGUAGE.fullmatch(language) and file.is_file() else None

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
    """All tracks of a course, and its id; ``order`` holds the ids of modules, if it is chosen."""

    tracks: tuple[Track, ...]
    id: str = SHIPPED
    version: str = ""
    title: str = ""
    order: tuple[str, ...] = ()

    @property
    def modules(self) -> Iterator[Module]:
        modules = [module for track in self.tracks for module in track.modules]
        return iter(sorted(modules, key=lambda m: self.order.index(m.id)) if self.order
                    else modules)

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
        OtherCourse: the name is that of a module of another course, ``cs149:track1/softmax``.
        """
        course_id, colon, rest = name.strip().lower().rpartition(":")
        if colon and course_id != self.id:
            raise other_course(f"'{name}'", course_id, self.id)
        wanted = rest.strip("/")
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
        f"Install {own}, or let TRITONLAB_COURSE name its folder"
    return OtherCourse(f"{subject} belongs to the course {own}, and the course in use is {used}.",
                       f"{way}, then repeat the command.")


def load(roots: Roots | None = None) -> Course:
    """Reads all tracks and modules; raises BadCourse if a file is missing or malformed."""
    roots = roots or default_roots()
    return _load_course(roots, frozenset())


def _load_course(roots: Roots, extended: frozenset[Roots]) -> Course:
    """Loads a course and the one that it extends; ``extended`` are those that led here."""
    own = settings_of(roots)
    file = roots.tracks.parent / course_settings.FILE
    tracks = [_track(one, roots, own.id) for one in sorted(roots.tracks.glob("*/track.toml"))]
    if own.extends:
        if roots in extended:
            raise BadCourse(f"{file}: the course extends itself.", "Remove `extends` from one.")
        base = _load_course(roots_of_id(own.extends), extended | {roots})
        tracks = _merged(base.tracks, tracks, own.id)
    if not tracks:
        other = os.environ.get("TRITONLAB_COURSE")
        raise BadCourse(f"There are no tracks in {roots.tracks}.",
                        "Let TRITONLAB_COURSE name the folder of a course, or unset it." if other
                        else "")
    course = Course(tuple(sorted(tracks, key=lambda t: t.number)), own.id, own.version, own.title)
    return _chosen(course, own, file)


def _merged(base: Sequence[Track], own: Sequence[Track], course_id: str) -> list[Track]:
    """Returns the tracks of two courses; an own track or module replaces one of the same id."""
    by_folder = {track.folder: track for track in own}
    merged = []
    for track in base:
        more = by_folder.pop(track.folder, None)
        modules = {m.id: replace(m, course=course_id) for m in track.modules}
        modules |= {m.id: m for m in more.modules} if more else {}
        merged.append(replace(more or track, modules=_in_order([*modules.values()])))
    return [*merged, *by_folder.values()]


def _chosen(course: Course, own: CourseSettings, file: Path) -> Course:
    """Returns a course with the modules that its settings choose, and their overrides."""
    def module(name: str) -> Module:
        try:
            return course.find(name)
        except UnknownModule as error:
            text = file.read_text(encoding="utf-8")
            raise course_settings.fault(file, text, name, error.message,
                                        "Name modules of this course or of the one that it "
                                        "extends.") from error

    overrides = {module(name).id: override for name, override in own.override.items()}
    order = tuple(dict.fromkeys(module(name).id for name in own.modules))
    ids = {m.id for m in course.modules}
    left_out = ids - {*order} if order else set()

    def adapted(one: Module) -> Module:
        return replace(one, override=overrides.get(one.id, NOTHING), public_only=own.public_only,
                       before="" if one.before in left_out else one.before,
                       prerequisites=tuple(p for p in one.prerequisites if p not in left_out))

    tracks = [replace(track, modules=tuple(adapted(m) for m in track.modules
                                           if m.id not in left_out)) for track in course.tracks]
    if order:
        place = {module_id: number for number, module_id in enumerate(order)}
        tracks = [replace(track, modules=tuple(sorted(track.modules, key=lambda m: place[m.id])))
                  for track in tracks if track.modules]
    return replace(course, tracks=tuple(tracks), order=order)


def settings_of(roots: Roots) -> CourseSettings:
    """Reads course.toml; the shipped course has none, and the version of tritonlab.

    An installation that `tritonlab class pack` built has another course in its place.
    """
    file = roots.tracks.parent / course_settings.FILE
    shipped = roots == shipped_roots()
    if shipped and not file.exists():
        return CourseSettings(SHIPPED, __version__, "GPU kernels in Triton")
    return course_settings.settings(file, _load(file, dict[str, Any]) if file.exists() else {},
                                    packed=shipped)


def page(name: str, roots: Roots | None = None) -> str:
    """Returns one of ``PAGES`` as Markdown: a course's own, or else that of the shipped one.

    Raises:
        BadCourse: it cannot be read.
    """
    file = f"{name}.md"
    own = (roots or default_roots()).tracks / file
    return _text(f"The page {name}", own if own.exists() else shipped_roots().tracks / file)


def _text(subject: str, file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadCourse(f"{subject} cannot be read: {file}.") from error


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


_EXAMPLES = {  # of the keys of module.toml, track.toml and groups of hints
    "title": 'title = "Row maximum"', "summary": 'summary = "One sentence."', "core": "core = true",
    "minutes": "minutes = 60", "objectives": 'objectives = ["Reduce a block"]',
    "prerequisites": 'prerequisites = ["track1/vector-add"]', "before": 'before = "track1/softmax"',
    "hints": '[[hints]] above group = "A"', "group": 'group = "A"', "todos": "todos = [1, 2]",
    "functions": 'functions = ["row_max"]', "rungs": 'rungs = ["a question", "a tool", "code"]',
    "number": "number = 1", "blurb": 'blurb = "One sentence."', "starter": 'starter = "blanks"'}
_TYPES = {"str": "a text", "int": "a whole number", "bool": "true or false", "array": "a list",
          "object": "a table", "float": "a number"}


def _load(file: Path, kind: type[T], **more: Any) -> T:
    """Reads a TOML file, and ``more``, as a dataclass; other fields of the file are ignored."""
    text = ""
    try:
        text = file.read_text(encoding="utf-8")
        return msgspec.convert(_with_translations(tomllib.loads(text)) | more, kind)
    except msgspec.ValidationError as error:
        raise _bad_value(file, text, str(error)) from error
    except tomllib.TOMLDecodeError as error:
        cause, _, line = str(error).partition(" (at line ")
        number = line.partition(",")[0]
        where = f"{file}, line {number}" if number.isdigit() else str(file)
        raise BadCourse(f"{where}: the file cannot be used, as it is not TOML: {cause}.",
                        "Correct the syntax, or install tritonlab again.") from error
    except (OSError, UnicodeDecodeError) as error:
        raise BadCourse(f"{file} cannot be used: {error}.",
                        "Repair it, or install tritonlab again.") from error


def _with_translations(data: dict[str, Any]) -> dict[str, Any]:
    """Lists the tables ``[hints.de]`` of each group of hints as its translations."""
    groups = data.get("hints")
    for group in groups if isinstance(groups, list) else ():
        if isinstance(group, dict):
            group["translations"] = [{**one, "language": key} for key, one in group.items()
                                     if isinstance(one, dict) and LANGUAGE.fullmatch(key)]
    return data


def _bad_value(file: Path, text: str, reason: str) -> BadCourse:
    """Returns the error for a key that is missing or has a wrong type, with its line."""
    cause, _, rest = reason.partition(" - at `$")
    steps: list[str | int] = [int(step) if step.isdigit() else step
                              for step in re.findall(r"\w+", rest)]
    if missing := re.search(r"missing required field `(\w+)`", cause):
        key, cause = missing[1], f"'{missing[1]}' is missing."
    else:
        key = next((str(step) for step in reversed(steps) if isinstance(step, str)), "")
        wanted, got = [*re.findall(r"`([^`]+)`", cause), "", ""][:2]
        subject = f"an entry of '{key}'" if rest.endswith("]`") else f"'{key}'"
        cause = f"{subject} has to be {_TYPES.get(wanted, wanted)}, not {_TYPES.get(got, got)}." \
            if wanted and got else f"'{key}': {cause}."
    cure = f"Write {_EXAMPLES[key]}, say." if key in _EXAMPLES else "Repair it."
    return BadCourse(f"{file}, line {toml_line(text, *steps)}: the file cannot be used: {cause}",
                     f"{cure} If it is not yours, install tritonlab again.")
