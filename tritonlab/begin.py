"""Beginning a module: its exercise in the workspace, the start on record, what it builds on."""

from __future__ import annotations

from dataclasses import dataclass

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


def begin(course: Course, module: Module) -> Begun:
    """Copy what is not there yet into the workspace, which is made if needed, and record it.

    Raises:
        NotSaved: the exercise or the record cannot be written.
        NoWorkspace: the current folder has been removed.
    """
    place, started = workspace.start(module, workspace.locate())
    journal = place.journal(course)
    saved = journal.append("started", module.id)
    missing = certificate.missing(course, journal.read(), module)
    submission = grading.Submission(module, started.kernel, place, here=place.module_here(course))
    return Begun(module, place, started, tuple(missing), submission.command, saved.warning)


def following(course: Course, place: Workspace | None) -> Module | None:
    """The module to begin after the current one; None where no other is left to do."""
    reading = place.journal(course).read() if place else Reading(())
    here = place.module_here(course) if place else None
    return certificate.next_module(course, reading, here or course.get(reading.current or ""))
