"""Inspection: what the compiler made of a submission for a target, and what that moves."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from functools import cached_property
from itertools import repeat
from operator import add
from pathlib import Path
from typing import Any

from msgspec import Struct, structs

from grader.diagnosis.case_details import Notes
from grader.diagnosis.explain import explain_findings
from grader.diagnosis.perf_lints import Defect, peak, spills
from grader.engine.compiler.targets import Target
from grader.judge import oversized, single_case
from grader.judge.case import first_wrong
from grader.judge.context import Context
from grader.judge.launch_report import Examined, InspectedLaunch, examine_call
from grader.processes.replies import Stopped
from grader.recording.compiled_kernel import Binary, SharedAccess
from grader.recording.launch_stats import Prediction, Traffic
from grader.report import EXIT_FAILED, EXIT_PASSED, CaseResult, Finding, Kind, versions
from grader.sandbox import Sandbox
from grader.submission import source
from grader.submission.launch_parameters import Value, with_values
from grader.suite import Case, Cost, Suite, case_selection

SCHEMA = 1
_OPCODES = {"load": "LDG", "store": "STG", "atomic": "ATOM", "async copy": "cp.async"}
_MOVED = ("kind", "tensor", "bytes", "sectors", "ideal_sectors", "unique_sectors")
OnEvent = Callable[[str], None]


@dataclass(frozen=True)
class Point:
    """A point below the roofline: ``flops``, and ``bytes`` to and from DRAM, in ``seconds``."""

    label: str
    flops: int
    bytes: int
    seconds: float
    peak: float  # flops a second of the units that do the work
    units: str  # their name

    @property
    def intensity(self) -> float:
        """The arithmetic intensity, in FLOP/B."""
        return self.flops / self.bytes

    @property
    def rate(self) -> float:
        """Operations per second."""
        return self.flops / self.seconds

    def ceiling(self, target: Target) -> float:
        """Operations per second that the target allows at this intensity."""
        return min(self.peak, self.intensity * target.dram)

    def bound_by_memory(self, target: Target) -> bool:
        return self.intensity * target.dram < self.peak

    def share(self, target: Target) -> float:
        return self.rate / self.ceiling(target)


@dataclass(frozen=True)
class SourceLine:
    """One annotated line."""

    moved: tuple[Traffic, ...] = ()  # by kind and tensor
    instructions: tuple[str, ...] = ()  # such as 4 x LDG.128 in the code of one thread

    live: int = 0  # registers of a thread, where that is the most of a kernel

    @property
    def bytes(self) -> int:
        return sum(moved.bytes for moved in self.moved)


@dataclass(frozen=True)
class InspectedCase:
    """One case of the suite."""

    name: str
    kind: Kind
    inputs: tuple[str, ...] = ()  # a line each
    least: Cost | None = None
    launches: tuple[InspectedLaunch, ...] = ()
    defects: tuple[Defect, ...] = ()  # of all launches together
    findings: tuple[Finding, ...] = ()  # why launches are missing
    unknown: tuple[str, ...] = ()  # sentences: why the traffic of a launch is unknown
    prediction: Prediction | None = None  # of all launches together

    @property
    def bytes(self) -> int:
        """Moved to and from DRAM at most, by all launches."""
        return sum(launch.dram.high for launch in self.launches if launch.dram)

    @property
    def seconds(self) -> float:
        """Predicted for all launches of which the time is known, with the gaps between them."""
        if self.prediction is not None:
            return self.prediction.seconds
        return sum(launch.prediction.seconds for launch in self.launches if launch.prediction)

    @cached_property
    def lines(self) -> Mapping[int, SourceLine]:
        """What each line does that accesses memory, multiplies, or has the most live registers."""
        moved: dict[int, dict[tuple[str, str], Traffic]] = {}
        instructions: dict[int, dict[str, None]] = {}  # each once, in order
        for launch in self.launches:
            for row in launch.survey.traffic if launch.survey else ():
                if row.line is not None:
                    rows, key = moved.setdefault(row.line, {}), (row.kind, row.tensor)
                    counts = structs.astuple(rows[key])[3:] if key in rows else repeat(0)
                    rows[key] = Traffic(row.line, *key, *map(add, counts, structs.astuple(row)[3:]))
            for line, instruction in _instructions(launch.binary):
                instructions.setdefault(line, {})[instruction] = None
        live = dict(max(launch.live, key=lambda pair: pair[1])
                    for launch in self.launches if launch.live)
        return {line: SourceLine(tuple(moved.get(line, {}).values()),
                                 tuple(instructions.get(line, ())), live.get(line, 0))
                for line in sorted({*moved, *instructions, *live})}

    def points(self, target: Target) -> list[Point]:
        """A point for each launch of which operations, bytes and seconds are known.

        Products are counted launch by launch. Of a job without any, only the operations of the
        whole are known: it is one point.
        """
        timed = [(launch, launch.survey, launch.prediction, launch.dram.low + launch.dram.high)
                 for launch in self.launches if launch.survey and launch.prediction and launch.dram]
        points = [Point(launch.kernel, survey.flops, twice // 2, prediction.seconds,
                        *peak(target, launch.binary))
                  for launch, survey, prediction, twice in timed if survey.flops and twice]
        moved = sum(twice for *_, twice in timed) // 2
        if points or not moved or len(timed) < len(self.launches) or (
                self.least is None or not self.least.flops):
            return points
        label = timed[0][0].kernel if len(timed) == 1 else f"all {len(timed)} launches"
        return [Point(label, self.least.flops, moved, self.seconds, target.fp32, "FP32")]


@dataclass(frozen=True)
class Inspection:
    """A submission, inspected for one target. ``text`` is the learner's file as it was read."""

    suite: str
    text: str
    source_sha256: str
    target: Target
    cases: tuple[InspectedCase, ...]
    versions: Mapping[str, str]
    values: Mapping[str, Value] = field(default_factory=dict)  # set instead of those of ``text``
    wrong: CaseResult | None = None  # of the first case whose results are wrong with these values

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(finding for case in self.cases for finding in case.findings)

    @property
    def defects(self) -> tuple[Defect, ...]:
        """Those of ``seen``."""
        return tuple(defect for _, defect in self.seen)

    @property
    def seen(self) -> tuple[tuple[InspectedCase, Defect], ...]:
        """Each defect once, with the largest case that has it; what costs before what may."""
        unique: dict[tuple[str, int | None], tuple[InspectedCase, Defect]] = {}
        for case in sorted(self.cases, key=lambda case: -case.bytes):
            for defect in case.defects:
                unique.setdefault((defect.name, defect.line), (case, defect))
        return tuple(sorted(unique.values(), key=lambda pair: pair[1].weight != "defect"))

    @property
    def clean(self) -> bool:
        """Whether everything compiles, and nothing more than hints was found."""
        return not (self.findings or self.wrong) and all(
            defect.weight == "hint" for defect in self.defects)

    @property
    def largest(self) -> InspectedCase | None:
        """The case that moves most, among those with launches to show."""
        return max((case for case in self.cases if case.launches), key=lambda case: case.bytes,
                   default=None)

    @property
    def exit_code(self) -> int:
        return EXIT_FAILED if self.findings else EXIT_PASSED

    def to_dict(self, *, ptx: bool = False, sass: bool = False) -> dict[str, Any]:
        """The inspection as plain data, ready for ``json.dumps``; the form is ``schema`` 1.

        Sizes in bytes, times in seconds, rates per second; predictions say ``measured: false``.
        Listings are pairs of a line and a text, if asked for.
        """
        listings = [name for name, wanted in (("ptx", ptx), ("sass", sass)) if wanted]
        return {
            "schema": SCHEMA, "suite": self.suite, "source_sha256": self.source_sha256,
            "target": asdict(self.target), "versions": dict(self.versions),
            "exit_code": self.exit_code, "values": dict(self.values),
            "wrong": {"case": self.wrong.name,
                      "findings": [finding.to_dict() for finding in self.wrong.findings]}
            if self.wrong else None,
            "cases": [self._case(case, listings) for case in self.cases],
        }

    def _case(self, case: InspectedCase, listings: Sequence[str]) -> dict[str, Any]:
        return {
            "name": case.name, "kind": str(case.kind), "inputs": list(case.inputs),
            "least": asdict(case.least) if case.least else None,
            "findings": [finding.to_dict() for finding in case.findings],
            "launches": [self._launch(launch, listings) for launch in case.launches],
            "defects": [asdict(defect) for defect in case.defects],
            "unknown": list(case.unknown), "prediction": _predicted(case.prediction),
            "lines": {str(number): {
                "instructions": list(line.instructions),
                "moved": [{**{name: getattr(row, name) for name in _MOVED},
                           "efficiency": row.coalescing, "times": row.redundancy,
                          "sectors_per_request": row.sectors_per_request, "l1_hits": row.l1_hits}
                          for row in line.moved],
            } for number, line in case.lines.items()},
            "roofline": [{**asdict(point), "intensity": point.intensity, "rate": point.rate,
                          "share": point.share(self.target),
                          "bound_by_memory": point.bound_by_memory(self.target)}
                         for point in case.points(self.target)],
        }

    def _launch(self, launch: InspectedLaunch, listings: Sequence[str]) -> dict[str, Any]:
        occupancy = launch.binary.occupancy
        return {
            "kernel": launch.kernel, "grid": list(launch.grid), "line": launch.line,
            "programs": launch.programs, "waves": launch.waves(self.target),
            "binary": {**_plain(launch.binary),
                       "occupancy": {**_plain(occupancy), "share": occupancy.share}},
            "survey": _plain(launch.survey),
            "prediction": _predicted(launch.prediction),
            "live_registers": {str(line): count for line, count in launch.live},
            **{name: [list(row) for row in getattr(launch, name)] for name in listings},
        }


