"""Kernels with random addresses, and what each of their accesses must be told about.

    python fuzz.py FOLDER [--kernels 200] [--accesses 10] [--seed 1] [--chunk N]

Writes kernels into FOLDER, runs them, and prints what happened as JSON. A process that comes to a
bad end, a byte that changed outside of the kernels' tensors, and a wrong verdict on an access are
what is looked for.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.util
import json
import mmap
import random
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from grader.engine.interpreter.eager import interpreted

LANES, PROGRAMS, N = 16, 3, 11
ARENA = 8192  # bytes
TENSORS_APART = 1 << 44  # who is wrong by a multiple of this may hit another tensor's bytes
GUARD_BYTE = 0x5B
FOREIGN = 0x123400000000  # where memory is mapped that is no tensor's
FOREIGN_BYTES = 4096

# name, dtype, elements: the views of one arena that a kernel is given, with guards between them
VIEWS = (
    ("at_ptr", torch.int64, 48),
    ("real_ptr", torch.float32, 48),
    ("x_ptr", torch.float32, 57),
    ("y_ptr", torch.int32, 33),
    ("half_ptr", torch.float16, 41),
    ("byte_ptr", torch.uint8, 99),
    ("long_ptr", torch.int64, 20),
    ("sink_ptr", torch.float32, LANES * PROGRAMS),
)
TARGETS = VIEWS[2:7]
ELEMENTS = {"tl.float32": 4, "tl.int32": 4, "tl.float16": 2, "tl.uint8": 1, "tl.int64": 8}
OF_DTYPE = {torch.float32: "tl.float32", torch.int32: "tl.int32", torch.float16: "tl.float16",
            torch.uint8: "tl.uint8", torch.int64: "tl.int64"}

HEAD = f"""import triton
import triton.language as tl


@triton.jit
def kernel({", ".join(name for name, _, _ in VIEWS)}, n, scale, LANES: tl.constexpr):
    pid = tl.program_id(0)
    offs = tl.arange(0, LANES).to(tl.int64)
    at = tl.load(at_ptr + pid * LANES + offs)
    real = tl.load(real_ptr + pid * LANES + offs)
    total = tl.zeros((LANES,), dtype=tl.float32)
