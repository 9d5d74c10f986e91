"""A look at this machine: what is installed, what holds, what can be decided here."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import sysconfig
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grader
from grader import hardware
from grader.engine.compiler import targets
from grader.report import EXIT_FAILED, EXIT_GRADER_BROKE, EXIT_PASSED
from tritonlab import __version__, checkup, errors
from tritonlab.certificate import EVIDENCE
from tritonlab.checkup import Check, State, Terminal

if TYPE_CHECKING:
    from grader.measurement import Gpu
    from grader.probe import Probe
    from grader.sandbox import Isolation, Sandbox
    from grader.sandbox.attacks import Result
    from grader.trial import Trial

SCHEMA = 1
_COMPILERS = ("gcc", "clang", "cc")
_AMD = Path("/dev/kfd")
_GIB = 1 << 30
_REINSTALL = ("Install tritonlab again in a fresh environment; if that does not help, report what "
              "`tritonlab doctor --json` says.")

OnEvent = Callable[[str], None]


@dataclass(frozen=True)
class Level:
    """An evidence level: what it says of a kernel, and why it cannot be reached here ('': it can).
    """

    name: str
    means: str
    hindrance: str = ""
    remedy: str = ""


@dataclass(frozen=True)
class Diagnosis:
    """All checks, what they mean for grading, and the attacks if any were run."""

    checks: tuple[Check, ...]
    levels: tuple[Level, ...]
    isolation: Isolation | None = None
    attacks: tuple[Result, ...] = ()

    @property
    def decides(self) -> tuple[Level, ...]:
        return tuple(level for level in self.levels if not level.hindrance)

    @property
    def leaves_open(self) -> tuple[Level, ...]:
        return tuple(level for level in self.levels if level.hindrance)

    @property
    def succeeded(self) -> tuple[Result, ...]:
        return tuple(result for result in self.attacks if result.succeeded)

    @property
    def exit_code(self) -> int:
        if any(check.state is State.BAD for check in self.checks):
            return EXIT_GRADER_BROKE
        return EXIT_FAILED if self.succeeded else EXIT_PASSED

    def to_dict(self) -> dict[str, Any]:
        known = self.isolation
        return {
            "schema": SCHEMA,
            "tritonlab": __version__,
            "ok": self.exit_code == EXIT_PASSED,
            "isolation": {"tier": known.tier if known else None,
                          "description": known.describe() if known else ""},
            "checks": [{**asdict(check), "state": str(check.state)} for check in self.checks],
            "levels": [{**asdict(level), "decided": not level.hindrance} for level in self.levels],
            "decides": [f"{level.name}: {level.means}" for level in self.decides],
            "leaves_open": [f"{level.name}: {level.hindrance}" for level in self.leaves_open],
            "attacks": [asdict(result) for result in self.attacks],
        }


def examine(*, attack: bool = False, terminal: Terminal | None = None,
            on_event: OnEvent | None = None) -> Diagnosis:
    """Look at this machine; with ``attack``, also try to break out of its sandbox."""
    tell = on_event or (lambda event: None)
    tell("starting the engine")
    tried = _grader(attack, tell)
    checks = [*checkup.installed(), *checkup.machine(), *tried.checks]
    if tried.isolation is not None:
        checks += _sandbox(tried.isolation)
    checks += [*_gpu(tried.probed), *checkup.disks(), *checkup.record(), checkup.editors()]
    if terminal is not None:
        checks.append(checkup.display(terminal))
    failed = [check.name for check in checks if check.state is State.BAD]
    return Diagnosis(tuple(checks), _levels(failed, tried.probed), tried.isolation, tried.attacks)


def _levels(failed: Sequence[str], probed: Probe | None) -> tuple[Level, ...]:
    """What can be shown of a kernel here, by evidence level, and what each of them lacks."""
    correct, efficient, fast = EVIDENCE[1:]
    hindrance, remedy = "", ""
    if failed:
        hindrance = f"no verdict can be trusted before this passes: {', '.join(failed)}"
        remedy = "Do what is said there, then type `tritonlab doctor` again."
    measured = hindrance, remedy
    if not failed and probed is None:
        measured = ("how fast a kernel is takes a GPU of NVIDIA's",
                    "On a machine with one, type `tritonlab grade --pending` in this workspace.")
    elif not failed and probed is not None and probed.ceilings is None:
        measured = ("how fast a kernel is: there is a GPU, and no kernel runs on it yet",
                    "Do what is said above at 'kernels on the GPU'.")
    return (Level(correct, "right or wrong, on every size and view; accesses out of bounds, races "
                           "between programs, what is never written", hindrance, remedy),
            Level(efficient, "the bytes that a kernel moves beside those that it must, and what "
                             "the compiler makes of it", hindrance, remedy),
            Level(fast, "right values on this GPU too, and its speed by the clock", *measured))


@dataclass(frozen=True)
class _Tried:
    """What the grader showed of itself when it was started as for a grade."""

    checks: tuple[Check, ...]
    isolation: Isolation | None = None
    probed: Probe | None = None
    attacks: tuple[Result, ...] = ()


def _grader(attack: bool, tell: OnEvent) -> _Tried:
    """Start the grader, which proves its engine before it answers, and try it on small kernels.

    Where there is a GPU, it is tried too.
    """
    from grader import trial
    from grader.sandbox import SandboxBroken, attacks

    try:
        with attacks.scene() as target, grader.Sandbox() as box:
            isolation = box.isolation
            tests = _self_tests(trial.run(box, tell))
            probed = _probed(box, tell)
            arena = attacks.Confined(box)
            results = []
            for one in attacks.ATTACKS if attack else ():
                tell(one.name)
                results.append(attacks.run(one, target, arena))
    except SandboxBroken as error:
        return _Tried((Check("engine", State.BAD, errors.brief(str(error)), _REINSTALL),))
    except OSError as error:
        refused = errors.cannot_grade(error)
        return _Tried((Check("engine", State.BAD, refused.message, refused.next_step),))
    seen = "it fits this Triton, and its own kernels came out as known"
    return _Tried((Check("engine", State.GOOD, seen), *tests), isolation, probed, tuple(results))


def _self_tests(tried: Trial) -> tuple[Check, Check]:
    """Whether a right kernel passes and a wrong one does not, and whether the compiler answers."""
    name = targets.find().title
    return (_self_test("interpreter", tried.interpreter,
                       "a right kernel passed, and one that reads past its tensor was caught"),
            _self_test("compiler", tried.compiler, f"a kernel was compiled for the {name}"))


def _self_test(name: str, trouble: str, fine: str) -> Check:
    if trouble:
        return Check(name, State.BAD, errors.brief(trouble), _REINSTALL)
    return Check(name, State.GOOD, fine)


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
