"""Control flow: blocks and loops of machine code, and how often a program runs each of them.

Machine code says where its loops are, not how often they run. That is told by three witnesses, the
best of them first: how often a program came past a line that reaches memory while it was
interpreted; a counter that starts, steps and ends at numbers which stand in the code; and the
multiplications of tl.dot. A loop for which none of them speaks is taken to run once for each time
that it is reached, and ``Loop.known`` is false.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from grader.engine.compiler.counters import rounds
from grader.engine.compiler.sass import Code, Instruction

REACHES_MEMORY = frozenset((
    "LDG", "STG", "LD", "ST", "LDGSTS", "RED", "REDG", "ATOM", "ATOMG", "UTMALDG", "UTMASTG",
    "UTMAREDG", "UBLKCP"))
_WAITS = "SYNCS"  # on a barrier in shared memory: such a loop waits, it does not work
_LONGEST_WAIT = 8  # instructions of a loop that only waits
_ALMOST = 1e-6  # below which what is left of a count is nothing


@dataclass(frozen=True)
class Block:
    """Instructions ``first`` to ``last`` (both included) that run one after the other.

    ``accesses``: instructions that reach global memory, by line.
    """

    first: int
    last: int
    accesses: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Loop:
    """Instructions ``first`` to ``last``. ``times``: rounds of a whole program, on average."""

    first: int
    last: int
    times: float = 1.0
    known: bool = False

    def holds(self, index: int) -> bool:
        return self.first <= index <= self.last


@dataclass(frozen=True)
class Work:
    """What one program does, told by the interpreter, as far as it helps to count rounds.

    ``executions``: how often it comes past each line. ``bytes_each``: what it moves at that line
    each time. ``flops``: of its dots that the code's tensor instructions compute.
    """

    executions: Mapping[int, float] = field(default_factory=dict)
    bytes_each: Mapping[int, float] = field(default_factory=dict)
    flops: float = 0.0


@dataclass(frozen=True)
class Flow:
    """``runs[i]``: how often a warp of a program comes to instruction ``i``, on average."""

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
        work: of one program; without it only counters in the code are known.
        threads: of a program.
        flops_of: by index of an instruction, what a whole program computes with it each time.
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


def _blocks(steps: tuple[Instruction, ...]) -> tuple[Block, ...]:
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


def _ranges(steps: tuple[Instruction, ...]) -> list[tuple[int, int]]:
    """First and last instruction of each loop, outer loops first; those that only wait left out."""
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
    found = {(first, last) for first, last in last_of.items()
             # what comes back from behind the end has waited there, or divided
             if not first <= end < last
             and not (first > end and any(one.name == _WAITS for one in steps[first:last + 1]))}
    return sorted(found, key=lambda pair: (pair[0], -pair[1]))


def _end(steps: tuple[Instruction, ...]) -> int:
    return next((index for index, step in enumerate(steps)
                 if step.name == "EXIT" and not step.predicate), len(steps) - 1)


def _units(steps: tuple[Instruction, ...], blocks: tuple[Block, ...], work: Work, threads: int
           ) -> dict[int, int]:
    """How many instructions one access of each line takes.

    That number divides what each block has of the line; and it is enough for the bytes that the
    access moves. The smallest such number is taken: a loop may be unrolled without a remainder.
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


def width(step: Instruction) -> int:
    """Bytes that one thread accesses in one instruction."""
    for suffix in step.opcode.split("."):
        if suffix in ("128", "64", "256"):
            return int(suffix) // 8
        if suffix in ("U8", "S8"):
            return 1
        if suffix in ("U16", "S16"):
            return 2
    return 4


def _counted(steps: tuple[Instruction, ...], loop: Loop, own: list[int], entries: float,
             work: Work, units: Mapping[int, int], flops_of: Mapping[int, float]) -> Loop:
    """The loop with its rounds.

    ``own``: its instructions that are in no inner loop. ``units``: of lines which no inner loop has
    either; what it has of the others prepares or finishes an inner loop, however often that runs.
    """
    copies = Counter(line for index in own if (line := steps[index].line) is not None
                     and steps[index].name in REACHES_MEMORY and not steps[index].never)
    told = [work.executions[line] * units[line] / count for line, count in copies.items()
            if line in work.executions and line in units]
    if told:
        times = max(told)
        if any(count > units.get(line, count) for line, count in copies.items()):
            times = math.floor(times + _ALMOST)  # unrolled: the rest of the rounds run elsewhere
        return Loop(loop.first, loop.last, float(times), True)
    each = rounds(steps, loop.first, loop.last)
    if each is not None:
        return Loop(loop.first, loop.last, each * entries, True)
    flops = sum(flops_of.get(index, 0.0) for index in own)
    if flops and work.flops:
        return Loop(loop.first, loop.last, work.flops / flops, True)
    return Loop(loop.first, loop.last, entries, False)


def _runs(steps: tuple[Instruction, ...], flow: Flow, work: Work, units: Mapping[int, int]
          ) -> tuple[float, ...]:
    """Blocks in a loop run as often as it; those outside once, but for remainders not needed."""
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
        if loop is None and rest and block.first > first_end:  # what unrolling left over
            needed = {line: block.accesses[line] / units[line] for line in rest}
            times = float(all(left[line] >= needed[line] - _ALMOST for line in rest))
            for line in rest:
                left[line] -= times * needed[line]
        runs += [times] * (block.last - block.first + 1)
    last_access = max((index for index, step in enumerate(steps)
                       if step.name in REACHES_MEMORY and not step.never), default=-1)
    after = max(_end(steps), last_end, last_access)
    # what comes behind is padding, and the slow paths of divisions, which few threads take
    runs[after + 1:] = [0.0] * (len(runs) - after - 1)
    return tuple(0.0 if step.never else times for step, times in zip(steps, runs, strict=True))
