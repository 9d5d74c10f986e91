"""Pipes: which part of a multiprocessor runs an instruction, for how long, and when it is done.

Rates are those of the programming guide's table of throughputs; latencies of arithmetic, shared
memory and barriers are rounded from published microbenchmarks. All of them are good to some 20 %.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from grader.engine.compiler.flow import REACHES_MEMORY, width
from grader.engine.compiler.sass import Instruction
from grader.engine.compiler.targets import WARP, Target

Pipe = Literal["issue", "fma", "alu", "fp64", "xu", "lsu", "tensor"]
PIPES: tuple[Pipe, ...] = ("issue", "fma", "alu", "fp64", "xu", "lsu", "tensor")

SCHEDULERS = 4  # of a multiprocessor; each issues one instruction of a warp per cycle
WAVEFRONT = 128  # bytes that shared memory or L1 moves in a cycle
SUSTAINED_TENSOR, SUSTAINED_ELSEWHERE = 0.70, 0.85
"""Share of the tensor cores' peak that well tiled kernels reach. The power limit of Hopper and
later datacenter GPUs holds them back: cuBLAS reached 680 to 713 of 989 TFLOP/s on an H200.
Elsewhere it is estimated."""
TRANSPOSING_COPY = 20.0
"""Cycles of an asynchronous copy of 4 bytes a thread of a float32 operand: wgmma wants those with K
innermost, so each lane copies from another row, and L1 looks up the lines one after the other. A
tf32 tile of 128x128x32 took three times as long as without this, measured on an H200."""
NARROW_COPY = 4.0
"""The same of a 16-bit operand, which is narrow because a row of the tile is short: some four."""
BROADCAST = 0.5
"""Share of the bytes that shared memory really moves for a dot on the FMA pipes, where several
threads read the same operands at once [estimated]."""
MMA_ON_HOPPER = 0.62
"""Share of the tensor cores' peak that mma.sync reaches where wgmma was made for it [estimated]."""

# lanes of one multiprocessor that finish an operation in a cycle
_ALU, _IMAD, _XU, _SHUFFLE = 64, 64, 16, 32
_SINGLE_RATE = (75, 80)  # 64 lanes of fp32; later ones have 128
_DOUBLE_RATE = (80, 90, 100)  # 64 lanes of fp64; others have 2

# cycles until a result can be used
_FIXED, _UNIFORM, _XU_DONE, _SHARED, _SHUFFLED, _SPECIAL, _MMA = 5, 11, 23, 29, 24, 30, 33
_BARRIER = 25
_FENCE = 20
_FENCE_OF_GPU = 500  # until all multiprocessors see what was written

_FMA = frozenset(("FFMA", "FADD", "FMUL", "FFMA2", "FADD2", "FMUL2", "HFMA2", "HADD2", "HMUL2",
                  "FSWZADD", "FFMA32I"))
_FP64 = frozenset(("DFMA", "DADD", "DMUL", "DSETP"))
_XU_NAMES = frozenset(("MUFU", "I2F", "F2I", "F2F", "I2FP", "FRND", "POPC", "FLO", "BREV"))
_SHARED_NAMES = frozenset(("LDS", "STS", "LDSM", "STSM", "ATOMS", "LDL", "STL"))
_SHUFFLES = frozenset(("SHFL", "REDUX", "CREDUX"))
_BARRIERS = frozenset(("BAR", "WARPSYNC", "BSYNC", "SYNCS"))
_MMA_NAMES = frozenset(("HMMA", "IMMA", "QMMA", "OMMA", "DMMA", "BMMA"))
_GROUP_MMA = frozenset(("HGMMA", "QGMMA", "IGMMA", "BGMMA"))
_TENSOR_MEMORY_MMA = frozenset(("UTCHMMA", "UTCQMMA", "UTCIMMA", "UTCOMMA"))
_IMAD_NAMES = frozenset(("IMAD", "XMAD", "IMUL", "IDP", "IDP4A"))
_SHAPES = {"16816": (16, 8, 16), "1688": (16, 8, 8), "1684": (16, 8, 4), "16832": (16, 8, 32),
           "16864": (16, 8, 64), "884": (8, 8, 4), "8816": (8, 8, 16), "168128": (16, 8, 128)}


@dataclass(frozen=True)
class Cost:
    """``busy``: cycles for which one warp's instruction occupies its pipe of a multiprocessor.

    ``done``: cycles until what it computed can be used, those of global memory apart.
    """

    pipe: Pipe
    busy: float
    done: float


