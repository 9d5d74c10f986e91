"""Examines this machine: installation, sandbox, GPU, and what can be graded here."""

import importlib.util
import os
import re
import shutil
import sysconfig
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grader
from grader.attacks import attacks
from grader.attacks.attacks import AttackResult
from grader.engine.compiler import targets
from grader.gpu import detect
from grader.report import EXIT_FAILED, EXIT_GRADER_BROKE, EXIT_PASSED
from grader.sandbox import Isolation, SandboxBroken
from tritonlab import errors
from tritonlab.doctor import environment_checks
from tritonlab.doctor.environment_checks import Check, Status
from tritonlab.progress.certificate import EVIDENCE
from tritonlab.version import __version__

if TYPE_CHECKING:
    from grader.selfcheck import Probe

SCHEMA = 1
_COMPILERS = ("gcc", "clang", "cc")
_AMD = Path("/dev/kfd")
_GIB = 1 << 30
_REINSTALL = ("Install tritonlab again in a fresh environment; if that does not help, report what "
              "`tritonlab doctor --json` says.")

Tell = Callable[[str], None]  # of the activity that begins


@dataclass(frozen=True)
class Level:
    """An evidence level: its meaning, and why this machine cannot reach it ('' if it can)."""

    name: str
    means: str
    hindrance: str = ""
    remedy: str = ""


@dataclass(frozen=True)
class Diagnosis:
    """All checks, the evidence levels that they allow, and the attacks if any were run."""

    checks: tuple[Check, ...]
    levels: tuple[Level, ...]
    isolation: Isolation | None = None
    attacks: tuple[AttackResult, ...] = ()

    @property
    def succeeded(self) -> tuple[AttackResult, ...]:
        return tuple(result for result in self.attacks if result.succeeded)

    @property
    def exit_code(self) -> int:
        if any(check.state is Status.BAD for check in self.checks):
            return EXIT_GRADER_BROKE
        return EXIT_FAILED if self.succeeded else EXIT_PASSED

    def to_dict(self) -> dict[str, Any]:
        isolation = self.isolation
        return {
            "schema": SCHEMA, "tritonlab": __version__, "ok": self.exit_code == EXIT_PASSED,
            "isolation": {"tier": isolation.tier if isolation else None,
                          "description": isolation.describe() if isolation else ""},
            "checks": [{**asdict(check), "state": str(check.state)} for check in self.checks],
            "levels": [{**asdict(level), "decided": not level.hindrance} for level in self.levels],
            "decides": [f"{level.name}: {level.means}" for level in self.levels
                        if not level.hindrance],
            "leaves_open": [f"{level.name}: {level.hindrance}" for level in self.levels
                            if level.hindrance],
            "attacks": [asdict(result) for result in self.attacks],
        }


def examine(*checked: Check, attack: bool = False, tell: Tell = lambda event: None) -> Diagnosis:
    """Examines this machine; with ``attack``, also tries to break out of its sandbox.

    ``checked`` are the results of other checks, which come last.
    """
    tell("starting the engine")
    engine, isolation, probe, results = _grader(attack, tell)
    checks = [*environment_checks.installed(), *environment_checks.machine(), *engine]
    if isolation is not None:
        checks += _sandbox(isolation)
    checks += [*_gpu(probe), *environment_checks.disks(), *environment_checks.record(),
               environment_checks.editors(), *checked]
    failed = [check.name for check in checks if check.state is Status.BAD]
    return Diagnosis(tuple(checks), _levels(failed, probe), isolation, results)


def _levels(failed: Sequence[str], probe: "Probe | None") -> tuple[Level, ...]:
    """Returns the evidence levels, each with what this machine lacks for it."""
    correct, efficient, fast = EVIDENCE[1:]
    hindrance, remedy = measured = "", ""
    if failed:
        hindrance, remedy = measured = (
            f"no verdict can be trusted before this passes: {', '.join(failed)}",
            "Follow the advice there, then type `tritonlab doctor` again.")
    elif probe is None:
        measured = ("speed is measured only on an NVIDIA GPU",
                    "On a machine with one, type `tritonlab grade --pending` in this workspace.")
    elif probe.ceilings is None:
        measured = ("speed: there is a GPU, but no kernel runs on it yet",
                    "Follow the advice above at 'kernels on the GPU'.")
    return (Level(correct, "right or wrong, on every size and view; accesses out of bounds, races "
                           "between programs, elements that are never written", hindrance, remedy),
            Level(efficient, "the bytes that a kernel moves beside those that it must, and what "
                             "the compiler makes of it", hindrance, remedy),
            Level(fast, "values on this GPU, and measured speed", *measured))


