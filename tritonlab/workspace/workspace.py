"""The workspace: the learner's folder, in which no work is ever overwritten."""

import errno
import json
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from grader.submission import source
from tritonlab import errors
from tritonlab.course.course import EXERCISE, LESSON, SHIPPED, Course, Module, other_course
from tritonlab.errors import BadCourse, NoWorkspace, OtherCourse, UnusableFile, shown
from tritonlab.progress import certificate, safe_files
from tritonlab.progress.journal import JOURNAL, MARK, Journal

COURSE = "course.json"  # in it; {"schema": 1, "course": ID, "version": VERSION}
DEFAULT = "tritonlab-workspace"


@dataclass(frozen=True)
class Workspace:
    """A folder that holds ``.tritonlab``; exercises lie in ``<track>/<slug>/`` below it."""

    root: Path

    @property
    def mark(self) -> Path:
        return self.root / MARK

    def folder(self, module: Module) -> Path:
        return self.root / module.id

    def kernel(self, module: Module) -> Path:
        return self.folder(module) / EXERCISE

    def journal(self, course: Course) -> Journal:
        """The workspace's journal; raises as ``check_course``."""
        self.check_course(course.id)
        return Journal(self.mark, lambda reading: certificate.build(course, reading).to_json(),
                       course.id, course.version)

    @property
    def course(self) -> str | None:
        """The id of the workspace's course; None before the first record.

        Workspaces without this file belong to the shipped course.

        Raises:
            NotSaved: the file that names the course cannot be read.
        """
        try:
            return str(json.loads((self.mark / COURSE).read_bytes())["course"])
        except (FileNotFoundError, NotADirectoryError):
            return SHIPPED if (self.mark / JOURNAL).exists() else None
        except OSError as error:
            raise errors.unreadable(error, self.mark / COURSE) from error
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise OtherCourse(f"{shown(self.mark / COURSE)} does not name a course.",
                              f'Write {{"schema": 1, "course": "{SHIPPED}"}} into it, with the id '
                              "of your course.") from error

    def check_course(self, course_id: str) -> None:
        """Raises OtherCourse if the workspace belongs to another course."""
        own = self.course
        if own not in (None, course_id):
            raise other_course(f"The workspace {self.root}", own, course_id)

    def module_of(self, path: Path, course: Course) -> Module | None:
        """Returns the module of a file below the workspace, whatever the file's name."""
        try:
            parts = path.absolute().relative_to(self.root).parts
        except ValueError:
            return None
        return course.get("/".join(parts[:2])) if len(parts) > 2 else None

    def module_here(self, course: Course) -> Module | None:
        """Returns the module of the current folder."""
        try:
            return Workspace(self.root.resolve()).module_of(Path.cwd() / EXERCISE, course)
        except OSError:
            return None


def locate(near: Path | None = None) -> Path:
    """Returns the folder of the workspace, whether it exists or not.

    TRITONLAB_WORKSPACE decides; else the nearest folder from ``near`` (the current folder) upwards
    that holds ``.tritonlab``; else ``./tritonlab-workspace``.

    Raises:
        NoWorkspace: the current folder has been removed, or a file is where the workspace would
            keep its records.
    """
    try:
        here = Path.cwd()
    except OSError as error:
        raise NoWorkspace("The current folder is gone or cannot be read.",
                          "Go to another folder, then repeat the command.") from error
    if variable := os.environ.get("TRITONLAB_WORKSPACE"):
        _has_mark(here / variable)
        return here / variable
    for start in (near.absolute() if near else here, here):
        for folder in (start, *start.parents):
            if _has_mark(folder):
                return folder
    return here / DEFAULT


def _has_mark(folder: Path) -> bool:
    """Whether a folder is a workspace; raises NoWorkspace if its ``.tritonlab`` is not a folder."""
    mark = folder / MARK
    if mark.is_dir():
        return True
    if mark.is_file() or mark.is_symlink():
        kind = "a link that does not point to a folder" if mark.is_symlink() else "a file"
        raise NoWorkspace(f"{shown(mark)} is {kind}; a workspace keeps its records in a folder of "
                          "that name.", "Move it away, then repeat the command.")
    return False


def find(near: Path | None = None) -> Workspace | None:
    """Returns the workspace, if it exists."""
    root = locate(near)
    return Workspace(root) if (root / MARK).is_dir() else None


