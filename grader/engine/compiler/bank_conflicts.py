"""Bank conflicts of shared memory, from the addresses that PTX computes for the threads of a warp.

Addresses depend on the thread's number and constants, and on values that all threads share, which
shift every bank alike. PTX, unlike TTGIR, also has the accesses of layout conversions, reductions
and scans. Asynchronous copies, TMA, atomics and operands that tensor cores read are left out.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from grader.engine.compiler import ptx
from grader.engine.compiler.ptx import PtxStatement
from grader.engine.compiler.targets import WARP

BANKS, WORD = 32, 4  # of shared memory; bytes that each delivers in a cycle
_MATRIX_ROWS, _MATRIX_ROW = 8, 16  # rows and bytes of a row that ldmatrix moves at once
_THREADS = re.compile(r"^[ \t]*\.reqntid[ \t]+(\d+)", re.MULTILINE)
_ADDRESS = re.compile(r"\[\s*([%\w$]+)\s*(?:\+\s*(-?\w+))?\s*\]")
_SHARED = re.compile(
    r"(?P<kind>ld|st)(?P<matrix>matrix)?\.(?:[\w:]+\.)*?shared(?:::cta)?\.(?:v(?P<lanes>\d)\.)?"
    r"[a-z]+(?P<bits>\d+)$")
_MATRICES = re.compile(r"\.x([124])\b")
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal}
_SAME_FOR_ALL = ("%ctaid", "%nctaid", "%clusterid", "%cluster_ctaid", "%tid.y", "%tid.z")
_NO_RESULT = ("st", "bra", "ret", "bar", "cp.", "red.")
_REGISTER = re.compile(r"%\w+")
_DEEPEST, _MOST_STEPS = 200, 20_000  # registers that are evaluated within each other, and in all


class _Value(NamedTuple):
    """A number for each thread, plus one that is unknown and the same for all where ``shifted``."""

    threads: Any
    shifted: bool = False


def requests(code: str) -> Counter[tuple[int | None, Literal["load", "store"], int, float]]:
    """Counts loads from and stores to shared memory, by line, kind, bits of a thread and ways.

    ``ways``: cycles that shared memory takes for a request of a warp, over those without conflicts;
    0 where the addresses are unknown.
    """
    size = _THREADS.search(code)
    steps = list(ptx.statements(code))
    addresses = _Addresses(steps, int(size[1]) if size else WARP)
    counts: Counter[tuple[int | None, Literal["load", "store"], int, float]] = Counter()
    for step in steps:
        form = _SHARED.match(step.opcode)
        if form is None:
            continue
        matrices = _MATRICES.search(step.opcode) if form["matrix"] else None
        n_bytes = _MATRIX_ROW if matrices else int(form["lanes"] or 1) * int(form["bits"]) // 8
        place, active = addresses.of(step)
        if matrices:
            active = active & (np.arange(len(active)) % WARP < _MATRIX_ROWS * int(matrices[1]))
        ways = 0.0 if place is None else conflicts(place, active, n_bytes)
        counts[step.line, "load" if form["kind"] == "ld" else "store", 8 * n_bytes, ways] += 1
    return counts


def conflicts(addresses: Any, active: Any, n_bytes: int) -> float:
    """Cycles for the requests of some warps, over those without conflicts.

    Threads that access 8 bytes are served by half warps, those that access 16 by quarter warps.

    Args:
        addresses: in bytes, [threads].
        active: which threads take part, [threads].
        n_bytes: that each thread accesses, 1 to 16.
    """
    words = max(1, n_bytes // WORD)
    served = WARP // words  # threads at a time
    first = np.asarray(addresses, np.int64).reshape(-1, served, 1) // WORD
    each = np.where(np.asarray(active).reshape(-1, served, 1), first + np.arange(words), -1)
    each = np.sort(each.reshape(len(each), -1), axis=1)
    distinct = each >= 0
    distinct[:, 1:] &= each[:, 1:] != each[:, :-1]
    rows = np.arange(len(each))[:, None] * BANKS + each % BANKS
    busy = np.bincount(rows[distinct], minlength=len(each) * BANKS).reshape(-1, BANKS).max(axis=1)
    used = busy > 0
    return float(busy.sum() / used.sum()) if used.any() else 1.0


class _Addresses:
    """Evaluates registers for all threads of a program, as far as addresses depend on them."""

    def __init__(self, steps: Sequence[PtxStatement], threads: int) -> None:
        self._threads = np.arange(-(-threads // WARP) * WARP, dtype=np.int64)
        self._count = threads
        self._uniform = _Value(np.zeros_like(self._threads), shifted=True)
        self._values: dict[str, _Value | None] = {}
        self._depth, self._left = 0, _MOST_STEPS
        self._steps: dict[str, list[PtxStatement]] = defaultdict(list)
        for step in steps:
            if not step.opcode.startswith(_NO_RESULT):
                results = step.operands.lstrip().partition(
                    "}" if step.operands.lstrip().startswith("{") else ",")[0]
                for name in _REGISTER.findall(results):
                    self._steps[name].append(step)

    def of(self, step: PtxStatement) -> tuple[Any, Any]:
        """Addresses in bytes, None if unknown, and the threads that access them."""
        active = self._threads < self._count
        condition = self._value(step.predicate.lstrip("!")) if step.predicate else None
        if condition is not None and not condition.shifted:
            active = active & ((condition.threads != 0) ^ step.predicate.startswith("!"))
        address = _ADDRESS.search(step.operands)
        base = self._value(address[1]) if address else None
        if address is None or base is None:
            return None, active
        return base.threads + int(address[2] or "0", 0), active

    def _value(self, name: str) -> _Value | None:
        if name in self._values:
            return self._values[name]
        if re.fullmatch(r"-?\d+|0x[\da-fA-F]+", name):
            return _Value(np.full_like(self._threads, int(name, 0)))
        if name == "%tid.x":
            return _Value(self._threads)
        if name.startswith(_SAME_FOR_ALL) or re.fullmatch(r"[A-Za-z_0]\w*", name):
            return self._uniform  # such as global_smem, or a number in floating point
        if not _REGISTER.fullmatch(name) or self._depth > _DEEPEST or self._left <= 0:
            return None
        self._depth, self._left = self._depth + 1, self._left - 1
        value = self._defined(name)
        self._depth -= 1
        self._values[name] = value
        return value

    def _defined(self, name: str) -> _Value | None:
        """The value of a register: of several definitions, as in a loop, what is common to them."""
        steps = self._steps[name]
        if len(steps) == 1:
            self._values[name] = None  # if it depends on itself
            return self._result(steps[0])
        before = dict(self._values)
        for step in steps:
            self._values = {**before, name: None}
            first = self._result(step)
            if first is not None:
                shifted = _Value(first.threads, shifted=True)
                self._values = {**before, name: shifted}
                values = [self._result(step) for step in steps]
                if all(value is not None and not value.shifted
                       and (value.threads == first.threads).all() for value in values):
                    return first
                if all(value is not None and _is_uniform(_Value(value.threads - first.threads))
                       for value in values):
                    return shifted
                break
        self._values = before
        return None

    def _result(self, step: PtxStatement) -> _Value | None:
        name, *modifiers = step.opcode.split(".")
        if name == "ld":
            return self._uniform if "param" in modifiers else None
        inputs = []
        for operand in step.operands.split(",")[1:]:
            value = self._value(operand.strip())
            if value is None:
                return None
            inputs.append(value)
        compute = _OPERATIONS.get(name)
        shifted = any(value.shifted for value in inputs)
        if all(map(_is_uniform, inputs)) and (shifted or compute is None):
            return self._uniform
        if compute is None or (shifted and not _keeps_shift(name, inputs)):
            return None
        result = compute(modifiers, *(value.threads for value in inputs))
        return None if result is None else _Value(result, shifted)


def _is_uniform(value: _Value) -> bool:
    return bool((value.threads == value.threads[0]).all())


def _keeps_shift(name: str, inputs: Sequence[_Value]) -> bool:
    """Whether the result is that of known inputs, shifted by the same number for all threads."""
    if name in ("add", "sub", "mov", "cvt", "cvta"):
        return True
    if name in ("mul", "mad", "shl"):
        factors = inputs[:2]
        return all(not other.shifted and _is_uniform(other)
                   for one, other in (factors, factors[::-1]) if one.shifted)
    return False


def _width(modifiers: Sequence[str]) -> int:
    return 64 if modifiers and modifiers[-1].endswith("64") else 32


def _wrapped(modifiers: Sequence[str], value: Any, signed: bool | None = None) -> Any:
    """The low bits of a result, as a number with the sign that its type has."""
    width = _width(modifiers)
    if width == 64:
        return value
    value = value & 0xFFFFFFFF
    signed = modifiers[-1].startswith("s") if signed is None else signed
    return np.where(value >= 1 << 31, value - (1 << 32), value) if signed else value


def _unsigned(value: Any) -> Any:
    return value & 0xFFFFFFFF


def _bfe(modifiers: Sequence[str], a: Any, start: Any, length: Any) -> Any:
    bits = (_unsigned(a) >> start) & ((1 << length) - 1)
    if modifiers[-1].startswith("s"):
        return np.where((length > 0) & ((bits >> np.maximum(length - 1, 0)) & 1 == 1),
                        bits - (1 << length), bits)
    return bits


def _setp(modifiers: Sequence[str], a: Any, b: Any) -> Any:
    compare = _COMPARE.get(modifiers[0])
    if compare is None or modifiers[-1].startswith("f"):
        return None
    if not modifiers[-1].startswith("s"):
        a, b = (value & 0xFFFFFFFF if _width(modifiers) == 32 else value for value in (a, b))
    return compare(a, b).astype(np.int64)


def _shr(modifiers: Sequence[str], a: Any, b: Any) -> Any:
    return (a if modifiers[-1].startswith("s") or _width(modifiers) == 64 else _unsigned(a)) >> b


def _mul(modifiers: Sequence[str], a: Any, b: Any) -> Any:
    return None if "hi" in modifiers else a * b if "wide" in modifiers else _wrapped(
        modifiers, a * b)


_OPERATIONS: dict[str, Callable[..., Any]] = {
    "mov": lambda m, a: a, "cvt": lambda m, a: a if not m[0].startswith("r") else None,
    "cvta": lambda m, a: a, "neg": lambda m, a: -a, "not": lambda m, a: ~a,
    "add": lambda m, a, b: _wrapped(m, a + b), "sub": lambda m, a, b: _wrapped(m, a - b),
    "mul": _mul, "mad": lambda m, a, b, c: None if "hi" in m else _wrapped(m, a * b + c),
    "and": lambda m, a, b: a & b, "or": lambda m, a, b: a | b, "xor": lambda m, a, b: a ^ b,
    "shl": lambda m, a, b: _wrapped(m, a << b), "shr": _shr, "bfe": _bfe,
    "min": lambda m, a, b: np.minimum(a, b), "max": lambda m, a, b: np.maximum(a, b),
    "setp": _setp, "selp": lambda m, a, b, p: np.where(p != 0, a, b),
}
