"""Targets: the GPUs for which kernels are compiled, and how many programs fit an SM of each."""

import functools
import tomllib
from dataclasses import dataclass
from pathlib import Path

from grader.recording.compiled_kernel import Limit, Occupancy

DEFAULT = "h100"
WARP = 32  # threads, of every target
_REGISTERS_AT_ONCE = 256  # granularity of the registers of a warp
_QUARTERS = 4  # of an SM: each has its own registers and warps
_TENSOR_MEMORY = 512  # columns of an SM
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


def occupancy(registers: int, shared: int, warps: int, target: Target,
              tensor_memory: int = 0) -> Occupancy:
    """The programs of a kernel that fit one SM, by the rules of CUDA's occupancy calculator.

    Args:
        registers: of a thread.
        shared: bytes of a program, without those that CUDA reserves.
        warps: of a program.
        tensor_memory: columns of a program, on GPUs that have such memory.
    """
    registers_of_warp = _round_up(max(1, registers) * WARP, _REGISTERS_AT_ONCE)
    # from Ampere on, CUDA reserves 1 KiB
    taken = _round_up(shared + 1024, 128) if target.capability >= 80 else _round_up(shared, 256)
    limits: dict[Limit, int] = {  # of equal ones, the one that no change of the code would lift
        "programs": target.programs,
        "warps": target.warps // warps,
        "shared memory": target.shared // max(1, taken),
        "registers": target.registers // _QUARTERS // registers_of_warp * _QUARTERS // warps,
    }
    if tensor_memory:
        limits["tensor memory"] = _TENSOR_MEMORY // tensor_memory
    limit = min(limits, key=lambda name: limits[name])
    programs = limits[limit]
    return Occupancy(programs, programs * warps, target.warps, limit)


def _round_up(value: int, step: int) -> int:
    return -(-value // step) * step
