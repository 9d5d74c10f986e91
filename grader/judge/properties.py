"""Properties of a suite: each gets the submission to call, and asserts something of its results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from grader.diagnosis.explain import result_of
from grader.finding import fault
from grader.judge.context import Context
from grader.judge.contract import broken_contract
from grader.processes.replies import too_many, unusable
from grader.processes.session import Session
from grader.report import CaseResult, Finding
from grader.suite import Case, Input, Property, Suite
from grader.text import sentence


def judge(tried: Property, ctx: Context) -> CaseResult:
    """Judges a property, which calls the learner's functions as it likes.

    Raises:
        grader.processes.replies.Stopped: a process did not survive it.
    """
    ctx.block(tried)
    try:
        tried.test(PropertySubmission(tried, ctx))
    except Faulty as fault:
        return result_of(tried, fault.findings)
    except AssertionError as error:
        return result_of(tried, [Finding("N01", sentence(str(error)))])
    return result_of(tried, [])


class Faulty(AssertionError):
    """Inside a property: the submission failed before its results could be looked at."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        super().__init__(" ".join(finding.seen for finding in findings))
        self.findings = tuple(findings)


class PropertySubmission:
    """The learner's function, recorded and replayed at every call.

    Where a suite has several functions, each is an attribute: ``submission.glu(x, gate)``. Each
    also counts the ``variants`` of its kernels that are compiled for several calls.
    """

    def __init__(self, tried: Property, ctx: Context) -> None:
        self._name = tried.name
        self._ctx = ctx
        self._functions = {suite.entry: LearnerFunction(tried, suite, session, ctx)
                           for suite, session in ctx.parts if suite.entry}
        self._n_drawn = 0

    def draw(self, *specs: Input) -> tuple[torch.Tensor, ...]:
        """New tensors, different at every call and the same again for the same seed."""
        self._n_drawn += 1
        return tuple(self._ctx.draw_inputs(f"{self._name}/{self._n_drawn}", specs))

    def __call__(self, *inputs: Any) -> Any:
        """The learner's result, or a tuple of its results.

        Raises:
            Faulty: there is none, or an access of a kernel was wrong.
        """
        [function] = self._functions.values()
        return function(*inputs)

    def variants(self, calls: Sequence[Sequence[Any]], *, most: int, of: str) -> None:
        """Limits the variants compiled for several calls, as of ``LearnerFunction``."""
        [function] = self._functions.values()
        function.variants(calls, most=most, of=of)

    def __getattr__(self, function: str) -> LearnerFunction:
        if function not in self._functions:
            raise AttributeError(f"the suite has no function `{function}`")
        return self._functions[function]


class LearnerFunction:
    """One function of the submission."""

    def __init__(self, tried: Property, suite: Suite, session: Session, ctx: Context) -> None:
        self._case = Case(tried.name, tried.kind)
        self._suite = suite
        self._session = session
        self._gate = ctx.gate

    def __call__(self, *inputs: Any) -> Any:
        """The learner's result, or a tuple of its results.

        Raises:
            Faulty: there is none, or an access of a kernel was wrong.
        """
        recording, findings, run = self._session.execute(inputs)
        findings += run.findings
        if recording is not None and not findings:
            self._gate.add(self._case.name, recording)  # its launches have to compile as well
            findings = broken_contract(self._suite, self._case, recording, inputs)
        if recording is None or findings:
            raise Faulty(findings)
        return run.results if recording.returned_tuple else run.results[0]

    def variants(self, calls: Sequence[Sequence[Any]], *, most: int, of: str) -> None:
        """Limits the variants of kernels that Triton compiles for all calls together.

        The calls are recorded and not run. Launches are told apart as Triton's cache does it: by
        the kernel, its constexpr values, types, what the compiler may know of integers and
        addresses, and the options. ``of`` names the calls in messages.

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
                raise Faulty([Finding("X01", fault("no launches", calls=of))])
            recordings.append(outcome.recording)
        if findings := too_many(self._session.variants(recordings, self._gate.target), most, of):
            raise Faulty(findings)
