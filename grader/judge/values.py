"""Values: whether a run is right, and the cause of what is wrong with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from grader.diagnosis import case_details, codes
from grader.diagnosis.controlled_reruns import name_the_cause, undefined_or_ordered
from grader.diagnosis.difference import Difference
from grader.diagnosis.source_lines import located
from grader.judge import compare
from grader.judge.context import Context, RecordedCall
from grader.judge.contract import broken_contract, wrong_places_follow
from grader.processes.replies import Run
from grader.recording.model import Recording
from grader.report import Finding, Kind
from grader.submission.operator_precedence import explained_by_precedence
from grader.suite import Case, Suite

IN_VAIN = 3  # contrasts with which a function was no better, after which none is tried any more


def check_run(call: RecordedCall, run: Run, ctx: Context) -> list[Finding]:
    """Checks accesses, contract and values of a run; the findings are without their cause."""
    if run.passed_before:
        return []
    case, recording, inputs = call.case, call.recording, call.inputs
    suite = ctx.part(case)
    findings = _accesses(call, run, ctx)
    broken = broken_contract(suite, case, recording, inputs)
    if not findings or (broken and wrong_places_follow(broken[0], findings)):
        findings = broken
    findings = findings or wrong_values(case, run.results, inputs, ctx, recording)
    if not run.findings and (not findings or findings[0].code.startswith("N")):
        findings = undefined_or_ordered(
            ctx.session(case), recording, inputs, run, None if suite.reproducible else
            lambda results: compare.difference(suite, results, inputs) is None) or findings
    return findings


def _accesses(call: RecordedCall, run: Run, ctx: Context) -> list[Finding]:
    """The findings of the run itself.

    Where it refused a kernel, they are in the compiler's own words, and where it modified an input,
    by the function's name for it.
    """
    findings = run.findings
    if not findings:
        return []
    if findings[0].code == "L05":
        return [ctx.gate.in_its_words(findings[0], call.recording) if ctx.diagnoses else
                findings[0], *findings[1:]]
    names = [name for name, value in zip(ctx.part(call.case).named_inputs, call.inputs,
                                         strict=False) if isinstance(value, torch.Tensor)]
    todos = ctx.submitted.places(ctx.suite.exercise).lines
    return [case_details.by_argument(finding, call.recording, names, todos)
            for finding in findings]


def wrong_values(case: Case, results: Sequence[torch.Tensor], inputs: Sequence[Any], ctx: Context,
                 recording: Recording | None = None) -> list[Finding]:
    """Compares results with the reference, computed from the judge's own inputs."""
    suite = ctx.part(case)
    difference = compare.difference(suite, results, inputs)
    if difference is None:
        return []
    if ctx.notes:
        ctx.notes.differed(difference)
    pattern = ctx.diagnoses and ctx.schedule.leads(case)
    return [finding_of(difference, suite, inputs, recording, pattern=pattern)]


def finding_of(difference: Difference, suite: Suite, inputs: Sequence[Any],
               recording: Recording | None = None, *, pattern: bool) -> Finding:
    """A difference from the reference as a finding.

    Args:
        pattern: describe how the wrong values lie too. Only the first failure is shown in full;
            any other is described when graded alone.
    """
    code = "N05" if difference.kind == "tf32" else "N01"
    if difference.kind == "nonfinite":
        tensors = [value for value in inputs if isinstance(value, torch.Tensor)]
        code = "N02" if all(map(compare.is_finite, tensors)) else "N03"
    elif compare.right_as_float32(difference):
        code = "N04"
    if not pattern:
        return Finding(code, difference.data())
    return Finding(code, difference.data(
        *case_details.pattern(difference, suite, inputs, recording), draw=True))


def diagnose(findings: Sequence[Finding], call: RecordedCall, run: Run,
             ctx: Context) -> list[Finding]:
    """Looks for the cause of a run's findings: work decided by values, a layout, a precision."""
    case, recording, inputs = call.case, call.recording, call.inputs
    findings = ctx.session(case).decided_by_values(recording, inputs) or findings
    findings = located(codes.in_order(findings), ctx.submitted.text, recording, run.facts)
    findings = name_the_cause(inputs, findings, lambda contrast: _passes(contrast, case, ctx))
    return explained_by_precedence(findings, ctx.submitted.text)


def _passes(inputs: Sequence[Any], case: Case, ctx: Context) -> bool:
    """Whether the function is right on these; once all contrasts were in vain, none is tried."""
    entry = ctx.part(case).entry
    if ctx.vain_contrasts[entry] >= IN_VAIN:
        return False
    right = is_right(list(inputs), case, ctx)
    ctx.vain_contrasts[entry] += not right
    return right


def is_right(inputs: list[Any], case: Case, ctx: Context) -> bool:
    """Whether the function that a case calls is right on other inputs."""
    suite = ctx.part(case)
    recording, findings, run = ctx.session(case).execute(inputs)
    if recording is None or findings or run.findings:
        return False
    contrast = Case("a contrast", Kind.CORRECTNESS)
    return not broken_contract(suite, contrast, recording, inputs) and \
        compare.difference(suite, run.results, inputs) is None
