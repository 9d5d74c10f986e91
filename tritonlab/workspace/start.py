"""The start of a module: copies its exercise and records the start; the module after it."""

from dataclasses import dataclass
from pathlib import Path

from tritonlab.course.course import Course, Module
from tritonlab.progress import certificate
from tritonlab.progress.journal import JournalReading
from tritonlab.workspace import workspace
from tritonlab.workspace.submission import own
from tritonlab.workspace.workspace import CopiedFiles, Workspace


@dataclass(frozen=True)
class StartedModule:
    """A started module. ``command`` grades it; ``warning``: why the certificate is out of date."""

    module: Module
    place: Workspace
    started: CopiedFiles
    missing: tuple[str, ...]  # prerequisites that are not passed
    warm_ups: tuple[Module, ...]  # that are not passed
    command: str
    warning: str = ""


def begin(course: Course, module: Module, root: Path | None = None) -> StartedModule:
    """Copies missing files into the workspace, which is created if needed, and records it.

    Args:
        root: the workspace, by default that of the current folder.

    Raises:
        NotSaved: the exercise or the record cannot be written.
        NoWorkspace: the current folder has been removed.
    """
    place, started = workspace.start(module, root or workspace.locate(), course.version)
    journal = place.journal(course)
    warning = journal.append("started", module.id)
    reading = journal.read()
    missing = certificate.missing(course, reading, module)
    warm_ups = certificate.warm_ups(course, reading, module)
    command = own(module, place, course).command
    return StartedModule(module, place, started, tuple(missing), tuple(warm_ups), command, warning)


def after(course: Course, reading: JournalReading,
          current: Module | None) -> tuple[Module, str] | None:
    """Returns ``certificate.next_module``, and a sentence if it comes before ``current``."""
    module = certificate.next_module(course, reading, current)
    if module is None:
        return None
    modules = list(course.modules)
    if current is None or modules.index(module) > modules.index(current):
        return module, ""
    kind = "No core module" if module.core or module.before else "Nothing"
    return module, (f"{kind} behind {current.id} is left to do; {module.id} comes before it and is "
                    "not passed yet.")
