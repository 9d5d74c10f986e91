"""T04 and T06: spills, tensor cores, pipelines, and the width of accesses."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from grader.diagnosis.perf_lints.launch import SHARE, Defect, LaunchCost, mma_where_better_is
from grader.engine.compiler.targets import WARP, Target
from grader.recording.compiled_kernel import Binary

# A few saved registers stay in L1 and cost nothing that could be measured; from a full vector
# register of every kind on, the inner loop pays.
SPILLED = 128  # bytes per thread
# Multiplications and additions for each element loaded: 64 x 64 tiles give 32, 128 x 64 give 43.
# A tile of 64 x 64 reaches at most half of what 128 x 256 does where tensor cores are fast.
SMALL_REUSE = 37
# L2 takes so many times as long as the products: more than half of the time is lost for certain.
STARVED = 2.0
# Fewer rounds of a loop end before a pipeline pays.
ROUNDS_OF_PRODUCTS = 4
ROUNDS = 8


def spills(binary: Binary, allowed: int = SPILLED - 1) -> list[Defect]:
    """Finds registers that are spilled to memory.

    Args:
        allowed: bytes per thread that are not a defect.
    """
    if binary.spill_bytes <= allowed:
        return []
    return [Defect(
        "register spills", "T04", None,
        f"`{binary.kernel}` keeps {binary.spill_bytes} bytes of each thread in memory, since its "
        f"values do not fit {binary.registers} registers with {binary.warps} warps",
        "Spread a block over more warps (num_warps), or make it smaller and loop.")]


def code_alone(binary: Binary, target: Target) -> list[Defect]:
    if binary.dot and not binary.tensor_cores and target.capability >= 80:
        return [_no_tensor_cores(binary)]
    return []


def _no_tensor_cores(binary: Binary) -> Defect:
    return Defect(
        "no tensor cores", "T06", _product_line(binary),
        "tl.dot is computed by ordinary multiply-adds, not by tensor cores",
        "Use fp16 or bf16 operands, or allow tf32 (input_precision) where its precision is enough.")


def dots(launch: LaunchCost) -> list[Defect]:
    """What keeps products from the rate that the GPU has."""
    binary, target = launch.binary, launch.target
    if not (binary.dot and launch.bound_by_products and launch.large):
        return []
    if not binary.tensor_cores:
        return [_no_tensor_cores(binary)] if target.capability >= 80 else []
    line = _product_line(binary)
    bigger = "Use larger tiles, such as 128 x 128 with 4 or 8 warps."
    if mma_where_better_is(binary, target):
        return [Defect(
            "small tiles", "T06", line,
            "tl.dot is computed by mma.sync: tiles under 64 rows, or fewer than 4 warps, do not "
            "reach the fast tensor-core instructions of this GPU", bigger)]
    found = []
    reuse = _reuse(launch)
    starved = launch.caches / launch.products
    if 0 < reuse < SMALL_REUSE and (target.capability >= 90 or starved > 1):
        found.append(Defect(
            "small tiles", "T06", line,
            f"Each element that is loaded takes part in {reuse:.0f} multiplications; L2 cannot "
            f"feed the tensor cores at this rate", bigger,
            "defect" if starved > STARVED else "hint"))
    narrow = [a for a in binary.accesses if a.kind == "async copy" and 0 < a.bits <= 32]
    if narrow:
        worst = max(narrow, key=lambda a: a.count)
        found.append(Defect(
            "narrow async copies", "T06", worst.line,
            f"An operand of tl.dot is copied to shared memory in pieces of {worst.bits // 8} bytes "
            f"({sum(a.count for a in narrow)} instructions) instead of 16",
            "Store the operand so that neighbours along K lie side by side, or load it through a "
            "descriptor."))
    return found


def _reuse(launch: LaunchCost) -> float:
    loaded = sum(t.lanes for t in launch.survey.traffic if t.kind == "load")
    return launch.survey.flops / 2 / loaded if loaded else 0.0


def _product_line(binary: Binary) -> int | None:
    return next((line for line, _, _ in binary.products if line is not None), None)


def loops(launch: LaunchCost, found: Sequence[Defect]) -> list[Defect]:
    """Loops that wait for memory in every round."""
    binary = launch.binary
    if binary.stages or not launch.large or any(d.name in (
            "too few programs", "idle lanes", "no tensor cores", "small tiles") for d in found):
        return []
    rounds = launch.rounds()
    if binary.dot:
        if rounds < ROUNDS_OF_PRODUCTS or not launch.bound_by_products:
            return []
        return [_not_pipelined(launch, "tl.dot waits for its operands in every round of the loop",
                               "Give the launch num_stages=3 or more.")]
    if rounds < ROUNDS or launch.memory < 3 * launch.target.launch_seconds:
        return []
    in_flight, needed = _in_flight(launch, rounds), _needed_in_flight(launch.target)
    if in_flight >= needed:
        return []
    return [_not_pipelined(
        launch,
        f"each round of the loop waits for its loads, {in_flight / 1024:.0f} KiB for each "
        f"multiprocessor, where {needed / 1024:.0f} KiB have to be on their way",
        "Write the loop as tl.range(..., num_stages=3), take larger blocks, or launch more "
        "programs for each multiprocessor.")]


def _not_pipelined(launch: LaunchCost, seen: str, advice: str) -> Defect:
    lines = [(launch.survey.executions.get(t.line, 0.0), t.line) for t in launch.survey.traffic
             if t.kind == "load" and t.line is not None]
    return Defect("no pipelining", "T06", max(lines)[1],
                  f"The loop is not pipelined: {seen}", advice)


def _in_flight(launch: LaunchCost, rounds: float) -> float:
    """Bytes that one multiprocessor asks for at a time, if every round waits."""
    resident = min(launch.binary.occupancy.programs,
                   ceil(launch.programs / launch.target.multiprocessors))
    each = sum(t.bytes / launch.accesses(t) for t in launch.survey.traffic
               if t.kind == "load" and t.line is not None
               and launch.survey.executions.get(t.line, 0.0) >= rounds / 2)
    return resident * each


def _needed_in_flight(target: Target) -> float:
    """Bytes that keep a multiprocessor's share of the memory busy over its latency."""
    return target.latency_dram / target.clock * target.dram / target.multiprocessors


def narrow(launch: LaunchCost) -> list[Defect]:
    """Tensors that threads could access in wide pieces, and do in narrow ones everywhere."""
    threads = launch.binary.warps * WARP
    found = []
    for tensor, kind in sorted({(t.tensor, t.kind) for t in launch.survey.traffic}):
        rows = [t for t in launch.survey.traffic if (t.tensor, t.kind) == (tensor, kind)]
        widths = [a.bits for t in rows for a in launch.binary.accesses
                  if a.line == t.line and a.kind == kind]
        main = max(rows, key=lambda t: t.sectors)
        if kind == "atomic" or not widths or not main.lanes or (
                main.sectors < SHARE * launch.sectors or main.coalescing < 0.9):
            continue
        element = 8 * main.bytes // main.lanes
        possible = min(128, element * int(launch.lanes(main) // threads))
        if max(widths) <= 32 and possible >= 4 * max(widths):
            found.append(Defect(
                "scalar access", "T06", main.line,
                f"`{tensor}` is {'read' if kind == 'load' else 'written'} {max(widths) // 8} bytes "
                f"at a time by each thread, where {possible // 8} would do",
                "Start at an address that is a multiple of 16 bytes, and keep sizes and strides "
                "multiples of 16 elements; while memory is the bound it costs little.", "hint"))
    return found
