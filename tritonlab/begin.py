"""Beginning a module: its exercise in the workspace, the start on record, what it builds on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tritonlab import certificate, grading, workspace
from tritonlab.course import Course, Module
from tritonlab.journal import Reading
from tritonlab.workspace import Started, Workspace


@dataclass(frozen=True)
class Begun:
    """A module that was begun, and ``command``, which grades it.

    ``warning`` says why the certificate is not fresh.
    """

    module: Module
    place: Workspace
    started: Started
    missing: tuple[str, ...]  # prerequisites that are not passed
    command: str
    warning: str = ""


def begin(course: Course, module: Module, root: Path | None = None) -> Begun:
    """Copy what is not there yet into the workspace, which is made if needed, and record it.

    ``root`` is the workspace, by default that of the current folder.

    Raises:
        NotSaved: the exercise or the record cannot be written.
        NoWorkspace: the current folder has been removed.
    """
    place, started = workspace.start(module, root or workspace.locate())
    journal = place.journal(course)
    saved = journal.append("started", module.id)
    missing = certificate.missing(course, journal.read(), module)
    submission = grading.Submission(module, started.kernel, place, here=place.module_here(course))
    return Begun(module, place, started, tuple(missing), submission.command, saved.warning)


@dataclass(frozen=True)
class Following:
    """The module to begin next. ``why``, in a sentence, if it lies before the current one."""

    module: Module
    why: str = ""


def following(course: Course, place: Workspace | None) -> Following | None:
    """What comes after the current module; None where no other is left to do."""
    reading = place.journal(course).read() if place else Reading(())
    here = place.module_here(course) if place else None
    return after(course, reading, here or course.get(reading.current or ""))


def after(course: Course, reading: Reading, current: Module | None) -> Following | None:
    """The same after a given module; see ``certificate.next_module``."""
    module = certificate.next_module(course, reading, current)
    if module is None:
        return None
    modules = list(course.modules)
    if current is None or modules.index(module) > modules.index(current):
        return Following(module)
    kind = "No core module" if module.core else "Nothing"
    return Following(module, f"{kind} behind {current.id} is left to do; {module.id} comes before "
                             "it and is not passed yet.")
