"""Context: one submission in its processes, by which the cases of one grade are judged."""

from __future__ import annotations

import copy
import json
import math
import os
import traceback
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, Self

import torch

from grader.diagnosis.case_contrast import Traits, traits_of
from grader.diagnosis.case_details import Notes
from grader.engine.compiler import targets
from grader.engine.compiler.targets import Target
from grader.gpu import detect
from grader.judge import oversized
from grader.judge.compile_gate import Gate
from grader.judge.draws import Draws, Prepared, block_of, functions_of
from grader.judge.large_tensors import once
from grader.judge.launch_report import SurveyBegun
from grader.judge.passed_runs import GradeRuns, PassedRuns
from grader.judge.perf_bound import Forecast
from grader.judge.perf_limits import idle_grid
from grader.judge.pipeline import Pipeline
from grader.judge.schedule import GRADE_S, Patience, Schedule
from grader.processes.pool import Later
from grader.processes.replies import Answer, Compiled, Outcome, Run, Stopped, unusable
from grader.processes.session import Session
from grader.processes.time_limit import OutOfTime, TimeLimit
from grader.recording import host_values
from grader.recording.arena import WITH_HOLES
from grader.recording.model import Recording
from grader.report import Finding, Kind
from grader.sandbox import Sandbox
from grader.submission.source import Source
from grader.suite import Case, Suite
from grader.suite.cases import Call
from grader.suite.inputs import DEFAULT_BLOCK
from grader.suite.mistakes import raised_in_suite
from grader.suite.sizes import Drawn

Effort = Literal["whole", "early", "values", "diagnosis", "first", "uncompiled"]
DECIDED_BY_VALUES = (Kind.CORRECTNESS, Kind.EDGE)


@dataclass(frozen=True)
class RecordedCall:
    """One call of the learner's function, before anything is compared.

    ``block`` is the one that sizes of the inputs follow. ``findings`` state why the launches are
    not replayed; ``run`` is their replay where it was made ahead.
    """

    case: Case
    inputs: list[Any]
    block: int
    outcome: Outcome
    findings: Sequence[Finding] = ()
    run: Run | None = None

    @property
    def recording(self) -> Recording:
        """The recording of a call without findings, unless its case asks for a refusal."""
        assert self.outcome.recording is not None
        return self.outcome.recording


@dataclass(frozen=True)
class CodeBegun:
    """The launches of a case, which are compiled before its turn."""

    recording: Recording
    inputs: list[Any]
    target: Target
    compiled: Later[Compiled]


