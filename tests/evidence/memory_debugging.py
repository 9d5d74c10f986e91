"""The reports of track3/memory-debugging: five wrong kernels, watched by this project's own engine.

    python -m tests.evidence.memory_debugging    writes them into the module's two folders

Which program touched which byte is what the engine found while the kernel ran; the instructions of
R5 are those that Triton's compiler makes. Addresses are made up: one allocation behind the other,
as a caching allocator places them. Two of the reports are worded like those of compute-sanitizer,
the others like this project's own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import triton
import triton.language as tl

from grader.engine.compiler.compile import address, build
from grader.engine.compiler.kernel_reader import binary_of
from grader.engine.compiler.targets import find
from grader.engine.interpreter.eager import interpreted
from grader.engine.interpreter.launch import Order
from grader.engine.interpreter.transaction import Note
from grader.recording.model import dtype_name
from grader.suite.inputs import laid_out

ROOT = Path(__file__).parents[2]
PLACES = [ROOT / kind / "debugging" / "04-memory-debugging" / "reports"
          for kind in ("tracks", "solutions")]

FIRST = 0x7F3A_4000_0000  # where the first allocation is said to lie
ROUNDED = 512  # bytes that allocations are rounded up to
THREADS = 128  # of a program: with blocks of as many lanes, lane and thread have one number
BAR = "========="

Tensors = Mapping[str, torch.Tensor]


# ---------------------------------------------------------------------------------------------
# The kernels


@triton.jit
def add_bias_kernel(x_ptr, bias_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """out = x + bias; the bias is loaded without a mask."""
    offs = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    bias = tl.load(bias_ptr + offs)
    tl.store(out_ptr + offs, x + bias, mask=mask)


@triton.jit
def negate_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """out = -x; the store lets one lane too many through."""
    offs = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n, other=0.0)
    tl.store(out_ptr + offs, -x, mask=offs <= n)


@triton.jit
def row_sums_kernel(x_ptr, out_ptr, stride_xm, n_cols, BLOCK: tl.constexpr):
    """The sum of each row; where a row begins is computed in 32 bits."""
    row = tl.program_id(axis=0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride_xm + cols, mask=cols < n_cols, other=0.0)
    tl.store(out_ptr + row, tl.sum(x, axis=0))


@triton.jit
def totals_kernel(amounts_ptr, accounts_ptr, totals_ptr):
    """totals[account] += amount, by a load and a store. One program owns one entry."""
    entry = tl.program_id(axis=0)
    account = tl.load(accounts_ptr + entry)
    total = tl.load(totals_ptr + account)
    tl.store(totals_ptr + account, total + tl.load(amounts_ptr + entry))


@triton.jit
def scale_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """out = 2 * x. Right; how it is loaded depends on where x begins."""
    offs = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    tl.store(out_ptr + offs, 2 * tl.load(x_ptr + offs, mask=mask), mask=mask)


# ---------------------------------------------------------------------------------------------
# Watching, and words that several reports share


def watched(kernel: Any, grid: int, *arguments: Any, order: Order = "forward",
            **constants: Any) -> tuple[list[Note], list[str]]:
    """Run a launch; what was noted, in the order in which it came, and the engine's sentences."""
    notes: list[Note] = []
    with interpreted(order=order, chunk=1) as trace:
        kept = trace.memory.observed.note

        def note(one: Note) -> None:
            notes.append(one)
            kept(one)

        trace.memory.observed.note = note  # type: ignore[method-assign]
        kernel[(grid,)](*arguments, **constants)
    said = [f"{one.code} {one.seen}" for one in trace.findings]
    return notes, [line.replace("_ptr`", "`") for line in said]  # tensors have the host's names


