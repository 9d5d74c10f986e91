"""Occupancy: resident programs of an SM (streaming multiprocessor)."""

from grader.engine.compiler.targets import WARP, Target
from grader.recording.compiled_kernel import Limit, Occupancy

_REGISTERS_AT_ONCE = 256  # granularity of the registers of a warp
_QUARTERS = 4  # of an SM: each has its own registers and warps
_TENSOR_MEMORY = 512  # columns of an SM


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
