"""The exercise that a command means: its file, its module and the workspace that records it."""

import os
import shlex
from dataclasses import dataclass, replace
from pathlib import Path

from tritonlab.course.course import EXERCISE, Course, Module
from tritonlab.errors import NoWorkspace, UnknownModule, UnusableFile, shown
from tritonlab.workspace import workspace
from tritonlab.workspace.workspace import Workspace


@dataclass(frozen=True)
class Submission:
    """A file to grade as a module's exercise, and the workspace that records it, if any."""

    module: Module
    kernel: Path
    workspace: Workspace | None
    inferred: bool = True  # from the path
    here: Module | None = None  # the module of the current folder

    @property
    def files(self) -> dict[str, Path]:
        """The paths of its files, by their names in the exercise."""
        folder = self.kernel.parent
        return {EXERCISE: self.kernel} | {name: folder / name for name in self.module.files}

    @property
    def in_place(self) -> bool:
        """Whether the files are the workspace's exercise; only that is recorded."""
        if self.workspace is None:
            return False
        own = self.workspace.folder(self.module)
        return all(os.path.realpath(path) == os.path.realpath(own / name)
                   for name, path in self.files.items())

    @property
    def unrecorded(self) -> "Submission":
        """The same files without a workspace, so that a grade leaves no trace."""
        return replace(self, workspace=None)

    @property
    def to_edit(self) -> str:
        """The file to edit, or the folders of the exercise's code."""
        folders = self.module.packages
        paths = [self.kernel.parent / name for name in folders] or [self.kernel]
        return " and ".join(shown(path) + "/" * bool(folders) for path in paths)

    @property
    def command(self) -> str:
        """The shortest command that grades it while it is the current module."""
        return "tritonlab grade" if self.in_place and self.here is None else self.typed("grade")

    def typed(self, verb: str) -> str:
        """Returns the command of a verb for it, whatever the current module is."""
        if self.in_place:
            return f"tritonlab {verb}" + f" {self.module.id}" * (self.here != self.module)
        path = shown(self.kernel)
        option = f" --module {self.module.id}" if not self.inferred else ""
        return f"tritonlab {verb} {shlex.quote(path)}{option}"


def resolve(course: Course, name: str | None, module_id: str | None = None) -> Submission:
    """Returns the submission of the arguments ``[ID or PATH] [--module ID]``.

    Raises:
        TritonlabError: an unknown id, no workspace, no module to infer, or an unusable file.
    """
    module = course.find(module_id) if module_id else None
    if name is None:
        place = workspace.require(module.id if module else course.example)
        return exercise(module or current(course, place), place, course)
    if module is None:
        try:
            named_module = course.find(name)
            return exercise(named_module, workspace.require(named_module.id), course)
        except UnknownModule:
            if not (name.endswith(".py") or name.startswith((".", "/", "~"))
                    or Path(name).exists()):
                raise
    return submission_at(course, Path(name), module)


def submission_at(course: Course, path: Path, module: Module | None = None) -> Submission:
    """Returns the submission at a path; its folders name the module unless it is given.

    A file in the workspace of somebody else, or in a copy, is graded for the workspace that is in
    use here, if there is one, and so it is not recorded.

    Raises:
        UnusableFile: the file cannot be graded, or belongs to no module.
    """
    path = path.expanduser().absolute()
    place = workspace.find(path.parent)
    inferred = module is None
    if module is None:
        module = (place.module_of(path, course) if place else None) or course.module_of(path)
    if place is not None:
        place.check_course(course.id)
    workspace.check_file(path, None)
    if module is None:
        raise UnusableFile(f"{shown(path)} is not in the folder of a module.",
                           "Name its module with `--module ID`.")
    own = workspace.find() or place
    if own is not None:
        own.check_course(course.id)
    return Submission(module, path, own, inferred, own.module_here(course) if own else None)


def current(course: Course, place: Workspace) -> Module:
    """Returns the module of the current folder, otherwise the last started or graded one.

    Raises:
        NoWorkspace: nothing was started in this workspace.
    """
    if here := place.module_here(course):
        return here
    reading = place.journal(course).read()
    module = course.get(reading.current)
    if module is None:
        raise NoWorkspace("No module has been started here.",
                          f"`tritonlab start {course.example}` starts the first.")
    return module


def exercise(module: Module, place: Workspace, course: Course) -> Submission:
    """Returns the workspace's own exercise of a module.

    Raises:
        OtherCourse: the workspace belongs to another course.
        UnusableFile: the file is missing, or cannot be an exercise.
    """
    place.check_course(course.id)
    submission = own(module, place, course)
    workspace.check_file(submission.kernel, module)
    return submission


def own(module: Module, place: Workspace, course: Course) -> Submission:
    """Returns the workspace's own exercise of a module, whether it exists or not."""
    return Submission(module, place.kernel(module), place, here=place.module_here(course))
