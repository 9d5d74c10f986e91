"""Points of one grade, by kind of case."""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from grader.report import Kind, Verdict

_KINDS = {Kind.CALL: Kind.CORRECTNESS}  # counted among the correctness cases


@dataclass(frozen=True)
class Weights:
    """The share of each kind of case in the points; only their proportion matters.

    ``all_or_nothing``: a passed grade gets all points, any other none.
    """

    correctness: float = 50
    edge: float = 20
    property: float = 10
    performance: float = 20
    all_or_nothing: bool = False

    def of(self, kind: str) -> float:
        weight: float = getattr(self, kind)
        return weight


class GroupPoints(msgspec.Struct, frozen=True, gc=False):
    """The points of all cases of one kind."""

    kind: str
    passed: int
    total: int
    points: float
    out_of: float


class Points(msgspec.Struct, frozen=True):
    """The points of a grade by kind of case; without groups where nothing could be run."""

    groups: tuple[GroupPoints, ...]
    total: float
    out_of: float


class Count(msgspec.Struct, frozen=True, gc=False):
    """How many of the deciding cases of one kind passed."""

    kind: str
    passed: int
    total: int


def counts(report: Mapping[str, Any]) -> tuple[Count, ...]:
    """Counts the deciding cases of a report, from ``grader.report.Report.to_dict``, by kind.

    A case that was skipped, such as one that only a GPU can judge, or that was too noisy to tell,
    is not counted. While blanks are left nothing is.
    """
    by_kind: dict[str, list[bool]] = {}
    for result in counted(report):
        by_kind.setdefault(kind_of(result), []).append(result["verdict"] == Verdict.PASSED)
    return tuple(Count(kind, sum(passed), len(passed)) for kind, passed in by_kind.items())


def counted(report: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Returns the results that ``counts`` counts."""
    return [] if report["steps"] else [
        result for result in report["results"]
        if not result["advisory"]
        and result["verdict"] not in (Verdict.SKIPPED, Verdict.INCONCLUSIVE)]


def kind_of(result: Mapping[str, Any]) -> str:
    """Returns the kind that a result is counted among."""
    return str(_KINDS.get(result["kind"], result["kind"]))


def points(report: Mapping[str, Any], weights: Weights | None = None,
           out_of: float = 100) -> Points:
    """Returns the points of a report; see ``points_of``."""
    return points_of(counts(report), report["verdict"] == Verdict.PASSED, weights, out_of)


@functools.lru_cache(10_000)
def points_of(cases: tuple[Count, ...], passes: bool, weights: Weights | None = None,
              out_of: float = 100) -> Points:
    """Returns the points of a grade.

    A kind of which the suite has no case gives its weight to the others, in proportion.

    Args:
        cases: from ``counts``, of a grade with effort "whole".
        passes: whether the verdict is PASSED, which gives exactly ``out_of`` points.
        weights: of the kinds of cases.
        out_of: the points of a passed grade.
    """
    weights = weights or Weights()
    if weights.all_or_nothing or not cases:
        return Points((), out_of if passes else 0, out_of)
    whole = sum(weights.of(one.kind) for one in cases)
    groups = []
    for one in cases:
        most = out_of * weights.of(one.kind) / whole if whole else out_of / len(cases)
        groups.append(GroupPoints(one.kind, one.passed, one.total,
                                  most * one.passed / one.total, most))
    return Points(tuple(groups), out_of if passes else sum(g.points for g in groups), out_of)


def number(value: float | None, *, comma: bool = False) -> str:
    """Returns points with at most two decimals; an empty text for None."""
    if value is None:
        return ""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return text.replace(".", ",") if comma else text


def apportioned(shares: Sequence[float], total: int) -> list[int]:
    """Returns integers in proportion to ``shares`` that add up to ``total``.

    The largest remainders are rounded up (Hamilton's method).
    """
    whole = sum(shares)
    exact = [total * share / whole if whole else total / len(shares) for share in shares]
    parts = [int(value) for value in exact]
    by_remainder = sorted(range(len(exact)), key=lambda i: parts[i] - exact[i])
    for index in by_remainder[:total - sum(parts)]:
        parts[index] += 1
    return parts
