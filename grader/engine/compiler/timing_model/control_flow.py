"""Control flow of machine code: blocks, loops, and how often a program runs each of them.

SASS shows where its loops are, not how often they iterate. Four sources give that count, the best
of them first: how often the interpreted program executed a line that accesses global memory; a
counter whose start, step and end are immediates; how often it executed the loop of the source; and
the FLOP of tl.dot. Without any of them a loop counts as one iteration each time that it is reached.
A branch counts as often as the interpreted program took it.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from msgspec import structs

from grader.engine.compiler.sass import Code, SassInstruction
from grader.engine.compiler.timing_model.source_runs import Place, SourceRuns
from grader.recording.launch_stats import BlockRuns

REACHES_MEMORY = frozenset((
    "LDG", "STG", "LD", "ST", "LDGSTS", "RED", "REDG", "ATOM", "ATOMG", "UTMALDG", "UTMASTG",
    "UTMAREDG", "UBLKCP"))
_COMPARES = frozenset(("FSETP", "ISETP", "UISETP", "DSETP", "HSETP2", "PLOP3"))
_HUGE = "105615"  # from which libdevice reduces arguments of a float32 sine in many steps
_SUBROUTINE = re.compile(r"__internal_(\d+)_")
_WAITS = "SYNCS"  # polls a barrier in shared memory: such a loop is a wait, not work
_LONGEST_WAIT = 8  # instructions of a loop that only waits
_ALMOST = 1e-6  # tolerance of rounded counts
_WHOLE = 0.75  # share of a loop's instructions from which a block is an iteration of it
_CONTROL = frozenset(("BRA", "BRX", "BSSY", "BSYNC", "BREAK", "WARPSYNC", "EXIT", "RET", "CALL",
                      "MOV", "UMOV", "PLOP3", "ISETP", "UISETP", "NOP", "WARPGROUP"))

_ADDS = frozenset(("IADD3", "UIADD3", "VIADD", "IADD", "UVIADD"))
_MOVES = frozenset(("MOV", "UMOV"))
_REGISTER = re.compile(r"U?R(\d+|Z)\b")
_PREDICATE = re.compile(r"!?U?P(\d)$")
_MOST = 1 << 20  # iterations that are counted
_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "LT": int.__lt__, "LE": int.__le__, "GT": int.__gt__, "GE": int.__ge__, "EQ": int.__eq__,
    "NE": int.__ne__,
}


@dataclass(frozen=True)
class Block:
    """Instructions ``first`` to ``last``; ``accesses``: how many access global memory, by place."""

    first: int
    last: int
    accesses: Mapping[Place, int]


@dataclass(frozen=True)
class Loop:
    """Instructions ``first`` to ``last``; ``times``: iterations per program, on average."""

    first: int
    last: int
    times: float

    def holds(self, index: int) -> bool:
        return self.first <= index <= self.last


@dataclass(frozen=True)
class Work:
    """The work of one program, as the interpreter counted it."""

    executions: Mapping[int, float] = field(default_factory=dict)  # of each line
    bytes_each: Mapping[int, float] = field(default_factory=dict)  # of one execution of a line
    requests_each: Mapping[int, float] = field(default_factory=dict)  # of a warp, where known
    flops: float = 0.0  # of its dots on tensor cores
    blocks: tuple[BlockRuns, ...] = ()  # of the source

    @cached_property
    def source(self) -> SourceRuns:
        return SourceRuns(self.blocks)

    def longest(self) -> "Work":
        """The work of the program whose loops iterate most."""
        return replace(self, blocks=tuple(
            structs.replace(one, runs=max(one.runs, one.most)) for one in self.blocks))

    def runs(self, place: Place) -> float | None:
        """Executions of a line, called from certain others; None where they were not counted."""
        runs = self.source.runs(*place)
        return self.executions.get(place[1]) if runs is None else runs


@dataclass(frozen=True)
class Flow:
    """Loops of a kernel, outer before inner, and how often a warp executes each instruction."""

    loops: tuple[Loop, ...]
    runs: tuple[float, ...]


def flow_of(code: Code, work: Work | None = None, threads: int = 128,
            flops_of: Mapping[int, float] | None = None) -> Flow:
    """Loops of a kernel, and how often each instruction runs.

    Args:
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
    copies = _SourceLoops(steps, blocks, ranges, work.source)
    for first, last in ranges:
        outside = [loop for loop in loops if loop.holds(first)]
        entries = outside[-1].times if outside else 1.0
        inner = {index for f, e in ranges if first <= f and e <= last and (f, e) != (first, last)
                 for index in range(f, e + 1)}
        own = [index for index in range(first, last + 1) if index not in inner]
        # other lines of the loop are the prologue or epilogue of an inner one
        places = units.keys() - {_place(steps[index]) for index in inner
                                 if steps[index].name in REACHES_MEMORY}
        times = _times_by_accesses([steps[index] for index in own], work,
                                   {place: units[place] for place in places})
        if times is None and (each := _rounds(steps, first, last)) is not None:
            times = each * copies.entries(first, last, entries)
        if times is None:
            times = copies.times(first, last)
        if times is None:
            flops = sum((flops_of or {}).get(index, 0.0) for index in own)
            times = work.flops / flops if flops and work.flops else entries
        loops.append(Loop(first, last, times))
    return Flow(tuple(loops), _runs(steps, blocks, loops, work, units, copies))


