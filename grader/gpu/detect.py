"""The GPUs of this machine, read from files of the kernel without asking the driver."""

import contextlib
import re
from itertools import pairwise
from pathlib import Path

from grader.engine.compiler import targets
from grader.engine.compiler.targets import Target
from grader.gpu import client

_PROC = Path("/proc/driver/nvidia/gpus")
_PCI = Path("/sys/bus/pci/devices")
_NVIDIA, _DISPLAY = "0x10de", "0x03"  # the vendor, and the class of what draws or computes


def names() -> tuple[str, ...]:
    """Names of the NVIDIA GPUs that the driver serves."""
    models = []
    for path in sorted(_PROC.glob("*/information")):
        with contextlib.suppress(OSError):
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
            models += [line[6:].strip() for line in lines if line.startswith("Model:")]
    if not models and client.present():
        models.append("an NVIDIA GPU")
    return tuple(models)


def present() -> bool:
    """Whether there is a GPU that CUDA_VISIBLE_DEVICES does not hide."""
    visible = client.visible()
    hidden = visible is not None and visible.strip() in ("", "-1")
    return not hidden and bool(names())


def without_driver() -> bool:
    """Whether there is an NVIDIA GPU that no driver serves."""
    if names():
        return False
    for vendor in _PCI.glob("*/vendor"):
        with contextlib.suppress(OSError):
            if vendor.read_text().strip() == _NVIDIA and \
                    vendor.with_name("class").read_text().startswith(_DISPLAY):
                return True
    return False


def default_target(least: tuple[int, int] = (0, 0)) -> Target:
    """The target of this machine's GPU, if its capability reaches ``least``; else the default."""
    for name in names() if present() else ():
        words = re.findall(r"[a-z0-9]+", name.lower())
        words += [first + second for first, second in pairwise(words)]  # "RTX 4090" is rtx4090
        for target in targets.all_targets().values():
            if target.name in words and divmod(target.capability, 10) >= least:
                return target
    return targets.find()
