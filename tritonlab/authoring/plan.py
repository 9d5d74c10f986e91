"""The tasks for a module, and their results."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from grader.report import EXIT_FAILED, EXIT_GRADER_BROKE, EXIT_PASSED

# Longest first, so that short tasks keep all workers busy to the end.
_ORDER = ("text", "solution", "exercise", "lesson", "self-test", "mutant")


@dataclass(frozen=True)
class Task:
    """A task of one worker. Runs of a mutant are counted from 1; ``run`` is the first.

    Further runs repeat ``killer``, the case that killed it, with fresh inputs.
    """

    module: str
    what: str
    mutant: str = ""
    run: int = 0
    runs: int = 1
    killer: str = ""

    @property
    def rank(self) -> tuple[int, int]:
        return _ORDER.index(self.what), self.run

    def __str__(self) -> str:
        what = self.what
        if self.mutant:
            last = self.run + self.runs - 1
            runs = f"runs {self.run} to {last}" if last > self.run else f"run {self.run}"
            what = f"mutant {self.mutant}, {runs}"
        return f"{self.module}: {what}"


@dataclass(frozen=True)
class CheckOutcome:
    """The result of one check: its faults as sentences."""

    name: str
    faults: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def passed(self) -> bool:
        return not self.faults


@dataclass(frozen=True)
class MutantResult:
    """A row of the kill matrix. ``case`` is the one that killed it in the first run.

    ``drawn``: it has random inputs, so that runs may differ.
    """

    id: str
    title: str
    codes: tuple[str, ...]
    case: str = ""
    drawn: bool = True
    kills: int = 0
    runs: int = 0
    faults: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def passed(self) -> bool:
        return 0 < self.kills == self.runs


@dataclass(frozen=True)
class TaskResult:
    """The result of a task. ``sound``: the module can be graded at all."""

    task: Task
    outcomes: tuple[CheckOutcome, ...] = ()
    sound: bool = True
    mutants: tuple[MutantResult, ...] = ()  # that there are, not run yet
    killer: str = ""  # the case that killed the mutant
    kills: int = 0
    faults: tuple[str, ...] = ()  # why it was not killed in each run
    drawn: bool = True  # whether that case has random inputs
    seconds: float = 0.0


@dataclass
class Proof:
    """All results of one module."""

    module: str
    title: str
    by_task: dict[str, tuple[CheckOutcome, ...]] = field(default_factory=dict)
    mutants: list[MutantResult] = field(default_factory=list)
    seconds: float = 0.0  # of all workers

    @property
    def outcomes(self) -> list[CheckOutcome]:
        """The results in the order of the tasks."""
        return [outcome for what in _ORDER for outcome in self.by_task.get(what, ())]

    @property
    def passed(self) -> bool:
        return all(outcome.passed for outcome in self.outcomes) and \
            bool(self.mutants) and all(mutant.passed for mutant in self.mutants)


@dataclass(frozen=True)
class CourseProof:
    """All results. ``strays`` are faults of the course, not of a module."""

    proofs: tuple[Proof, ...]
    strays: tuple[str, ...] = ()
    broken: str = ""  # the failure of the check itself
    seconds: float = 0.0

    @property
    def passed(self) -> bool:
        return bool(self.proofs) and not self.strays and not self.broken and \
            all(proof.passed for proof in self.proofs)

    @property
    def exit_code(self) -> int:
        if self.broken:
            return EXIT_GRADER_BROKE
        return EXIT_PASSED if self.passed else EXIT_FAILED

    def to_dict(self) -> dict[str, Any]:
        """Returns plain data of ``schema`` 1."""
        return {
            "schema": 1,
            "passed": self.passed,
            "exit_code": self.exit_code,
            "seconds": self.seconds,
            "broken": self.broken,
            "strays": list(self.strays),
            "modules": [{
                "module": proof.module,
                "title": proof.title,
                "passed": proof.passed,
                "seconds": proof.seconds,
                "checks": [{"passed": o.passed, **asdict(o)} for o in proof.outcomes],
                "mutants": [{"passed": m.passed, **asdict(m)} for m in proof.mutants],
            } for proof in self.proofs],
        }
