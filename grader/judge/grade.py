"""The straight line of a grade: from a file and a suite to a report."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Literal

import torch

from grader.diagnosis.case_contrast import Traits, Values, separation, values_of
from grader.diagnosis.explain import explained, result_of, telling_cases
from grader.diagnosis.solution_contrast import Cause
from grader.engine.compiler.targets import Target
from grader.finding import Fault, value_of
from grader.gpu import detect
from grader.judge import oversized, single_case
from grader.judge import steps as stepwise
from grader.judge.case import verdict
from grader.judge.context import Context, Effort
from grader.judge.draws import Prepared
from grader.judge.gpu_verdicts import GpuVerdicts
from grader.judge.passed_runs import PassedRuns
from grader.judge.solution_reruns import causes_of, refuted_mistakes
from grader.processes.sandbox import GradingSandbox
from grader.report import (
    AFTER_FAILURE,
    CaseResult,
    Kind,
    Report,
    Skip,
    Step,
    Verdict,
    version_of,
    versions,
)
from grader.sandbox import Sandbox, SandboxBroken, cancellation
from grader.submission import source
from grader.suite import Case, Suite, case_selection

Event = CaseResult | str
Use = Literal["never", "found", "throughout"]  # of this machine's GPU
ENGINE = "interpreter, every access checked"


def grade(kernel: Path, suite: Suite, *, public_only: bool = False, only: str | None = None,
          seed: str | None = None, target: Target | None = None, effort: Effort = "whole",
          gpu: Use = "never", first: Sequence[str] = (), prepared: Prepared | None = None,
          passed: PassedRuns | None = None, on_event: Callable[[Event], None] | None = None,
          sandbox: Sandbox | None = None, cancelled: threading.Event | None = None,
          steps: Sequence[Step] = ()) -> Report:
    """Grades one submission with one suite.

    Args:
        kernel: the learner's file. It is read once; later changes do not matter.
        suite: from ``grader.suite.spec.load``.
        public_only: run the public cases only, as also happens where the suite has no others; such
            a report gives no evidence.
        only: words that mean one case (``grader.suite.case_selection``), which is then graded alone
            and in detail; such a report gives no evidence either.
        seed: hexadecimal, to repeat the inputs of an earlier report; no evidence. Without it the
            inputs are drawn from the operating system's randomness, those of ``prepared`` before
            and all others after the submission was imported.
        target: the GPU for which launches are compiled. If none is named, that of this machine
            where it is used and known, and else an H100.
        effort: ``early`` ends after ``schedule.GRADE_S`` seconds; once a case has failed, it
            compiles nothing more and swaps no files, as that cannot change the first failure.
            ``values`` does the same without a limit of time; ``diagnosis`` runs only cases then
            that tell known mistakes apart, and ``first`` none; those three do not ask for more than
            shows that a case fails. ``uncompiled`` never compiles anything. What they leave out is
            no evidence.
        gpu: ``found`` runs all values on this machine's GPU too once they are right on the
            processor, and times what asks for speed; ``throughout`` runs wrong ones as well.
        first: names of cases to judge before the others, such as those that failed last; names
            that no case has are passed over. Inputs and report are those of the usual order.
        prepared: inputs that were made before; passed over where they are another suite's, where
            a grade has used them, or where ``seed`` gives others.
        passed: runs of the last grade with it that passed, which are not repeated; this grade's, if
            it passes, take their place. It is for one thread, and not used with ``seed`` or for a
            part of the cases.
        on_event: gets the name of each case before it runs and each result after it, and now
            and then what is waited for.
        sandbox: a warm one to use; without it one is started and closed.
        cancelled: to be set by another thread when the report is not wanted any more. The processes
            of this grade are killed then, and the sandbox serves the next one. Somebody waits for
            each result, so values are judged first; beside them only one case is compiled.
        steps: groups of the exercise's blanks. While blanks are left, those that are filled in are
            graded; without steps, or without a solution of the suite, nothing is run then.

    Raises:
        grader.Cancelled: ``cancelled`` was set while cases were judged.
        grader.submission.source.UnreadableSubmission: there is no file to read.
        grader.suite.case_selection.UnknownCase: ``only`` means no case, or several.
    """
    started = time.monotonic()
    public_only = public_only or suite.public_only
    tell = on_event or (lambda event: None)
    names = [case.name for case in suite.ordered()]
    only = case_selection.select(only, names) if only is not None else ""
    submitted = source.read(kernel, suite.files, suite.kernel_file)
    report = Report(
        suite=suite.name, source_sha256=submitted.sha256, suite_sha256=suite.sha256,
        grader_version=version_of("tritonlab"), versions=versions(), engine=ENGINE, isolation="",
        seed=seed or "", results=(), public_only=public_only, only=only, repeated=seed is not None)
    findings = source.inspect(submitted, suite.signatures, suite.blanks)
    judge = partial(_judged, report, public_only=public_only, only=only, seed=seed, target=target,
                    effort=effort, gpu=gpu, first=first, prepared=prepared,
                    passed=None if report.partial else passed, tell=tell, sandbox=sandbox,
                    cancelled=cancelled)
    if findings and findings[0].code == "P01" and steps and suite.solution:
        graded = stepwise.grade(report, submitted, suite, steps, partial(_judged_step, judge, tell))
        if graded:
            return replace(graded, seconds=time.monotonic() - started)
    if findings:
        refusal = result_of(Case("the file", Kind.CORRECTNESS), findings)
        results = explained([refusal], suite, submitted, names, report.seed)
        return replace(report, results=results, seconds=time.monotonic() - started)
    return replace(judge(submitted, suite), seconds=time.monotonic() - started)


def _judged_step(judge: Callable[..., Report], tell: Callable[[Event], None],
                 submitted: source.Source, suite: Suite, *, only: str = "",
                 seed: str = "") -> Report:
    """Judges a completed exercise, on no GPU; only the report shows failures.

    ``only`` and ``seed`` repeat one case of an earlier one.
    """
    def tell_more(event: Event) -> None:
        if not only and (isinstance(event, str) or event.verdict is Verdict.PASSED):
            tell(event)

    if only:
        return judge(submitted, suite, gpu="never", tell=tell_more, in_steps=True, only=only,
                     seed=seed, effort="first", first=(), prepared=None, passed=None)
    return judge(submitted, suite, gpu="never", tell=tell_more, in_steps=True, passed=None)


def _judged(report: Report, submitted: source.Source, suite: Suite, *, public_only: bool, only: str,
            seed: str | None, target: Target | None, effort: Effort, gpu: Use,
            first: Sequence[str], prepared: Prepared | None, passed: PassedRuns | None,
            tell: Callable[[Event], None], sandbox: Sandbox | None,
            cancelled: threading.Event | None, in_steps: bool = False) -> Report:
    """Judges a file that can be run; the arguments are those of ``grade``.

    ``in_steps``: a function that is not written yet fails nothing else.
    """
    names = [case.name for case in suite.ordered()]
    uses_gpu = gpu != "never" and detect.present()
    cases = suite.ordered(public_only, only)
    with ExitStack() as resources:
        resources.enter_context(cancellation.cancelled_by(cancelled))
        resources.enter_context(_one_thread())
        box = sandbox or resources.enter_context(GradingSandbox())
        ctx = resources.enter_context(Context(
            submitted, suite, box, seed=seed, target=target, effort=effort,
            values_first=cancelled is not None, prepared=prepared, cases=cases, first=first,
            passed=passed, uses_gpu=uses_gpu, in_steps=in_steps, tell=tell))
        gpu_verdicts = GpuVerdicts(ctx, throughout=gpu == "throughout") if uses_gpu else None
        judged: list[CaseResult] = []
        witnesses: list[CaseResult] = []
        causes: list[Cause] = []
        refuted: frozenset[str] = frozenset()
        try:
            report = replace(report, isolation=box.isolation.describe())
            if only:
                single_case.prepare(cases[0], ctx)
            for result in _verdicts(ctx, gpu_verdicts):
                judged.append(result)
                tell(result)
            if ctx.gate.used:
                report = replace(report, target=ctx.gate.target.title)
            if only:
                witnesses = single_case.witnesses(judged, ctx)
            in_order = ctx.schedule.sorted(judged)
            causes = causes_of(in_order, ctx)
            refuted = refuted_mistakes([*in_order, *witnesses], causes, ctx)
        except SandboxBroken as error:
            report = replace(report, reason=f"A process of the grader ended unexpectedly: {error}")
        judged = ctx.schedule.sorted(judged)
        report = replace(report, seed=ctx.draws.seed, output=ctx.output(), results=explained(
            judged, suite, submitted, names, ctx.draws.seed, _separation(judged, ctx), witnesses,
            causes, refuted))
    if ctx.runs and report.verdict is Verdict.PASSED:
        ctx.runs.keep()
    if gpu_verdicts is not None:
        report = gpu_verdicts.report(report, explained(
            gpu_verdicts.results, suite, submitted, names, report.seed))
    return _with_printed(report, ctx.printed)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Has torch use one thread here: others wait actively, on CPUs that the children need."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _verdicts(ctx: Context, gpu_verdicts: GpuVerdicts | None) -> Iterator[CaseResult]:
    """Judges the scheduled cases, then has them compiled, and run and timed on a GPU."""
    left = deque(ctx.schedule.cases)
    ctx = ctx.look_ahead(left)
    results: list[CaseResult] = []
    compiles = False
    while left:
        cancellation.check()
        case, failed = left.popleft(), ctx.schedule.failed
        ctx.tell(case.name)
        if not compiles and ctx.is_exhaustive and results and not failed:
            if not ctx.values_first or oversized.waits_for_code(case):
                compiles = True
                ctx.begin_code()
                if gpu_verdicts is not None:
                    ctx.session().wake_gpu()
            elif len(results) == 1:
                ctx.begin_first_code()
        if compiles and gpu_verdicts is not None and oversized.is_measured(case):
            gpu_verdicts.compile_ahead()
        results.append(verdict(case, ctx))
        if case.name not in ctx.forecasts:
            yield results[-1]  # otherwise reported after GPU timing
        if ctx.schedule.failed and ctx.effort == "first":
            return
        if ctx.schedule.failed and not failed and (
                ctx.effort == "diagnosis" or _ends_early(results[-1], ctx)):
            telling = telling_cases(results[-1], ctx.suite)
            if ctx.effort == "early":
                yield from (CaseResult(
                    case.name, case.kind, Verdict.SKIPPED, reason=AFTER_FAILURE,
                    skipped=Skip.FAILED, advisory=case.advisory)
                    for case in left if case.name not in telling)
            left = deque(case for case in left if case.name in telling)
            ctx = ctx.look_ahead(left)
    if ctx.gate.used and ctx.spares_work and ctx.effort == "early":
        yield CaseResult(ctx.gate.name, Kind.CORRECTNESS, Verdict.SKIPPED, reason=AFTER_FAILURE,
                         skipped=Skip.FAILED)
    if gpu_verdicts is not None:
        gpu_verdicts.compile_ahead(timed=True)
    if ctx.gate.used and not ctx.spares_work:
        ctx.tell(ctx.gate.name)
        results.append(ctx.gate.result(whole=ctx.whole_messages, tell=ctx.tell))
        if not ctx.notes or results[-1].verdict is not Verdict.PASSED:
            yield results[-1]  # of a case graded alone, only refusals are reported
    if gpu_verdicts is not None:
        ctx.time_limit.lift()
        yield from gpu_verdicts.verdicts(results)


def _ends_early(result: CaseResult, ctx: Context) -> bool:
    """Whether no other case can say more: the first one gave a result of another shape."""
    return ctx.effort == "early" and result.name == ctx.schedule.cases[0].name and any(
        finding.code == "S01" and value_of(finding.data, "kind") == "shape"
        for finding in result.findings[:1])


def _separation(results: Sequence[CaseResult], ctx: Context) -> Fault | None:
    """A property that separates the failing value cases from the passing ones, after a failure.

    Of several functions, all cases are of the one whose case is the first to fail.
    """
    cases = {case.name: case for case in ctx.suite.all_cases}
    deciding = [(ctx.traits[r.name], r.verdict) for r in results
                if r.name in ctx.traits and not r.advisory
                and not (r.findings and r.findings[0].code.startswith("T"))]
    lead = next((r.name for r in results if r.fails), "")
    leading = [traits for traits, _ in deciding if traits.name == lead]
    if not leading:
        return None  # the failure that is shown first is of another kind
    function = cases[lead].function
    failed, passed = ([traits for traits, verdict in deciding if verdict is wanted
                       and cases[traits.name].function == function]
                      for wanted in (Verdict.FAILED, Verdict.PASSED))
    if not leading[0].elements and any(traits.elements for traits in failed):
        return None

    def values(traits: Traits) -> Values | None:
        specs = cases[traits.name].inputs
        return values_of(ctx.draws.draw(traits.name, specs, block=traits.drawn_for))

    return separation(failed, passed, values)


def _with_printed(report: Report, printed: Mapping[str, tuple[str, ...]]) -> Report:
    """The report with the lines that kernels printed in one of its cases."""
    names = [result.name for result in report.results if result.name in printed and report.partial]
    name = report.first_failure.name if report.first_failure else next(iter(names), "")
    return replace(report, printed=printed[name], printed_in=name) if name in printed else report