def _blocks(steps: tuple[SassInstruction, ...]) -> tuple[Block, ...]:
    targets = {step.target for step in steps}
    ordered = [index for index, step in enumerate(steps)
               if not index or step.address in targets or steps[index - 1].target is not None
               or steps[index - 1].name in ("EXIT", "BRX", "RET", "JMP")]
    return tuple(Block(first, after - 1, _accesses_by_place(steps[first:after]))
                 for first, after in zip(ordered, [*ordered[1:], len(steps)], strict=True))


def _accesses_by_place(steps: Iterable[SassInstruction]) -> Counter[Place]:
    return Counter(_place(step) for step in steps
                   if _accesses_memory(step) and step.line is not None)


def _place(step: SassInstruction) -> Place:
    return step.calls, step.line or 0


def _accesses_memory(step: SassInstruction) -> bool:
    return step.name in REACHES_MEMORY and not step.never


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
        if index - first < _LONGEST_WAIT and _waits(steps[first:index + 1]):
            continue
        last_of[first] = index
    end = _end(steps)
    return sorted((first, last) for first, last in last_of.items()
                  # code behind the end that jumps back is a wait, or the slow path of a division
                  if not first <= end < last
                  and not (first > end and _waits(steps[first:last + 1])))


def _waits(steps: Iterable[SassInstruction]) -> bool:
    return any(step.name == _WAITS for step in steps)


def _end(steps: tuple[SassInstruction, ...]) -> int:
    return next((index for index, step in enumerate(steps)
                 if step.name == "EXIT" and not step.predicate), len(steps) - 1)


def slow_paths(code: Code) -> list[tuple[int, int]]:
    """First and last instructions of the reduction of huge arguments of a sine or cosine.

    Hardly any warp executes it: a branch skips it where all arguments are below a limit.
    """
    index = {step.address: number for number, step in enumerate(code.instructions)}
    huge: set[str] = set()  # predicates
    paths = []
    for number, step in enumerate(code.instructions):
        if step.name in _COMPARES:
            (huge.add if _HUGE in step.operands else huge.discard)(step.operands[0])
        after = index.get(step.target, 0) if step.target is not None else 0
        if step.name == "BRA" and step.predicate.lstrip("!") in huge and after > number:
            paths.append((number + 1, after - 1))
    return paths


def with_calls(flow: Flow, code: Code) -> Flow:
    """The same flow, whose warps execute the subroutines that they call, such as 64-bit divisions.

    A call between BSSY and BSYNC does not count: a branch skips it where numbers have 32 bits.
    """
    steps = code.instructions
    returns = [number for number, step in enumerate(steps) if step.name == "RET"]
    end = max((number for number, step in enumerate(steps[:min(returns, default=0)])
               if step.name == "EXIT"), default=None)
    if end is None:
        return flow
    calls: dict[int, float] = {}
    nested = 0
    for step, runs in zip(steps[:end], flow.runs, strict=False):
        nested += {"BSSY": 1, "BSYNC": -1}.get(step.name, 0)
        if step.name == "CALL" and not nested and (symbol := _SUBROUTINE.search(str(step))):
            calls[int(symbol[1])] = calls.get(int(symbol[1]), 0.0) + runs
    changed, first = list(flow.runs), end + 1
    for number, last in enumerate(returns):
        changed[first:last + 1] = [calls.get(number, 0.0)] * (last + 1 - first)
        first = last + 1
    return replace(flow, runs=tuple(changed))


