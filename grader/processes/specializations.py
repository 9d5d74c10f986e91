"""Variants of kernels that Triton compiles over several calls of a function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
            name = one.in_vain[0]
            return [Finding("L05", f"`{one.kernel}` names `{name}` in do_not_specialize, and "
                                   f"`{name}` is a constexpr: each of its values still makes a key "
                                   f"of its own, {len(variants)} for {of}, and Triton refuses to "
                                   "compile such a kernel.")]
    kernels = list(dict.fromkeys(one.kernel for one in variants))
    seen = (f"{len(variants)} variants of {' and '.join(f'`{name}`' for name in kernels)} are "
            f"compiled for {of}; {most} are enough.")
    return [Finding("Q01", f"{seen} {_differing(variants)}".strip())]


def _differing(variants: Sequence[Variant]) -> str:
    """A sentence on the argument with the most specializations."""
    by_argument: dict[tuple[str, str], dict[str, None]] = {}
    for one in variants:
        for name, part in one.parts:
            by_argument.setdefault((one.kernel, name), {})[part] = None
    if not by_argument:
        return ""
    (kernel, name), parts = max(by_argument.items(), key=lambda item: len(item[1]))
    if len(parts) < 2:
        return ""
    shown = ", ".join(list(parts)[:SHOWN]) + (" and so on" if len(parts) > SHOWN else "")
    return (f"While `{kernel}` is compiled, {len(parts)} different things are known of `{name}`: "
            f"{shown}.")
