"""Simulates one warp that has an SM (streaming multiprocessor) alone; the result is its cycles.

Instructions are issued in order, one per cycle; each waits for the registers that it reads. A load
completes after the latency of the memory that holds its data, an asynchronous copy with its group,
a wgmma after the earlier ones. Of a loop, a few iterations are simulated; the last of them counts
for the rest.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from grader.engine.compiler.sass import Code, SassInstruction
from grader.engine.compiler.targets import Target
from grader.engine.compiler.timing_model.control_flow import Flow, Loop, immediate
from grader.engine.compiler.timing_model.instruction_costs import cost, in_group, multiplied, rate

_ROUNDS = 5  # iterations of a loop that are simulated: most pipelines have fewer stages
_GROUP = 4  # warps of a warpgroup, which execute a wgmma
_REGISTERS = re.compile(r"\b(U?R\d+|U?P\d)(\.64)?\b")
_LOADS = frozenset(("LDG", "LD", "ATOM", "ATOMG"))
_ASYNCHRONOUS = frozenset(("LDGSTS", "UTMALDG", "UBLKCP"))
_WRITES_NOTHING = frozenset(("STG", "ST", "STS", "STSM", "STL", "RED", "REDG", "BRA", "EXIT", "BAR",
                             "LDGSTS", "DEPBAR", "LDGDEPBAR", "MEMBAR", "UTMASTG", "WARPGROUP"))


@dataclass
class _State:
    """Times in cycles since the start, less ``skipped``."""

    now: float = 0.0
    skipped: float = 0.0  # cycles of iterations that are not simulated
    ready: dict[str, float] = field(default_factory=dict)  # by register
    copies: list[float] = field(default_factory=list)  # committed groups of copies complete
    group: float = 0.0  # the group that is not committed yet completes
    products: list[float] = field(default_factory=list)  # groups of wgmma complete
    tensor: float = 0.0  # the tensor cores are free
    last: float = 0.0  # all results are ready


@dataclass(frozen=True)
class _Operation:
    """One instruction with its registers and its latencies in cycles."""

    step: SassInstruction
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    done: float  # until its result can be used, global memory apart
    memory: float  # latency of global memory; 0 where it does not load
    tensor: float  # of the tensor cores


def latency(code: Code, flow: Flow, target: Target, warps: int,
            memory: Mapping[int | None, float]) -> float:
    """Cycles of one warp of a program that has an SM alone.

    Args:
        flow: loops of ``code``, and how often each instruction runs.
        warps: of the program, which share the tensor cores.
        memory: line -> latency of its loads in cycles; that of DRAM for every other line.
    """
    operations = [_operation(step, target, warps, memory) for step in code.instructions]
    state = _State()
    _run(operations, flow, 0, len(operations), None, state)
    return max(state.now, state.last) + state.skipped


def _run(operations: Sequence[_Operation], flow: Flow, first: int, after: int,
         within: Loop | None, state: _State) -> None:
    """Runs instructions ``first`` to ``after`` (excluded), loops as often as they iterate."""
    index = first
    loops = {loop.first: loop for loop in reversed(flow.loops)
             if loop is not within and first <= loop.first and loop.last < after
             and (within is None or within.holds(loop.first))}
    while index < after:
        loop = loops.get(index)
        entries = within.times if within else 1.0
        if loop is None:
            times = flow.runs[index]
            share = min(1.0, times / entries) if entries else 0.0
            before = state.now + state.skipped
            while index < after and index not in loops and flow.runs[index] in (0.0, times):
                if flow.runs[index] > 0:
                    _issue(operations[index], state)
                index += 1
            state.skipped -= (1 - share) * (state.now + state.skipped - before)
            continue
        rounds = loop.times / entries if entries else 0.0
        whole = min(_ROUNDS, int(rounds))
        before = 0.0
        for _ in range(whole):
            before = state.now + state.skipped
            _run(operations, flow, loop.first, loop.last + 1, loop, state)
        if whole:
            state.skipped += (rounds - whole) * (state.now + state.skipped - before)
        index = loop.last + 1


def _issue(operation: _Operation, state: _State) -> None:
    step = operation.step
    if operation.reads:
        state.now = max(state.now, max(state.ready.get(name, 0.0) for name in operation.reads))
    state.now += 1.0
    arrives = state.now + operation.done
    match step.name:
        case "LDGDEPBAR":
            state.copies.append(state.group)
            state.group = 0.0
        case "DEPBAR" if state.copies:
            _wait(state, state.copies, _left(step))
        case "WARPGROUP" if "DEPBAR" in step.opcode:
            _wait(state, state.products, _left(step))
        case "BAR" | "MEMBAR" | "FENCE":
            state.now = arrives
    if operation.memory and step.name in _ASYNCHRONOUS:
        state.group = max(state.group, state.now + operation.memory)
    elif operation.memory:
        arrives = state.now + operation.memory
    if operation.tensor and in_group(step):
        state.tensor = max(state.tensor, state.now) + operation.tensor
        arrives = state.now
        if any("gsb" in part for part in step.operands):
            state.products.append(state.tensor)
        state.last = max(state.last, state.tensor)
    for name in operation.writes:
        state.ready[name] = arrives
    if step.name in _LOADS:
        state.last = max(state.last, arrives)


def _wait(state: _State, groups: list[float], left: int) -> None:
    """Waits until at most ``left`` groups are in flight."""
    while len(groups) > left:
        state.now = max(state.now, groups.pop(0))


def _left(step: SassInstruction) -> int:
    """The groups that may stay in flight: the last operand."""
    return immediate(step.operands[-1] if step.operands else "") or 0


def _operation(step: SassInstruction, target: Target, warps: int,
               memory: Mapping[int | None, float]) -> _Operation:
    price = cost(step, target)
    words = [[name for part in _REGISTERS.finditer(operand) for name in _pair(part)]
             for operand in step.operands]
    writes: list[str] = []
    if step.name not in _WRITES_NOTHING and words and not step.never:
        writes = list(words[0])
        if words[0] and words[0][0].lstrip("U").startswith("P") and len(words) > 1:
            writes += words[1]  # SHFL P0, R1, …; ISETP P0, P1, …
        if (wide := _wide(step)) and writes and writes[0].startswith("R"):
            base = int(writes[0][1:])
            writes = [f"R{base + more}" for more in range(wide)]
    reads = [name for names in words[(1 if writes else 0):] for name in names]
    if step.predicate and (name := step.predicate.lstrip("!")) not in ("PT", "UPT"):
        reads.append(name)
    tensor = arrives = 0.0
    if in_group(step):
        reads, writes = [], []  # they wait for each other by groups, not by registers
        tensor = multiplied(step) * _GROUP * max(1.0, warps / _GROUP) / rate(step, target)
    if step.name in _LOADS | _ASYNCHRONOUS:
        arrives = memory.get(step.line, float(target.latency_dram))
    return _Operation(step, tuple(reads), tuple(writes), price.done, arrives, tensor)


def _pair(part: re.Match[str]) -> list[str]:
    name = part[1]
    if not part[2]:
        return [name]
    kind = name.rstrip("0123456789")
    return [name, f"{kind}{int(name[len(kind):]) + 1}"]


def _wide(step: SassInstruction) -> int:
    """The number of consecutive registers that an instruction writes."""
    if step.name in ("LDG", "LDS", "LDL", "LDC", "LD"):
        return 4 if ".128" in step.opcode else 2 if ".64" in step.opcode else 1
    if step.name == "LDSM":
        return int(step.opcode[-1]) if step.opcode[-2:] in (".2", ".4") else 1
    if step.name in ("HMMA", "QMMA", "IMMA"):
        return 4 if ".F32" in step.opcode else 2
    return 2 if ".WIDE" in step.opcode or (step.name == "CS2R" and "." not in step.opcode) else 1
