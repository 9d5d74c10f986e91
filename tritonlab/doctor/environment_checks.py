"""Checks around the grader: versions, memory, disks, terminal, editor, journal."""

import enum
import os
import platform
import shutil
import tempfile
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

from grader.gpu import client
from tritonlab.errors import TritonlabError, cannot_grade, reason_of, shown
from tritonlab.progress.journal import JOURNAL
from tritonlab.workspace import course_choice, editor, workspace

_LIBRARIES = ("torch", "triton", "numpy", "ml_dtypes")
_KIB, _MIB, _GIB = 1 << 10, 1 << 20, 1 << 30
ENOUGH_MEMORY = 3 * _GIB  # torch, Triton and the inputs of the largest case, twice
ENOUGH_FOR_WORK = 10 * _MIB  # a grade adds 2 KiB to the journal, and a certificate is rewritten
ENOUGH_FOR_CACHE = 50 * _MIB  # what a GPU reached has 1 KiB; matplotlib keeps a list of fonts
ENOUGH_FOR_TRIALS = 256 * _MIB  # four processes, each of whose files may have 64 MiB
NARROW = 60  # columns; below, tables are broken up


class Status(enum.StrEnum):
    """GOOD; NOTE: works, with a remark; BAD: nothing can be graded."""

    GOOD = "PASS"
    NOTE = "NOTE"
    BAD = "FAIL"


@dataclass(frozen=True)
class Check:
    """One check: the observation, and the remedy unless it is GOOD."""

    name: str
    state: Status
    seen: str
    remedy: str = ""


def installed() -> list[Check]:
    """Checks the versions of Python and of the main libraries against the supported ranges."""
    wanted = metadata.metadata("tritonlab")["Requires-Python"] or ""
    return [_in_range("python", platform.python_version(), Requirement(f"python{wanted}")),
            *map(_library, _LIBRARIES)]


