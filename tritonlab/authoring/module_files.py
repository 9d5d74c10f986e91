"""The files of a module: read, and checked for missing and stray ones."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from grader.processes.cache import folder_sha256
from grader.suite import Suite
from grader.text import toml_line
from tritonlab.course.course import (
    ANSWERS,
    PAGES,
    PICTURE,
    SHIPPED,
    Course,
    Module,
    Roots,
    shipped_roots,
)
from tritonlab.errors import UnknownModule

KERNEL = "kernel.py"
MUTANTS_NEEDED = 8  # by a module whose suite is to be trusted
VARIANTS_NEEDED = 5  # right solutions that differ from the module's
STARTERS = ("blanks", "slow", "broken", "specification")  # what exercises of a track may be


@dataclass(frozen=True)
class Material:
    """The texts of a module, with the digests of its files when they were read.

    ``starter``: the kind of exercises of its track.
    """

    module: Module
    starter: str
    readme: str
    exercise: Mapping[str, str]  # texts by path: kernel.py, and what else the suite names
    solution: Mapping[str, str]
    suite: Suite
    digests: Mapping[str, str]

    @property
    def functions(self) -> tuple[str, ...]:
        """Names of the functions that the suite grades."""
        return tuple(self.suite.signatures)

    @property
    def chosen_by(self) -> tuple[str, ...]:
        """The names that hints by function may use: those that cases call or read."""
        return tuple(dict.fromkeys(case.about or self.suite.entry for case in self.suite.all_cases))


def read(module: Module, starter: str) -> Material:
    """Reads a module whose files are complete. Raises any error of the author's suite."""
    before = digests(module)
    suite = module.load_suite()
    exercise, solution = (
        {name: (folder / name).read_text("utf-8") for name in (KERNEL, *suite.files)
         if (folder / name).is_file()}
        for folder in (module.folder, module.solution.parent))
    readme = (module.folder / "README.md").read_text("utf-8")
    return Material(module, starter, readme, exercise, solution, suite, before)


def write(texts: Mapping[str, str], folder: Path) -> None:
    """Writes texts by their paths below a folder."""
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def python_of(texts: Mapping[str, str]) -> str:
    """Joins all Python files."""
    return "\n".join(text for name, text in texts.items() if name.endswith(".py"))


def place_in_course(course: Course, module: Module) -> Iterator[str]:
    """Yields faults of a module's prerequisites: unknown ones, itself, and later ones."""
    text = (module.folder / "module.toml").read_text(encoding="utf-8")
    head = f"module.toml, line {toml_line(text, 'prerequisites')}: "
    order = [one.id for one in course.modules]
    for name in module.prerequisites:
        if name not in order:
            try:
                cure = f"Write {course.find(name).id}"
            except UnknownModule as error:
                _, question, near = error.message.partition(" Did you mean ")
                cure = f"Did you mean {near}" if question and near != f"{module.id}?" else \
                    "Write the id of an earlier module"
            yield f"{head}the prerequisite '{name}' is not the id of a module. {cure}"
        elif name == module.id:
            yield f"{head}the module is its own prerequisite. Remove it"
        elif order.index(name) > order.index(module.id):
            yield (f"{head}the prerequisite '{name}' comes later in the course. Remove it, or "
                   "change the numbers of the folders")


def numbers_of_tracks(course: Course) -> Iterator[str]:
    """Yields tracks that share a number, which is their id."""
    for track in course.tracks:
        first = next(one for one in course.tracks if one.number == track.number)
        if first is not track:
            yield (f"tracks/{track.folder}/track.toml: number = {track.number} is that of "
                   f"tracks/{first.folder} too. Give each track its own number")


