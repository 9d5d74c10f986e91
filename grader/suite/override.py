"""Changes of a suite that a course or a class asks for."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from grader.report import Kind

if TYPE_CHECKING:  # a class is listed without loading torch
    from grader.suite import Case, Function, Suite


@dataclass(frozen=True)
class Override:
    """``pass_at`` replaces the share of the roofline that performance cases require; ``ignore``
    names cases that are left out.
    """

    pass_at: Annotated[float, Meta(ge=0, le=1)] | None = None
    ignore: tuple[str, ...] = ()


def overridden(suite: "Suite", override: Override) -> "Suite":
    """Returns a suite with an override applied; its SHA-256 depends on the override.

    Raises:
        ValueError: ``ignore`` names no case, or all, or nothing has a ``pass_at`` to replace.
    """
    if override == Override():
        return suite
    names = [case.name for case in suite.ordered()]
    unknown = [name for name in override.ignore if name not in names]
    if unknown:
        raise ValueError(f"no case is called '{unknown[0]}'; the cases are: {'; '.join(names)}")
    if set(names) <= set(override.ignore):
        raise ValueError("every case is ignored")

    def changed(cases: "Sequence[Case]", entry: str = "") -> "tuple[Case, ...]":
        prefix = f"{entry}: " if entry else ""
        return tuple(_with_pass_at(case, override.pass_at) for case in cases
                     if prefix + case.name not in override.ignore)

    def functions() -> "Sequence[Function]":
        return tuple(replace(one, cases=changed(one.cases, one.entry)) for one in suite.functions)

    result = replace(
        suite, cases=changed(suite.cases), functions=functions(),
        properties=tuple(p for p in suite.properties if p.name not in override.ignore))
    if override.pass_at is not None and not any(
            case.limits and case.limits.pass_at is not None for case in suite.all_cases):
        raise ValueError("no case has a pass_at to replace")
    return replace(result, sha256=overridden_sha256(suite.sha256, override))


def overridden_sha256(sha256: str, override: Override) -> str:
    """Returns the SHA-256 of a suite with an override."""
    if override == Override():
        return sha256
    text = json.dumps([sha256, override.pass_at, sorted(override.ignore)])
    return hashlib.sha256(text.encode()).hexdigest()


def _with_pass_at(case: "Case", pass_at: float | None) -> "Case":
    if pass_at is None or case.kind is not Kind.PERFORMANCE or case.limits is None \
            or case.limits.pass_at is None:
        return case
    return replace(case, limits=replace(case.limits, pass_at=pass_at))
