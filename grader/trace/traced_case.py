"""Traces one case of a submission: grades it, then replays its launches step by step."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec

from grader.diagnosis.case_details import Notes
from grader.finding import Fault, MemoryAccess, Unstored, WrongValues
from grader.judge import single_case
from grader.judge.context import Context
from grader.judge.grade import grade
from grader.processes.replies import Stopped
from grader.recording.model import Launch, Recording
from grader.recording.trace import Trace, TracedLaunch
from grader.report import Finding, Report, versions
from grader.sandbox import Sandbox
from grader.submission import source
from grader.suite import Case, Suite, case_selection

SCHEMA = 1


class NotTraceable(ValueError):
    """A case has no launches to trace; the message says why."""


class NoSuchProgram(NotTraceable):
    """A place outside the grid, or of no launch."""


@dataclass(frozen=True)
class Mark:
    """A finding and its place in the trace.

    ``launch``, ``program``, ``tensor`` and ``index`` (elements from the tensor's first one, or an
    index of a result) are None where the finding names none.
    """

    code: str
    name: str
    text: str
    line: int | None = None
    program: int | None = None
    other: int | None = None  # the program that it collides with
    tensor: int | None = None
    offset: int | None = None
    index: tuple[int, ...] | None = None
    got: str = ""
    expected: str = ""  # only what the report of a grade shows


@dataclass(frozen=True)
class TracedCase:
    """A traced case. ``names``: of the trace's tensors, as the learner's function has them."""

    suite: str
    case: str
    seed: str
    text: str
    source_sha256: str
    inputs: tuple[str, ...]
    report: Report
    trace: Trace
    names: tuple[str, ...]
    results: tuple[int, ...]  # which tensors are results
    marks: tuple[Mark, ...]
    versions: dict[str, str]

    def number_of(self, place: Sequence[int], launch: int) -> int:
        """The number of a program, as ``number_of``."""
        return number_of(place, self.trace.launches, launch)

    def to_dict(self) -> dict[str, Any]:
        """The trace as plain data, ready for ``json.dumps``; arrays are base64 in ``data``.

        The form is ``schema`` 1; ``grader.recording.trace`` describes its parts.
        """
        trace = msgspec.to_builtins(self.trace, builtin_types=(bytes,))
        return {
            "schema": SCHEMA, "suite": self.suite, "case": self.case, "seed": self.seed,
            "source_sha256": self.source_sha256, "versions": self.versions,
            "verdict": str(self.report.verdict), "inputs": list(self.inputs),
            "source": self.text.split("\n"), "names": list(self.names),
            "results": list(self.results), "marks": [asdict(mark) for mark in self.marks],
            **trace, "data": base64.b64encode(self.trace.data).decode(),
        }


def trace(kernel: Path, suite: Suite, *, sandbox: Sandbox, case: str | None = None,
          seed: str | None = None, program: tuple[int, ...] = (), launch: int = 0,
          on_event: Callable[[str], None] | None = None) -> TracedCase:
    """Grades one case and traces its launches.

    Args:
        kernel: the learner's file.
        case: its name, or words that no other name holds; the first that launches by default.
        seed: hexadecimal, of the inputs of an earlier grade.
        program: the place in the grid of a program that is traced even where all are too many.
        launch: the launch that ``program`` belongs to, from 0.

    Raises:
        NotTraceable: the case launches nothing, or the file cannot be run.
        grader.submission.source.UnreadableSubmission: there is no file to read.
        grader.suite.case_selection.UnknownCase: ``case`` means no case, or several.
        grader.sandbox.SandboxBroken: the grader's processes do not start.
    """
    tell = on_event or (lambda event: None)
    chosen = case_of(suite, case)
    submitted = source.read(kernel, suite.files, suite.kernel_file)
    if refused := source.inspect(submitted, suite.signatures, suite.blanks):
        raise NotTraceable(refused[0].seen.split("\n")[0])
    tell(chosen.name)
    report = grade(kernel, suite, only=chosen.name, seed=seed, effort="first", gpu="never",
                   sandbox=sandbox)
    with Context(submitted, suite, sandbox, seed=report.seed) as ctx:
        single_case.prepare(chosen, ctx)
        notes = Notes(ctx.part(chosen).named_inputs)
        try:
            call = ctx.record(chosen)
            notes.drew(call.inputs)
            if call.findings or call.outcome.recording is None:
                raise NotTraceable((*call.findings, *_findings(report))[0].seen)
            own = [number_of(program, call.recording.launches, launch)] if program else []
            wanted = sorted({*own, *_programs(_findings(report))})
            traced, _ = ctx.session(chosen).trace(call.recording, call.inputs, wanted)
            names, results = _names(traced, call.recording, ctx.part(chosen))
            marks = [_mark(finding, traced, results) for finding in _findings(report)]
            writers = {mark.program for mark in marks if mark.program is not None}
            if writers - _traced_programs(traced):  # where all programs are too many
                traced, _ = ctx.session(chosen).trace(call.recording, call.inputs,
                                                      sorted({*wanted, *writers}))
        except Stopped as stop:
            raise NotTraceable(stop.finding.seen) from stop
    return TracedCase(suite.name, chosen.name, report.seed, submitted.text, submitted.sha256,
                      notes.details.inputs, report, traced, names, results, tuple(marks),
                      dict(versions()))


def case_of(suite: Suite, wanted: str | None = None) -> Case:
    """The case that is meant, or the first that launches kernels.

    Raises:
        NotTraceable: the case that is meant launches nothing.
        grader.suite.case_selection.UnknownCase: no case, or more than one, is meant.
    """
    cases = suite.ordered()
    if wanted is None:
        return next(case for case in cases if case.launches_once)
    name = case_selection.select(wanted, [case.name for case in cases])
    case = next(case for case in cases if case.name == name)
    if not case.launches_once:
        raise NotTraceable(f'The case "{name}" is not one call that launches kernels, so there is '
                           "nothing to trace")
    return case


def is_traceable(suite: Suite, name: str) -> bool:
    """Whether a case of this name launches kernels in one call."""
    return any(case.name == name and case.launches_once for case in suite.ordered())


def number_of(place: Sequence[int], launches: Sequence[Launch | TracedLaunch],
              launch: int) -> int:
    """The number of a program by its place in the grid of a launch.

    Raises:
        NoSuchProgram: there is no such launch or program.
    """
    if not 0 <= launch < len(launches):
        raise NoSuchProgram(f"There is no launch {launch + 1}: the function made {len(launches)}")
    grid = launches[launch].grid
    x, y, z = (*place, 0, 0, 0)[:3]
    if not (x < grid[0] and y < grid[1] and z < grid[2]):
        sizes = [*grid[:1], *(size for size in grid[1:] if grid[1] * grid[2] > 1)]
        raise NoSuchProgram(f"The grid has no program {', '.join(map(str, place))}: its size is "
                            f"{' x '.join(map(str, sizes))}")
    return x + grid[0] * (y + grid[1] * z)


def _findings(report: Report) -> list[Finding]:
    return [finding for result in report.results for finding in result.findings]


def _programs(findings: Sequence[Finding]) -> list[int]:
    return [program for finding in findings if isinstance(finding.data, MemoryAccess)
            for program in (finding.data.program, finding.data.other)]


def _names(traced: Trace, recording: Recording,
           part: Suite) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """The name of each tensor: of an input, a result, or the kernel's parameter."""
    given = dict(zip((view.storage for view in recording.inputs), part.named_inputs, strict=False))
    returned = [view.storage for view in recording.results]
    several = len(returned) > 1
    names, results = [], []
    for number, tensor in enumerate(traced.tensors):
        if tensor.storage in returned:
            at = returned.index(tensor.storage)
            results.append(number)
            name = part.result_names[at] if at < len(part.result_names) else \
                f"result {at + 1}" if several else "result"
            names.append(given.get(tensor.storage, name))
        else:
            names.append(given.get(tensor.storage, tensor.names[0]))
    return tuple(names), tuple(results)


def _traced_programs(traced: Trace) -> set[int]:
    return {program for launch in traced.launches for group in launch.groups
            for program in group.programs}


def _mark(finding: Finding, traced: Trace, results: Sequence[int]) -> Mark:
    data = finding.data
    place: dict[str, Any] = {}
    match data:
        case MemoryAccess():
            tensor = next((number for number, one in enumerate(traced.tensors)
                           if data.tensor in one.names), None)
            place = {"program": data.program, "tensor": tensor, "offset": data.index,
                     "other": data.other if data.kind in ("two programs", "race", "unordered",
                                                          "overwritten") else None}
        case WrongValues() | Unstored() | Fault(kind="masked elements" | "other order"):
            number = data.value("number") or 0
            at = data.first if isinstance(data, Unstored) else data.value("index")
            tensor = results[number] if number < len(results) else None
            place = {"tensor": tensor, "index": tuple(at),
                     "program": None if tensor is None else traced.writer(tensor, at)}
            if isinstance(data, WrongValues):
                place |= {"got": f"{data.got:.7g}", "expected": f"{data.expected:.7g}"}
    return Mark(finding.code, finding.name, finding.seen, finding.line, **place)
