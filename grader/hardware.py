"""GPUs that this machine has, as its files tell; no driver is asked, so this costs nothing."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

from grader import gpus
from grader.engine.compiler import targets
from grader.engine.compiler.targets import Target

_PROC = Path("/proc/driver/nvidia/gpus")
_PCI = Path("/sys/bus/pci/devices")
_NVIDIA, _DISPLAY = "0x10de", "0x03"  # the vendor, and the class of what draws or computes


def names() -> tuple[str, ...]:
    """Names of NVIDIA GPUs with a driver, as it tells them."""
    found = []
    for about in sorted(_PROC.glob("*/information")):
        try:
            lines = about.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            continue
        found += [line.partition(":")[2].strip() for line in lines if line.startswith("Model:")]
    if not found and gpus.present():
        found.append("an NVIDIA GPU")
    return tuple(found)


def present() -> bool:
    """Whether a GPU may be asked for: one is there, and the environment does not hide it."""
    visible = gpus.visible()
    hidden = visible is not None and visible.strip() in ("", "-1")
    return not hidden and bool(names())


def without_driver() -> bool:
    """Whether there is an NVIDIA GPU that no driver serves."""
    if names():
        return False
    for vendor in _PCI.glob("*/vendor"):
        try:
            if vendor.read_text().strip() == _NVIDIA and \
                    vendor.with_name("class").read_text().startswith(_DISPLAY):
                return True
        except OSError:
            continue
    return False


def target_for(name: str) -> Target | None:
    """The target that describes the GPU of this name; None where none does."""
    words = re.findall(r"[a-z0-9]+", name.lower())
    words += [first + second for first, second in pairwise(words)]  # "RTX 4090" is rtx4090
    return next((target for target in targets.all_targets().values() if target.name in words),
                None)


def default_target(least: tuple[int, int] = (0, 0)) -> Target:
    """The GPU that kernels are compiled for where none is named: that of this machine, if it is
    known and has this compute capability.
    """
    own = (target_for(name) for name in names()) if present() else ()
    able = (one for one in own if one and divmod(one.capability, 10) >= least)
    return next(able, None) or targets.find()
