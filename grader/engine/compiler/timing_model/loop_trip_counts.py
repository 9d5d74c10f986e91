"""Trip counts of loops whose counters start, step and end at immediates."""

from __future__ import annotations

import re
from collections.abc import Callable

from grader.engine.compiler.sass import SassInstruction

_ADDS = frozenset(("IADD3", "UIADD3", "VIADD", "IADD", "UVIADD"))
_MOVES = frozenset(("MOV", "UMOV"))
_REGISTER = re.compile(r"U?R(\d+|Z)\b")
_PREDICATE = re.compile(r"!?U?P(\d)$")
_MOST = 1 << 20  # iterations that are counted
_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "LT": int.__lt__, "LE": int.__le__, "GT": int.__gt__, "GE": int.__ge__, "EQ": int.__eq__,
    "NE": int.__ne__,
}


def rounds(steps: tuple[SassInstruction, ...], first: int, last: int) -> int | None:
    """Iterations of the loop from ``first`` to ``last`` each time that it is entered.

    Returns:
        The count, or None where the end is not an immediate: an argument, or a computed value.
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
        if step is None or start is None or end is None or _written(steps, bound, first, last):
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
    numbers = [value for part in sources if (value := _immediate(part)) is not None]
    if sorted([register, *map(str, numbers)]) != sorted(
            [part if _immediate(part) is None else str(_immediate(part)) for part in sources]):
        return None
    return (numbers[0], writes[0]) if len(numbers) == 1 else None


def _written(steps: tuple[SassInstruction, ...], register: str, first: int, last: int) -> bool:
    return any(_destination(step) == register for step in steps[first:last + 1])


def _number(steps: tuple[SassInstruction, ...], part: str, before: int) -> int | None:
    """The value of an immediate, or of a register that was last set to one before the loop."""
    if part in ("RZ", "URZ"):
        return 0
    if not _REGISTER.match(part):
        return _immediate(part)
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
            return 0 if source in ("RZ", "URZ") else _immediate(source)
        if step.name == "HFMA2" and step.operands[1:3] == ("-RZ", "RZ"):
            return 0 if step.operands[3:] == ("0", "0") else None
        return None
    return None


def _destination(step: SassInstruction) -> str | None:
    if step.operands and _REGISTER.match(step.operands[0]) and not step.operands[0].endswith("]"):
        return step.operands[0]
    return None


def _immediate(part: str) -> int | None:
    try:
        value = int(part, 0)
    except ValueError:
        return None
    return value - (1 << 32) if value >= 1 << 31 else value