def placed(tensors: Tensors) -> dict[str, int]:
    """An address for each tensor, one allocation behind the other; a view keeps its offset."""
    places, free = {}, FIRST
    for name, tensor in tensors.items():
        skipped = int(tensor.storage_offset()) * tensor.element_size()
        places[name] = free + skipped
        free += -(-(skipped + reach(tensor)) // ROUNDED) * ROUNDED
    return places


def reach(tensor: torch.Tensor) -> int:
    """Bytes from a tensor's first to its last."""
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    return (1 + sum((size - 1) * step for size, step in steps)) * tensor.element_size()


def launched(kernel: Any, grid: int, tensors: Tensors, note: str = "",
             block: int = THREADS) -> list[str]:
    """The launch and its tensors, in the words of this project."""
    places = placed(tensors)
    lines = [f"launch   {kernel.__name__}, {grid:,} programs, blocks of {block} lanes{note}",
             "tensor   name       type     shape        strides         first byte       bytes"]
    for name, tensor in tensors.items():
        lines.append(
            f"         {name:<10} {dtype_name(tensor):<8} {shown(tensor.shape):<12} "
            f"{shown(tensor.stride()):<15} 0x{places[name]:x} {reach(tensor):,}")
    return lines


def shown(numbers: Any) -> str:
    return " x ".join(f"{number:,}" for number in numbers)


def invalid(kernel: Any, note: Note, lane: int, tensors: Tensors) -> list[str]:
    """One access of one thread, in the words of compute-sanitizer.

    ``lane``: the thread; lane 0 is the first one of the program that goes astray.
    """
    name = note.access.tensor.removesuffix("_ptr")
    tensor, start = tensors[name], placed(tensors)[name]
    size, end = tensor.element_size(), start + reach(tensor)
    place = start + (note.access.index + lane) * size
    first = max(0, note.access.index) % THREADS  # the thread of the first lane
    where = (f"{place - end + 1:,} bytes after" if place >= end
             else f"{start - place:,} bytes before")
    kind = "read" if note.access.action == "loaded" else "write"
    return [
        f"{BAR} Invalid __global__ {kind} of size {size} bytes",
        f"{BAR}     at {kernel.__name__}",
        f"{BAR}     by thread ({first + lane},0,0) in block ({note.access.program},0,0)",
        f"{BAR}     Address 0x{place:x} is out of bounds",
        f"{BAR}     and is {where} the nearest allocation at 0x{start:x} of size "
        f"{reach(tensor):,} bytes",
        BAR,
    ]


# ---------------------------------------------------------------------------------------------
# The reports


def missing_mask() -> list[str]:
    """R1: a load past the end by a ragged block."""
    n = 300
    tensors = {name: torch.ones(n) for name in ("x", "bias")} | {"out": torch.empty(n)}
    grid = triton.cdiv(n, THREADS)
    (note,), _ = watched(add_bias_kernel, grid, *tensors.values(), n, BLOCK=THREADS)
    shown_threads = [invalid(add_bias_kernel, note, lane, tensors)
                     for lane in (0, 1, note.access.count - 1)]
    return [
        *launched(add_bias_kernel, grid, tensors), "",
        f"{BAR} COMPUTE-SANITIZER", *shown_threads[0], *shown_threads[1],
        f"{BAR} ... the same of the threads between, one by one ...", BAR, *shown_threads[2],
        f"{BAR} ERROR SUMMARY: {note.access.count} errors",
    ]


def off_by_one() -> list[str]:
    """R2: a store one element past the end."""
    n = 1_000
    tensors = {"x": torch.ones(n, dtype=torch.float16), "out": torch.empty(n, dtype=torch.float16)}
    grid = triton.cdiv(n, THREADS)
    _, said = watched(negate_kernel, grid, *tensors.values(), n, BLOCK=THREADS)
    right = int((tensors["out"] == -tensors["x"]).sum())
    return [*launched(negate_kernel, grid, tensors), "", *(f"finding  {line}" for line in said),
            f"values   {right:,} of {n:,} results are right"]


def row_sums() -> tuple[dict[str, torch.Tensor], list[Note]]:
    """The tensors of R3, and what was noted from the last program to the first."""
    rows, columns, stride = 1_664, 64, 1_300_000
    tensors = {"x": laid_out(torch.ones(rows, columns), (stride, 1)), "out": torch.empty(rows)}
    notes, _ = watched(row_sums_kernel, rows, *tensors.values(), stride, columns, BLOCK=THREADS,
                       order="reverse")
    return tensors, notes


def overflow() -> list[str]:
    """R3: an address far below the tensor. Programs have no order: the report has a late one."""
    tensors, notes = row_sums()
    rows, columns = tensors["x"].shape
    return [
        *launched(row_sums_kernel, rows, tensors, f", of which {columns} are columns"), "",
        f"{BAR} COMPUTE-SANITIZER", *invalid(row_sums_kernel, notes[2], 0, tensors),
        f"{BAR} The launch ended with its first error; other programs may not have run.",
        f"{BAR} ERROR SUMMARY: 1 error",
    ]


def race() -> list[str]:
    """R4: two programs, one address, no atomic."""
    accounts = torch.tensor([4, 7, 2, 0, 7, 5])
    tensors = {"amounts": torch.ones(6), "accounts": accounts, "totals": torch.zeros(8)}
    notes, said = watched(totals_kernel, len(accounts), *tensors.values())
    outside = sum(note.access.count for note in notes if note.code in ("M01", "M02", "M05"))
    return [
        *launched(totals_kernel, len(accounts), tensors, ", of which 1 is used"), "",
        *(f"finding  {line}" for line in said),
        f"bounds   {outside} elements outside of the tensors",
    ]


def misaligned() -> list[str]:
    """R5: no error, and a load in four pieces."""
    n, block, target = 1 << 20, 4 * THREADS, find("h100")
    whole = torch.empty(n + 1, device="meta")
    lines = [*launched(scale_kernel, triton.cdiv(n, block), {"x": whole[1:], "out": whole[:-1]},
                       block=block), ""]
    x, out = torch.ones(1_001)[1:], torch.empty(1_000)
    _, said = watched(scale_kernel, 2, x, out, x.numel(), BLOCK=block)
    lines += [f"finding  {line}" for line in said] or ["finding  none"]
    for offset, which in ((1, "this launch"), (0, f"the benchmark, where x begins at 0x{FIRST:x}")):
        arguments = {"x_ptr": address("float32", offset), "out_ptr": address("float32", 0),
                     "n": n, "BLOCK": block}
        compiled = build(scale_kernel, arguments, {}, target)
        made = Counter[tuple[str, int]]()
        for one in binary_of(compiled, target, "scale_kernel", {}).accesses:
            made[one.kind, one.bits // 8] += one.count
        lines += [f"profile  {which}",
                  *(f"         {kind:<6} {count} instruction{'s' * (count > 1)} of {size} bytes in "
                    "each thread" for (kind, size), count in sorted(made.items()))]
    return lines


REPORTS = {"R1": missing_mask, "R2": off_by_one, "R3": overflow, "R4": race, "R5": misaligned}


def reports() -> dict[str, str]:
    """The text of each report."""
    return {name: "\n".join(line.rstrip() for line in (f"report   {name}", *make())) + "\n"
            for name, make in REPORTS.items()}


if __name__ == "__main__":
    for name, text in reports().items():
        for place in PLACES:
            place.mkdir(exist_ok=True)
            (place / f"{name}.txt").write_text(text, encoding="utf-8")
        print(text)