def cost(step: Instruction, target: Target, dot: Literal["", "fma", "16", "32"] = "") -> Cost:
    """What one instruction costs on ``target``.

    Args:
        dot: the kernel multiplies matrices on FMA pipes, or tensor cores with operands of 16 or 32
            bits; empty if it does not.
    """
    name, modern = step.name, target.capability not in _SINGLE_RATE
    if multiplied(step):
        return Cost("tensor", *_tensor(step, target))
    if name in _FMA:
        packed = 2 if name in ("FFMA2", "FADD2", "FMUL2") else 1
        return Cost("fma", packed * WARP / (128 if modern else 64), _FIXED)
    if name in _IMAD_NAMES:
        return Cost("fma", WARP / _IMAD, _FIXED)
    if name in _FP64:
        return Cost("fp64", WARP / (64 if target.capability in _DOUBLE_RATE else 2), 2 * _FIXED)
    if name in _XU_NAMES:
        return Cost("xu", WARP / _XU, _XU_DONE)
    if name in _SHARED_NAMES:
        wavefronts = _shared_bytes(step) * WARP / WAVEFRONT
        if dot == "fma" and name == "LDS":
            wavefronts *= BROADCAST
        return Cost("lsu", max(1.0, wavefronts), _SHARED)
    if name in _SHUFFLES:
        return Cost("lsu", WARP / _SHUFFLE, _SHUFFLED)
    if name == "LDGSTS" and width(step) == 4 and dot in ("16", "32"):
        return Cost("lsu", TRANSPOSING_COPY if dot == "32" else NARROW_COPY, _FIXED)
    if name in REACHES_MEMORY:
        return Cost("lsu", max(1.0, width(step) * WARP / WAVEFRONT), _FIXED)
    if name in _BARRIERS:
        return Cost("issue", 0.0, _BARRIER)
    if name in ("MEMBAR", "FENCE", "ERRBAR", "CCTL"):
        return Cost("issue", 0.0, _FENCE_OF_GPU if ".GPU" in step.opcode or ".SYS" in step.opcode
                    else _FENCE)
    if name in ("S2R", "S2UR", "LDC", "LDCU", "ULDC", "R2UR", "CS2R"):
        return Cost("issue", 0.0, _FIXED if name in ("CS2R", "ULDC") else _SPECIAL)
    if name.startswith("U"):
        return Cost("issue", 0.0, _UNIFORM)
    if name in ("BRA", "EXIT", "BSSY", "CALL", "RET", "LDGDEPBAR", "DEPBAR", "WARPGROUP", "NOP"):
        return Cost("issue", 0.0, _FIXED)
    return Cost("alu", WARP / _ALU, _FIXED)


def multiplied(step: Instruction) -> float:
    """Operations of one warp's tensor instruction, two for each multiplication; else 0.

    An instruction of a group of four warps counts a quarter for each. 1 where the code does not
    tell the shape (tcgen05): then tl.dot must be counted elsewhere.
    """
    if step.name in _TENSOR_MEMORY_MMA:
        return 1.0
    if step.name in _GROUP_MMA:
        shape = re.search(r"\.(\d+)x(\d+)x(\d+)", step.opcode)
        return 2.0 * int(shape[1]) * int(shape[2]) * int(shape[3]) / 4 if shape else 1.0
    if step.name in _MMA_NAMES:
        m, n, k = next((_SHAPES[part] for part in step.opcode.split(".") if part in _SHAPES),
                       (16, 8, 8))
        return 2.0 * m * n * k
    return 0.0


def peak(step: Instruction, target: Target) -> float:
    """Operations per second of the whole GPU, for the format that an instruction multiplies."""
    if step.name[0] in "QIOB" or step.name in ("UTCQMMA", "UTCIMMA", "UTCOMMA"):
        return target.fp8_tensor
    if "TF32" in step.opcode:
        return target.tf32_tensor
    return target.fp16_tensor


def rate(step: Instruction, target: Target) -> float:
    """Operations that one multiprocessor's tensor cores sustain in a cycle."""
    if target.capability // 10 not in (9, 10):
        share = SUSTAINED_ELSEWHERE
    elif step.name in _MMA_NAMES:
        share = SUSTAINED_TENSOR * MMA_ON_HOPPER
    else:
        share = SUSTAINED_TENSOR
    return max(1.0, share * peak(step, target) / (target.multiprocessors * target.clock))


def in_group(step: Instruction) -> bool:
    """It works while its warps go on: wgmma, and what follows it."""
    return step.name in _GROUP_MMA or step.name in _TENSOR_MEMORY_MMA


def _tensor(step: Instruction, target: Target) -> tuple[float, float]:
    return multiplied(step) / rate(step, target), 0.0 if in_group(step) else _MMA


def _shared_bytes(step: Instruction) -> int:
    matrices = re.search(r"\.M(?:T?)(?:8)?8\.?(\d)?", step.opcode)
    if step.name in ("LDSM", "STSM") and matrices:
        return 4 * int(matrices[1] or 1)
    return width(step)
