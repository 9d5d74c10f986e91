"""A wheel of tritonlab with the modules of one course in place of the shipped ones."""

import base64
import enum
import hashlib
import io
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import grader
from grader.text import toml_value
from tritonlab.classroom.pack import public_suite
from tritonlab.course import course, settings
from tritonlab.course.course import PAGES, Course, Module, Roots, Track
from tritonlab.course.override import NOTHING
from tritonlab.errors import BadCourse, TritonlabError
from tritonlab.version import __version__

NAME = "tritonlab"
_EPOCH = (1980, 1, 1, 0, 0, 0)  # equal contents give equal bytes
_MUTANTS = "mutants.toml"


class Contents(enum.Enum):
    """The files of modules in a wheel.

    ``WHOLE`` has solutions and mutants, which explain failures. ``TESTS`` has the hidden cases
    and neither of them. ``PUBLIC`` has the public cases only.
    """

    WHOLE = enum.auto()
    TESTS = enum.auto()
    PUBLIC = enum.auto()


@dataclass(frozen=True)
class Wheel:
    """A wheel and its file name. ``left_out``: sentences on cases that it lacks."""

    name: str
    content: bytes
    left_out: tuple[str, ...] = ()


def build(the_course: Course, roots: Roots, modules: Iterable[Module], contents: Contents,
          label: str) -> Wheel:
    """Builds a wheel from the installed tritonlab, without a network or a build backend.

    Args:
        roots: the folders of the course.
        modules: the modules of the wheel, in the order of the course.
        label: the local part of the version, such as an assignment's name.

    Raises:
        BadCourse: a module has no suite or no exercise, or its suite cannot be read.
        TritonlabError: tritonlab is not installed as a package.
    """
    modules = list(modules)
    files = dict(_tool()) | _course(the_course, roots, modules, contents)
    left_out = []
    for module in modules:
        files |= _folder(module.folder, f"tritonlab/tracks/{_place(module)}")
        if contents is Contents.WHOLE:
            files |= _folder(module.solution.parent, f"tritonlab/solutions/{_place(module)}")
        suite, sentence = _suite(module, contents)
        files |= {f"grader/suites/{_place(module)}/{name}": text for name, text in suite.items()}
        left_out += [sentence] * bool(sentence)
    version = f"{__version__}+{_label(label)}"
    files |= _metadata(version)
    return Wheel(f"{NAME}-{version}-py3-none-any.whl", _zipped(files, version), tuple(left_out))


def _place(module: Module) -> str:
    return f"{module.track}/{module.folder.name}"


def _label(text: str) -> str:
    """Returns a local version label (PEP 440)."""
    return re.sub(r"[^a-z0-9]+", ".", text.lower()).strip(".") or "course"


def _tool() -> Iterator[tuple[str, bytes]]:
    """Yields the files of both packages without courses."""
    own = {"grader/suites", "tritonlab/tracks", "tritonlab/solutions",
           f"tritonlab/{settings.FILE}"}
    for package in (Path(grader.__file__).resolve().parent, course.package()):
        for name, content in _folder(package, package.name).items():
            if not any(name == path or name.startswith(f"{path}/") for path in own):
                yield name, content


def _folder(folder: Path, place: str) -> dict[str, bytes]:
    """Returns all files of a folder; links are left out."""
    prefix = f"{place}/" if place else ""
    return {f"{prefix}{path.relative_to(folder)}": path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if path.is_file() and not path.is_symlink() and "__pycache__" not in path.parts}


def _course(the_course: Course, roots: Roots, modules: Iterable[Module],
            contents: Contents) -> dict[str, bytes]:
    """Returns the files of the course as a whole."""
    modules = list(modules)
    lines = [f"{key} = {toml_value(value)}" for key, value in (
        ("id", the_course.id), ("version", the_course.version), ("title", the_course.title),
        ("modules", [module.id for module in modules])) if value]
    if contents is Contents.PUBLIC:
        lines.append("public_only = true")
    else:
        for module in modules:
            if module.override != NOTHING:
                lines += [f"[override.{toml_value(module.id)}]",
                          f"pass_at = {toml_value(module.override.pass_at)}"]
    files = {f"tritonlab/{settings.FILE}": "\n".join(lines) + "\n",
             **{f"tritonlab/tracks/{name}.md": course.page(name, roots) for name in PAGES}}
    tracks = {module.track for module in modules}
    files |= {f"tritonlab/tracks/{track.folder}/track.toml": _track(track)
              for track in the_course.tracks if track.folder in tracks}
    return {name: text.encode() for name, text in files.items()}


def _track(track: Track) -> str:
    return "".join(f"{key} = {toml_value(getattr(track, key))}\n"
                   for key in ("number", "title", "blurb", "starter"))


def _suite(module: Module, contents: Contents) -> tuple[Mapping[str, bytes], str]:
    """Returns the files of a module's suite, and a sentence on what is left out."""
    for name, file in (("hidden tests", module.suite), ("exercise", module.folder / "kernel.py"),
                       ("solution", module.solution)):
        if not file.is_file():
            raise BadCourse(f"{module.id} has no {name} at {file}.",
                            "Add the file, then repeat the command.")
    if contents is not Contents.PUBLIC:
        return {name: content for name, content in _folder(module.suite.parent, "").items()
                if contents is Contents.WHOLE or name != _MUTANTS}, ""
    try:
        reduced = public_suite.reduce(module.suite)
    except Exception as error:
        raise BadCourse(f"The hidden tests of {module.id} cannot be read: {error}.",
                        f"`tritonlab check {module.id}` shows more.") from error
    if not reduced.left_out:
        return reduced.files or _NO_CASES, ""
    return reduced.files or _NO_CASES, (
        f"{module.id}: {len(reduced.left_out)} public cases are left out, because one expression "
        f"makes them together with hidden ones; the first is '{reduced.left_out[0]}'.")


_NO_CASES = {"suite.py": b"from grader.suite import Suite\nsuite = Suite()\n"}


def _metadata(version: str) -> dict[str, bytes]:
    try:
        installed = distribution(NAME)
    except PackageNotFoundError as error:
        raise TritonlabError("tritonlab is not installed as a package, so no wheel can be built.",
                             "Install it with pip, then repeat the command.") from error
    place = f"{NAME}-{version}.dist-info"
    text = re.sub(r"(?m)^Version: .*$", f"Version: {version}",
                  installed.read_text("METADATA") or "", count=1)
    files = {"METADATA": text, "entry_points.txt": installed.read_text("entry_points.txt") or "",
             "WHEEL": "Wheel-Version: 1.0\nGenerator: tritonlab\nRoot-Is-Purelib: true\n"
                      "Tag: py3-none-any\n"}
    if license_ := installed.read_text("licenses/LICENSE"):
        files["licenses/LICENSE"] = license_
    return {f"{place}/{name}": text.encode() for name, text in files.items()}


def _zipped(files: Mapping[str, bytes], version: str) -> bytes:
    record = f"{NAME}-{version}.dist-info/RECORD"
    lines = []
    for name, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
        lines.append(f"{name},sha256={digest},{len(content)}\n")
    return zipped({**files, record: ("".join(lines) + f"{record},,\n").encode()})


def zipped(files: Mapping[str, bytes], programs: Iterable[str] = ()) -> bytes:
    """Returns a zip archive; ``programs`` are the names of files that can be executed."""
    stream, programs = io.BytesIO(), set(programs)
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in sorted(files.items()):
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.external_attr = (0o100755 if name in programs else 0o100644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return stream.getvalue()