"""
TAIL = "    tl.store(sink_ptr + pid * LANES + offs, total)\n"

Lanes = list[int] | None  # None: the language does not settle the value


@dataclass(frozen=True)
class Offset:
    """An integer expression of a kernel; ``lanes(program)``: what it comes to."""

    source: str
    lanes: Callable[[int], Lanes]


@dataclass
class Access:
    """One load, store or atomic: its line of source, and in which programs it goes wrong."""

    source: str
    code: str
    bad: set[int] | None  # None: not settled
    line: int = 0


@dataclass
class Case:
    seed: int
    at: list[int]
    real: list[float]
    scale: int
    accesses: list[Access] = field(default_factory=list)

    @property
    def text(self) -> str:
        return HEAD + "".join(f"    {access.source}\n" for access in self.accesses) + TAIL


# ---------------------------------------------------------------------------------------------
# Making them up


def made_up(seed: int, accesses: int) -> Case:
    chance = random.Random(seed)
    count = LANES * PROGRAMS
    at = [_number(chance) for _ in range(count)]
    real = [chance.choice([float("nan"), float("inf"), -1e30, 3.7e9, -1.5, chance.uniform(0, 40)])
            for _ in range(count)]
    case = Case(seed, at, real, _number(chance))
    for _ in range(accesses):
        access = _access(chance, case)
        access.line = HEAD.count("\n") + len(case.accesses) + 1
        case.accesses.append(access)
    return case


def _number(chance: random.Random) -> int:
    kind = chance.random()
    if kind < 0.9:
        return chance.randrange(-2, 40)
    if kind < 0.97:
        return chance.choice([2**31 - 1, 2**31, -2**31, 2**32, 2**33 + 5, -2**40, 2**62,
                              2**63 - 1, -2**63 + 1, FOREIGN, FOREIGN + 8])
    return chance.randrange(-2**50, 2**50)


def _offset(chance: random.Random, case: Case, depth: int = 3) -> Offset:
    if depth == 0 or chance.random() < 0.35:
        return _leaf(chance, case)
    a = _offset(chance, case, depth - 1)
    constant, shift = _number(chance), chance.randrange(64)
    divisor = chance.choice([-7, -1, 2, 3, 10, 2**33])
    b = _offset(chance, case, depth - 1)
    made: dict[str, Callable[[int, int], int | None]] = {
        f"({a.source} + {b.source})": lambda x, y: x + y,
        f"({a.source} - {b.source})": lambda x, y: x - y,
        f"({a.source} * {b.source})": lambda x, y: x * y,
        f"({a.source} * {constant})": lambda x, _: x * constant,
        f"({a.source} ^ {b.source})": lambda x, y: x ^ y,
        f"({a.source} & {constant})": lambda x, _: x & constant,
        f"({a.source} << {shift})": lambda x, _: x << shift,
        f"({a.source} >> {shift})": lambda x, _: x >> shift,
        f"({a.source} // {divisor})": lambda x, _: _quotient(x, divisor),
        f"({a.source} % {divisor})": lambda x, _: _remainder(x, divisor),
        f"({a.source} // {b.source})": lambda x, y: _quotient(x, y),
        f"({a.source} % {b.source})": lambda x, y: _remainder(x, y),
        f"(-{a.source})": lambda x, _: -x,
        f"{a.source}.to(tl.int32).to(tl.int64)": lambda x, _: _wrapped(x, 32),
        f"tl.where({a.source} < {constant}, {a.source}, {b.source})":
            lambda x, y: x if x < constant else y,
        f"tl.minimum(tl.maximum({a.source}, 0), 30)": lambda x, _: min(max(x, 0), 30),
    }
    source, change = chance.choice(list(made.items()))

    def lanes(program: int) -> Lanes:
        left, right = a.lanes(program), b.lanes(program)
        if left is None or right is None:
            return None
        changed = [change(x, y) for x, y in zip(left, right, strict=True)]
        return None if None in changed else [_wrapped(x, 64) for x in changed if x is not None]

    return Offset(source, lanes)


def _leaf(chance: random.Random, case: Case) -> Offset:
    step = chance.choice([LANES, 1, 7, LANES - 1, -LANES])
    leaves = (
        ("offs", lambda p: list(range(LANES))),
        (f"(pid * {step} + offs)", lambda p: [p * step + i for i in range(LANES)]),
        ("at", lambda p: case.at[p * LANES:(p + 1) * LANES]),
        ("(offs * 0 + scale)", lambda p: [case.scale] * LANES),
        ("real.to(tl.int64)", lambda p: None),
        ("real.to(tl.int32).to(tl.int64)", lambda p: None),
    )
    return Offset(*chance.choices(leaves, [8, 8, 8, 2, 1, 1])[0])


def _wrapped(value: int, bits: int) -> int:
    return (value + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


def _quotient(x: int, y: int) -> int | None:
    """As in C; division by zero and overflow are not settled."""
    if y == 0 or (x == -2**63 and y == -1):
        return None
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


def _remainder(x: int, y: int) -> int | None:
    quotient = _quotient(x, y)
    return None if quotient is None else x - quotient * y


def _mask(chance: random.Random, case: Case) -> Offset | None:
    limit = _number(chance)
    a = _offset(chance, case, 1)

    def compared(program: int) -> Lanes:
        lanes = a.lanes(program)
        return None if lanes is None else [int(x < limit) for x in lanes]

    return chance.choice((
        None,
        Offset("offs < n", lambda p: [int(i < N) for i in range(LANES)]),
        Offset("offs % 3 == 0", lambda p: [int(i % 3 == 0) for i in range(LANES)]),
        Offset("(pid == 1) & (offs > 2)", lambda p: [int(p == 1 and i > 2) for i in range(LANES)]),
        Offset("offs < 0", lambda p: [0] * LANES),
        Offset(f"{a.source} < {limit}", compared),
    ))


def _access(chance: random.Random, case: Case) -> Access:
    if chance.random() < 0.08:
        return _descriptor(chance)
    name, dtype, elements = chance.choice(TARGETS)
    own = OF_DTYPE[dtype]
    kind = chance.choice(list(ELEMENTS)) if chance.random() < 0.3 else own
    size = ELEMENTS[kind]
    extent = elements * ELEMENTS[own]
    a = _offset(chance, case)
    pointer_type = f"tl.pointer_type({kind})"
    way = chance.random()
    if way < 0.1:  # out of thin air
        pointers, distance = f"({a.source}).to({pointer_type})", None
    elif way < 0.25:  # bytes counted by hand
        pointers = f"({name}.to(tl.int64) + {a.source}).to({pointer_type})"
        distance = 1
    else:
        cast = name if kind == own else f"{name}.to({pointer_type})"
        pointers, distance = f"{cast} + {a.source}", size
    mask = _mask(chance, case)

    def wrong(program: int) -> bool | None:
        active = [1] * LANES if mask is None else mask.lanes(program)
        if active is None:
            return None
        if not any(active):
            return False
        if distance is None:
            return True
        places = a.lanes(program)
        if places is None:
            return None
        offsets = [_wrapped(x * distance, 64) for x, on in zip(places, active, strict=True) if on]
        if any(abs(offset) > ARENA and (offset + ARENA) % TENSORS_APART <= 2 * ARENA
               for offset in offsets):
            return None
        return any(not 0 <= offset <= extent - size or offset % size for offset in offsets)

    verdicts = [wrong(program) for program in range(PROGRAMS)]
    bad = None if None in verdicts else {p for p in range(PROGRAMS) if verdicts[p]}
    masked = "" if mask is None else f", mask={mask.source}"
    return _written(chance, kind, pointers, masked, bad)


def _written(chance: random.Random, kind: str, pointers: str, masked: str,
             bad: set[int] | None) -> Access:
    value = f"(offs + {chance.randrange(100)}).to({kind})"
    doing = chance.random()
    if doing < 0.5:
        return Access(f"total += tl.load({pointers}{masked}, other=0).to(tl.float32)"
                      if masked else f"total += tl.load({pointers}).to(tl.float32)", "M01", bad)
    if doing < 0.8 or kind in ("tl.uint8", "tl.float16"):
        return Access(f"tl.store({pointers}, {value}{masked})", "M02", bad)
    if doing < 0.85 and not masked and kind in ("tl.int32", "tl.int64"):
        return Access(f"tl.atomic_cas({pointers}, {value}, {value})", "M02", bad)
    name = chance.choice(["atomic_add", "atomic_max", "atomic_min"])
    return Access(f"tl.{name}({pointers}, {value}{masked})", "M02", bad)


def _descriptor(chance: random.Random) -> Access:
    """A tile of a tensor whose shape is told wrongly, at any place."""
    rows, columns = chance.choice([(3, 16), (4, 12), (9, 8), (2**20, 2**12), (1, 2**30)])
    at = [chance.choice([0, 1, 5, -3, 8, 2**20 - 1, -2**31, 2**31 - 1]),
          chance.choice([0, 4, -4, 8, 2**12 - 4, 2**30, -2**31, 2**31 - 4])]
    made = f"tl.make_tensor_descriptor(x_ptr, [{rows}, {columns}], [{columns}, 1], [4, 4])"
    inside = [(r, c) for r in range(at[0], at[0] + 4) for c in range(at[1], at[1] + 4)
              if 0 <= r < rows and 0 <= c < columns]
    outside = any(r * columns + c >= VIEWS[2][2] for r, c in inside)
    bad: set[int] = set(range(PROGRAMS)) if outside else set()
    if chance.random() < 0.5:
        return Access(f"total += tl.sum(tl.sum({made}.load({at}), 1), 0)", "M01", bad)
    return Access(f"{made}.store({at}, tl.full((4, 4), 1.0, tl.float32))", "M02", bad)


# ---------------------------------------------------------------------------------------------
# Running them



def foreign_memory() -> ctypes.Array[ctypes.c_char]:
    """Memory of this process that no tensor knows of, always at the same address."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    fixed = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x100000  # MAP_FIXED_NOREPLACE
    got = libc.mmap(FOREIGN, FOREIGN_BYTES, mmap.PROT_READ | mmap.PROT_WRITE, fixed, -1, 0)
    if got != FOREIGN:
        raise OSError(ctypes.get_errno(), "the memory could not be mapped")
    memory = (ctypes.c_char * FOREIGN_BYTES).from_address(FOREIGN)
    memory.raw = bytes([GUARD_BYTE]) * FOREIGN_BYTES
    return memory


