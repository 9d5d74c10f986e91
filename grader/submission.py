"""What a property of a suite gets: something to call, and inputs to call it with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from grader.recording import Recording
from grader.report import Finding
from grader.session import Session
from grader.suite import Input


class Faulty(AssertionError):
    """Inside a property: the submission failed before the law could be looked at."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        super().__init__(" ".join(finding.seen for finding in findings))
        self.findings = tuple(findings)


class Submission:
    """The learner's function, recorded and replayed at every call."""

    def __init__(self, name: str, session: Session,
                 draw: Callable[[str, Sequence[Input]], list[torch.Tensor]],
                 broken: Callable[[Recording, Sequence[Any]], list[Finding]]) -> None:
        """``draw`` makes inputs; ``broken`` says which part of the contract a call did not keep."""
        self._name = name
        self._session = session
        self._draw = draw
        self._broken = broken
        self._drawn = 0

    def draw(self, *specs: Input) -> tuple[torch.Tensor, ...]:
        """New tensors, different at every call and the same again for the same seed."""
        self._drawn += 1
        return tuple(self._draw(f"{self._name}/{self._drawn}", specs))

    def __call__(self, *inputs: torch.Tensor) -> torch.Tensor:
        """The learner's result.

        Raises:
            Faulty: there is none, or an access of a kernel was wrong.
        """
        recording, findings, run = self._session.execute(inputs)
        findings += run.findings
        if recording is not None and not findings:
            findings = self._broken(recording, inputs)
        if recording is None or findings:
            raise Faulty(findings)
        return run.results[0]
