"""Control flow of machine code: blocks, loops, and how often a program runs each of them.

SASS shows where its loops are, not how often they iterate. Three sources give that count, the best
of them first: how often the interpreted program executed a line that accesses global memory; a
counter whose start, step and end are immediates; and the FLOP of tl.dot. Without any of them a loop
counts as one iteration each time that it is reached, and ``Loop.known`` is false.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from grader.engine.compiler.sass import Code, SassInstruction
from grader.engine.compiler.timing_model.loop_trip_counts import rounds

REACHES_MEMORY = frozenset((
    "LDG", "STG", "LD", "ST", "LDGSTS", "RED", "REDG", "ATOM", "ATOMG", "UTMALDG", "UTMASTG",
    "UTMAREDG", "UBLKCP"))
_WAITS = "SYNCS"  # polls a barrier in shared memory: such a loop is a wait, not work
_LONGEST_WAIT = 8  # instructions of a loop that only waits
_ALMOST = 1e-6  # tolerance of rounded counts


@dataclass(frozen=True)
class Block:
    """A basic block: instructions ``first`` to ``last``, both included.

    ``accesses``: line -> number of instructions that access global memory.
    """

    first: int
    last: int
    accesses: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Loop:
    """Instructions ``first`` to ``last``; ``times``: iterations per program, on average."""

    first: int
    last: int
    times: float = 1.0
    known: bool = False

    def holds(self, index: int) -> bool:
        return self.first <= index <= self.last


@dataclass(frozen=True)
class Work:
    """The work of one program, as the interpreter counted it.

    ``executions``: line -> how often the program executes it. ``bytes_each``: line -> bytes that
    one execution moves. ``flops``: FLOP of its dots on tensor cores.
    """

    executions: Mapping[int, float] = field(default_factory=dict)
    bytes_each: Mapping[int, float] = field(default_factory=dict)
    flops: float = 0.0


@dataclass(frozen=True)
class Flow:
    """``runs[i]``: how often a warp of a program executes instruction ``i``, on average."""

    blocks: tuple[Block, ...]
    loops: tuple[Loop, ...]  # outer before inner
    runs: tuple[float, ...]

    def innermost(self, index: int) -> Loop | None:
        inside = [loop for loop in self.loops if loop.holds(index)]
        return min(inside, key=lambda loop: loop.last - loop.first, default=None)


def flow_of(code: Code, work: Work | None = None, threads: int = 128,
            flops_of: Mapping[int, float] | None = None) -> Flow:
    """Blocks and loops of a kernel, with how often each runs.

    Args:
        code: the SASS of the kernel.
        work: of one program; without it only counters in the code give trip counts.
        threads: of a program.
        flops_of: index of an instruction -> FLOP of all warps of a program for one execution.
    """
    work = work or Work()
    steps = code.instructions
    blocks = _blocks(steps)
    units = _units(steps, blocks, work, threads)
    loops: list[Loop] = []
    ranges = _ranges(steps)
    for first, last in ranges:
        outside = [loop for loop in loops if loop.holds(first)]
        entries = outside[-1].times if outside else 1.0
        inner = [pair for pair in ranges if first <= pair[0] and pair[1] <= last
                 and pair != (first, last)]
        own = [index for index in range(first, last + 1)
               if not any(f <= index <= e for f, e in inner)]
        prepared = {steps[index].line for f, e in inner for index in range(f, e + 1)
                    if steps[index].name in REACHES_MEMORY}
        loops.append(_counted(steps, Loop(first, last), own, entries, work, {
            line: unit for line, unit in units.items() if line not in prepared}, flops_of or {}))
    flow = Flow(blocks, tuple(loops), ())
    return Flow(blocks, tuple(loops), _runs(steps, flow, work, units))


def _blocks(steps: tuple[SassInstruction, ...]) -> tuple[Block, ...]:
    at = {step.address: index for index, step in enumerate(steps)}
    begins = {0}
    for index, step in enumerate(steps):
        if step.target is not None and step.target in at:
            begins.add(at[step.target])
        if step.target is not None or step.name in ("EXIT", "BRX", "RET", "JMP"):
            begins.add(index + 1)
    ordered = sorted(begin for begin in begins if begin < len(steps))
    found = []
    for first, after in zip(ordered, [*ordered[1:], len(steps)], strict=True):
        accesses = Counter(step.line for step in steps[first:after]
                           if step.name in REACHES_MEMORY and step.line is not None
                           and not step.never)
        found.append(Block(first, after - 1, dict(accesses)))
    return tuple(found)


def _ranges(steps: tuple[SassInstruction, ...]) -> list[tuple[int, int]]:
    """First and last instruction of each loop that is not only a wait, outer loops first."""
    at = {step.address: index for index, step in enumerate(steps)}
    last_of: dict[int, int] = {}
    for index, step in enumerate(steps):
        if step.name != "BRA" or step.target is None or step.target > step.address:
            continue
        first = at.get(step.target)
        if first is None or first == index:  # a branch to itself fills the end of the code
            continue
        inside = steps[first:index + 1]
        if len(inside) <= _LONGEST_WAIT and any(one.name == _WAITS for one in inside):
            continue
        last_of[first] = max(index, last_of.get(first, 0))
    end = _end(steps)
    ranges = {(first, last) for first, last in last_of.items()
              # code behind the end that jumps back is a wait, or the slow path of a division
              if not first <= end < last
              and not (first > end and any(one.name == _WAITS for one in steps[first:last + 1]))}
    return sorted(ranges, key=lambda pair: (pair[0], -pair[1]))


def _end(steps: tuple[SassInstruction, ...]) -> int:
    return next((index for index, step in enumerate(steps)
                 if step.name == "EXIT" and not step.predicate), len(steps) - 1)


def _units(steps: tuple[SassInstruction, ...], blocks: tuple[Block, ...], work: Work, threads: int
           ) -> dict[int, int]:
    """The number of instructions of one access of each line.

    It divides the line's instructions of each block, and suffices for the bytes that the access
    moves. The smallest such number is returned: a loop may be unrolled without a remainder.
    """
    units = {}
    for line in {line for block in blocks for line in block.accesses}:
        common = math.gcd(*(block.accesses[line] for block in blocks if line in block.accesses))
        widths = [width(step) for step in steps
                  if step.line == line and step.name in REACHES_MEMORY and not step.never]
        each = threads * max(sum(widths) / len(widths), 1.0)
        least = math.ceil(work.bytes_each.get(line, 0.0) / each - _ALMOST) or common
        units[line] = next((number for number in range(1, common + 1)
                            if common % number == 0 and number >= least), common)
    return units


def width(step: SassInstruction) -> int:
    """Bytes that one thread accesses in one instruction."""
    for suffix in step.opcode.split("."):
        if suffix in ("128", "64", "256"):
            return int(suffix) // 8
        if suffix in ("U8", "S8"):
            return 1
        if suffix in ("U16", "S16"):
            return 2
    return 4


def _counted(steps: tuple[SassInstruction, ...], loop: Loop, own: list[int], entries: float,
             work: Work, units: Mapping[int, int], flops_of: Mapping[int, float]) -> Loop:
    """The loop with its trip count.

    ``own``: its instructions that are in no inner loop. ``units``: of lines that no inner loop
    contains; its instructions of other lines are the prologue or epilogue of an inner loop.
    """
    copies = Counter(line for index in own if (line := steps[index].line) is not None
                     and steps[index].name in REACHES_MEMORY and not steps[index].never)
    counts = [work.executions[line] * units[line] / count for line, count in copies.items()
              if line in work.executions and line in units]
    if counts:
        times = max(counts)
        if any(count > units.get(line, count) for line, count in copies.items()):
            times = math.floor(times + _ALMOST)  # unrolled: the remainder runs elsewhere
        return Loop(loop.first, loop.last, float(times), True)
    each = rounds(steps, loop.first, loop.last)
    if each is not None:
        return Loop(loop.first, loop.last, each * entries, True)
    flops = sum(flops_of.get(index, 0.0) for index in own)
    if flops and work.flops:
        return Loop(loop.first, loop.last, work.flops / flops, True)
    return Loop(loop.first, loop.last, entries, False)


def _runs(steps: tuple[SassInstruction, ...], flow: Flow, work: Work, units: Mapping[int, int]
          ) -> tuple[float, ...]:
    """Executions of each instruction.

    Blocks in a loop run as often as it does, blocks outside once. A remainder of an unrolled loop
    runs only where the interpreter counted more executions than the loop has.
    """
    left = dict(work.executions)
    looped: set[int] = set()  # lines of which a loop has some
    for block in flow.blocks:
        if loop := flow.innermost(block.first):
            looped |= block.accesses.keys()
            for line in block.accesses.keys() & left.keys():
                left[line] -= loop.times * block.accesses[line] / units[line]
    first_end = min((loop.last for loop in flow.loops), default=len(steps))
    last_end = max((loop.last for loop in flow.loops), default=-1)
    runs: list[float] = []
    for block in flow.blocks:
        loop = flow.innermost(block.first)
        times = loop.times if loop else 1.0
        rest = sorted(block.accesses.keys() & looped & left.keys())
        if loop is None and rest and block.first > first_end:  # the remainder of an unrolled loop
            needed = {line: block.accesses[line] / units[line] for line in rest}
            times = float(all(left[line] >= needed[line] - _ALMOST for line in rest))
            for line in rest:
                left[line] -= times * needed[line]
        runs += [times] * (block.last - block.first + 1)
    last_access = max((index for index, step in enumerate(steps)
                       if step.name in REACHES_MEMORY and not step.never), default=-1)
    after = max(_end(steps), last_end, last_access)
    # the rest is padding, and the slow paths of divisions, which few threads take
    runs[after + 1:] = [0.0] * (len(runs) - after - 1)
    return tuple(0.0 if step.never else times for step, times in zip(steps, runs, strict=True))
