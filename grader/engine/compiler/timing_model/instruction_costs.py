"""Cost of SASS instructions: the pipe of an SM that executes each, its occupancy and latency.

Rates are from the table "Throughput of Native Arithmetic Instructions" of the CUDA C++ programming
guide; latencies of arithmetic, shared memory and barriers are rounded from published
microbenchmarks. All of them are accurate to about 20 %.
"""

import re
from dataclasses import dataclass
from typing import Literal

from grader.engine.compiler.sass import SassInstruction
from grader.engine.compiler.targets import WARP, Target
from grader.engine.compiler.timing_model.control_flow import REACHES_MEMORY, width

Pipe = Literal["issue", "fma", "alu", "fp64", "xu", "lsu", "tensor"]
PIPES: tuple[Pipe, ...] = ("issue", "fma", "alu", "fp64", "xu", "lsu", "tensor")

SCHEDULERS = 4  # warp schedulers of an SM; each issues one instruction per cycle
WAVEFRONT = 128  # bytes that shared memory or L1 moves in a cycle
SUSTAINED_TENSOR, SUSTAINED_ELSEWHERE = 0.70, 0.85
"""Share of the tensor cores' peak that well tiled kernels reach, on Hopper and later datacenter
GPUs and elsewhere. The power limit of the former lowers it: cuBLAS reached 680 to 713 of 989
TFLOP/s on an H200. The latter is estimated."""
BROADCAST = 0.5
"""Share of the bytes that shared memory moves for a dot on the FMA pipes, where several threads
read the same operands at once [estimated]."""
MMA_ON_HOPPER = 0.62  # share of the peak that mma.sync reaches on GPUs with wgmma [estimated]

_SINGLE_RATE = (75, 80)  # capabilities with 64 results of fp32 per cycle; later ones have 128
_DOUBLE_RATE = (80, 90, 100)  # capabilities with 64 results of fp64 per cycle; others have 2

# cycles until a result can be used, as the third field of each cost below
_FIXED, _UNIFORM, _SHARED, _MMA = 5, 11, 29, 33
_FENCE = 20
_FENCE_OF_GPU = 500  # until all SMs see the written values

_WIDE_PRODUCT = re.compile(r"\.(HI|WIDE)\b")  # half the rate, fitted to a Philox generator
_FMA = frozenset(("FFMA", "FADD", "FMUL", "FFMA2", "FADD2", "FMUL2", "HFMA2", "HADD2", "HMUL2",
                  "FSWZADD", "FFMA32I"))
_FP64 = frozenset(("DFMA", "DADD", "DMUL", "DSETP"))
_SHARED_NAMES = frozenset(("LDS", "STS", "LDSM", "STSM", "ATOMS", "LDL", "STL"))
_MMA_NAMES = frozenset(("HMMA", "IMMA", "QMMA", "OMMA", "DMMA", "BMMA"))
_GROUP_MMA = frozenset(("HGMMA", "QGMMA", "IGMMA", "BGMMA"))
_TENSOR_MEMORY_MMA = frozenset(("UTCHMMA", "UTCQMMA", "UTCIMMA", "UTCOMMA"))
_SHAPES = {"16816": (16, 8, 16), "1688": (16, 8, 8), "1684": (16, 8, 4), "16832": (16, 8, 32),
           "16864": (16, 8, 64), "884": (8, 8, 4), "8816": (8, 8, 16), "168128": (16, 8, 128)}


@dataclass(frozen=True)
class InstructionCost:
    """The cost of one warp's instruction, in cycles."""

    pipe: Pipe
    busy: float  # its pipe of an SM is occupied
    done: float  # until its result can be used, the latency of global memory apart


