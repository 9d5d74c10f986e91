"""Variants of kernels that Triton compiles over several calls of a function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from grader.finding import Figure, fault
from grader.recording.codec import JsonObject
from grader.report import Finding

SHOWN = 4  # of the values of an argument, in a message


@dataclass(frozen=True)
class Variant(JsonObject):
    """The key by which Triton caches compiled code.

    ``parts`` say for each parameter what the compiler knows of it, and ``options`` those of the
    launch. ``in_vain`` are constexpr parameters that `do_not_specialize` names all the same.
    """

    kernel: str
    parts: tuple[tuple[str, str], ...]
    options: str
    in_vain: tuple[str, ...] = ()


def too_many(found: Sequence[Variant], most: int, of: str) -> list[Finding]:
    """Returns Q01 for more than ``most`` variants; ``of`` names the calls.

    A constexpr that `do_not_specialize` names is L05: its values are told apart all the same, and
    Triton refuses to compile such a kernel.
    """
    variants = list(dict.fromkeys(found))
    if len(variants) <= most:
        return []
    for one in variants:
        if one.in_vain:
            return [Finding("L05", fault("not specialized", kernel=one.kernel, name=one.in_vain[0],
                                         count=len(variants), calls=of))]
    return [Finding("Q01", fault(
        "variants", count=len(variants), calls=of, most=most,
        kernels=tuple(dict.fromkeys(one.kernel for one in variants)), **_differing(variants)))]


def _differing(variants: Sequence[Variant]) -> dict[str, Figure]:
    """The argument with the most specializations, and the first of them; empty without."""
    by_argument: dict[tuple[str, str], dict[str, None]] = {}
    for one in variants:
        for name, part in one.parts:
            by_argument.setdefault((one.kernel, name), {})[part] = None
    if not by_argument:
        return {}
    (kernel, name), parts = max(by_argument.items(), key=lambda item: len(item[1]))
    if len(parts) < 2:
        return {}
    return {"kernel": kernel, "name": name, "parts": tuple(parts)[:SHOWN], "n_parts": len(parts)}
