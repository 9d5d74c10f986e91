"""What a property of a suite gets: something to call, and inputs to call it with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from grader.engine.compiler.targets import Target
from grader.outcome import unusable
from grader.recording import Recording
from grader.report import Finding
from grader.session import Session
from grader.suite import Input
from grader.variants import too_many

Broken = Callable[[Recording, Sequence[Any]], list[Finding]]


class Faulty(AssertionError):
    """Inside a property: the submission failed before the law could be looked at."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        super().__init__(" ".join(finding.seen for finding in findings))
        self.findings = tuple(findings)


class Submission:
    """The learner's function, recorded and replayed at every call.

    Where a suite has several functions, each is an attribute: ``submission.glu(x, gate)``. Each
    also says how many ``variants`` of its kernels are compiled for several calls.
    """

    def __init__(self, name: str, functions: Mapping[str, tuple[Session, Broken]],
                 draw: Callable[[str, Sequence[Input]], list[torch.Tensor]],
                 target: Target) -> None:
        """A submission for one property.

        Args:
            name: of the property.
            functions: name -> its session, and what says which part of the contract a call did not
                keep.
            draw: makes inputs.
            target: the GPU that kernels are compiled for.
        """
        self._name = name
        self._functions = functions
        self._target = target
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
        return self._only()(*inputs)

    def variants(self, calls: Sequence[Sequence[Any]], *, most: int, of: str) -> None:
        """Ask that few variants are compiled for several calls, as of ``Entry``."""
        self._only().variants(calls, most=most, of=of)

    def _only(self) -> Entry:
        [(session, broken)] = self._functions.values()
        return Entry(session, broken, self._target)

    def __getattr__(self, function: str) -> Entry:
        if function not in self._functions:
            raise AttributeError(f"the suite has no function `{function}`")
        session, broken = self._functions[function]
        return Entry(session, broken, self._target)


class Entry:
    """One function of the submission."""

    def __init__(self, session: Session, broken: Broken, target: Target) -> None:
        self._session = session
        self._broken = broken
        self._target = target

    def __call__(self, *inputs: Any) -> Any:
        """The learner's result, or a tuple of its results.

        Raises:
            Faulty: there is none, or an access of a kernel was wrong.
        """
        recording, findings, run = self._session.execute(inputs)
        findings += run.findings
        if recording is not None and not findings:
            findings = self._broken(recording, inputs)
        if recording is None or findings:
            raise Faulty(findings)
        return run.results if recording.returned_tuple else run.results[0]

    def variants(self, calls: Sequence[Sequence[Any]], *, most: int, of: str) -> None:
        """Ask that Triton compiles at most so many variants of kernels for all calls together.

        The calls are recorded and not run. Launches are told apart as Triton's cache does it: by
        the kernel, its constexpr values, types, what the compiler may know of integers and
        addresses, and the options. ``of`` says in words which calls these are.

        Raises:
            Faulty: there are more, or a call launches nothing.
        """
        recordings = []
        for inputs in calls:
            outcome = self._session.record(inputs)
            findings = unusable(outcome)
            if outcome.recording is None or findings:
                raise Faulty(findings)
            if not outcome.recording.launches:
                raise Faulty([Finding("X01", f"One of the calls launches no kernel, of {of}.")])
            recordings.append(outcome.recording)
        if findings := too_many(self._session.variants(recordings, self._target), most, of):
            raise Faulty(findings)
