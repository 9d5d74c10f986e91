"""How many variants of its kernels a function makes Triton compile, over several calls of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from grader.report import Finding

SHOWN = 4  # of the values of an argument, in a message


@dataclass(frozen=True)
class Variant:
    """By what Triton finds compiled code again.

    ``parts`` say for each parameter what the compiler knows of it, and ``options`` those of the
    launch. ``in_vain`` are constexpr parameters that `do_not_specialize` names all the same.
    """

    kernel: str
    parts: tuple[tuple[str, str], ...]
    options: str
    in_vain: tuple[str, ...] = ()

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Variant:
        """Read one of the compiler's answers.

        Raises:
            KeyError, TypeError, ValueError: it is none.
        """
        return cls(str(data["kernel"]), tuple((str(name), str(known))
                                              for name, known in data["parts"]),
                   str(data["options"]), tuple(map(str, data["in_vain"])))


def too_many(found: Sequence[Variant], most: int, of: str) -> list[Finding]:
    """Q01 where there are more than ``most`` variants; ``of`` says of which calls.

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
    """The argument of which the compiler knows most different things, over the variants."""
    known: dict[tuple[str, str], dict[str, None]] = {}
    for one in variants:
        for name, part in one.parts:
            known.setdefault((one.kernel, name), {})[part] = None
    if not known:
        return ""
    (kernel, name), parts = max(known.items(), key=lambda item: len(item[1]))
    if len(parts) < 2:
        return ""
    shown = ", ".join(list(parts)[:SHOWN]) + (" and so on" if len(parts) > SHOWN else "")
    return (f"While `{kernel}` is compiled, {len(parts)} different things are known of `{name}`: "
            f"{shown}.")