class Context:
    """One submission, its suite and its processes. Seeds and references live here only.

    Given a case, it finds the suite and the session of the case's function. A context with other
    look-ahead or without notes is a shallow copy: all that changes during a grade is shared.
    """

    def __init__(self, submitted: Source, suite: Suite, sandbox: Sandbox, *,
                 seed: str | None = None, target: Target | None = None, effort: Effort = "whole",
                 values_first: bool = False, prepared: Prepared | None = None,
                 cases: Sequence[Case] | None = None, first: Sequence[str] = (),
                 passed: PassedRuns | None = None, uses_gpu: bool = False, in_steps: bool = False,
                 tell: Callable[[str], None] = lambda event: None) -> None:
        """Nothing is started yet.

        Args:
            seed: hexadecimal, of the inputs; one is drawn without it.
            target: the GPU that launches are compiled for; the one that is used, without it.
            values_first: values are judged first; beside them only one case is compiled.
            prepared: inputs that were made before, where they are this suite's.
            cases: that are judged, in the order of the suite; all of it without them.
            first: names of cases that are judged before the others.
            passed: runs of the last grade that passed, which are not repeated.
            uses_gpu: calls and cases for a GPU are gathered, until all are judged on the CPU.
            in_steps: parts that are not written yet fail no other part.
            tell: gets a line for each thing that is waited for.
        """
        self.submitted = submitted
        self.suite = suite
        self.sandbox = sandbox
        self.effort = effort
        self.values_first = values_first
        self.tell = tell
        self.draws = prepared if prepared and not seed and prepared.is_for(suite) else \
            Draws(suite.name, seed or "")
        cases = suite.ordered() if cases is None else cases
        last = [case.name for case in cases if values_first and oversized.waits_for_code(case)]
        self.schedule = Schedule(cases, first, last)
        self.time_limit = TimeLimit(GRADE_S if effort == "early" else math.inf)
        self.patience = Patience(self.time_limit)
        self.runs = GradeRuns(submitted, suite, passed) if passed is not None else None
        self.uses_gpu = uses_gpu
        self.in_steps = in_steps
        self.gpu_calls: list[RecordedCall] = []
        self.left_out: list[str] = []  # cases that lie on more memory than is worth moving
        self.forecasts: dict[str, Forecast] = {}  # of the cases to be timed, by name
        self.notes: Notes | None = None  # where one case is graded alone
        self.diagnoses = True  # False: whether a case passes is all that is asked
        self.traits: dict[str, Traits] = {}  # of the value cases, by name
        self.printed: dict[str, tuple[str, ...]] = {}  # by kernels, by the name of the case
        self.vain_contrasts: Counter[str] = Counter()  # by function
        self.tried_configurations: list[int] = []  # of autotuners, by all cases
        self.code: dict[str, CodeBegun] = {}  # by the name of the case
        self.surveys: dict[str, SurveyBegun] = {}  # by the name of the case
        self.first_calls: set[str] = set()  # functions whose trials in a first call were checked
        self._mistakes: dict[str, str] = {}  # of the suite, by their places
        self._answers: dict[str, Answer] = {}  # of host code, by function and inputs
        self._recorded: dict[int, RecordedCall] | None = None
        self._ahead: Pipeline[Case, RecordedCall] | None = None
        self._begun: deque[Case] = deque()
        if suite.compiles_graphs:
            sandbox.expect("graphs")
        target = target or (detect.default_target(suite.least_capability) if uses_gpu else
                            targets.find())
        self._session = Session(submitted, suite.entry, sandbox, oversized.limits(suite),
                                target=target.name, values_first=values_first,
                                time_limit=self.time_limit)
        self.parts = [(_remembering(part, self.draws), self._session.of(part, suite.calls))
                      for part in suite.parts]
        self.gate = Gate(self._session, target,
                         {case.name: case.about for case in suite.all_cases})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._session.close()

    def reason(self, error: Exception) -> str:
        """The reason of a case that an exception ended: a mistake of the suite, or a traceback.

        Mistakes of one place have one reason, whatever the case.
        """
        mistake = raised_in_suite(error)
        if mistake is None:
            return "".join(traceback.format_exception(error))
        return self._mistakes.setdefault(mistake.place, str(mistake))

    def beside(self) -> Context:
        """Another context with the same inputs, and with processes of its own."""
        other = Context(self.submitted, self.suite, self.sandbox, seed=self.draws.seed,
                        target=self.gate.target)
        other.draws.blocks = dict(self.draws.blocks)
        return other

    def with_text(self, text: str, limit_s: float,
                  recorded: dict[int, RecordedCall] | None = None, file: str = "") -> Context:
        """A context of the same inputs for another text of a file, by default of the kernels'.

        It names no causes, and gives no case more time than ``limit_s``.

        Args:
            recorded: calls of the same host code, by the ids of their cases; it takes them and adds
                to them.
        """
        other = Context(self.submitted.with_text(text, file), self.suite, self.sandbox,
                        seed=self.draws.seed, target=self.gate.target, effort="first")
        other.draws.blocks = dict(self.draws.blocks)
        other.time_limit.limit_s = limit_s
        other.diagnoses = False
        other._recorded = recorded
        return other

    def look_ahead(self, cases: Iterable[Case], *, noted: bool = True) -> Context:
        """This context, where these cases are recorded and replayed ahead, in this order.

        Args:
            cases: those that can run ahead are begun before their turn.
            noted: take notes of the one case that is graded alone.
        """
        steps = copy.copy(self)
        steps.notes = self.notes if noted else None
        steps._ahead = None
        # Another copy: in a cycle of references, inputs and results would outlive the grade.
        other = copy.copy(steps)
        other._begun = deque(filter(oversized.runs_whole, cases))
        other._ahead = Pipeline(other._begun, steps._begin_record, steps._begin_replay,
                             self._session.processes.abreast + 1)
        return other

    # ---------------------------------------------------------------------------------------------
    # The steps of a case

    def draw(self, case: Case) -> list[Any]:
        """The inputs of a case."""
        return self.draw_inputs(case.name, case.inputs, self.block(case))

    def draw_inputs(self, name: str, specs: Sequence[Any], block: int | None = None) -> list[Any]:
        """Inputs for the learner's function; none are drawn before its file was imported."""
        self._session.ready()
        inputs = self.draws.draw(name, specs, block or self.draws.block())
        if self.notes:
            self.notes.drew(inputs)
        return inputs

    def outlines(self, case: Case) -> list[Any]:
        """Inputs at their real size, as tensors without values where these are not needed."""
        self._session.ready()
        return self.draws.draw(case.name, case.inputs, self.draws.block(case.function),
                               outlines=True)

    def sizes(self, case: Case) -> list[Drawn]:
        """The sizes of a case that draws them; none are drawn before the file was imported."""
        assert case.sizes is not None
        self._session.ready()
        return self.draws.sizes(case.name, case.sizes)

    def record(self, case: Case) -> RecordedCall:
        """Draws the inputs of a case and records the call of the learner's function.

        Raises:
            Stopped: it did not end normally.
        """
        if self._ahead and self._begun and self._begun[0] is case:
            self._begun.popleft()
            return self._ahead.take()
        return self._begin_record(case)()

    def replay(self, call: RecordedCall) -> Run:
        """Runs the recorded launches in the interpreter, and has them compiled meanwhile.

        Raises:
            Stopped: they did not end normally.
        """
        return call.run or self._begin_run(call)()

    def ask(self, call: Call, inputs: list[Any]) -> Answer:
        """The answer of host code; for the same plain values again, the answer from before.

        Raises:
            Stopped: the worker did not survive it.
        """
        try:
            key = json.dumps([call.of, call.eager, call.seconds, host_values.to_json(inputs)])
        except host_values.NotPlain:  # tensors are drawn anew for each case
            return self._session.begin_ask(call, inputs, self.suite.calls)()
        if key not in self._answers:
            self._answers[key] = self._session.begin_ask(call, inputs, self.suite.calls)()
        return self._answers[key]

    def begin_code(self) -> None:
        """Has launches compiled that are judged by their code, and with CPUs for it all others.

        Those whose time is predicted come first: they are listed and surveyed meanwhile. Two CPUs
        have time for the others if values go first. Otherwise the gate's result begins them.
        """
        cases = [case for case in self.schedule.cases if oversized.waits_for_code(case)]
        timed = [case for case in cases if oversized.asks_for_speed(case)]
        self._begin_compile(timed)
        begun = [self.code[case.name] for case in timed if case.name in self.code]
        for target in dict.fromkeys(one.target for one in begun):
            with suppress(Stopped, OutOfTime):
                self._session.begin_listings(
                    [one.recording for one in begun if one.target == target], target)
        self._begin_compile([case for case in cases if case not in timed])
        if self.values_first or len(os.sched_getaffinity(0)) > 2:
            self.gate.begin()

    def begin_first_code(self) -> None:
        """Has the first case compiled whose time is predicted, while values are judged."""
        self._begin_compile([*filter(oversized.asks_for_speed, self.schedule.cases)][:1])

    def _begin_compile(self, cases: Iterable[Case]) -> None:
        """Has the launches of cases compiled to the end, unless that has begun."""
        for case in cases:
            if case.name in self.code:
                continue
            with suppress(Stopped, OutOfTime):  # which the case itself reports
                inputs, session = self.outlines(case), self.session(case)
                recording = session.record(inputs).recording
                if recording is not None and recording.launches:
                    target = targets.find(case.limits.target) if case.limits and \
                        case.limits.target else self.gate.target
                    self.code[case.name] = CodeBegun(
                        recording, inputs, target,
                        session.begin_compile(recording, target, whole=True))

    def _begin_record(self, case: Case) -> Later[RecordedCall]:
        part, session = self._part(case)
        if self._recorded and (kept := self._recorded.get(id(case))):
            return lambda: replace(kept, findings=unusable(kept.outcome) or idle_grid(
                part, session, kept.recording, kept.inputs))
        block = self.block(case)
        inputs = self.draw_inputs(case.name, case.inputs, block)
        self.schedule.learn(case, None)
        outcome = session.begin_record(inputs, as_they_are=bool(case.raises))

        def recorded() -> RecordedCall:
            call = RecordedCall(case, inputs, block, outcome())
            recording = call.outcome.recording
            if case.kind is Kind.CORRECTNESS and recording and (own := block_of(recording)):
                self.draws.blocks[case.function] = own
                self.schedule.learn(case, own)
            if case.raises:
                return call
            if self._recorded is not None and not session.processes.reads_figures:
                self._recorded[id(case)] = call
            return replace(call, findings=unusable(call.outcome) or idle_grid(
                part, session, call.recording, inputs))

        return recorded

    def _begin_replay(self, call: RecordedCall) -> Later[RecordedCall]:
        if call.case.raises or call.findings:
            return lambda: call
        run = self._begin_run(call)
        return lambda: replace(call, run=run())

    def _begin_run(self, call: RecordedCall) -> Later[Run]:
        case, recording = call.case, call.recording
        # Drawn sizes are of kind PROPERTY. They are not compiled: a variant for each would take
        # longer than all cases together. Triton specializes on dtypes, on sizes of 1 and multiples
        # of 16, and on constexprs, all of which fixed cases show it.
        if not case.advisory and case.kind is not Kind.PROPERTY:
            self.gate.add(case.name, recording, call.outcome.configurations)
        begin = partial(self.session(case).begin_replay, recording, call.inputs, other=True)
        return self.runs.begin(case, recording, call.inputs, begin) if self.runs else begin()

    # ---------------------------------------------------------------------------------------------
    # What belongs to a case

    def part(self, case: Case) -> Suite:
        """The suite of the function that a case calls."""
        return self._part(case)[0]

    def session(self, case: Case | None = None) -> Session:
        """The processes of the submission, for the function that a case calls, or for none."""
        return self._part(case)[1] if case else self._session

    def _part(self, case: Case) -> tuple[Suite, Session]:
        return next((part for part in self.parts if part[0].entry == case.function),
                    self.parts[0])

    def block(self, case: Case) -> int:
        """The block that sizes of a case follow: that of the last case before it in the suite."""
        if self.schedule.changed and case.follows_block:
            self.draws.blocks[case.function] = self.block_before(case) or DEFAULT_BLOCK
        return self.draws.block(case.function)

    def block_before(self, case: Case) -> int | None:
        """The block of the last launches before a case, which are recorded if they were not yet."""
        try:
            return self.schedule.block_before(case, self._block_shown)
        except (Stopped, OutOfTime):  # which that case itself reports
            return None

    def _block_shown(self, case: Case) -> int | None:
        inputs = self.draw_inputs(case.name, case.inputs, DEFAULT_BLOCK)
        recording = self.session(case).record(inputs).recording
        return block_of(recording) if recording else None

    # ---------------------------------------------------------------------------------------------
    # The grade so far

    @property
    def whole_messages(self) -> bool:
        """Whether a failure is reported in full, and not only as what kind of failure it is."""
        return self.effort not in ("diagnosis", "first")

    @property
    def spares_work(self) -> bool:
        """Whether nothing that takes long is begun any more, as this is known to fail."""
        return self.effort == "uncompiled" or (
            self.schedule.failed and self.effort in ("early", "values", "diagnosis"))

    @property
    def is_exhaustive(self) -> bool:
        """Whether one failure of a case does not spare the others that it may have."""
        return self.effort in ("whole", "early")

    def output(self) -> str:
        """Output of the learner's code; of a case graded alone, that of its own call."""
        return (self.notes.output if self.notes else "") or self._session.processes.worker.output()

    def keep(self, call: RecordedCall) -> None:
        """Keeps what may explain a failure later, and what is to be run on a GPU."""
        name, recording = call.case.name, call.outcome.recording
        if traits := traits_of(name, call.inputs, call.block):
            self.traits[name] = traits if recording is None else replace(
                traits, block=block_of(recording),
                programs=sum(launch.programs for launch in recording.launches))
        if self.notes and recording is not None:
            self.notes.recorded(recording)
            # Later runs, for the diagnosis, print too.
            self.notes.output = self._session.processes.worker.output()
        if self.uses_gpu and call.case.kind in DECIDED_BY_VALUES and recording and \
                recording.launches:
            too_large = any(value.untyped_storage().nbytes() > WITH_HOLES for value in call.inputs
                            if isinstance(value, torch.Tensor))
            if too_large:
                self.left_out.append(name)
            else:
                self.gpu_calls.append(call)


def _remembering(part: Suite, draws: Draws) -> Suite:
    """The same suite, which computes nothing twice in a row and nothing that is prepared."""
    if not isinstance(draws, Prepared):
        return replace(part, reference=once(part.reference))
    reference, *amplitude = (draws.known(name, function)
                             for name, function in functions_of(part).items())
    return replace(part, reference=once(reference), tolerance=replace(
        part.tolerance, amplitude=amplitude[0] if amplitude else None))