def _instructions(binary: Binary) -> Iterable[tuple[int, str]]:
    for access in binary.accesses:
        if access.line is not None:
            name = f"{_OPCODES[access.kind]}.{access.bits}" if access.kind in _OPCODES else "TMA"
            yield access.line, f"{access.count} x {name}"
    for shared in binary.shared_accesses:
        if shared.line is not None and shared.ways > 1:
            name = "LDS" if shared.kind == "load" else "STS"
            yield shared.line, f"{shared.count} x {name}.{shared.bits}, {ways(shared)} conflicts"
    for line, name, count in binary.products:
        if line is not None:
            yield line, f"{count} x {name}"


def ways(access: SharedAccess) -> str:
    """Such as ``8-way``: how often as long as without bank conflicts a request takes."""
    return f"{access.ways:.3g}-way"


def _plain(value: Any) -> Any:
    """Dataclasses and structs as dictionaries, at any depth."""
    if isinstance(value, Struct):
        return {name: _plain(one) for name, one in structs.asdict(value).items()}
    if is_dataclass(value):
        return {one.name: _plain(getattr(value, one.name)) for one in fields(value)}
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


def _predicted(prediction: Prediction | None) -> dict[str, Any] | None:
    return {**asdict(prediction), "measured": False} if prediction else None