def machine() -> list[Check]:
    """Checks CPU and memory."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return [Check("processor", Status.GOOD, f"{cores} cores of {platform.machine()}"), _memory()]


def disks() -> list[Check]:
    """Checks space and permissions of workspace, cache and temporary files."""
    checks = [_disk("disk: workspace", workspace.locate(), ENOUGH_FOR_WORK,
                    "Without it, no result is saved: free some space, or set TRITONLAB_WORKSPACE "
                    "to a folder elsewhere."),
              _disk("disk: cache", _cache(), ENOUGH_FOR_CACHE,
                    "Without it, the GPU is measured again each time: free some space, or set "
                    "XDG_CACHE_HOME to a folder elsewhere.")]
    try:
        temporary = Path(tempfile.gettempdir())
    except OSError as error:
        refused = cannot_grade(error)
        return [*checks, Check("disk: temporary", Status.BAD, refused.message, refused.next_step)]
    return [*checks, _disk("disk: temporary", temporary, ENOUGH_FOR_TRIALS,
                           "The grader compiles there: free some space, or set TMPDIR to a folder "
                           "elsewhere.")]


def display(is_terminal: bool, color: bool, width: int, encoding: str) -> Check:
    """Checks color, width in columns and encoding of standard output."""
    if not is_terminal:
        kind = "no terminal: no color and no progress line"
    elif not color:
        kind = "no color; words convey the same"
    else:
        kind = "color"
    observed = f"{kind}, {width} columns, {encoding.upper() or 'unknown encoding'}"
    remedies = []
    if "utf" not in encoding.lower():
        remedies.append("Characters that the encoding lacks are shown as '?': set LANG=C.UTF-8.")
    if width < NARROW:
        remedies.append(f"Widen it to {NARROW} columns or type `--plain`: tables do not fit.")
    return Check("terminal", Status.NOTE if remedies else Status.GOOD, observed, " ".join(remedies))


def editors() -> Check:
    """Checks which editor `--edit` opens."""
    chosen, unusable = editor.find(), editor.unusable()
    if chosen is None:
        return Check("editor", Status.NOTE, " ".join([*unusable, "None was found."]),
                     f"Only `--edit` needs one. {editor.NAME_ONE}")
    origin = f"named by {chosen.variable}" if chosen.variable else "found automatically"
    kind = "it opens its own window" if chosen.has_window else "it needs the terminal"
    observed = " ".join([*unusable, f"{chosen.name}, {origin}; {kind}"])
    return Check("editor", Status.NOTE if unusable else Status.GOOD, observed,
                 "Correct the variable, or unset it." if unusable else "")


def record() -> list[Check]:
    """Checks that course, workspace and journal are readable, writable and undamaged."""
    try:
        the_course = course_choice.load()
    except TritonlabError as error:
        return [Check("course", Status.BAD, error.message, error.next_step)]
    checks = [Check("course", Status.GOOD, f"{len([*the_course.modules])} modules in "
                                          f"{len(the_course.tracks)} tracks")]
    place = workspace.find()
    if place is None:
        observed = (f"none yet at {shown(workspace.locate())}; "
                    f"`tritonlab start {the_course.example}` makes it")
        return [*checks, Check("workspace", Status.GOOD, observed)]
    checks.append(_writable("workspace", place.root))
    try:
        reading = place.journal(the_course).read()
    except TritonlabError as error:
        return [*checks, Check("journal", Status.NOTE, f"{error.message} No result can be saved.",
                               error.next_step)]
    count = f"{len(reading.records)} record{'s' * (len(reading.records) != 1)}"
    if reading.problems:
        return [*checks, Check(
            "journal", Status.NOTE, " ".join((f"{count}.", *reading.problems)),
            "All other records count, and nothing has to be fixed; to have a lost grade on "
            "record again, grade that module again.")]
    writable = _writable("journal", place.mark / JOURNAL)
    return [*checks, writable if writable.state is not Status.GOOD else Check(
        "journal", Status.GOOD, f"{count}, none damaged")]


def _library(name: str) -> Check:
    wanted = next((requirement for text in metadata.requires("tritonlab") or ()
                   if (requirement := Requirement(text)).name.replace("-", "_") == name),
                  Requirement(name))
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return Check(name, Status.BAD, "not installed", f"Type: pip install '{wanted}'")
    return _in_range(name, version, wanted)


def _in_range(name: str, version: str, wanted: Requirement) -> Check:
    observed = f"{version}, supported is {wanted.specifier}" if wanted.specifier else version
    if wanted.specifier.contains(version.partition("+")[0], prereleases=True):
        return Check(name, Status.GOOD, observed)
    return Check(name, Status.NOTE, f"{observed}; the grader was not tested with it",
                 f"Type: pip install '{wanted}'" if name != "python" else
                 "Create the environment again with a supported Python.")


def _memory() -> Check:
    try:
        text = Path("/proc/meminfo").read_text(encoding="ascii")
        sizes = {line.split(":")[0]: int(line.split()[1]) * _KIB for line in text.splitlines()}
        total, free = sizes["MemTotal"], sizes["MemAvailable"]
    except (OSError, ValueError, KeyError):
        return Check("memory", Status.NOTE, "unknown on this system",
                     f"The largest cases take {_size(ENOUGH_MEMORY)}; nothing else depends on it.")
    observed = f"{_size(free)} free of {_size(total)}"
    if free >= ENOUGH_MEMORY:
        return Check("memory", Status.GOOD, observed)
    return Check("memory", Status.NOTE, f"{observed}; the largest cases take "
                 f"{_size(ENOUGH_MEMORY)}",
                 "Close other programs if a case runs out of memory.")


def _cache() -> Path:
    try:
        return client.cache().parent
    except RuntimeError:  # a user without a home folder
        return Path(tempfile.gettempdir())


def _disk(name: str, folder: Path, enough: int, remedy: str) -> Check:
    """Checks space and permission at ``folder``, or where it will be created."""
    try:
        nearest = next(path for path in (folder, *folder.absolute().parents) if path.is_dir())
        free = shutil.disk_usage(nearest).free
    except OSError as error:
        reason = reason_of(error)
        return Check(name, Status.NOTE, f"{folder} cannot be looked at: {reason}", remedy)
    observed = f"{_size(free)} free in {nearest}"
    if free < enough:
        return Check(name, Status.NOTE, f"{observed}, {_size(enough)} should be", remedy)
    return _writable(name, nearest, observed, remedy)


def _writable(name: str, path: Path, observed: str = "", remedy: str = "") -> Check:
    if os.access(path, os.W_OK | (os.X_OK if path.is_dir() else 0)) or not path.exists():
        return Check(name, Status.GOOD, observed or str(path))
    return Check(name, Status.NOTE, f"{path} cannot be written", remedy or
                 "No result is saved: make it writable, or set TRITONLAB_WORKSPACE to another "
                 "folder.")


def _size(count: int) -> str:
    for unit, name in ((_GIB, "GiB"), (_MIB, "MiB")):
        if count >= unit:
            return f"{count / unit:.1f} {name}"
    return f"{count / _KIB:.0f} KiB"