def without(flow: Flow, paths: Iterable[tuple[int, int]]) -> Flow:
    """The same flow, whose warps do not execute some instructions."""
    runs = list(flow.runs)
    for first, last in paths:
        runs[first:last + 1] = [0.0] * (last + 1 - first)
    return replace(flow, runs=tuple(runs))


def _units(steps: tuple[SassInstruction, ...], blocks: tuple[Block, ...], work: Work, threads: int
           ) -> dict[Place, int]:
    """The number of instructions of one access of each place.

    It divides the place's instructions of each block, and suffices for the bytes that the access
    moves and for the requests of a warp, which are many where all lanes load the same. The smallest
    such number is returned: a loop may be unrolled without a remainder.
    """
    units = {}
    for place in {place for block in blocks for place in block.accesses}:
        common = math.gcd(*(block.accesses[place] for block in blocks if place in block.accesses))
        widths = [width(step) for step in steps if _place(step) == place and _accesses_memory(step)]
        each = threads * max(sum(widths) / len(widths), 1.0)
        accesses = max(work.bytes_each.get(place[1], 0.0) / each,
                       work.requests_each.get(place[1], 0.0))
        least = math.ceil(accesses - _ALMOST) or common
        units[place] = next((number for number in range(1, common + 1)
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


def _times_by_accesses(steps: Iterable[SassInstruction], work: Work, units: Mapping[Place, int]
                       ) -> float | None:
    """The trip count of a loop by the places of ``units`` that it executes; None without any.

    ``steps``: its instructions that are in no inner loop.
    """
    copies = _accesses_by_place(steps)
    counts = [runs * units[place] / count for place, count in copies.items()
              if place in units and (runs := work.runs(place)) is not None]
    if not counts:
        return None
    if any(count > units.get(place, count) for place, count in copies.items()):
        return float(math.floor(max(counts) + _ALMOST))  # unrolled: the remainder runs elsewhere
    return float(max(counts))


def _innermost(loops: Sequence[Loop], index: int) -> Loop | None:
    return min((loop for loop in loops if loop.holds(index)), default=None,
               key=lambda loop: loop.last - loop.first)


def _runs(steps: tuple[SassInstruction, ...], blocks: Sequence[Block], loops: Sequence[Loop],
          work: Work, units: Mapping[Place, int], copies: "_SourceLoops") -> tuple[float, ...]:
    """Executions of each instruction.

    Blocks in a loop run as often as it does, blocks outside once, but those of a branch as often as
    it was taken. A remainder of an unrolled loop runs only where the interpreter counted more
    executions than the loop has.
    """
    innermost = [_innermost(loops, block.first) for block in blocks]
    left: dict[Place, float] = {}
    looped: set[Place] = set()  # places of which a loop has some
    for place in {place for block in blocks for place in block.accesses}:
        if (counted := work.runs(place)) is not None:
            left[place] = counted
    for block, loop in zip(blocks, innermost, strict=True):
        if loop:
            looped |= block.accesses.keys()
            for place in block.accesses.keys() & left.keys():
                left[place] -= loop.times * block.accesses[place] / units[place]
    first_end = min((loop.last for loop in loops), default=len(steps))
    last_end = max((loop.last for loop in loops), default=-1)
    runs: list[float] = []
    for block, loop in zip(blocks, innermost, strict=True):
        times = loop.times if loop else 1.0
        times *= copies.share(block, loop)
        rest = block.accesses.keys() & looped & left.keys()
        if loop is None and rest and block.first > first_end:  # the remainder of an unrolled loop
            needed = {place: block.accesses[place] / units[place] for place in rest}
            times = float(all(left[place] >= needed[place] - _ALMOST for place in rest))
            for place in rest:
                left[place] -= times * needed[place]
        runs += [times] * (block.last - block.first + 1)
    last_access = max((index for index, step in enumerate(steps) if _accesses_memory(step)),
                      default=-1)
    after = max(_end(steps), last_end, last_access)
    # the rest is padding, and the slow paths of divisions, which few threads take
    runs[after + 1:] = [0.0] * (len(runs) - after - 1)
    return tuple(0.0 if step.never else times for step, times in zip(steps, runs, strict=True))


# -- loops and branches of the source -----------------------------------------------------------


class _SourceLoops:
    """Which loop of the source each loop of the code is, and how its iterations are shared out.

    A loop that the assembler unrolls becomes several: of four iterations at once, then of those
    that are left, in a loop or without one.
    """

    def __init__(self, steps: tuple[SassInstruction, ...], blocks: Sequence[Block],
                 ranges: Sequence[tuple[int, int]], source: SourceRuns) -> None:
        self._steps, self._source = steps, source
        self._loops: dict[tuple[int, int], BlockRuns | None] = {}
        for first, last in ranges:
            self._loops[first, last] = self._loop_of(first, last, ranges)
        self._times: dict[tuple[int, int], float] = {}
        self._remainders: dict[int, float] = {}  # first instruction of a block -> its runs
        for loop in {id(one): one for one in self._loops.values() if one}.values():
            self._share_out(loop, [at for at, one in self._loops.items() if one is loop], blocks)

    def times(self, first: int, last: int) -> float | None:
        """Iterations of a loop of the code per program; None where its source is unknown."""
        return self._times.get((first, last))

    def entries(self, first: int, last: int, default: float) -> float:
        """The number of times that a loop of the code is entered, per program."""
        loop = self._loops[first, last]
        return self._source.entries(loop) if loop else default

    def share(self, block: Block, within: Loop | None) -> float:
        """Executions of a block for each iteration of the loop around it, or for each program."""
        if block.first in self._remainders:
            return self._remainders[block.first]
        around = self._loops[within.first, within.last] if within else None
        if within and (around is None or not around.runs):
            return 1.0
        shares: list[float] = []
        for step in filter(_works, self._steps[block.first:block.last + 1]):
            source = self._source.around(step.calls, step.line)
            if around is None:
                shares += [min(1.0, one.runs) for one in source[:1]]
            else:  # what does not belong to the loop was moved into it
                inside = any(one is around for one in source)
                shares.append(min(1.0, source[0].runs / around.runs) if inside else 1.0)
        return sorted(shares)[len(shares) // 2] if shares else 1.0

    def _loop_of(self, first: int, last: int, ranges: Sequence[tuple[int, int]]
                 ) -> BlockRuns | None:
        """The loop of the source: by the line of the branch back, or of most instructions."""
        if loop := self._source.headed(self._steps[last]):
            return loop
        outer = [one for at, one in self._loops.items() if at[0] <= first and last <= at[1]]
        votes = Counter(id(loop) for step in self._steps[first:last + 1]
                        if _works(step) and (loop := self._source.loop(step))
                        and not any(one is loop for one in outer))
        most = votes.most_common(1)
        return next((loop for step in self._steps[first:last + 1] if (
            loop := self._source.loop(step)) and most and id(loop) == most[0][0]), None)

    def _share_out(self, loop: BlockRuns, ranges: Sequence[tuple[int, int]],
                   blocks: Sequence[Block]) -> None:
        """Shares out the iterations of one loop of the source to its copies in the code."""
        sizes = {at: self._size(loop, *at) for at in ranges}
        after = min(at[0] for at in ranges)
        rest = {(block.first, block.last): size for block in blocks
                if block.first > after and not any(
                    at[0] <= block.first <= at[1] for at in self._loops)
                and (size := self._size(loop, block.first, block.last))}
        least = min(sizes.values(), default=0)
        if not least:
            self._times |= dict.fromkeys(ranges, loop.runs)
            return
        rest = {at: size for at, size in rest.items() if size >= _WHOLE * least}
        entries = self._source.entries(loop)
        left = loop.runs / entries if entries else 0.0
        parts = sorted({**sizes, **rest}.items(), key=lambda part: (-part[1], part[0]))
        for number, (at, size) in enumerate(parts):
            unrolled = max(1, round(size / min(least, *rest.values()) if rest else size / least))
            if at in sizes:
                times = left / unrolled if number == len(parts) - 1 else float(
                    math.floor(left / unrolled + _ALMOST))
                self._times[at] = times * entries
            else:
                times = min(1.0, float(math.floor(left / unrolled + _ALMOST)))
                self._remainders[at[0]] = times * entries
            left = max(0.0, left - times * unrolled)

    def _size(self, loop: BlockRuns, first: int, last: int) -> int:
        """Instructions that work for one loop of the source, inner ones included."""
        return sum(_works(step) and any(one is loop for one in self._source.around(
            step.calls, step.line)) for step in self._steps[first:last + 1])


def _works(step: SassInstruction) -> bool:
    return not step.never and step.name not in _CONTROL


# -- counters that start, step and end at immediates --------------------------------------------


def _rounds(steps: tuple[SassInstruction, ...], first: int, last: int) -> int | None:
    """Iterations of the loop from ``first`` to ``last`` each time that it is entered.

    None where the end is not an immediate, but an argument or a computed value.
    """
    guard = _guard(steps, first, last)
    if guard is None:
        return None
    predicate, goes_on_if, before = guard
    compare = next((i for i in range(before, first - 1, -1)
                    if steps[i].name in ("ISETP", "UISETP") and steps[i].operands[0] == predicate),
                   None)
    if compare is None or len(steps[compare].operands) < 4:
        return None
    test = _COMPARE.get(steps[compare].opcode.split(".")[1])
    if test is None or steps[compare].operands[-1].lstrip("!") not in ("PT", "UPT"):
        return None
    left, right = (part.removesuffix(".reuse") for part in steps[compare].operands[2:4])
    for counter, bound, swapped in ((left, right, False), (right, left, True)):
        step = _step(steps, counter, first, last)
        start, end = _number(steps, counter, first), _number(steps, bound, first)
        if step is None or start is None or end is None or any(
                _destination(one) == bound for one in steps[first:last + 1]):
            continue
        by, at = step
        value = start + by if at < compare else start
        for number in range(1, _MOST):
            holds = test(end, value) if swapped else test(value, end)
            if holds != goes_on_if:
                return number
            value += by
    return None


def _guard(steps: tuple[SassInstruction, ...], first: int, last: int
           ) -> tuple[str, bool, int] | None:
    """The predicate of the loop's branch, whether it continues the loop, and the branch's index."""
    end = steps[last]
    if end.predicate:
        return end.predicate.lstrip("!"), not end.predicate.startswith("!"), last
    if end.operands and _PREDICATE.match(end.operands[0]):  # BRA.U UP0, …
        return end.operands[0].lstrip("!"), not end.operands[0].startswith("!"), last
    for index in range(last - 1, first - 1, -1):  # a branch before the end leaves the loop
        step = steps[index]
        if step.target is not None and step.predicate and step.target > end.address:
            return step.predicate.lstrip("!"), step.predicate.startswith("!"), index
    return None


def _step(steps: tuple[SassInstruction, ...], register: str, first: int, last: int
          ) -> tuple[int, int] | None:
    """The increment of ``register`` in the loop, and its index; None if several write it."""
    writes = [i for i in range(first, last + 1) if _destination(steps[i]) == register]
    if len(writes) != 1 or steps[writes[0]].name not in _ADDS or steps[writes[0]].predicate:
        return None
    sources = [part.removesuffix(".reuse") for part in steps[writes[0]].operands[1:]
               if not _PREDICATE.match(part) and part not in ("PT", "UPT", "RZ", "URZ")]
    numbers = [value for part in sources if (value := immediate(part)) is not None]
    others = [part for part in sources if immediate(part) is None]
    return (numbers[0], writes[0]) if others == [register] and len(numbers) == 1 else None


def _number(steps: tuple[SassInstruction, ...], part: str, before: int) -> int | None:
    """The value of an immediate, or of a register that was last set to one before the loop."""
    if part in ("RZ", "URZ"):
        return 0
    if not _REGISTER.match(part):
        return immediate(part)
    for step in reversed(steps[:before]):
        pair = step.opcode.split(".")
        if pair[0] == "CS2R" and step.operands[1:] == ("SRZ",):
            low = _destination(step) or "R-9"
            if part in (low, f"R{int(low[1:]) + 1}") if len(pair) == 1 else part == low:
                return 0
        if _destination(step) != part:
            continue
        if step.predicate:
            return None
        if step.name in _MOVES or step.opcode.startswith("IMAD.MOV"):
            source = step.operands[-1]
            return 0 if source in ("RZ", "URZ") else immediate(source)
        if step.name == "HFMA2" and step.operands[1:3] == ("-RZ", "RZ"):
            return 0 if step.operands[3:] == ("0", "0") else None
        return None
    return None


def _destination(step: SassInstruction) -> str | None:
    if step.operands and _REGISTER.match(step.operands[0]) and not step.operands[0].endswith("]"):
        return step.operands[0]
    return None


def immediate(part: str) -> int | None:
    """The signed 32-bit number that an operand names; None for every other operand."""
    try:
        value = int(part, 0)
    except ValueError:
        return None
    return value - (1 << 32) if value >= 1 << 31 else value
