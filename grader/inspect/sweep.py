"""A sweep: one submission inspected with several values of its launch parameters."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from grader.diagnosis.explain import explain_findings
from grader.engine.compiler.targets import Target
from grader.inspect.inspection import OnEvent, cases_of
from grader.judge import oversized
from grader.judge.case import first_wrong
from grader.judge.context import Context
from grader.judge.launch_report import Examined, InspectedLaunch, examine_call
from grader.judge.perf_bound import forecast
from grader.judge.perf_limits import code_limits, count
from grader.processes.replies import Stopped
from grader.report import EXIT_FAILED, EXIT_PASSED, CaseResult, Finding, Verdict, versions
from grader.sandbox import Sandbox
from grader.submission import source
from grader.submission.launch_parameters import Value, with_values
from grader.suite import Case, Suite

SCHEMA = 1
ALIKE = 1.05  # times the shortest time: predictions are not exact enough to rank these
MOST = 24  # combinations; each takes a second or several
Values = Mapping[str, Value]
Outlook = Literal["expected to pass", "fails", "GPU needed", "within limits"]


@dataclass(frozen=True)
class SweepRow:
    """One combination in one case. Without launches, or if values are wrong, a finding says why.

    ``outlook``: the expected verdict of the case; ``wrong`` is the name of the case whose values
    are wrong.
    """

    values: Values
    launches: tuple[InspectedLaunch, ...] = ()
    seconds: float | None = None  # predicted
    bound: str = ""
    outlook: Outlook | None = None
    finding: Finding | None = None
    wrong: str = ""

    @property
    def registers(self) -> int:
        """The most of a thread."""
        return max(one.binary.registers for one in self.launches)

    @property
    def spill_bytes(self) -> int:
        return max(one.binary.spill_bytes for one in self.launches)

    @property
    def shared(self) -> int:
        """The most bytes of a program."""
        return max(one.binary.shared for one in self.launches)

    @property
    def instructions(self) -> int:
        """In the machine code of all launches, however often they run."""
        return sum(len(one.sass) for one in self.launches)

    @property
    def sectors_per_request(self) -> float | None:
        """Of all loads and stores whose layout of threads is known."""
        return sectors_per_request(self.launches)

    @property
    def code(self) -> tuple[str, ...]:
        """The digests of the code of all launches, or what keeps it from being compiled."""
        return tuple(one.binary.ptx_sha256 for one in self.launches) or (
            self.finding.seen if self.finding else "",)


@dataclass(frozen=True)
class SweptCase:
    """One case with every combination, in order."""

    name: str
    rows: tuple[SweepRow, ...]

    @property
    def depends(self) -> bool:
        """Whether any value changes the code or the number of launched programs."""
        return len({(row.code, *(one.grid for one in row.launches)) for row in self.rows}) > 1

    @property
    def wrong_anyway(self) -> bool:
        """Whether results are wrong in the same case and way with all values."""
        return len(self.rows) > 1 and all(row.wrong for row in self.rows) and len(
            {(row.wrong, row.finding and row.finding.code) for row in self.rows}) == 1

    @property
    def best(self) -> tuple[SweepRow, ...]:
        """Those with right values that are predicted to be as good as the fastest, in order.

        Where some of them are expected to pass, the others are left out. Wrong values do not count
        where no version has other ones.
        """
        timed = [(row.seconds, row) for row in self.rows
                 if row.seconds and (row.finding is None or self.wrong_anyway)]
        least = min((seconds for seconds, _ in timed), default=0.0)
        alike = [row for seconds, row in timed if seconds <= ALIKE * least]
        return tuple([row for row in alike if row.outlook == "expected to pass"] or alike)


@dataclass(frozen=True)
class Sweep:
    """All cases of a sweep for one target."""

    suite: str
    source_sha256: str
    target: Target
    names: tuple[str, ...]  # of the parameters
    cases: tuple[SweptCase, ...]
    versions: Mapping[str, str]
    findings: tuple[Finding, ...] = ()  # why the file cannot be used at all

    @property
    def exit_code(self) -> int:
        return EXIT_FAILED if self.findings else EXIT_PASSED

    def to_dict(self) -> dict[str, Any]:
        """The sweep as plain data, ready for ``json.dumps``; the form is ``schema`` 1."""
        return {
            "schema": SCHEMA, "suite": self.suite, "source_sha256": self.source_sha256,
            "target": asdict(self.target), "versions": dict(self.versions),
            "exit_code": self.exit_code, "parameters": list(self.names),
            "findings": [finding.to_dict() for finding in self.findings],
            "cases": [{"name": case.name, "depends": case.depends,
                       "rows": [_row(row) for row in case.rows]} for case in self.cases],
        }


def _row(row: SweepRow) -> dict[str, Any]:
    names = ("registers", "spill_bytes", "shared", "instructions", "sectors_per_request")
    return {"values": dict(row.values),
            **{name: getattr(row, name) if row.launches else None for name in names},
            "seconds": row.seconds, "measured": False, "bound": row.bound, "outlook": row.outlook,
            "wrong": row.wrong, "finding": row.finding.to_dict() if row.finding else None}


def sectors_per_request(launches: Sequence[InspectedLaunch]) -> float | None:
    """The average over all loads and stores whose layout of threads is known, or None."""
    rows = [row for one in launches if one.survey for row in one.survey.traffic if row.requests]
    requests = sum(row.requests for row in rows)
    return sum(row.request_sectors for row in rows) / requests if requests else None


def combinations(settings: Mapping[str, Sequence[Value]]) -> list[dict[str, Value]]:
    """All combinations, the last parameter changing fastest."""
    return [dict(zip(settings, values, strict=True))
            for values in itertools.product(*settings.values())]


def sweep(kernel: Path, suite: Suite, target: Target, settings: Mapping[str, Sequence[Value]], *,
          sandbox: Sandbox, case: str | None = None, on_event: OnEvent | None = None) -> Sweep:
    """Inspects a submission with each combination of values, in the cases that ask for speed.

    Args:
        kernel: the learner's file, which stays as it is.
        settings: the values of each parameter.
        case: the name of the only case, or words that no other name holds.

    Raises:
        grader.submission.source.UnreadableSubmission: there is no file to read.
        grader.submission.launch_parameters.UnknownParameter: the file has no such parameter.
        grader.suite.case_selection.UnknownCase: ``case`` means no case, or several.
        grader.sandbox.SandboxBroken: the grader's processes do not start.
    """
    chosen = cases_of(suite, case)
    chosen = list(filter(oversized.is_measured, chosen)) or chosen
    submitted = source.read(kernel, suite.files, suite.kernel_file)
    refused = source.inspect(submitted, suite.signatures, suite.blanks)
    if refused:
        return Sweep(suite.name, submitted.sha256, target, tuple(settings), (), versions(),
                     explain_findings(refused, suite, submitted))
    by_case: dict[str, list[SweepRow]] = {one.name: [] for one in chosen}
    for values in combinations(settings):
        changed = with_values(submitted, values)
        if on_event:
            on_event(", ".join(f"{name}={value}" for name, value in values.items()))
        with Context(changed, suite, sandbox, target=target, effort="uncompiled") as ctx:
            ctx.diagnoses = False
            wrong: dict[str, CaseResult | None] = {}  # by function
            for one in chosen:
                row = _examined(values, one, ctx, target)
                if row.finding is None:
                    if one.function not in wrong:
                        wrong[one.function] = first_wrong(ctx.part(one), ctx)
                    if (result := wrong[one.function]) and result.findings:
                        row = replace(row, outlook="fails", finding=result.findings[0],
                                      wrong=result.name)
                by_case[one.name].append(row)
    return Sweep(suite.name, submitted.sha256, target, tuple(settings),
                 tuple(SweptCase(name, tuple(rows)) for name, rows in by_case.items()), versions())


def _examined(values: Values, case: Case, ctx: Context, target: Target) -> SweepRow:
    try:
        inputs = ctx.outlines(case)
        report = examine_call(ctx.session(case), inputs, ctx.submitted.text, target,
                              listings=True)
    except Stopped as stop:
        return SweepRow(values, finding=stop.finding)
    if report.findings and not report.launches:
        return SweepRow(values, finding=report.findings[0])
    time = report.prediction
    return SweepRow(values, report.launches, time.seconds if time else None,
                    time.unit(time.bound) if time else "",
                    _outlook(case, ctx, inputs, report, target),
                    report.findings[0] if report.findings else None)


def _outlook(case: Case, ctx: Context, inputs: Sequence[Any], report: Examined,
             target: Target) -> Outlook:
    """The verdict to expect, as far as code and counted bytes show it."""
    limits, part = case.limits, ctx.part(case)
    if limits is None:
        return "within limits"
    if limits.pass_at is not None:
        expected = forecast(case, part, inputs, report, target, block=ctx.block(case), failed=False)
        if expected.result().verdict is Verdict.FAILED:
            return "fails"
        return "expected to pass" if expected.likely else "GPU needed"
    surveys = [one.survey for one in report.launches if one.survey]
    if len(surveys) < len(report.launches):
        return "GPU needed"
    needed = oversized.least(part, inputs)
    over = [*count(limits, needed, surveys, ctx.block(case))[1],
            *code_limits(limits, surveys, [one.binary for one in report.launches])[1]]
    return "fails" if over else "within limits"

