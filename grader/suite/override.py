"""Changes of a suite that a course or a class asks for."""

import difflib
import hashlib
import json
from collections.abc import Collection, Sequence
from dataclasses import replace

from grader.report import Kind
from grader.suite.cases import Case
from grader.suite.spec import Function, Suite


def overridden(suite: Suite, *, pass_at: float | None = None,
               ignore: Collection[str] = ()) -> Suite:
    """Returns a changed suite; its SHA-256 depends on the change.

    Args:
        pass_at: replaces the share of the roofline that performance cases require.
        ignore: names of cases that are left out.

    Raises:
        ValueError: ``ignore`` names no case, or all, or nothing has a ``pass_at`` to replace.
    """
    if pass_at is None and not ignore:
        return suite
    names = [case.name for case in suite.ordered()]
    unknown = [name for name in ignore if name not in names]
    if unknown:
        close = difflib.get_close_matches(unknown[0], names, n=1, cutoff=0.4)
        hint = f", the nearest is '{close[0]}'" if close else ""
        raise ValueError(f"no case is called '{unknown[0]}'{hint}; the cases are: "
                         f"{'; '.join(names)}")
    if set(names) <= set(ignore):
        raise ValueError("every case is ignored")

    def changed(cases: Sequence[Case], entry: str = "") -> tuple[Case, ...]:
        prefix = f"{entry}: " if entry else ""
        return tuple(_with_pass_at(case, pass_at) for case in cases
                     if prefix + case.name not in ignore)

    def functions() -> Sequence[Function]:
        return tuple(replace(one, cases=changed(one.cases, one.entry)) for one in suite.functions)

    result = replace(
        suite, cases=changed(suite.cases), functions=functions(),
        properties=tuple(p for p in suite.properties if p.name not in ignore))
    if pass_at is not None and not any(
            case.limits and case.limits.pass_at is not None for case in suite.all_cases):
        raise ValueError("no case has a pass_at to replace")
    return replace(result, sha256=overridden_sha256(suite.sha256, pass_at=pass_at, ignore=ignore))


def overridden_sha256(sha256: str, *, pass_at: float | None = None,
                      ignore: Collection[str] = ()) -> str:
    """Returns the SHA-256 of a suite that is changed so."""
    if pass_at is None and not ignore:
        return sha256
    text = json.dumps([sha256, pass_at, sorted(ignore)])
    return hashlib.sha256(text.encode()).hexdigest()


def _with_pass_at(case: Case, pass_at: float | None) -> Case:
    if pass_at is None or case.kind is not Kind.PERFORMANCE or case.limits is None \
            or case.limits.pass_at is None:
        return case
    return replace(case, limits=replace(case.limits, pass_at=pass_at))