@dataclass
class Ground:
    """An arena with the kernels' tensors in it, and guards around and between them."""

    arena: torch.Tensor
    views: dict[str, torch.Tensor]
    guarded: torch.Tensor
    outer: list[torch.Tensor]

    @classmethod
    def laid_out(cls, case: Case) -> Ground:
        arena = torch.full((ARENA,), GUARD_BYTE, dtype=torch.uint8)
        guarded = torch.ones(ARENA, dtype=torch.bool)
        views, place = {}, 256
        for name, dtype, elements in VIEWS:
            nbytes = elements * dtype.itemsize
            views[name] = arena[place:place + nbytes].view(dtype)
            views[name].copy_(torch.arange(elements))
            guarded[place:place + nbytes] = False
            place += (nbytes + 255) // 16 * 16
        views["at_ptr"].copy_(torch.tensor(case.at))
        views["real_ptr"].copy_(torch.tensor(case.real))
        outer = [torch.full((4096,), GUARD_BYTE, dtype=torch.uint8) for _ in range(4)]
        return cls(arena, views, guarded, outer)

    def disturbed(self) -> bool:
        """Whether a byte changed that no kernel was given."""
        return (bool((self.arena[self.guarded] != GUARD_BYTE).any())
                or any(bool((tensor != GUARD_BYTE).any()) for tensor in self.outer))


