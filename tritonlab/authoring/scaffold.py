"""The scaffold of a new module, which overwrites no file."""

import contextlib
import errno
import keyword
import re
from dataclasses import dataclass
from pathlib import Path

from grader.text import toml_value
from tritonlab.authoring import checks, module_files
from tritonlab.course.course import Course, Roots, Track, marker_of
from tritonlab.errors import TritonlabError, cannot_make
from tritonlab.progress import safe_files

_SLUG = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
LONGEST_SLUG = 40
MOST_MODULES = 99  # of a track: folders have two digits
BLANKS = {"blanks": 4, "slow": 2, "broken": 0, "specification": 1}
STEPS = (
    "Write the solution, which learners study: solutions/…/kernel.py.",
    "Define the correct result in suite.py: reference, tolerance, cost, cases, properties.",
    "List in mutants.toml the mistakes that must be detected, and their meanings.",
    "Derive the exercise from the solution: tracks/…/kernel.py.",
    "Write the lesson (README.md), the worked example (lesson.py) and the hints (module.toml).",
    "Run `tritonlab check` at any time; docs/authoring.md describes the rules.",
)


@dataclass(frozen=True)
class Plan:
    """A module to create."""

    id: str
    number: str
    title: str
    minutes: int
    core: bool
    entry: str
    starter: str
    marker: str
    folders: tuple[Path, Path, Path]  # of exercise, solution and suite
    track: Track

    @property
    def kernel(self) -> str:
        return f"{self.entry}_kernel"


def plan(course: Course, roots: Roots, where: str, *, title: str = "", minutes: int = 120,
         core: bool = True, entry: str = "") -> Plan:
    """Plans the module of ``tritonlab new TRACK/SLUG``.

    Raises:
        TritonlabError: there is no such track, the name cannot be used, or it is taken.
    """
    name, slash, slug = where.strip().strip("/").lower().partition("/")
    if not slash:
        raise TritonlabError(f"'{where}' does not have the form TRACK/SLUG.",
                             f"Type {course.tracks[0].id}/my-idea, say.")
    track = next((t for t in course.tracks if name in (t.id, t.folder, str(t.number))), None)
    if track is None:
        ids = ", ".join(track.id for track in course.tracks)
        raise TritonlabError(f"There is no track called '{name}'.",
                             f"Name one of {ids}; a track is a folder with a track.toml.")
    if track.starter not in module_files.STARTERS:
        raise TritonlabError(f"{track.id} has an unknown kind of starter, '{track.starter}'.",
                             f"Its track.toml may say {' or '.join(module_files.STARTERS)}.")
    if not _SLUG.fullmatch(slug) or len(slug) > LONGEST_SLUG:
        raise TritonlabError(f"'{slug}' cannot be the name of a module.",
                             "Use small letters, digits and single hyphens, such as row-softmax; "
                             f"{LONGEST_SLUG} characters at most.")
    entry = entry or slug.replace("-", "_")
    if not entry.isidentifier() or keyword.iskeyword(entry):
        raise TritonlabError(f"'{entry}' cannot be the name of a function.",
                             "Name one with --entry.")
    title = " ".join(title.split()) or slug.replace("-", " ").capitalize()
    if not title.isprintable() or set(title) & {'"', "\\"}:
        raise TritonlabError(f"{title!r} cannot be a title.",
                             "Leave out quotation marks, backslashes and control characters.")
    folder = f"{_next_number(track, roots, slug):02}-{slug}"
    exercise, solution, suite = (root / track.folder / folder for root in (
        roots.tracks, roots.solutions, roots.suites))
    return Plan(f"{track.id}/{slug}", f"{track.number}.{int(folder[:2])}", title, minutes, core,
                entry, track.starter, marker_of(track.starter),
                (exercise, solution, suite), track)


def _next_number(track: Track, roots: Roots, slug: str) -> int:
    """Returns the number after the last one of the track in any of its folders.

    A module of the course that this one extends is replaced under its own number.
    """
    names = [path.name for root in (roots.tracks, roots.solutions, roots.suites)
             for path in (root / track.folder).glob("[0-9][0-9]-*")]
    if taken := next((name for name in names if name[3:] == slug), None):
        raise TritonlabError(f"{track.id}/{slug} already exists, as {track.folder}/{taken}.",
                             f"`tritonlab check {track.id}/{slug}` shows its state.")
    if replaced := next((m for m in track.modules if m.slug == slug), None):
        return int(replaced.folder.name[:2])
    names += [module.folder.name for module in track.modules]
    last = max((int(name[:2]) for name in names), default=0)
    if last >= MOST_MODULES:
        raise TritonlabError(f"{track.id} has no number left after {last}.",
                             "Rename a folder of its modules.")
    return last + 1


def write(plan: Plan) -> list[Path]:
    """Creates all files of a module; raises TritonlabError, and leaves none, if one fails."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    values = {"plan": plan, "blanks": BLANKS[plan.starter], "headings": checks.HEADINGS,
              "todo": checks.PROMPT, "marker": plan.marker}
    exercise, solution, suite = plan.folders
    files = {exercise / name: name for name in ("module.toml", "README.md", "lesson.py")}
    files |= {exercise / "kernel.py": f"{plan.starter}.py", solution / "kernel.py": "solution.py",
              solution / "answers.md": "answers.md"}
    files |= {suite / name: name for name in ("suite.py", "mutants.toml")}
    templates = Environment(
        loader=PackageLoader("tritonlab.authoring"), undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, keep_trailing_newline=True, autoescape=False)
    texts = {path: templates.get_template(f"{name}.jinja").render(values)
             for path, name in files.items()}
    track = exercise.parent / "track.toml"
    if not track.exists():  # the track is of the course that this one extends
        texts[track] = "".join(f"{key} = {toml_value(getattr(plan.track, key))}\n"
                               for key in ("number", "title", "blurb", "starter"))
    created: list[Path] = []
    try:
        for folder in plan.folders:
            for missing in reversed([folder, *folder.parents]):
                if not missing.is_dir():
                    missing.mkdir()
                    created.append(missing)
        for path, text in texts.items():
            if not safe_files.create(path, text.encode()):
                raise FileExistsError(errno.EEXIST, "a file already exists", str(path))
            created.append(path)
    except OSError as error:
        for path in reversed(created):
            with contextlib.suppress(OSError):
                path.rmdir() if path.is_dir() else path.unlink()
        raise cannot_make(plan.id, error) from error
    return list(texts)
