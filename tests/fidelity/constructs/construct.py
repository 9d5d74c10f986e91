"""One construct of the language: host code that launches kernels, and what must come out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
import triton

VERSION = ".".join(triton.__version__.split(".")[:2])
VERSIONS = ("3.6", "3.7", "3.8", "3.9")
EVERY = VERSIONS
UNTIL_3_6 = VERSIONS[:1]
UNTIL_3_7 = VERSIONS[:2]
UNTIL_3_8 = VERSIONS[:3]
SINCE_3_7 = VERSIONS[1:]
SINCE_3_8 = VERSIONS[2:]
SINCE_3_9 = VERSIONS[3:]


@dataclass(frozen=True)
class Check:
    """A value that kernels computed beside the value that the language's definition gives.

    ``relative`` is in units of the last place of the computed type; both zero means that the
    value is the exact one, rounded once to the computed type.
    """

    got: Any
    expected: Any
    relative: float = 0.0
    absolute: float = 0.0


def equal(got: Any, expected: Any) -> Check:
    """The exact value, rounded once if the type of ``got`` is narrower. NaN equals NaN."""
    return Check(got, expected)


def near(got: Any, expected: Any, ulps: float = 4, absolute: float = 0.0) -> Check:
    """Within some units in the last place of the type that was computed, or a plain distance."""
    return Check(got, expected, ulps, absolute)


Body = Callable[[str], Check | Iterable[Check] | None]


def listed(result: Check | Iterable[Check] | None) -> list[Check]:
    """What a body gave back: nothing, one check or several."""
    if result is None:
        return []
    return [result] if isinstance(result, Check) else list(result)


@dataclass(frozen=True)
class Construct:
    """A phrase of Triton's language, with what every version says to it.

    ``rejects``: the versions whose compiler, or launcher, refuses it; ``refusals``: the codes by
    which the engine may do so.
    ``fails``: the finding with which a GPU's run must end, for constructs that end one.
    ``finds``: codes that the engine rightly reports while it runs.
    ``configurations``: how many configurations of its tuner the engine has to take in turn.
    ``differs``: for a version, why the engine is known not to behave like a GPU.
    ``not_on_gpu``: why it is not run on a real GPU. ``not_compiled``: why the compile check does
    not apply, for host code that compiles nothing.
    """

    name: str
    theme: str
    body: Body
    rejects: tuple[str, ...] = ()
    refusals: tuple[str, ...] = ("L05",)
    fails: str = ""
    finds: frozenset[str] = frozenset()
    configurations: int = 1
    differs: Mapping[str, str] = field(default_factory=dict)
    not_on_gpu: str = ""
    not_compiled: str = ""

    @property
    def rejected(self) -> bool:
        """Whether the installed version refuses it."""
        return VERSION in self.rejects

    @property
    def reason(self) -> str:
        """Why the engine is known to differ under the installed version, or nothing."""
        return self.differs.get(VERSION, "")


class Theme:
    """Constructs that belong together; calling it makes a decorator that adds one."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.constructs: list[Construct] = []

    def __call__(self, name: str, *, differs: str | Mapping[str, str] = "",
                 finds: Iterable[str] = (), **rest: Any) -> Callable[[Body], Body]:
        reasons = dict.fromkeys(VERSIONS, differs) if isinstance(differs, str) else differs

        def add(body: Body) -> Body:
            self.constructs.append(Construct(name, self.name, body, finds=frozenset(finds),
                                             differs=reasons, **rest))
            return body

        return add


# ---------------------------------------------------------------------------------------------
# Comparing


def difference(check: Check) -> str:
    """What is wrong with the computed value, or nothing."""
    got, expected = _host(check.got), _host(check.expected)
    if got.shape != expected.shape:
        return f"shape {tuple(got.shape)} instead of {tuple(expected.shape)}"
    if not got.dtype.is_floating_point:
        have, want = _integers(got), _integers(expected)
        return _first(have, want, have != want)
    exact = not check.relative and not check.absolute
    have, want = _wide(got), _wide(rounded(expected, got.dtype) if exact else expected)
    if exact:
        apart = have != want
    else:
        limit = check.relative * torch.finfo(got.dtype).eps * np.abs(want) + check.absolute
        with np.errstate(invalid="ignore"):
            apart = ~(np.abs(have - want) <= limit) & (have != want)
    return _first(have, want, apart & ~(np.isnan(have) & np.isnan(want)))


def rounded(value: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """A value in a narrower type: rounded once, to nearest even."""
    if not value.dtype.is_floating_point:
        if dtype in (torch.float32, torch.float64):  # torch takes no uint64 there
            return torch.from_numpy(value.numpy().astype(str(dtype).removeprefix("torch.")))
        value = value.double()
    if value.dtype != torch.float64 or dtype.itemsize >= 4:
        return value.to(dtype)
    # torch goes through float32. Rounded to odd there, the second rounding cannot go wrong.
    near = value.float()
    wide = near.double()
    bits = near.view(torch.int32)
    even = (wide != value) & torch.isfinite(wide) & (bits % 2 == 0)
    step = torch.where(value.abs() > wide.abs(), 1, -1).to(torch.int32)
    return torch.where(even, bits + step, bits).view(torch.float32).to(dtype)


def _host(value: Any) -> torch.Tensor:
    if isinstance(value, torch.Tensor):
        return value.detach().cpu()
    return torch.from_numpy(np.array(value))


def _wide(tensor: torch.Tensor) -> Any:
    if not tensor.dtype.is_floating_point:
        return _integers(tensor).astype(np.float64)
    return (tensor.float() if tensor.itemsize == 1 else tensor).double().numpy()


def _integers(tensor: torch.Tensor) -> Any:
    """As Python's integers, which no mixture of signed and unsigned rounds."""
    if tensor.dtype.is_floating_point:
        return tensor.double().numpy().astype(object)
    return tensor.numpy().astype(object)


def _first(have: Any, want: Any, apart: Any) -> str:
    places = np.flatnonzero(np.asarray(apart, np.bool_).reshape(-1))
    if not places.size:
        return ""
    at = np.unravel_index(int(places[0]), have.shape)
    place = ", ".join(str(int(i)) for i in at)
    return (f"[{place}] is {_said(have[at])} instead of {_said(want[at])}; "
            f"{places.size} of {have.size} differ")


def _said(value: Any) -> str:
    return f"{value:.9g}" if isinstance(value, float) and math.isfinite(value) else str(value)
