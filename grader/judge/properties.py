"""Properties of a suite: each gets the submission to call, and asserts something of its results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    parts = {suite.entry: (suite, session) for suite, session in ctx.parts if suite.entry}
    try:
        tried.test(PropertySubmission(tried, parts, ctx))
    except Faulty as faulty:
        return result_of(tried, faulty.findings)
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

    Where a suite has several functions, each is an attribute: ``submission.glu(x, gate)``.
    """

    def __init__(self, tried: Property, parts: Mapping[str, tuple[Suite, Session]],
                 ctx: Context) -> None:
        self._tried = tried
        self._parts = parts  # by the names of the functions
        self._ctx = ctx
        self._n_drawn = 0

    def draw(self, *specs: Input) -> tuple[torch.Tensor, ...]:
        """New tensors, different at every call and the same again for the same seed."""
        self._n_drawn += 1
        return tuple(self._ctx.draw_inputs(f"{self._tried.name}/{self._n_drawn}", specs))

    def __getattr__(self, function: str) -> PropertySubmission:
        if function not in self._parts:
            raise AttributeError(f"the suite has no function `{function}`")
        return PropertySubmission(self._tried, {function: self._parts[function]}, self._ctx)

    def __call__(self, *inputs: Any) -> Any:
        """The learner's result, or a tuple of its results.

        Raises:
            Faulty: there is none, or an access of a kernel was wrong.
        """
        [(suite, session)] = self._parts.values()
        recording, findings, run = session.execute(inputs)
        findings += run.findings
        if recording is not None and not findings:
            self._ctx.gate.add(self._tried.name, recording)  # its launches have to compile too
            case = Case(self._tried.name, self._tried.kind)
            findings = broken_contract(suite, case, recording, inputs)
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
        [(_, session)] = self._parts.values()
        recordings = []
        for inputs in calls:
            outcome = session.record(inputs)
            findings = unusable(outcome)
            if outcome.recording is None or findings:
                raise Faulty(findings)
            if not outcome.recording.launches:
                raise Faulty([Finding("X01", fault("no launches", calls=of))])
            recordings.append(outcome.recording)
        if findings := too_many(session.variants(recordings, self._ctx.gate.target), most, of):
            raise Faulty(findings)
