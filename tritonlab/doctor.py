"""A look at this machine: what is installed, what holds, what can be decided here."""

from __future__ import annotations

import enum
import os
import platform
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packaging.requirements import Requirement

import grader
from grader.report import EXIT_FAILED, EXIT_GRADER_BROKE, EXIT_PASSED
from tritonlab import __version__, errors

if TYPE_CHECKING:
    from grader.sandbox import Isolation
    from grader.sandbox.attacks import Result

SCHEMA = 1
ENOUGH_MEMORY = 3 << 30  # bytes; torch, Triton and the inputs of the largest case, twice
_LIBRARIES = ("torch", "triton", "numpy", "ml_dtypes")
_GIB = 1 << 30

OnEvent = Callable[[str], None]


class State(enum.StrEnum):
    """GOOD, or NOTE: it works and something is worth knowing, or BAD: nothing can be graded."""

    GOOD = "PASS"
    NOTE = "NOTE"
    BAD = "FAIL"


@dataclass(frozen=True)
class Check:
    """One look: what was found, and what to do about it unless all is well."""

    name: str
    state: State
    seen: str
    remedy: str = ""


@dataclass(frozen=True)
class Diagnosis:
    """All checks, what they mean for grading, and the attacks if any were run."""

    checks: tuple[Check, ...]
    decides: tuple[str, ...]
    leaves_open: tuple[str, ...]
    isolation: str = ""
    tier: int | None = None
    attacks: tuple[Result, ...] = ()

    @property
    def succeeded(self) -> tuple[Result, ...]:
        return tuple(result for result in self.attacks if result.succeeded)

    @property
    def exit_code(self) -> int:
        if any(check.state is State.BAD for check in self.checks):
            return EXIT_GRADER_BROKE
        return EXIT_FAILED if self.succeeded else EXIT_PASSED

    def to_dict(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "tritonlab": __version__,
            "ok": self.exit_code == EXIT_PASSED,
            "isolation": {"tier": self.tier, "description": self.isolation},
            "checks": [{**asdict(check), "state": str(check.state)} for check in self.checks],
            "decides": list(self.decides),
            "leaves_open": list(self.leaves_open),
            "attacks": [asdict(result) for result in self.attacks],
        }


def examine(*, attack: bool = False, on_event: OnEvent | None = None) -> Diagnosis:
    """Look at this machine; with ``attack``, also try to break out of its sandbox."""
    tell = on_event or (lambda event: None)
    checks = [_python(), *map(_library, _LIBRARIES), _cores(), _memory()]
    tell("starting the engine")
    engine, isolation, attacks = _grader(attack, tell)
    checks.append(engine)
    if isolation is not None:
        checks += _sandbox(isolation)
    gpus = _gpus()
    checks.append(_gpu(gpus))
    broken = any(check.state is State.BAD for check in checks)
    return Diagnosis(
        tuple(checks),
        () if broken else ("right or wrong, for every kernel that the course asks for",
                           "accesses out of bounds, races between programs, what is never written",
                           "bytes that a kernel moves, and how many it must"),
        ("every verdict, until what failed above is mended",) if broken else _left_open(gpus),
        isolation.describe() if isolation else "",
        isolation.tier if isolation else None,
        attacks,
    )


def _grader(attack: bool, tell: OnEvent) -> tuple[Check, Isolation | None, tuple[Result, ...]]:
    """Start the grader as a grade would; it proves its engine before it answers."""
    from grader.sandbox import SandboxBroken, attacks

    try:
        with attacks.scene() as target, grader.Sandbox() as box:
            isolation = box.isolation
            arena = attacks.Confined(box)
            results = []
            for one in attacks.ATTACKS if attack else ():
                tell(one.name)
                results.append(attacks.run(one, target, arena))
    except SandboxBroken as error:
        remedy = "Install tritonlab again in a fresh environment; if that does not help, report it."
        return Check("engine", State.BAD, errors.brief(str(error)), remedy), None, ()
    seen = "the interpreter fits this Triton, and ran a kernel as it should"
    return Check("engine", State.GOOD, seen), isolation, tuple(results)


def _sandbox(isolation: Isolation) -> list[Check]:
    state = State.GOOD if isolation.tier == 2 else State.NOTE
    remedy = "" if state is State.GOOD else (
        "Your own work is graded as well as anywhere. Do not grade files of strangers here.")
    return [Check("sandbox", state, isolation.describe(), remedy),
            *(Check(f"sandbox without {what}", State.NOTE, "left open", remedy)
              for what, remedy in isolation.missing)]


def _python() -> Check:
    wanted = metadata.metadata("tritonlab")["Requires-Python"] or ""
    return _in_range("python", platform.python_version(), Requirement(f"python{wanted}"))


def _library(name: str) -> Check:
    wanted = next((requirement for text in metadata.requires("tritonlab") or ()
                   if (requirement := Requirement(text)).name.replace("-", "_") == name),
                  Requirement(name))
    try:
        found = metadata.version(name)
    except metadata.PackageNotFoundError:
        return Check(name, State.BAD, "not installed", f"pip install '{wanted}'")
    return _in_range(name, found, wanted)


def _in_range(name: str, found: str, wanted: Requirement) -> Check:
    seen = f"{found}, supported is {wanted.specifier}" if wanted.specifier else found
    if wanted.specifier.contains(found.partition("+")[0], prereleases=True):
        return Check(name, State.GOOD, seen)
    return Check(name, State.NOTE, f"{seen}; the grader was not checked with it",
                 f"pip install '{wanted}'" if name != "python" else "Use a supported Python.")


def _cores() -> Check:
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return Check("processor", State.GOOD, f"{available} cores of {platform.machine()}")


def _memory() -> Check:
    try:
        text = Path("/proc/meminfo").read_text(encoding="ascii")
        sizes = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in text.splitlines()}
        total, free = sizes["MemTotal"], sizes["MemAvailable"]
    except (OSError, ValueError, KeyError):
        return Check("memory", State.NOTE, "how much there is cannot be told on this system")
    seen = f"{free / _GIB:.1f} GiB free of {total / _GIB:.1f} GiB"
    if free >= ENOUGH_MEMORY:
        return Check("memory", State.GOOD, seen)
    return Check("memory", State.NOTE, seen, "The largest cases may not fit. Close something.")


def _gpus() -> tuple[str, ...]:
    """Names of GPUs, as their drivers tell; nothing is asked of a GPU itself."""
    names = []
    for about in sorted(Path("/proc/driver/nvidia/gpus").glob("*/information")):
        try:
            lines = about.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            continue
        names += [line.partition(":")[2].strip() for line in lines if line.startswith("Model:")]
    if not names and Path("/dev/nvidia0").exists():
        names.append("an NVIDIA GPU")
    if Path("/dev/kfd").exists():
        names.append("an AMD GPU")
    return tuple(names)


def _gpu(names: tuple[str, ...]) -> Check:
    if names:
        return Check("GPU", State.GOOD, ", ".join(names))
    return Check("GPU", State.NOTE, "none was found",
                 "None is needed to be graded. The lessons' benchmarks say what they skip.")


def _left_open(gpus: tuple[str, ...]) -> tuple[str, ...]:
    if gpus:
        return ("how fast a kernel is: there is a GPU, but this version of the grader runs "
                "kernels on the processor and times none",)
    return ("how fast a kernel is: that takes a GPU",)