def strays(course: Course, roots: Roots) -> Iterator[str]:
    """Yields the faults of the course as a whole: stray files and duplicate modules."""
    yield from numbers_of_tracks(course)
    for track in course.tracks:
        if track.starter not in STARTERS:
            yield f"tracks/{track.folder}/track.toml: {no_starter(track.starter)}"
        for names in ([m.number for m in track.modules], [m.id for m in track.modules]):
            yield from (f"two modules of {track.id} are {name}: rename the folder of one"
                        for name in dict.fromkeys(names) if names.count(name) > 1)
        ids = {"", *(m.id for m in track.modules)}
        yield from (f'{m.id} says before = "{m.before}", which is not another module of {track.id}'
                    for m in track.modules if m.before not in ids - {m.id})
    tracks = {track.folder for track in course.tracks}
    folders = {f"{module.track}/{module.folder.name}" for module in course.modules}
    for kind, root in (("tracks", roots.tracks), ("solutions", roots.solutions),
                       ("suites", roots.suites)):
        for path in entries(root):
            pages = [f"{name}.md" for name in PAGES] if kind == "tracks" else []
            if path.name not in {*tracks, "__init__.py", *pages}:
                yield f"{kind}/{path.name} belongs to no track"
                continue
            for inner in entries(path) if path.is_dir() else ():
                name = f"{path.name}/{inner.name}"
                if name not in folders and inner.name != "track.toml":
                    why = "has no module.toml, or no name such as 07-slug" if kind == "tracks" \
                        else "belongs to no module"
                    yield f"{kind}/{name} {why}"


def no_starter(starter: str) -> str:
    """Returns the fault for an unknown starter."""
    return f"starter = \"{starter}\" is none of {', '.join(STARTERS)}"


def digests(module: Module) -> dict[str, str]:
    """Returns the digests of a module's three folders and of its variants, by their kind."""
    return {**{kind: folder_sha256(folder) for kind, folder, _ in folders(module)},
            "variants": folder_sha256(variants_folder(module))}


def variants_folder(module: Module) -> Path:
    """Returns the folder of right solutions that differ from the module's, of an own course."""
    mirrored = module.suite.parent
    return mirrored.parents[2] / "variants" / mirrored.parent.name / mirrored.name


def variants(module: Module) -> list[Path]:
    """Returns right solutions that differ from the module's.

    Those of the shipped course are in the tests of a checkout, and graded there.
    """
    places = [variants_folder(module)]
    if module.course == SHIPPED:
        tests = shipped_roots().tracks.parent / "tests" / "fidelity"
        places = [tests / kind / module.slug for kind in ("right", "overlays")]
    return [path for place in places for path in entries(place)
            if not path.name.startswith("_") and (path.suffix == ".py" or path.is_dir())]


def files(module: Module) -> Iterator[str]:
    """Yields the missing files of a module."""
    for kind, folder, needed in folders(module):
        for name in needed:
            if not (folder / name).is_file():
                yield f"{kind}/{module.track}/{module.folder.name}/{name} is missing"


def nothing_astray(material: Material) -> Iterator[str]:
    """Checks that the suite's further files exist, and no others.

    Files beside a suite have to be named in another file there.
    """
    module, more = material.module, material.suite.files
    for kind, folder, needed in folders(module):
        place = f"{kind}/{module.track}/{module.folder.name}"
        there = {path.name for path in entries(folder)}
        expected = {*needed, *more}
        if kind == "suites":
            texts = {path: path.read_text("utf-8") for path in entries(folder)
                     if path.suffix == ".py"}
            expected = {*needed, "calls.py", "identity.toml", *(
                path.name for path in entries(folder)
                if any(path.stem in text for one, text in texts.items() if one != path))}
        else:
            there = {str(path.relative_to(folder)) for path in folder.rglob("*")
                     if path.is_file() and "__pycache__" not in path.parts}
            expected |= {PICTURE, *(path.name for path in folder.glob("README.*.md"))} \
                if kind == "tracks" else set()
            yield from (f"{place}/{name} is missing, which the suite names"
                        for name in more if name not in there)
        for name in sorted(there - expected):
            yield f"{place}/{name} is unused: nothing in the suite names it"


def folders(module: Module) -> Iterator[tuple[str, Path, tuple[str, ...]]]:
    """Yields kind, path and required files of the three folders of a module."""
    yield "tracks", module.folder, ("module.toml", "README.md", "lesson.py", KERNEL)
    yield "solutions", module.solution.parent, (KERNEL, ANSWERS)
    yield "suites", module.suite.parent, ("suite.py", "mutants.toml")


def entries(folder: Path) -> list[Path]:
    """Returns the entries of a folder without caches of Python."""
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if path.name != "__pycache__")
