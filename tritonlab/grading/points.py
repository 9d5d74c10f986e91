"""Points of one grade, by kind of case."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

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
        weights: dict[str, float] = asdict(self)
        return weights[kind]


@dataclass(frozen=True)
class GroupPoints:
    """The points of all cases of one kind."""

    kind: str
    passed: int
    total: int
    points: float
    out_of: float


@dataclass(frozen=True)
class Points:
    """The points of a grade by kind of case; without groups where nothing could be run."""

    groups: tuple[GroupPoints, ...]
    total: float
    out_of: float


def points(report: Mapping[str, Any], weights: Weights | None = None,
           out_of: float = 100) -> Points:
    """Returns the points of a report.

    A kind of which the suite has no case gives its weight to the others, in proportion. A case
    that was skipped, such as one that only a GPU can judge, is not counted. While blanks are
    left, or where the file was refused, there are no points.

    Args:
        report: from ``grader.report.Report.to_dict``, of a grade with effort "whole".
        weights: of the kinds of cases.
        out_of: the points of a passed grade.
    """
    weights = weights or Weights()
    passes = report["verdict"] == Verdict.PASSED
    counted = [] if report["steps"] else [
        result for result in report["results"]
        if not result["advisory"] and result["verdict"] != Verdict.SKIPPED]
    if weights.all_or_nothing or not counted:
        return Points((), out_of if passes else 0, out_of)
    by_kind: dict[str, list[bool]] = {}
    for result in counted:
        kind = str(_KINDS.get(result["kind"], result["kind"]))
        by_kind.setdefault(kind, []).append(result["verdict"] == Verdict.PASSED)
    whole = sum(weights.of(kind) for kind in by_kind)
    groups = []
    for kind, passed in by_kind.items():
        most = out_of * weights.of(kind) / whole if whole else out_of / len(by_kind)
        groups.append(GroupPoints(kind, sum(passed), len(passed),
                                  most * sum(passed) / len(passed), most))
    return Points(tuple(groups), out_of if passes else sum(g.points for g in groups), out_of)
