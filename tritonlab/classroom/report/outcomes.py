"""The parts of a result that pages and feedback show."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from grader.report import Verdict
from tritonlab.classroom.store import Store

Reveal = Literal["verdict", "first-failure", "all"]


@dataclass(frozen=True)
class FailureView:
    """A failed case in the words that `tritonlab grade` shows."""

    case: str
    code: str
    name: str
    words: str
    means: str
    where: str
    next_step: str
    line: int | None
    todos: tuple[int, ...]
    function: str = ""


@dataclass(frozen=True)
class CaseView:
    """The outcome of one case that decides."""

    name: str
    kind: str
    verdict: str
    seconds: float


@dataclass(frozen=True)
class ResultView:
    """A result without seeds, inputs, expected values and output.

    ``steps`` are pairs of a TODO and its state, where blanks are left.
    """

    verdict: str
    reason: str
    cases: tuple[CaseView, ...]
    failures: tuple[FailureView, ...]
    steps: tuple[tuple[int, str], ...]

    def revealed(self, reveal: Reveal) -> tuple[FailureView, ...]:
        """The failures that a student may read."""
        return {"verdict": (), "first-failure": self.failures[:1], "all": self.failures}[reveal]

    @property
    def refused(self) -> bool:
        """Whether nothing was run: the file itself cannot be graded."""
        return any(failure.code.startswith("P") for failure in self.failures[:1])

    @property
    def first_failure(self) -> str:
        """The first failure in a sentence, empty where there is none."""
        if self.failures:
            return f"Failed: {self.failures[0].case}: {self.failures[0].words}"
        return self.reason if self.verdict == Verdict.FAILED else ""

    @property
    def blanks(self) -> list[int]:
        """The TODOs that are not filled in."""
        return [todo for todo, state in self.steps if state not in ("right", "wrong")]


class ResultViews:
    """The results of a class; each is read once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._read: dict[str, ResultView | None] = {}

    def of(self, key: str) -> ResultView | None:
        """Returns a result; None if it is missing or damaged."""
        if key not in self._read:
            data = self._store.result(key)
            self._read[key] = None if data is None else outcome_of(data["report"])
        return self._read[key]


def outcome_of(report: Mapping[str, Any]) -> ResultView:
    """Reads the plain data of a report."""
    deciding = [result for result in report["results"] if not result["advisory"]]
    failures = [_failure(result["name"], result["findings"][0]) for result in deciding
                if result["verdict"] == Verdict.FAILED and result["findings"]]
    reasons = (result["reason"] for result in deciding
               if result["verdict"] in (Verdict.ERROR, Verdict.INCONCLUSIVE)
               or (result["verdict"] == Verdict.FAILED and not result["findings"]))
    return ResultView(
        report["verdict"], report["reason"] or next(filter(None, reasons), ""),
        tuple(CaseView(result["name"], result["kind"], result["verdict"], result["seconds"])
              for result in deciding),
        tuple(failures),
        tuple((todo, step["state"]) for step in report["steps"] for todo in step["todos"]))


def _failure(case: str, finding: Mapping[str, Any]) -> FailureView:
    return FailureView(case, finding["code"], finding["name"], finding["seen"], finding["means"],
                   finding["where"], finding["next_step"], finding["line"],
                   tuple(finding["todos"]), finding["function"])
