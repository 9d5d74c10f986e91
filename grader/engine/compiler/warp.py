"""One warp: the cycles from its first instruction to its last when it has a multiprocessor alone.

Instructions are issued in order, one a cycle; each waits for the registers that it reads. Loads
arrive after the latency of where their data lies; asynchronous copies after that of their group;
wgmma after those before it. A loop runs a few rounds until the pace is steady, which then counts
for the others.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from grader.engine.compiler.flow import REACHES_MEMORY, Flow, Loop
from grader.engine.compiler.pipes import cost, in_group, multiplied, rate
from grader.engine.compiler.sass import Code, Instruction
from grader.engine.compiler.targets import Target

_ROUNDS = 5  # of a loop that are simulated: more than a pipeline has stages, mostly
_GROUP = 4  # warps that multiply together
_REGISTERS = re.compile(r"\b(U?R\d+|U?P\d)(\.64)?\b")
_LOADS = frozenset(("LDG", "LD", "ATOM", "ATOMG"))
_ASYNCHRONOUS = frozenset(("LDGSTS", "UTMALDG", "UBLKCP"))
_WRITES_NOTHING = frozenset(("STG", "ST", "STS", "STSM", "STL", "RED", "REDG", "BRA", "EXIT", "BAR",
                             "LDGSTS", "DEPBAR", "LDGDEPBAR", "MEMBAR", "UTMASTG", "WARPGROUP"))


@dataclass
class _State:
    now: float = 0.0
    ready: dict[str, float] = field(default_factory=dict)
    copies: list[float] = field(default_factory=list)  # when groups of copies arrive
    group: float = 0.0  # when the group that is being made arrives
    products: list[float] = field(default_factory=list)  # when groups of wgmma are done
    tensor: float = 0.0  # until when the tensor cores are busy
    last: float = 0.0  # when the last of all results arrives


@dataclass(frozen=True)
class _Plain:
    """What the simulation needs of one instruction."""

    step: Instruction
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    done: float
    memory: float
    tensor: float


def latency(code: Code, flow: Flow, target: Target, warps: int,
            memory: Mapping[int | None, float]) -> float:
    """Cycles that a warp of a lone program takes.

    Args:
        warps: of the program, which share the tensor cores.
        memory: cycles until a load of each line arrives; those of DRAM where a line is not named.
    """
    plain = [_plain(step, target, warps, memory) for step in code.instructions]
    state = _State()
    _run(plain, flow, 0, len(plain), None, state)
    return max(state.now, state.last if flow.runs else 0.0)


def _run(plain: Sequence[_Plain], flow: Flow, first: int, after: int, within: Loop | None,
         state: _State) -> None:
    """Run instructions in order, loops that begin among them as often as they do."""
    index = first
    loops = {loop.first: loop for loop in reversed(flow.loops)
             if loop is not within and first <= loop.first and loop.last < after
             and (within is None or within.holds(loop.first))}
    while index < after:
        loop = loops.get(index)
        if loop is None:
            if flow.runs[index] > 0:
                _issue(plain[index], state)
            index += 1
            continue
        entries = within.times if within else 1.0
        rounds = loop.times / entries if entries else 0.0
        whole = min(_ROUNDS, int(rounds))
        before = state.now
        for _ in range(whole):
            before = state.now
            _run(plain, flow, loop.first, loop.last + 1, loop, state)
        if whole:
            _skip(state, (rounds - whole) * (state.now - before))
        index = loop.last + 1


def _skip(state: _State, cycles: float) -> None:
    """Let time pass; all that is under way keeps its distance."""
    state.now += cycles
    state.ready = {name: at + cycles for name, at in state.ready.items()}
    state.copies = [at + cycles for at in state.copies]
    state.products = [at + cycles for at in state.products]
    state.group += cycles
    state.tensor += cycles
    state.last += cycles


def _issue(plain: _Plain, state: _State) -> None:
    step = plain.step
    if plain.reads:
        state.now = max(state.now, max(state.ready.get(name, 0.0) for name in plain.reads))
    state.now += 1.0
    arrives = state.now + plain.done
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
    if plain.memory and step.name in _ASYNCHRONOUS:
        state.group = max(state.group, state.now + plain.memory)
    elif plain.memory:
        arrives = state.now + plain.memory
    if plain.tensor and in_group(step):
        state.tensor = max(state.tensor, state.now) + plain.tensor
        arrives = state.now
        if any("gsb" in part for part in step.operands):
            state.products.append(state.tensor)
        state.last = max(state.last, state.tensor)
    for name in plain.writes:
        state.ready[name] = arrives
    if step.name in _LOADS:
        state.last = max(state.last, arrives)


def _wait(state: _State, groups: list[float], left: int) -> None:
    """Wait until no more than ``left`` groups are under way."""
    while len(groups) > left:
        state.now = max(state.now, groups.pop(0))


def _left(step: Instruction) -> int:
    last = step.operands[-1] if step.operands else "0"
    try:
        return int(last, 0)
    except ValueError:
        return 0


def _plain(step: Instruction, target: Target, warps: int, memory: Mapping[int | None, float]
           ) -> _Plain:
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
    arrives = memory.get(step.line, float(target.latency_dram))
    if in_group(step):
        reads, writes = [], []  # they wait for each other by groups, not by registers
    share = max(1.0, warps / _GROUP)
    tensor = 0.0
    if in_group(step):
        tensor = multiplied(step) * _GROUP * share / rate(step, target)
    return _Plain(step, tuple(reads), tuple(writes), price.done,
                  arrives if step.name in REACHES_MEMORY and step.name in _LOADS | _ASYNCHRONOUS
                  else 0.0, tensor)


def _pair(part: re.Match[str]) -> list[str]:
    name = part[1]
    if not part[2]:
        return [name]
    kind = name.rstrip("0123456789")
    return [name, f"{kind}{int(name[len(kind):]) + 1}"]


def _wide(step: Instruction) -> int:
    """Registers that an instruction writes, one after the other."""
    if step.name in ("LDG", "LDS", "LDL", "LDC", "LD"):
        return 4 if ".128" in step.opcode else 2 if ".64" in step.opcode else 1
    if step.name == "LDSM":
        return int(step.opcode[-1]) if step.opcode[-2:] in (".2", ".4") else 1
    if step.name in ("HMMA", "QMMA", "IMMA"):
        return 4 if ".F32" in step.opcode else 2
    return 2 if ".WIDE" in step.opcode or (step.name == "CS2R" and "." not in step.opcode) else 1