def require(example: str) -> Workspace:
    """Returns the workspace; the error for a missing one names ``example`` to start.

    Raises:
        NoWorkspace: there is none.
    """
    workspace = find()
    if workspace is None:
        raise NoWorkspace(f"There is no workspace at {shown(locate())}.",
                          f"`tritonlab start {example}` creates one.")
    return workspace


@dataclass(frozen=True)
class CopiedFiles:
    """The files that ``start`` copied, and those of the learner that it left alone."""

    kernel: Path
    copied: tuple[str, ...]
    kept: tuple[str, ...]


def start(module: Module, root: Path, version: str = "") -> tuple[Workspace, CopiedFiles]:
    """Copies a module's exercise and lesson into the workspace, which is created if needed.

    ``version`` is that of the course, which a new workspace keeps.

    Raises:
        NotSaved: a folder or a file cannot be written.
        OtherCourse: the workspace belongs to another course.
        UnusableFile: there is a ``kernel.py`` that cannot be graded.
    """
    workspace = Workspace(root)
    workspace.check_course(module.course)
    folder = workspace.folder(module)
    copied: list[str] = []
    left_alone: list[str] = []
    try:
        workspace.mark.mkdir(parents=True, exist_ok=True)
        if workspace.course is None:
            data = json.dumps({"schema": 1, "course": module.course, "version": version})
            safe_files.create(workspace.mark / COURSE, f"{data}\n".encode())
        folder.mkdir(parents=True, exist_ok=True)
        lesson = {name: _course_file(module.folder / name) for name in (LESSON, "lesson.py")
                  if (module.folder / name).exists()}
        if LESSON in lesson and module.override.pass_at is not None:
            lesson[LESSON] = module.lesson().encode()
        for name, content in (fresh(module) | lesson).items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            created = safe_files.create(folder / name, content)
            (copied if created else left_alone).append(name)
    except OSError as error:
        raise errors.not_saved("The exercise", error, folder) from error
    if EXERCISE in left_alone:
        check_file(folder / EXERCISE, module)
    return workspace, CopiedFiles(workspace.kernel(module), tuple(copied), tuple(left_alone))


def write(kernel: Path, text: str) -> None:
    """Replaces an exercise's file; raises NotSaved if it cannot be written."""
    try:
        with safe_files.opened(kernel.parent) as folder:
            safe_files.replace(folder, kernel.name, text.encode(), 0o666)
    except OSError as error:
        raise errors.not_saved("The exercise", error, kernel) from error


def fresh(module: Module) -> dict[str, bytes]:
    """Returns the files of an untouched exercise by path; raises BadCourse without one."""
    return {name: _course_file(module.folder / name) for name in (EXERCISE, *module.files)}


def check_file(path: Path, module: Module | None = None) -> None:
    """Raises UnusableFile if a file cannot be an exercise. Never blocks on a pipe or device."""
    where = shown(path)
    fresh_one = f"`tritonlab start {module.id}` creates a fresh one." if module else ""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except FileNotFoundError:
        if path.is_symlink():
            raise UnusableFile(f"{where} is a symbolic link to a missing file.",
                               f"Remove the link. {fresh_one}".strip()) from None
        raise UnusableFile(f"There is no file at {where}.", fresh_one or
                           "Check the path, then repeat the command.") from None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise UnusableFile(f"{where} is a symbolic link that points back to itself.",
                               f"Remove the link. {fresh_one}".strip()) from None
        raise UnusableFile(f"{where} cannot be read: {errors.reason_of(error)}.",
                           "Check its permissions, then repeat the command.") from error
    try:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise UnusableFile(f"{where} is a folder.", f"Move it away. {fresh_one}" if module else
                               f"Name the file in it, such as {shown(path / EXERCISE)}.")
        if not stat.S_ISREG(status.st_mode):
            raise UnusableFile(f"{where} is not a regular file.",
                               "Put a file in its place, or name another.")
        if status.st_size > source.MAX_BYTES:
            raise UnusableFile(f"{where} has {status.st_size:,} bytes; an exercise may have "
                               f"{source.MAX_BYTES:,}.",
                               "Remove what does not belong to the kernel.")
    finally:
        os.close(descriptor)


def _course_file(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadCourse(f"{path} cannot be read: {errors.reason_of(error)}.") from error
