"""What wrong values look like: scaled, shifted, reversed, taken from elsewhere, barely off."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any, Self

import torch
from msgspec.structs import replace

from grader.finding import NO_PATTERN, ValuePattern

MANY = 4  # elements from which on a likeness is no accident
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
    ("the logarithm of", torch.log), ("the exponential of", torch.exp),
    ("the square root of", torch.sqrt), ("the square of", torch.square),
    ("the reciprocal of", torch.reciprocal),
    ("the reciprocal of the square of", lambda values: values.square().reciprocal()),
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

    @property
    def subject(self) -> str:
        return "every element" if len(self.at) == self.got.numel() else "each of these elements"

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


def likeness(wrong: torch.Tensor, result: torch.Tensor, reference: torch.Tensor,
             others: Others = (), inputs: Others = ()) -> ValuePattern:
    """Say what the wrong values are: "Every element is 2 times the expected one."

    Args:
        wrong: bool, the elements to explain; ``result`` and ``reference`` have its shape.
        others: results of known wrong formulas and of other inputs.
        inputs: of the function, and what they give without its formula; compared after all
            likenesses to the expected result.

    Returns:
        One sentence with its kind; empty where no likeness holds for every wrong element.
    """
    if not bool(wrong.any()):
        return NO_PATTERN
    compared = _Compared.of(wrong, result, reference)
    found = _one_value(compared)
    if not found.words and len(compared.at) >= MANY and _finite(compared):
        found = _first_of(compared, others, inputs)
    if not found.words:
        return found
    return replace(found, words=found.words[:1].upper() + found.words[1:] + ".")


def _first_of(it: _Compared, others: Others, inputs: Others) -> ValuePattern:
    likenesses: tuple[tuple[str, Callable[[_Compared], str | ValuePattern]], ...] = (
        ("formula", lambda it: _named("formula", it, others)), ("sign lost", _without_signs),
        ("factor", _factor), ("offset", _offset), ("shift", _shifted), ("reverse", _reversed),
        ("transpose", _transposed), ("rows", _rows), ("function", _function),
        ("input", lambda it: _named("input", it, inputs)), ("factor by row", _factor_by_row),
        ("offset by row", _offset_by_row), ("precision", _barely), ("elsewhere", _elsewhere))
    if bool(it.near(it.bad, it.good).all()):  # too close to tell from the right values
        likenesses = likenesses[-2:-1]
    for kind, look in likenesses:
        found = look(it)
        if found and found != NO_PATTERN:
            return ValuePattern(kind, found) if isinstance(found, str) else found
    return NO_PATTERN


def _named(kind: str, it: _Compared, others: Others) -> ValuePattern:
    return next((ValuePattern(kind, f"{it.subject} is {name}", name) for name, values in others
                 if _is_that_of(it, values.to(it.got.dtype))), NO_PATTERN)


def _finite(it: _Compared) -> bool:
    return bool(it.bad.isfinite().all()) and bool(it.good.isfinite().all())


def _all_near(it: _Compared, values: torch.Tensor) -> bool:
    """Whether the wrong elements are those of ``values``."""
    if values.shape != it.got.shape:
        return False
    flat = values.flatten()
    few = it.sample
    return bool(it.near(it.bad[few], flat[it.at[few]]).all()) and bool(
        it.near(it.bad, flat[it.at]).all())


def _is_that_of(it: _Compared, other: torch.Tensor) -> bool:
    """Whether the wrong elements are those of another result.

    Where terms nearly cancel, rounding is as large as it is in the terms: so is what is forgiven.
    A right element would be forgiven as well, so most wrong ones have to stand out from it.
    """
    if _all_near(it, other):
        return True
    if not it.same or other.shape != it.got.shape or not bool(other.isfinite().all()):
        return False
    slack = it.same / 4 * float(other.square().mean().sqrt())
    meant = other.flatten()[it.at]
    apart = (it.bad - it.good).abs() > 8 * slack
    return bool(((it.bad - meant).abs() <= it.same * meant.abs() + slack).all()) and bool(
        apart.double().mean() > MOST)


def _one_value(it: _Compared) -> ValuePattern:
    """NaN, zero or another number, the same in every wrong element."""
    if it.same and bool(it.bad.isnan().all()):
        return ValuePattern("nan", f"{it.subject} is NaN")
    if len(it.bad) < MANY or not bool((it.bad == it.bad[0]).all()) or it.alike:
        return NO_PATTERN  # one number instead of another: the first element says as much
    number = f"{float(it.bad[0]):.6g}" if it.same else str(int(it.bad[0]))
    for side, beyond in (("below", it.expected < it.bad[0]), ("above", it.expected > it.bad[0])):
        if _is_exactly(it, beyond) and bool((it.got[beyond] == it.bad[0]).all()):
            numbers = "negative number" if (side, number) == ("below", "0") else \
                f"number {side} {number}"
            return ValuePattern("clamp", f"every {numbers} became {number}", number)
    return ValuePattern("value", f"{it.subject} is {number}", number)


def _is_exactly(it: _Compared, elements: torch.Tensor) -> bool:
    """Whether these elements are wrong, those within the tolerance aside, and others are right."""
    return not bool((it.wrong & ~elements).any()) and not bool(elements.all())


def _without_signs(it: _Compared) -> str:
    negative = it.expected < 0
    if _is_exactly(it, negative) and bool(it.near(it.got[negative], -it.expected[negative]).all()):
        return "every negative number lost its sign"
    return ""


def _function(it: _Compared) -> str:
    """The same function of every expected number."""
    if not it.same or it.alike:
        return ""
    return next((f"{it.subject} is {words} the expected one" for words, function in _FUNCTIONS
                 if _is_that_of(it, function(it.expected))), "")


def _factor(it: _Compared) -> ValuePattern:
    few = it.sample
    factor = float((it.bad[few] / it.good[few]).median())
    if not math.isfinite(factor) or factor == 0 or abs(factor - 1) <= 4 * it.same:
        return NO_PATTERN
    if not bool(it.near(it.bad[few], factor * it.good[few]).all()):
        return NO_PATTERN
    if not bool(it.near(it.bad, factor * it.good).all()) or it.alike:
        return NO_PATTERN
    if abs(factor + 1) <= it.same:
        return ValuePattern("factor", f"{it.subject} has the wrong sign", factor=-1.0)
    return ValuePattern("factor", f"{it.subject} is {_times(factor, it.same)} the expected one",
                        factor=factor)


def _offset(it: _Compared) -> str:
    off = (it.bad - it.good)[it.sample].median().item()
    for part in (it.sample, slice(None)):
        bad, good = it.bad[part], it.good[part]
        size = torch.maximum(bad.abs(), good.abs())
        if not bool(((bad - good - off).abs() <= it.same * size).all()):
            return ""
        # What is called an offset has to stand out from what may be rounding.
        if abs(off) <= 8 * it.same * float(size.max()):
            return ""
    if it.alike:
        return ""
    return f"{it.subject} is {abs(off):.4g} too {'large' if off > 0 else 'small'}"


def _shifted(it: _Compared) -> str:
    """Element i holds what belongs to element i + k."""
    got, expected = it.got.flatten(), it.expected.flatten()
    at = it.at
    start = at[len(at) // 2]  # in the middle, where neighbours on both sides exist
    candidates = it.near(expected, got[start]).nonzero().flatten() - start
    if not 0 < len(candidates) <= CANDIDATES:
        return ""
    for shift in sorted((c for c in candidates.tolist() if c), key=abs):
        inside = at[(at + shift >= 0) & (at + shift < len(expected))]
        if 2 * len(inside) < len(at) or len(inside) < MANY:
            continue
        few = inside[:SAMPLE]
        if bool(it.near(got[few], expected[few + shift]).all()) and bool(
                it.near(got[inside], expected[inside + shift]).all()):
            return f"{it.subject} holds what belongs {_places(shift, it.got)}"
    return ""


def _places(shift: int, got: torch.Tensor) -> str:
    columns = got.shape[-1] if got.dim() > 1 else 0
    by_row = columns > 1 and shift % columns == 0
    count = abs(shift) // columns if by_row else abs(shift)
    unit = ("row" if by_row else "place") + ("" if count == 1 else "s")
    return f"{count:,} {unit} {'further on' if shift > 0 else 'before it'}"


def _reversed(it: _Compared) -> str:
    if it.got.dim() == 1 and _is_that_of(it, it.expected.flip(0)):
        return "the elements stand in reverse order"
    if it.got.dim() > 1 and _is_that_of(it, it.expected.flip(-1)):
        return "the elements of each row stand in reverse order"
    if it.got.dim() > 1 and _is_that_of(it, it.expected.flip(-2)):
        return "the rows stand in reverse order"
    return ""


def _transposed(it: _Compared) -> str:
    if it.got.dim() < 2 or min(it.got.shape[-2:]) < 2:
        return ""
    if _is_that_of(it, it.expected.mT.reshape(it.got.shape)):
        return "the values stand in the order of the expected result's transpose"
    return ""


def _rows(it: _Compared) -> str:
    """Every wrong row holds the values of some other row."""
    if it.got.dim() != 2 or min(it.got.shape) < 3:
        return ""
    wrong_rows = it.wrong.any(dim=1).nonzero().flatten()
    keys, order = it.expected[:, 0].sort()
    for rows in (wrong_rows[:2], wrong_rows):
        other = _held(it, rows, keys, order)
        if bool((other < 0).any()):
            return ""
    return (f"the rows hold the values of other rows: row {int(rows[0]):,} those of row "
            f"{int(other[0]):,}")


def _held(it: _Compared, rows: torch.Tensor, keys: torch.Tensor,
          order: torch.Tensor) -> torch.Tensor:
    """Which row's expected values each of ``rows`` holds; -1 for none.

    ``keys`` are the expected values of the first column in ascending order, of the rows ``order``.
    """
    above = torch.searchsorted(keys, it.got[rows, 0].contiguous()).clamp(max=len(keys) - 1)
    other = torch.full_like(rows, -1)
    for neighbour in (above, (above - 1).clamp(min=0)):  # rounding may put it on either side
        row = order[neighbour]
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


def _factor_by_row(it: _Compared) -> str:
    pair = _by_row(it)
    if pair is None:
        return ""
    got, expected = pair
    largest = expected.abs().argmax(dim=1, keepdim=True)
    factors = got.gather(1, largest) / expected.gather(1, largest)
    few = slice(2)
    if not bool(it.near(got[few], factors[few] * expected[few]).all()):
        return ""
    varied = (expected != expected[:, :1]).any(dim=1)
    if not bool(varied.any()) or not bool(it.near(got, factors * expected).all()):
        return ""
    return (f"within a row all elements are wrong by the same factor, which is "
            f"{_between(factors)}")


def _offset_by_row(it: _Compared) -> str:
    pair = _by_row(it)
    if pair is None:
        return ""
    got, expected = pair
    off = (got - expected)[:, :1]
    for part in (slice(2), slice(None)):
        size = torch.maximum(got[part].abs(), expected[part].abs())
        if not bool(((got[part] - expected[part] - off[part]).abs() <= it.same * size).all()):
            return ""
        if bool((off[part].abs().flatten() <= 8 * it.same * size.amax(dim=1)).any()):
            return ""
    return f"within a row all elements are wrong by the same amount, which is {_between(off)}"


def _barely(it: _Compared) -> str:
    """Errors so small that precision is the matter, not the formula."""
    most = float(((it.bad - it.good) / it.good).abs().max())  # NaN or infinite where 0 belongs
    if not 0 < most <= BARELY:
        return ""
    digit = 10 ** math.floor(math.log10(1 / most))
    figure = int(1 / most / digit) * digit  # one digit says enough
    return f"none is off by more than one part in {figure:,}"


def _elsewhere(it: _Compared) -> str:
    """The right values, all of them, in another order."""
    if len(it.at) > LARGEST_TO_SORT or it.alike or not bool(
            it.near(it.bad.max(), it.good.max()) & it.near(it.bad.min(), it.good.min())):
        return ""
    if not bool(it.near(it.bad.sort().values, it.good.sort().values).all()):
        return ""
    return "the expected values are all there, in other places"


def _times(factor: float, same: float) -> str:
    """The factor in words; a whole number, or one part of a whole number, where it is so near."""
    for value, words in ((factor, "{} times"), (1 / factor, "1/{} of")):
        near = max(same, 1e-6) * abs(value)
        if 1.5 <= abs(value) <= 4096 and abs(value - round(value)) <= near:
            words = words.format(f"{round(value):,}")
            return "half" if words == "1/2 of" else words
    return f"{factor:.4g} times"


def _between(values: torch.Tensor) -> str:
    low, high = float(values.min()), float(values.max())
    return f"{low:.3g}" if f"{low:.3g}" == f"{high:.3g}" else f"between {low:.3g} and {high:.3g}"


def stand_ins(entry: str, parameters: Sequence[str],
              inputs: Sequence[Any]) -> Iterator[tuple[str, list[Any]]]:
    """Calls in which one input is taken for another or two change places, in words."""
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
            yield f"what {entry}({', '.join(names)}) gives", values


def of_inputs(parameters: Sequence[str], inputs: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """Each real input, and what two of one shape give by a single operator."""
    tensors = [(name, value.double()) for name, value in zip(parameters, inputs, strict=False)
               if isinstance(value, torch.Tensor) and not value.is_complex()]
    for name, value in tensors:
        yield f"that of `{name}`", value
    for (name, value), (other, operand) in permutations(tensors, 2):
        if value.shape == operand.shape:
            for sign, function in _OPERATORS:
                if sign == "-" or name < other:
                    yield f"that of `{name} {sign} {other}`", function(value, operand)