def inspect(kernel: Path, suite: Suite, target: Target, *, sandbox: Sandbox,
            case: str | None = None, on_event: OnEvent | None = None,
            listings: bool = False, values: Mapping[str, Value] | None = None) -> Inspection:
    """Compiles a submission's launches for a target and inspects the result; judges nothing.

    Args:
        kernel: the learner's file.
        case: the name of the case to look at, or words that no other name holds; by default the
            performance cases are looked at, else the first correctness case.
        on_event: gets the name of each case that begins.
        listings: give PTX and SASS of each launch too.
        values: of launch parameters, instead of those in the file. They may make results wrong, so
            the values of the functions are checked too.

    Raises:
        grader.submission.launch_parameters.UnknownParameter: the file has none of such a name.
        grader.submission.source.UnreadableSubmission: there is no file to read.
        grader.suite.case_selection.UnknownCase: ``case`` means no case, or several.
        grader.sandbox.SandboxBroken: the grader's processes do not start.
    """
    tell = on_event or (lambda event: None)
    chosen = cases_of(suite, case)
    submitted = source.read(kernel, suite.files, suite.kernel_file)
    refused = source.inspect(submitted, suite.signatures, suite.blanks)
    if refused:
        inspected = [InspectedCase("the file", Kind.CORRECTNESS,
                                   findings=explain_findings(refused, suite, submitted))]
        return Inspection(suite.name, submitted.text, submitted.sha256, target, tuple(inspected),
                          versions())
    changed = with_values(submitted, values) if values else submitted
    inspected = list(_inspected(changed, suite, chosen, target, sandbox, listings, tell))
    wrong = None
    if values and not any(case.findings for case in inspected):
        tell("values")
        wrong = _first_wrong(changed, suite, chosen, sandbox)
    return Inspection(suite.name, submitted.text, submitted.sha256, target, tuple(inspected),
                      versions(), values or {}, wrong)


