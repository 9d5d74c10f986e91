"""Decoy inputs with other values than the judged ones, and differences of two recordings."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from grader.finding import Fault, fault
from grader.recording import model
from grader.recording.arena import WITH_HOLES, as_tensor, view_of
from grader.recording.model import Alloc, Argument, Event, Fill, Launch, Move, Recording, View
from grader.report import Finding
from grader.suite.inputs import laid_out

_SHARES = 4099  # random numbers that are drawn; for larger tensors they come round again


class Drawn(list[Any]):
    """The inputs of one case, and decoys that were made ahead."""

    def __init__(self, inputs: Sequence[Any], others: Sequence[Any]) -> None:
        super().__init__(inputs)
        self.decoys = list(others)


def decoys(inputs: Sequence[Any]) -> list[Any]:
    """Tensors of the same shapes, strides, dtypes and shared memory, holding other values.

    The learner's function gets them in place of the inputs that its launches are judged on. What a
    right function asks for depends on shapes, strides and dtypes; so nothing changes for it, while
    values that host code takes out of its arguments are worth nothing.

    NaN, infinities and zeros stay where they are, other floats change places and get no larger, and
    integers are some of those that were there: what a check of arguments lets through, it still
    lets through.
    """
    changed: dict[int, torch.Tensor] = {}
    values: list[Any] = []
    for value in inputs:
        if not (isinstance(value, torch.Tensor) and value.device.type == "cpu"):
            values.append(value)
            continue
        storage = value.untyped_storage()
        if storage._cdata not in changed:
            if storage.nbytes() <= WITH_HOLES:
                changed[storage._cdata] = _other_values(value)
            else:  # in a storage with holes, which begins with the tensor's first element
                others = _other_values(value.contiguous()).view(value.shape)
                changed[storage._cdata] = laid_out(others, value.stride())
        decoy = as_tensor(changed[storage._cdata], view_of(value, 0))
        values.append(decoy.conj() if value.is_conj() else decoy)
    return values


def _other_values(value: torch.Tensor) -> torch.Tensor:
    count = value.untyped_storage().nbytes() // value.itemsize
    old = as_tensor(value, View(0, model.dtype_name(value), (count,), (1,), 0))
    random = torch.Generator().manual_seed(secrets.randbits(62))
    if value.dtype.is_floating_point:
        return _floats(old, random)
    if not count:
        return old.clone()
    if value.dtype.is_complex:
        parts = _floats(torch.view_as_real(old).reshape(-1), random)
        return torch.view_as_complex(parts.view(-1, 2))
    return old[torch.randint(count, (count,), generator=random)]


def _floats(old: torch.Tensor, random: torch.Generator) -> torch.Tensor:
    if old.itemsize == 1:  # torch does no arithmetic on float8
        return _floats(old.float(), random).to(old.dtype)
    ordinary = old.isfinite().logical_and_(old != 0)
    all_ordinary = bool(ordinary.all())
    values = old if all_ordinary else old[ordinary]
    count = values.numel()
    if not count:
        return old.clone()
    shares = torch.rand(min(count, _SHARES), generator=random).add_(1).div_(2)
    shares = shares.repeat(-(-count // _SHARES))[:count]
    if old.dtype is torch.float64:
        shares = shares.double()
    shift = int(torch.randint(count, (), generator=random))
    values = shares.mul_(values.roll(shift)).to(old.dtype)
    return values if all_ordinary else old.masked_scatter(ordinary, values)


# ---------------------------------------------------------------------------------------------
# Two recordings of the same function


def difference(one: Recording, other: Recording) -> Finding | None:
    """Returns X01 for the first event in which two recordings of a function differ."""
    for first, second in zip(one.events, other.events, strict=False):
        if repr(first) != repr(second):  # NaN has the same text as itself
            return Finding("X01", _told_apart(first, second), line=getattr(first, "line", None))
    if len(one.events) != len(other.events):
        longer = max((one, other), key=lambda recording: len(recording.events))
        line = getattr(longer.events[min(len(one.events), len(other.events))], "line", None)
        return Finding("X01", fault("other count", count=len(one.events),
                                    other=len(other.events)), line=line)
    if (one.results, one.returned_tuple) != (other.results, other.returned_tuple):
        return Finding("X01", fault("other result"))
    return None


def _told_apart(first: Event, second: Event) -> Fault:
    match first, second:
        case Launch(), Launch() if first.kernel != second.kernel:
            return fault("other kernel", kernel=first.kernel, other=second.kernel)
        case Launch(), Launch() if first.grid != second.grid:
            return fault("other grid", kernel=first.kernel, grid=first.grid, other=second.grid)
        case Launch(), Launch():
            for name, (left, right) in _pairs(first, second):
                return fault("other argument", kernel=first.kernel, name=name, value=_shown(left),
                             other=_shown(right))
            return fault("other options", kernel=first.kernel)
        case Fill(), Fill() if first.target == second.target:
            return fault("other fill", value=first.value, other=second.value)
        case (Move(), Move()) | (Fill(), Fill()):
            return fault("other part", event=type(first).__name__)
        case Alloc(_, size), Alloc(_, wanted):
            return fault("other bytes", n_bytes=size, other=wanted)
    return fault("other event", event=type(first).__name__, other=type(second).__name__)


def _pairs(first: Launch, second: Launch) -> Iterator[tuple[str, tuple[Any, Any]]]:
    for name in dict.fromkeys((*first.arguments, *second.arguments)):
        left, right = first.arguments.get(name), second.arguments.get(name)
        if repr(left) != repr(right):
            yield name, _innermost(left, right)


def _innermost(left: Argument | None, right: Argument | None) -> tuple[Any, Any]:
    """Of two tuples of equal length, the first items that differ."""
    if left and right and left.kind == right.kind == "tuple":
        for one, other in zip(left.value, right.value, strict=False):
            if repr(one) != repr(other):
                return _innermost(one, other)
    return left, right


def _shown(argument: Argument | None) -> str:
    if argument is None:
        return "missing"
    if argument.kind in ("tensor", "descriptor", "tuple"):
        return f"one {argument.kind}"
    return f"{argument.value!r:.40}"