_PLAIN: dict[str, InstructionCost] = {  # on every target
    name: cost for names, cost in (
        (("IMAD", "XMAD", "IMUL", "IDP", "IDP4A"), InstructionCost("fma", WARP / 64, _FIXED)),
        (("MUFU", "I2F", "F2I", "F2F", "I2FP", "FRND", "POPC", "FLO", "BREV"),
         InstructionCost("xu", WARP / 16, 23)),
        (("SHFL", "REDUX", "CREDUX"), InstructionCost("lsu", WARP / 32, 24)),
        (("BAR", "WARPSYNC", "BSYNC", "SYNCS"), InstructionCost("issue", 0.0, 25)),
        (("S2R", "S2UR", "LDC", "LDCU", "R2UR"), InstructionCost("issue", 0.0, 30)),
        (("CS2R", "ULDC", "BRA", "EXIT", "BSSY", "CALL", "RET", "LDGDEPBAR", "DEPBAR", "WARPGROUP",
          "NOP"), InstructionCost("issue", 0.0, _FIXED)),
    ) for name in names}


def cost(step: SassInstruction, target: Target, dot_on_fma: bool = False) -> InstructionCost:
    """The cost of one instruction on ``target``.

    ``dot_on_fma``: the kernel multiplies matrices on FMA pipes.
    """
    name, modern = step.name, target.capability not in _SINGLE_RATE
    if name == "IMAD" and _WIDE_PRODUCT.search(step.opcode):
        return InstructionCost("fma", WARP / 32, _FIXED)
    if name in _PLAIN:
        return _PLAIN[name]
    if multiplied(step):
        return InstructionCost("tensor", multiplied(step) / rate(step, target),
                               0.0 if in_group(step) else _MMA)
    if name in _FMA:
        packed = 2 if name in ("FFMA2", "FADD2", "FMUL2") else 1
        return InstructionCost("fma", packed * WARP / (128 if modern else 64), _FIXED)
    if name in _FP64:
        lanes = 64 if target.capability in _DOUBLE_RATE else 2
        return InstructionCost("fp64", WARP / lanes, 2 * _FIXED)
    if name in _SHARED_NAMES:
        wavefronts = _shared_bytes(step) * WARP / WAVEFRONT
        if dot_on_fma and name == "LDS":
            wavefronts *= BROADCAST
        return InstructionCost("lsu", max(1.0, wavefronts), _SHARED)
    if name in REACHES_MEMORY:
        return InstructionCost("lsu", max(1.0, width(step) * WARP / WAVEFRONT), _FIXED)
    if name in ("MEMBAR", "FENCE", "ERRBAR", "CCTL"):
        wide = ".GPU" in step.opcode or ".SYS" in step.opcode
        return InstructionCost("issue", 0.0, _FENCE_OF_GPU if wide else _FENCE)
    if name.startswith("U"):
        return InstructionCost("issue", 0.0, _UNIFORM)
    return InstructionCost("alu", WARP / 64, _FIXED)


def multiplied(step: SassInstruction) -> float:
    """FLOP of one warp's tensor-core instruction, two per multiply-add; 0 for every other one.

    Each warp of a warpgroup has a quarter of a wgmma. An opcode without a shape (tcgen05) has 1:
    the FLOP of tl.dot must then be counted elsewhere.
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


def rate(step: SassInstruction, target: Target) -> float:
    """FLOP per cycle that the tensor cores of one SM sustain in the format of an instruction."""
    if step.name[0] in "QIOB" or step.name in ("UTCQMMA", "UTCIMMA", "UTCOMMA"):
        peak = target.fp8_tensor
    else:
        peak = target.tf32_tensor if "TF32" in step.opcode else target.fp16_tensor
    share = SUSTAINED_TENSOR
    if target.capability // 10 not in (9, 10):
        share = SUSTAINED_ELSEWHERE
    elif step.name in _MMA_NAMES:
        share *= MMA_ON_HOPPER
    return max(1.0, share * peak / (target.multiprocessors * target.clock))


def in_group(step: SassInstruction) -> bool:
    """Whether an instruction is asynchronous to its warps: wgmma and tcgen05.mma."""
    return step.name in _GROUP_MMA or step.name in _TENSOR_MEMORY_MMA


def _shared_bytes(step: SassInstruction) -> int:
    matrices = re.search(r"\.M(?:T?)(?:8)?8\.?(\d)?", step.opcode)
    if step.name in ("LDSM", "STSM") and matrices:
        return 4 * int(matrices[1] or 1)
    return width(step)