def run(case: Case, folder: Path, chunk: int | None) -> dict[str, Any]:
    """Run one kernel: what was found, where it should have been, whether a guard changed."""
    path = folder / f"fuzz_{case.seed}.py"
    path.write_text(case.text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    ground = Ground.laid_out(case)

    wrong = []
    with interpreted(duplicate_writes=True, chunk=chunk) as trace:
        try:
            module.kernel[(PROGRAMS,)](*ground.views.values(), N, case.scale, LANES=LANES)
        except RuntimeError as error:  # the engine failed, or took the kernel for one that cannot
            wrong.append(f"{error} {error.__cause__!r}")

    told: dict[tuple[int, str], list[str]] = {}
    for finding in trace.findings:
        if finding.code in ("M01", "M02", "M05") and finding.line is not None:
            told.setdefault((finding.line, finding.code), []).append(finding.seen)
    wrong += [problem for access in case.accesses if (problem := _judged(access, told))]
    wrong += [f"line {line}: {code} {seen}" for (line, code), seen in told.items()
              if (line, code) not in {(a.line, a.code) for a in case.accesses}]
    return {"findings": sorted(f"{line} {seen}" for (line, _), all_seen in told.items()
                               for seen in all_seen),
            "wrong": [f"{path.name}: {problem}" for problem in wrong],
            "changed": bool((ground.views["x_ptr"] != torch.arange(57)).any()),
            "disturbed": ground.disturbed()}


def _judged(access: Access, told: dict[tuple[int, str], list[str]]) -> str:
    """What is wrong with what was said of an access. Each sentence names its first program."""
    if access.bad is None:
        return ""
    seen = told.get((access.line, access.code), [])
    named = {int(number) for sentence in seen for number in re.findall(r"program (\d+)", sentence)}
    if named <= access.bad and min(named, default=-1) == min(access.bad, default=-1):
        return ""
    return f"line {access.line}: {access.source}: programs {access.bad}, but {seen}"


def main(words: Sequence[str]) -> int:
    options = argparse.ArgumentParser()
    options.add_argument("folder", type=Path)
    options.add_argument("--kernels", type=int, default=200)
    options.add_argument("--accesses", type=int, default=10)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--chunk", type=int)
    chosen = options.parse_args(words)
    cases = [made_up(chosen.seed * 100_000 + i, chosen.accesses) for i in range(chosen.kernels)]
    foreign = foreign_memory()
    results = [run(case, chosen.folder, chosen.chunk) for case in cases]
    verdicts = [access.bad for case in cases for access in case.accesses]
    print(json.dumps({
        "accesses": len(verdicts),
        "expected": sum(bool(bad) for bad in verdicts),
        "harmless": sum(bad == set() for bad in verdicts),
        "findings": [result["findings"] for result in results],
        "wrong": [problem for result in results for problem in result["wrong"]],
        "changed": sum(result["changed"] for result in results),
        "disturbed": sum(result["disturbed"] for result in results)
        + (foreign.raw != bytes([GUARD_BYTE]) * FOREIGN_BYTES),
    }))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