def _first_wrong(changed: source.Source, suite: Suite, chosen: Sequence[Case],
                 sandbox: Sandbox) -> CaseResult | None:
    """The first wrong result of the functions of these cases."""
    with Context(changed, suite, sandbox, effort="uncompiled") as ctx:
        ctx.diagnoses = False
        parts = {part.entry: part for part in map(ctx.part, chosen)}
        return next(filter(None, (first_wrong(part, ctx) for part in parts.values())), None)


def cases_of(suite: Suite, wanted: str | None = None) -> list[Case]:
    """The cases that are looked at: the one that is meant, or the performance cases.

    Cases that ask for an exception or only read the files launch nothing, so they are none.

    Raises:
        grader.suite.case_selection.UnknownCase: no case, or more than one, is meant.
    """
    launching = [case for case in suite.ordered() if case.launches_once]
    if wanted is not None:
        name = case_selection.select(wanted, [case.name for case in launching])
        return [case for case in launching if case.name == name]
    return [case for case in launching if case.kind is Kind.PERFORMANCE] or launching[:1]


def _inspected(submitted: source.Source, suite: Suite, chosen: Sequence[Case], target: Target,
               sandbox: Sandbox, listings: bool, tell: OnEvent) -> Iterator[InspectedCase]:
    with Context(submitted, suite, sandbox) as ctx:
        single_case.prepare(chosen[-1], ctx)  # the block that sizes follow
        for case in chosen:
            tell(case.name)
            notes = Notes(ctx.part(case).named_inputs)
            least = None
            try:
                inputs = ctx.outlines(case)
                notes.drew(inputs)
                least = oversized.least(ctx.part(case), inputs)
                report = examine_call(ctx.session(case), inputs, submitted.text, target,
                                      listings=listings, causes=True)
            except Stopped as stop:
                report = Examined(findings=(stop.finding,))
            yield InspectedCase(case.name, case.kind, notes.details.inputs, least,
                                report.launches, _with_spills(case, report),
                                explain_findings(report.findings, suite, submitted),
                                report.unknown, report.prediction)


def _with_spills(case: Case, answer: Examined) -> tuple[Defect, ...]:
    """The defects, where a spill above the case's own limit is one, however small it is."""
    if case.limits is None or case.limits.spills is None or not answer.launches:
        return answer.defects
    worst = max((launch.binary for launch in answer.launches), key=lambda one: one.spill_bytes)
    above = [one for one in spills(worst, case.limits.spills) if one.weight == "defect"]
    others = [one for one in answer.defects if one.code != "T04"]
    return (*others, *above) if above else answer.defects