def _grader(attack: bool, tell: Tell) -> tuple[
        list[Check], Isolation | None, "Probe | None", tuple[AttackResult, ...]]:
    """Starts the grader, whose engine tests itself, and runs small kernels on CPU and GPU.

    Returns:
        Checks of the engine, its isolation, the GPU's reply (None without a GPU), and attacks.
    """
    from grader import selfcheck

    try:
        with attacks.scene() as target, grader.Sandbox() as box:
            trial = selfcheck.run(box, tell)
            probe = selfcheck.probe(box, tell) if detect.present() else None
            confined = attacks.confined(box)
            results = []
            for one in attacks.ATTACKS if attack else ():
                tell(one.name)
                results.append(attacks.run(one, target, confined))
            isolation = box.isolation
    except SandboxBroken as error:
        return [Check("engine", Status.BAD, errors.brief(str(error)), _REINSTALL)], None, None, ()
    except OSError as error:
        refused = errors.cannot_grade(error)
        return [Check("engine", Status.BAD, refused.message, refused.next_step)], None, None, ()
    checks = [
        Check("engine", Status.GOOD, "it supports this Triton version, and its "
                                            "own kernels gave the expected results")]
    for name, trouble, fine in (
            ("interpreter", trial.interpreter,
             "a right kernel passed, and an out-of-bounds read was detected"),
            ("compiler", trial.compiler, f"a kernel was compiled for the {targets.find().title}")):
        checks.append(Check(name, Status.BAD, errors.brief(trouble), _REINSTALL) if trouble
                      else Check(name, Status.GOOD, fine))
    return checks, isolation, probe, tuple(results)


def _sandbox(isolation: Isolation) -> list[Check]:
    state = Status.GOOD if isolation.tier == 2 else Status.NOTE
    remedy = "" if state is Status.GOOD else (
        "Your own work is graded normally. Do not grade untrusted files on this machine.")
    return [Check("sandbox", state, isolation.describe(), remedy),
            *(Check(f"sandbox without {measure}", Status.NOTE, "left open", remedy)
              for measure, remedy in isolation.missing)]


def _gpu(probe: "Probe | None") -> list[Check]:
    """Returns the checks of the GPU, of kernels on it and of its speed."""
    if probe is None:
        return [_no_gpu()]
    observed = ", ".join(detect.names())
    if gpu := probe.gpu:
        observed = (f"{gpu.name}, {gpu.memory_bytes / _GIB:.0f} GiB, compute capability "
                f"{gpu.capability[0]}.{gpu.capability[1]}, driver {gpu.driver}")
    if probe.ceilings is None:
        return [Check("GPU", Status.NOTE, observed),
                Check("kernels on the GPU", Status.NOTE,
                      f"cannot be run: {errors.brief(probe.unusable)}", _remedy())]
    ceilings = probe.ceilings
    speeds = (f"copies {ceilings.copy_gb_s:,.0f} GB/s, multiplies "
              f"{ceilings.matmul_tflops:,.0f} TFLOP/s in float16; measured on "
              f"{ceilings.measured_at[:10]}")
    return [Check("GPU", Status.GOOD, observed),
            Check("kernels on the GPU", Status.GOOD, "a kernel gave the expected result"),
            Check("ceilings", Status.GOOD, speeds)]


def _no_gpu() -> Check:
    if detect.without_driver():
        return Check("GPU", Status.NOTE, "there is an NVIDIA GPU, but no driver for it",
                     "Install NVIDIA's driver, or start the container with access to the GPU. "
                     "Until then, everything except speed is graded.")
    if detect.names():
        return Check("GPU", Status.NOTE, f"{', '.join(detect.names())}, hidden by "
                                        "CUDA_VISIBLE_DEVICES", "Unset it to measure speed.")
    if _AMD.exists():
        return Check("GPU", Status.NOTE, "an AMD GPU, which the grader does not support",
                     "Grading needs no GPU; measuring speed needs an NVIDIA GPU.")
    return Check("GPU", Status.NOTE, "none was found",
                 "Grading needs no GPU. The benchmarks of the lessons report what they skip.")


def _remedy() -> str:
    """Returns the advice for the most likely reason that kernels do not run."""
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
            "torch.ones(1).cuda()'` should print nothing.")


def cuda_version() -> str:
    """Returns the CUDA version of torch, read from its files; empty if it has none."""
    spec = importlib.util.find_spec("torch")
    try:
        text = Path(spec.origin).with_name("version.py").read_text() if spec and spec.origin else ""
    except OSError:
        return ""
    match = re.search(r"^cuda\b[^=]*= *['\"]([^'\"]+)", text, re.MULTILINE)
    return match[1] if match else ""
