"""Occupancy: how many programs a multiprocessor holds, and in how many waves a launch runs."""

from __future__ import annotations

from dataclasses import dataclass

from grader.binary import Limit, Occupancy
from grader.engine.compiler.targets import WARP, Target

_REGISTERS_AT_ONCE = 256  # what a warp gets is rounded up to these
_QUARTERS = 4  # of a multiprocessor: each has its own registers and warps
_TENSOR_MEMORY = 512  # columns of a multiprocessor


def occupancy(registers: int, shared: int, warps: int, target: Target,
              tensor_memory: int = 0) -> Occupancy:
    """How many programs of a kernel one multiprocessor holds, by the rules of CUDA's calculator.

    Args:
        registers: of a thread.
        shared: bytes of a program, without those that the system reserves.
        warps: of a program.
        target: where it runs.
        tensor_memory: columns of a program, on GPUs that have such memory.
    """
    limits: dict[Limit, int] = {  # of equal ones, the one that no change of the code would lift
        "programs": target.programs,
        "warps": target.warps // warps,
        "shared memory": target.shared // max(1, _shared_taken(shared, target)),
        "registers": _warps_by_registers(registers, target) // warps,
    }
    if tensor_memory:
        limits["tensor memory"] = _TENSOR_MEMORY // tensor_memory
    limit = min(limits, key=lambda name: limits[name])
    programs = limits[limit]
    return Occupancy(programs, programs * warps, target.warps, limit)


def _warps_by_registers(registers: int, target: Target) -> int:
    a_warp = _round_up(max(1, registers) * WARP, _REGISTERS_AT_ONCE)
    return target.registers // _QUARTERS // a_warp * _QUARTERS


def _shared_taken(shared: int, target: Target) -> int:
    """With what the system reserves for each program, from Ampere on."""
    if target.capability >= 80:
        return _round_up(shared + 1024, 128)
    return _round_up(shared, 256)


def _round_up(value: int, step: int) -> int:
    return -(-value // step) * step


@dataclass(frozen=True)
class Waves:
    """How the programs of a launch follow each other on all multiprocessors.

    ``count``: rounds, the last one maybe not full. ``idle``: the share of the places for programs
    that stay empty in the last round, 0 where it is full.
    """

    count: int
    idle: float


def waves(programs: int, occupancy: Occupancy, target: Target) -> Waves:
    """The waves of a launch of ``programs``.

    Raises:
        ValueError: a multiprocessor holds none of them.
    """
    at_once = occupancy.programs * target.multiprocessors
    if at_once < 1:
        raise ValueError("no multiprocessor holds such a program")
    count = -(-programs // at_once)
    return Waves(count, (count * at_once - programs) / at_once)
