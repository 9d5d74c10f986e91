"""Recognizes patterns of wrong values: scaled, shifted, reversed, permuted, imprecise."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any, Self

import torch

from grader.diagnosis import messages
from grader.finding import Fault, Figure, fault

MANY = 4  # elements needed so that a pattern is not a coincidence
CANDIDATES = 32  # distances that are tried for a shift
SAMPLE = 256  # elements that are looked at before all are
MOST = 0.9  # of the wrong elements, at least, are told from right ones
BARELY = 2.0**-8  # relative errors up to here are a matter of precision
LARGEST_TO_SORT = 1 << 22  # elements

# Relative distance up to which two values count as the same, well above rounding.
SAME = {torch.float64: 2.0**-46, torch.float32: 2.0**-18, torch.float16: 2.0**-9,
        torch.bfloat16: 2.0**-6}

Others = Iterable[tuple[str, torch.Tensor]]  # what the elements then are, in words, and the values

_FUNCTIONS: tuple[tuple[str, Callable[[torch.Tensor], torch.Tensor]], ...] = (
    ("log", torch.log), ("exp", torch.exp), ("sqrt", torch.sqrt), ("square", torch.square),
    ("reciprocal", torch.reciprocal),
    ("reciprocal square", lambda values: values.square().reciprocal()),
)
_OPERATORS: tuple[tuple[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]], ...] = (
    ("+", torch.add), ("-", torch.sub), ("*", torch.mul),
)


@dataclass(frozen=True)
class _Compared:
    """A result beside its reference, both as float64 (integers and truth values: int64).

    ``at`` are the places of the wrong elements, counted row by row; ``bad`` and ``good`` what
    stands and should stand there. A likeness is tried on a sample of them before it is on all.
    """

    wrong: torch.Tensor
    got: torch.Tensor
    expected: torch.Tensor
    same: float
    at: torch.Tensor
    bad: torch.Tensor
    good: torch.Tensor

    @classmethod
    def of(cls, wrong: torch.Tensor, result: torch.Tensor, reference: torch.Tensor) -> Self:
        exact = not result.dtype.is_floating_point
        got = (result.long() if exact else result.double()).contiguous()
        expected = reference.to(got.dtype).contiguous()
        at = wrong.flatten().nonzero().flatten()
        return cls(wrong, got, expected, SAME.get(result.dtype, 0.0), at,
                   got.flatten()[at], expected.flatten()[at])

    def fault(self, kind: str, **figures: Figure) -> Fault:
        return fault(kind, every=len(self.at) == self.got.numel(), **figures)

    @property
    def alike(self) -> bool:
        """Whether the same number belongs in all places: then nothing can be told."""
        return bool((self.good == self.good[0]).all())

    @property
    def sample(self) -> slice:
        return slice(None, None, max(1, len(self.at) // SAMPLE))

    def near(self, one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        if self.same == 0.0:
            return one == other
        return (one - other).abs() <= self.same * torch.maximum(one.abs(), other.abs())

    def all_near(self, one: torch.Tensor, other: torch.Tensor) -> bool:
        return bool(self.near(one, other).all())


def likeness(wrong: torch.Tensor, result: torch.Tensor, reference: torch.Tensor,
             others: Others = (), inputs: Others = ()) -> Fault | None:
    """Returns what the wrong values are, such as 2 times the expected ones.

    ``messages.pattern`` has the sentences. None where no likeness holds for every wrong element.

    Args:
        wrong: bool, the elements to explain; ``result`` and ``reference`` have its shape.
        others: results of known wrong formulas and of other inputs.
        inputs: of the function, and what they give without its formula; compared after all
            likenesses to the expected result.
    """
    if not bool(wrong.any()):
        return None
    compared = _Compared.of(wrong, result, reference)
    bad, good = compared.bad, compared.good
    if (one_value := _one_value(compared)) or len(bad) < MANY or not bool(
            bad.isfinite().all() and good.isfinite().all()):
        return one_value
    if compared.all_near(bad, good):  # too close to tell from the right
        return _barely(compared)
    return _named("formula", compared, others) or _first(compared, (
        _without_signs, _factor, _offset, _shifted, _reversed, _transposed, _rows, _function,
    )) or _named("input", compared, inputs) or _first(compared, (
        _factor_by_row, _offset_by_row, _barely, _elsewhere))


def _first(it: _Compared, looks: Iterable[Callable[[_Compared], Fault | None]]) -> Fault | None:
    return next(filter(None, (look(it) for look in looks)), None)


def _named(kind: str, it: _Compared, others: Others) -> Fault | None:
    return next((it.fault(kind, name=name) for name, values in others
                 if _is_that_of(it, values.to(it.got.dtype))), None)


def _is_that_of(it: _Compared, other: torch.Tensor) -> bool:
    """Whether the wrong elements are those of another result.

    Where terms nearly cancel, rounding is as large as it is in the terms: so is what is forgiven.
    A right element would be forgiven as well, so most wrong ones have to stand out from it.
    """
    if other.shape != it.got.shape:
        return False
    flat, few = other.flatten(), it.sample
    if it.all_near(it.bad[few], flat[it.at[few]]) and it.all_near(it.bad, flat[it.at]):
        return True
    if not it.same or not bool(other.isfinite().all()):
        return False
    slack = it.same / 4 * float(other.square().mean().sqrt())
    meant = flat[it.at]
    apart = (it.bad - it.good).abs() > 8 * slack
    return bool(((it.bad - meant).abs() <= it.same * meant.abs() + slack).all()) and bool(
        apart.double().mean() > MOST)


def _one_value(it: _Compared) -> Fault | None:
    """NaN, zero or another number, the same in every wrong element."""
    if it.same and bool(it.bad.isnan().all()):
        return it.fault("nan")
    if len(it.bad) < MANY or not bool((it.bad == it.bad[0]).all()) or it.alike:
        return None  # one number instead of another: the first element says as much
    number = f"{float(it.bad[0]):.6g}" if it.same else str(int(it.bad[0]))
    for side, beyond in (("below", it.expected < it.bad[0]), ("above", it.expected > it.bad[0])):
        if _is_exactly(it, beyond) and bool((it.got[beyond] == it.bad[0]).all()):
            return it.fault("clamp", side=side, name=number)
    return it.fault("value", name=number)


def _is_exactly(it: _Compared, elements: torch.Tensor) -> bool:
    """Whether these elements are wrong, those within the tolerance aside, and others are right."""
    return not bool((it.wrong & ~elements).any()) and not bool(elements.all())


def _without_signs(it: _Compared) -> Fault | None:
    negative = it.expected < 0
    if _is_exactly(it, negative) and it.all_near(it.got[negative], -it.expected[negative]):
        return it.fault("sign lost")
    return None


def _function(it: _Compared) -> Fault | None:
    """The same function of every expected number."""
    if not it.same or it.alike:
        return None
    return next((it.fault("function", function=name) for name, function in _FUNCTIONS
                 if _is_that_of(it, function(it.expected))), None)


def _factor(it: _Compared) -> Fault | None:
    few = it.sample
    factor = float((it.bad[few] / it.good[few]).median())
    if not math.isfinite(factor) or factor == 0 or abs(factor - 1) <= 4 * it.same:
        return None
    if not it.all_near(it.bad[few], factor * it.good[few]) or \
            not it.all_near(it.bad, factor * it.good) or it.alike:
        return None
    whole = _whole(factor, it.same)
    return it.fault("factor", factor=-1.0 if abs(factor + 1) <= it.same else factor, whole=whole,
                    part=0 if whole else _whole(1 / factor, it.same))


def _whole(value: float, same: float) -> int:
    """The whole number other than 0 and 1 that a value is; 0 where it is none."""
    near = max(same, 1e-6) * abs(value)
    return round(value) if 1.5 <= abs(value) <= 4096 and abs(value - round(value)) <= near else 0


def _offset(it: _Compared) -> Fault | None:
    off = (it.bad - it.good)[it.sample].median().item()
    for part in (it.sample, slice(None)):
        bad, good = it.bad[part], it.good[part]
        size = torch.maximum(bad.abs(), good.abs())
        if not bool(((bad - good - off).abs() <= it.same * size).all()):
            return None
        # What is called an offset has to stand out from what may be rounding.
        if abs(off) <= 8 * it.same * float(size.max()):
            return None
    return None if it.alike else it.fault("offset", amount=off)


def _shifted(it: _Compared) -> Fault | None:
    """Element i holds what belongs to element i + k."""
    got, expected = it.got.flatten(), it.expected.flatten()
    at = it.at
    start = at[len(at) // 2]  # in the middle, where neighbors on both sides exist
    candidates = it.near(expected, got[start]).nonzero().flatten() - start
    if not 0 < len(candidates) <= CANDIDATES:
        return None
    for shift in sorted((c for c in candidates.tolist() if c), key=abs):
        inside = at[(at + shift >= 0) & (at + shift < len(expected))]
        if 2 * len(inside) < len(at) or len(inside) < MANY:
            continue
        few = inside[:SAMPLE]
        if it.all_near(got[few], expected[few + shift]) and \
                it.all_near(got[inside], expected[inside + shift]):
            columns = it.got.shape[-1] if it.got.dim() > 1 else 0
            by_row = columns > 1 and shift % columns == 0
            return it.fault("shift", count=abs(shift) // columns if by_row else abs(shift),
                            unit="row" if by_row else "place", further=shift > 0)
    return None


def _reversed(it: _Compared) -> Fault | None:
    orders = {1: (("elements", 0),)}.get(it.got.dim(), (("in rows", -1), ("rows", -2)))
    return next((it.fault("reverse", order=order) for order, axis in orders
                 if it.got.dim() and _is_that_of(it, it.expected.flip(axis))), None)


def _transposed(it: _Compared) -> Fault | None:
    if it.got.dim() < 2 or min(it.got.shape[-2:]) < 2 or \
            not _is_that_of(it, it.expected.mT.reshape(it.got.shape)):
        return None
    return it.fault("transpose")


def _rows(it: _Compared) -> Fault | None:
    """Every wrong row holds the values of some other row."""
    if it.got.dim() != 2 or min(it.got.shape) < 3:
        return None
    wrong_rows = it.wrong.any(dim=1).nonzero().flatten()
    keys, order = it.expected[:, 0].sort()
    for rows in (wrong_rows[:2], wrong_rows):
        other = _held(it, rows, keys, order)
        if bool((other < 0).any()):
            return None
    return it.fault("rows", row=int(rows[0]), other=int(other[0]))


def _held(it: _Compared, rows: torch.Tensor, keys: torch.Tensor,
          order: torch.Tensor) -> torch.Tensor:
    """Finds the row whose expected values each of ``rows`` contains; -1 for none.

    ``keys`` are the expected values of the first column in ascending order, of the rows ``order``.
    """
    above = torch.searchsorted(keys, it.got[rows, 0].contiguous()).clamp(max=len(keys) - 1)
    other = torch.full_like(rows, -1)
    for neighbor in (above, (above - 1).clamp(min=0)):  # rounding may put it on either side
        row = order[neighbor]
        same = it.near(it.got[rows], it.expected[row]).all(dim=1)
        other = torch.where(same, row, other)
    return other


def _by_row(it: _Compared) -> tuple[torch.Tensor, torch.Tensor] | None:
    """The rows with wrong elements; at least two of three elements or more."""
    if it.got.dim() < 2 or it.got.shape[-1] < 3 or not it.same:
        return None
    wrong = it.wrong.flatten(0, -2).any(dim=1)
    got, expected = (t.flatten(0, -2)[wrong] for t in (it.got, it.expected))
    finite = bool(got.isfinite().all()) and bool(expected.isfinite().all())
    return (got, expected) if len(got) > 1 and finite else None


def _factor_by_row(it: _Compared) -> Fault | None:
    pair = _by_row(it)
    if pair is None:
        return None
    got, expected = pair
    largest = expected.abs().argmax(dim=1, keepdim=True)
    factors = got.gather(1, largest) / expected.gather(1, largest)
    few = slice(2)
    if not it.all_near(got[few], factors[few] * expected[few]) or \
            not bool((expected != expected[:, :1]).any()) or \
            not it.all_near(got, factors * expected):
        return None
    return it.fault("factor by row", low=float(factors.min()), high=float(factors.max()))


def _offset_by_row(it: _Compared) -> Fault | None:
    pair = _by_row(it)
    if pair is None:
        return None
    got, expected = pair
    off = (got - expected)[:, :1]
    for part in (slice(2), slice(None)):
        size = torch.maximum(got[part].abs(), expected[part].abs())
        if not bool(((got[part] - expected[part] - off[part]).abs() <= it.same * size).all()):
            return None
        if bool((off[part].abs().flatten() <= 8 * it.same * size.amax(dim=1)).any()):
            return None
    return it.fault("offset by row", low=float(off.min()), high=float(off.max()))


def _barely(it: _Compared) -> Fault | None:
    """Errors so small that precision is the matter, not the formula."""
    most = float(((it.bad - it.good) / it.good).abs().max())  # NaN or infinite where 0 belongs
    if not 0 < most <= BARELY:
        return None
    digit = 10 ** math.floor(math.log10(1 / most))
    return it.fault("precision", parts=int(1 / most / digit) * digit)  # one digit is enough


def _elsewhere(it: _Compared) -> Fault | None:
    """The right values, all of them, in another order."""
    if len(it.at) > LARGEST_TO_SORT or it.alike or not bool(
            it.near(it.bad.max(), it.good.max()) & it.near(it.bad.min(), it.good.min())):
        return None
    same = it.all_near(it.bad.sort().values, it.good.sort().values)
    return it.fault("elsewhere") if same else None


def stand_ins(entry: str, parameters: Sequence[str],
              inputs: Sequence[Any]) -> Iterator[tuple[str, list[Any]]]:
    """Calls in which one input is taken for another or two change places."""
    tensors = [n for n, value in enumerate(inputs) if isinstance(value, torch.Tensor)]
    for one, other in permutations(tensors, 2):
        if inputs[one].shape != inputs[other].shape or inputs[one].dtype != inputs[other].dtype:
            continue
        for swap in (False, True):
            if swap and one > other:
                continue
            names, values = list(parameters), list(inputs)
            names[other], values[other] = names[one], values[one]
            if swap:
                names[one], values[one] = parameters[other], inputs[other]
            yield messages.result_of(entry, names), values


def of_inputs(parameters: Sequence[str], inputs: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """Each real input, and what two of one shape give by a single operator."""
    tensors = [(name, value.double()) for name, value in zip(parameters, inputs, strict=False)
               if isinstance(value, torch.Tensor) and not value.is_complex()]
    for name, value in tensors:
        yield name, value
    for (name, value), (other, operand) in permutations(tensors, 2):
        if value.shape == operand.shape:
            for sign, function in _OPERATORS:
                if sign == "-" or name < other:
                    yield f"{name} {sign} {other}", function(value, operand)
