"""Targets: the GPUs for which kernels are compiled, with the parameters of ``targets.toml``."""

import functools
import tomllib
from dataclasses import dataclass
from pathlib import Path

DEFAULT = "h100"
WARP = 32  # threads, of every target
_FILE = Path(__file__).with_name("targets.toml")


@dataclass(frozen=True)
class Target:
    """One GPU: sizes in bytes, rates per second, latencies in cycles, from ``targets.toml``.

    Peaks are dense FLOP/s, two per fused multiply-add.
    """

    name: str
    title: str
    capability: int  # such as 90
    multiprocessors: int
    clock: float  # Hz
    registers: int  # of an SM, 32 bits each
    shared: int  # bytes of an SM
    shared_per_program: int  # the most that one may use
    warps: int  # of an SM
    programs: int  # of an SM
    dram: float  # of a copy, bytes read and written together
    l2: int
    l2_rate: float
    fp16_tensor: float
    tf32_tensor: float
    fp8_tensor: float
    fp32: float
    launch_seconds: float
    programs_per_second: float
    atomics_per_second: float  # on one address
    latency_l1: int
    latency_l2: int
    latency_dram: int


class UnknownTarget(ValueError):
    """No target has this name; the message lists the targets."""


@functools.cache
def all_targets() -> dict[str, Target]:
    """Every target of ``targets.toml`` by name, in the order of the file."""
    data = tomllib.loads(_FILE.read_text(encoding="utf-8"))
    return {name: Target(name=name, **{key: value["value"] if isinstance(value, dict) else value
                                       for key, value in entry.items()})
            for name, entry in data.items()}


def find(name: str = DEFAULT) -> Target:
    """A target by its name, in upper or lower case.

    Raises:
        UnknownTarget: no target has this name.
    """
    targets = all_targets()
    if name.lower() not in targets:
        raise UnknownTarget(f"No target is called {name!r}. There are {', '.join(targets)}.")
    return targets[name.lower()]
