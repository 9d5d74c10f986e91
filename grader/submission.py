"""What a property of a suite gets: something to call, and inputs to call it with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from grader.recording import Recording
from grader.report import Finding
from grader.session import Session
from grader.suite import Input

Broken = Callable[[Recording, Sequence[Any]], list[Finding]]


class Faulty(AssertionError):
    """Inside a property: the submission failed before the law could be looked at."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        super().__init__(" ".join(finding.seen for finding in findings))
        self.findings = tuple(findings)


class Submission:
    """The learner's function, recorded and replayed at every call.

    Where a suite has several functions, each is an attribute: ``submission.glu(x, gate)``.
    """

    def __init__(self, name: str, functions: Mapping[str, tuple[Session, Broken]],
                 draw: Callable[[str, Sequence[Input]], list[torch.Tensor]]) -> None:
        """A submission for one property.

        Args:
            name: of the property.
            functions: name -> its session, and what says which part of the contract a call did not
                keep.
            draw: makes inputs.
        """
        self._name = name
        self._functions = functions
        self._draw = draw
        self._drawn = 0

    def draw(self, *specs: Input) -> tuple[torch.Tensor, ...]:
        """New tensors, different at every call and the same again for the same seed."""
        self._drawn += 1
        return tuple(self._draw(f"{self._name}/{self._drawn}", specs))

    def __call__(self, *inputs: Any) -> Any:
        """The learner's result, or a tuple of its results.

        Raises:
            Faulty: there is none, or an access of a kernel was wrong.
        """
        [(session, broken)] = self._functions.values()
        return _call(session, broken, inputs)

    def __getattr__(self, function: str) -> Callable[..., Any]:
        if function not in self._functions:
            raise AttributeError(f"the suite has no function `{function}`")
        session, broken = self._functions[function]
        return lambda *inputs: _call(session, broken, inputs)


def _call(session: Session, broken: Broken, inputs: Sequence[Any]) -> Any:
    recording, findings, run = session.execute(inputs)
    findings += run.findings
    if recording is not None and not findings:
        findings = broken(recording, inputs)
    if recording is None or findings:
        raise Faulty(findings)
    return run.results if recording.returned_tuple else run.results[0]
