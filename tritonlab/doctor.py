"""A look at this machine: what is installed, what holds, what can be decided here."""

from __future__ import annotations

import enum
import importlib.util
import os
import platform
import re
import shutil
import sysconfig
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packaging.requirements import Requirement

import grader
from grader import hardware
from grader.report import EXIT_FAILED, EXIT_GRADER_BROKE, EXIT_PASSED
from tritonlab import __version__, errors
from tritonlab.certificate import FAST

if TYPE_CHECKING:
    from grader.measurement import Gpu
    from grader.probe import Probe
    from grader.sandbox import Isolation, Sandbox
    from grader.sandbox.attacks import Result

SCHEMA = 1
ENOUGH_MEMORY = 3 << 30  # bytes; torch, Triton and the inputs of the largest case, twice
_LIBRARIES = ("torch", "triton", "numpy", "ml_dtypes")
_COMPILERS = ("gcc", "clang", "cc")
_AMD = Path("/dev/kfd")
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
    engine, isolation, probed, attacks = _grader(attack, tell)
    checks.append(engine)
    if isolation is not None:
        checks += _sandbox(isolation)
    checks += _gpu(probed)
    broken = any(check.state is State.BAD for check in checks)
    decides = ["right or wrong, for every kernel that the course asks for",
               "accesses out of bounds, races between programs, what is never written",
               "bytes that a kernel moves, and how many it must"]
    if probed is not None and probed.ceilings is not None:
        decides += ["whether all values come out right on its GPU too",
                    f"how fast a kernel is, by the clock: the evidence level {FAST}"]
    return Diagnosis(
        tuple(checks),
        () if broken else tuple(decides),
        ("every verdict, until what failed above is mended",) if broken else _left_open(probed),
        isolation.describe() if isolation else "",
        isolation.tier if isolation else None,
        attacks,
    )


def _grader(attack: bool, tell: OnEvent
            ) -> tuple[Check, Isolation | None, Probe | None, tuple[Result, ...]]:
    """Start the grader as a grade would; it proves its engine before it answers.

    Where there is a GPU, it is tried too.
    """
    from grader.sandbox import SandboxBroken, attacks

    try:
        with attacks.scene() as target, grader.Sandbox() as box:
            isolation = box.isolation
            probed = _probed(box, tell)
            arena = attacks.Confined(box)
            results = []
            for one in attacks.ATTACKS if attack else ():
                tell(one.name)
                results.append(attacks.run(one, target, arena))
    except SandboxBroken as error:
        remedy = "Install tritonlab again in a fresh environment; if that does not help, report it."
        return Check("engine", State.BAD, errors.brief(str(error)), remedy), None, None, ()
    seen = "the interpreter fits this Triton, and ran a kernel as it should"
    return Check("engine", State.GOOD, seen), isolation, probed, tuple(results)


def _probed(box: Sandbox, tell: OnEvent) -> Probe | None:
    """What the GPU of this machine answers; None where there is none to ask."""
    if not hardware.present():
        return None
    from grader.probe import probe

    return probe(box, tell)


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


def _gpu(probed: Probe | None) -> list[Check]:
    """Which GPU there is, whether kernels run on it and how fast it is; or what is in the way."""
    if probed is None:
        return [_no_gpu()]
    named = Check("GPU", State.GOOD, _described(probed.gpu) if probed.gpu
                  else ", ".join(hardware.names()))
    if probed.ceilings is None:
        return [replace(named, state=State.NOTE),
                Check("kernels on the GPU", State.NOTE,
                      f"cannot be run: {errors.brief(probed.unusable)}", _remedy())]
    told = probed.ceilings
    return [named, Check("kernels on the GPU", State.GOOD, "one was compiled and ran as it should"),
            Check("ceilings", State.GOOD, f"copies {told.copy_gb_s:,.0f} GB/s, multiplies "
                                          f"{told.matmul_tflops:,.0f} TFLOP/s in float16; measured "
                                          f"on {told.measured_at[:10]}")]


def _described(gpu: Gpu) -> str:
    major, minor = gpu.capability
    return (f"{gpu.name}, {gpu.memory_bytes / _GIB:.0f} GiB, compute capability {major}.{minor}, "
            f"driver {gpu.driver}")


def _no_gpu() -> Check:
    if hardware.without_driver():
        return Check("GPU", State.NOTE, "an NVIDIA GPU is there, and no driver serves it",
                     "Install NVIDIA's driver, or start the container with access to the GPU. "
                     "Until then everything but speed is graded.")
    if hardware.names():
        return Check("GPU", State.NOTE, f"{', '.join(hardware.names())}, hidden by "
                                        "CUDA_VISIBLE_DEVICES", "Unset it to have speed measured.")
    if _AMD.exists():
        return Check("GPU", State.NOTE, "an AMD GPU, which the grader does not run kernels on",
                     "None is needed to be graded; speed takes one of NVIDIA.")
    return Check("GPU", State.NOTE, "none was found",
                 "None is needed to be graded. The lessons' benchmarks say what they skip.")


def _remedy() -> str:
    """What most likely keeps kernels from running: the first of the usual reasons that holds."""
    if not cuda_version():
        return ("This torch was built without CUDA. Install one for your driver, as "
                "https://pytorch.org/get-started/locally says.")
    if not (os.environ.get("CC") or any(map(shutil.which, _COMPILERS))):
        return ("Triton compiles a launcher for each kernel, and there is no C compiler: install "
                "gcc (`apt install gcc`), or name one in CC.")
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        return ("Triton compiles a launcher for each kernel, and Python's headers are missing: "
                "install them (`apt install python3-dev`).")
    return ("`nvidia-smi` should name the GPU, and `python -c 'import torch; "
            "torch.ones(1).cuda()'` should say nothing.")


def cuda_version() -> str:
    """The CUDA that torch was built for, read from its files; empty where it has none."""
    found = importlib.util.find_spec("torch")
    try:
        text = Path(found.origin).with_name("version.py").read_text() if found and found.origin \
            else ""
    except OSError:
        return ""
    said = re.search(r"^cuda\b[^=]*= *['\"]([^'\"]+)", text, re.MULTILINE)
    return said[1] if said else ""


def _left_open(probed: Probe | None) -> tuple[str, ...]:
    if probed is None:
        return ("how fast a kernel is: that takes a GPU",)
    if probed.ceilings is None:
        return ("how fast a kernel is: there is a GPU, and no kernel runs on it yet",)
    return ()
