"""The straight line of a grade: inputs, record, execute, compare, diagnose."""

from __future__ import annotations

import json
import threading
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, Self

import torch

from grader import alone, asked, compare, drawn, hardware, large, plain, selection, source, speed
from grader.ahead import Ahead
from grader.bulk import once
from grader.cases import Call
from grader.configurations import Configurations
from grader.contract import broken_contract, broken_refusal, wrong_places_follow
from grader.costs import (
    axes,
    code_limits,
    count,
    described,
    idle_grid,
    operations,
    scratch,
)
from grader.device import Device
from grader.diagnosis import codes, details
from grader.diagnosis.contrast import name_the_cause, undefined_or_ordered
from grader.diagnosis.explanation import explained, result_of, telling_cases
from grader.diagnosis.lines import located
from grader.diagnosis.precedence import explained_by_precedence
from grader.diagnosis.separation import Traits, Values, separation, traits_of, values_of
from grader.draws import DEFAULT_BLOCK, Draws, block_of
from grader.engine.compiler import targets
from grader.engine.compiler.targets import Target
from grader.gate import Gate
from grader.order import Order
from grader.outcome import Answer, Outcome, Run, Stopped, unusable
from grader.prepared import Prepared, functions_of
from grader.processes import Later
from grader.recording import Recording
from grader.report import SPARED, CaseResult, Finding, Kind, Report, Verdict, versions
from grader.sandbox import Sandbox, SandboxBroken, cancellation
from grader.session import Session
from grader.sizes import Drawn
from grader.suite import Case, Property, Suite
from grader.words import sentence

PATIENCE_S = 60.0  # a learner's: then a submission that has failed already is not run any further
IN_VAIN = 3  # contrasts with which a function was no better, after which none is tried any more
LOST_S = 20.0  # spent on runs that did not end normally, after which nothing more is run

Event = CaseResult | str
Effort = Literal["whole", "values", "diagnosis", "first", "uncompiled"]
Use = Literal["never", "found", "throughout"]  # of this machine's GPU
ENGINE = "interpreter, every access checked"


def grade(kernel: Path, suite: Suite, *, public_only: bool = False, only: str | None = None,
          seed: str | None = None, target: Target | None = None, effort: Effort = "whole",
          gpu: Use = "never", first: Sequence[str] = (), prepared: Prepared | None = None,
          on_event: Callable[[Event], None] | None = None, sandbox: Sandbox | None = None,
          cancelled: threading.Event | None = None) -> Report:
    """Grade one submission with one suite.

    Args:
        kernel: the learner's file. It is read once; later changes do not matter.
        suite: from ``grader.suite.load``.
        public_only: run the public cases only; such a report gives no evidence.
        only: words that mean one case (``grader.selection``), which is then graded alone and in
            detail; such a report gives no evidence either.
        seed: hexadecimal, to repeat the inputs of an earlier report; no evidence. Without it the
            inputs are drawn from the operating system's randomness, those of ``prepared`` before
            and all others after the submission was imported.
        target: the GPU for which launches are compiled. If none is named, that of this machine
            where it is used and known, and else an H100.
        effort: ``values`` compiles nothing more once a case has failed and swaps no files;
            ``diagnosis`` runs only cases then that tell known mistakes apart, and ``first`` none;
            neither asks for more than shows that a case fails. ``uncompiled`` never compiles
            anything. What they leave out is no evidence. Only a whole grade ends early where it
            takes long: who asks for less says what may be left out.
        gpu: ``found`` runs all values on this machine's GPU too once they are right on the
            processor, and times what asks for speed; ``throughout`` runs wrong ones as well.
        first: names of cases to judge before the others, such as those that failed last; names
            that no case has are passed over. Inputs and report are those of the usual order.
        prepared: inputs that were made before; passed over where they are another suite's, where
            a grade has used them, or where ``seed`` says which.
        on_event: is told the name of each case before it runs and each result after it, and now
            and then what is waited for.
        sandbox: a warm one to use; without it one is started and closed.
        cancelled: to be set by another thread when nobody wants the report any more. The processes
            of this grade are killed then, and the sandbox serves the next one. Who may cancel waits
            for every word: all processors judge values first, and launches are compiled after that.

    Raises:
        grader.Cancelled: ``cancelled`` was set while cases were judged.
        grader.source.UnreadableSubmission: there is no file to read.
        grader.selection.UnknownCase: ``only`` means no case, or several.
    """
    started = time.monotonic()
    tell = on_event or (lambda event: None)
    names = [case.name for case in suite.ordered()]
    only = selection.select(only, names) if only is not None else ""
    repeated, separated = seed is not None, ""
    witnesses: list[CaseResult] = []
    submitted = source.read(kernel, suite.files, suite.kernel_file)
    results: list[CaseResult] = []
    findings = source.inspect(submitted, suite.signatures, suite.blanks)
    output = reason = isolation = compiled_for = ""
    device: Device | None = None
    printed: dict[str, tuple[str, ...]] = {}
    if findings:
        results.append(result_of(Case("the file can be graded", Kind.CORRECTNESS), findings))
    else:
        with ExitStack() as resources:
            resources.enter_context(cancellation.cancelled_by(cancelled))
            box = sandbox or resources.enter_context(Sandbox())
            judge = resources.enter_context(Judge(submitted, suite, seed, box, target, effort,
                                                  gpu, values_first=cancelled is not None,
                                                  prepared=prepared))
            device = judge.device
            try:
                isolation = box.isolation.describe()
                cases = suite.ordered(public_only, only)
                if only:
                    alone.prepare(judge, cases[0])
                for result in judge.verdicts(cases, tell, first=first, aside=bool(only)):
                    results.append(result)
                    tell(result)
                compiled_for = judge.gate.target.title if judge.gate.used else ""
                if only:
                    witnesses = alone.witnesses(judge, results)
            except SandboxBroken as error:
                reason = f"A process of the grader ended unexpectedly: {error}"
            results = judge.order.sorted(results)
            output, seed = judge.output(), judge.draws.seed
            separated = judge.separation(results)
            printed = judge.printed
    used = device is not None and bool(device.results or device.ceilings)
    on_gpu = explained(device.results, suite, submitted, names, seed or "") if device else ()
    shown = next((r.name for r in results if r.fails), "")
    if not shown and (public_only or only or repeated):
        shown = next((r.name for r in results if r.name in printed), "")
    return Report(
        suite=suite.name,
        source_sha256=submitted.sha256,
        suite_sha256=suite.sha256,
        grader_version=version("tritonlab"),
        versions=versions() | (device.versions() if device and used else {}),
        engine=ENGINE + (f"; {device.gpu.name}" if device and device.gpu and used else ""),
        isolation=isolation,
        seed=seed or "",
        target=compiled_for,
        results=explained(results, suite, submitted, names, seed or "", separated, witnesses),
        seconds=time.monotonic() - started,
        output=output,
        reason=reason,
        public_only=public_only,
        only=only,
        repeated=repeated,
        gpu=device.gpu.name if device and device.gpu and used else "",
        ceilings=device.told() if device else {},
        on_gpu=on_gpu,
        unusable_gpu=device.unusable if device else "",
        printed=printed.get(shown, ()),
        printed_in=shown if shown in printed else "",
    )


@dataclass(frozen=True)
class Trial:
    """One call of the learner's function, before anything is compared.

    ``run`` is None where nothing was replayed; for other than refusals, the findings say why.
    """

    case: Case
    inputs: list[Any]
    drawn_for: int  # the block that their sizes follow
    outcome: Outcome
    findings: list[Finding] = field(default_factory=list)
    run: Run | None = None


class Judge:
    """One submission under judgement. Seeds, references and verdicts live here and nowhere else.

    ``suite`` and ``session`` are those of the function whose case is judged; ``whole`` is the suite
    with all of them.
    """

    def __init__(self, submitted: source.Source, suite: Suite, seed: str | None,
                 sandbox: Sandbox, target: Target | None = None, effort: Effort = "whole",
                 gpu: Use = "never", *, values_first: bool = False,
                 prepared: Prepared | None = None) -> None:
        self.whole = suite
        self.order = Order(suite.ordered())
        self._values_first = values_first
        self._effort = effort
        self.draws = prepared if prepared and not seed and prepared.is_for(suite) else \
            Draws(suite.name, seed or "")
        self.submitted = submitted
        self.text = submitted.text
        self.sandbox = sandbox
        self._over = ""  # why nothing more is run
        self._failed = False
        self._leads = True  # whether a failure of the case that is judged would be the first
        self._configurations = Configurations()
        self._started = time.monotonic()
        self._traits: dict[str, Traits] = {}  # of the value cases, by name
        self._in_vain: Counter[str] = Counter()  # contrasts, by function
        self._notes: details.Notes | None = None  # where a case is graded alone
        self._printed = ""
        self.printed: dict[str, tuple[str, ...]] = {}  # by kernels, in the cases where they did
        self._answers: dict[str, Answer] = {}  # of host code, by what was asked
        self._tell: Callable[[str], None] = lambda event: None
        if suite.compiles_graphs:
            sandbox.expect("graphs")
        ahead = effort == "whole" and not values_first  # everything is compiled, and at once
        on_gpu = gpu != "never" and hardware.present()
        target = target or (hardware.default_target(suite.least_capability) if on_gpu else
                            targets.find())
        self.session = Session(submitted, suite.entry, sandbox, large.limits(suite),
                               target=target.name, values_first=values_first, compiles=ahead)
        # A suite and a session for each function, in the order of the suite's.
        self.parts = [(self._remembering(part), self.session.of(part, suite.calls))
                      for part in suite.parts]
        self.suite, self.session = self.parts[0]
        self.device = Device(self, throughout=gpu == "throughout") if on_gpu else None
        self.gate = Gate(self.session, target, ahead=ahead,
                         functions={case.name: case.about for case in suite.all_cases})

    def _remembering(self, part: Suite) -> Suite:
        """The same suite, which computes nothing twice in a row and nothing that is prepared."""
        if not isinstance(self.draws, Prepared):
            return replace(part, reference=once(part.reference))
        reference, *amplitude = (self.draws.known(name, function)
                                 for name, function in functions_of(part).items())
        return replace(part, reference=once(reference), tolerance=replace(
            part.tolerance, amplitude=amplitude[0] if amplitude else None))

    def output(self) -> str:
        """What the learner's code printed; of a case graded alone, in its own call."""
        return self._printed or self.session.output()

    def beside(self) -> Judge:
        """Another one with the same inputs, and with processes of its own."""
        other = Judge(self.submitted, self.whole, self.draws.seed, self.sandbox,
                      self.gate.target)
        other.draws.blocks = dict(self.draws.blocks)
        return other

    def take_notes(self, case: Case | Property) -> None:
        """From here on, gather the details of the one case that is graded."""
        asked = case.call.of if isinstance(case, Case) and case.call else ""
        functions = {part.entry: part.named_inputs for part, _ in self.parts} | {**self.whole.host}
        names = functions.get(asked, ()) if asked else self.suite.named_inputs
        self._notes = details.Notes(names)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.session.close()

    def verdicts(self, cases: Sequence[Case | Property], tell: Callable[[str], None], *,
                 first: Sequence[str] = (), aside: bool = False) -> Iterator[CaseResult]:
        """Judge the cases, those that can run ahead; in the end, what the compiler says.

        Args:
            cases: to be judged, in the order of the suite.
            tell: is told the name of each before its turn comes, and what is waited for.
            first: names of cases that are judged before the others.
            aside: say what the compiler says only where it refuses something.
        """
        last = [case.name for case in cases if self._values_first and isinstance(case, Case)
                and large.waits_for_code(case)]
        self.order = Order(cases, first, last)
        self._tell = tell
        left, ahead = deque(self.order.cases), self._ahead(self.order.cases)
        results: list[CaseResult] = []
        while left:
            cancellation.check()
            case, failed = left.popleft(), self._failed
            tell(case.name)
            results.append(self.verdict_on(case, ahead.take))
            if self.device is None or case.name not in self.device.foretold:
                yield results[-1]  # else the clock has more to say
            if self._failed and self._effort == "first":
                return
            if self._failed and not failed and self._effort == "diagnosis":
                telling = telling_cases(results[-1], self.whole)
                left = deque(case for case in left if case.name in telling)
                ahead = self._ahead(left)
        if self.gate.used and not self.spares_work:
            tell(self.gate.name)
            result = self.gate.result(whole=self.tells_all, tell=tell)
            results.append(result)
            if not aside or result.verdict is not Verdict.PASSED:
                yield result
        if self.device is not None:
            yield from self.device.verdicts(results, tell)

    def _ahead(self, cases: Iterable[Case | Property]) -> Ahead[Case, Trial, Trial]:
        """Those of the cases that can run ahead, in order."""
        return Ahead((case for case in cases if isinstance(case, Case) and large.is_tried(case)),
                     self._call, self._replay, self.session.processes.abreast + 1)

    @property
    def failed(self) -> bool:
        """Whether a case that counts has failed by now."""
        return self._failed

    def turn_to(self, case: Case | Property) -> None:
        """From here on ``suite`` and ``session`` are those of the function of ``case``."""
        self.suite, self.session = self._part(case)

    def _part(self, case: Case | Property) -> tuple[Suite, Session]:
        entry = case.function if isinstance(case, Case) else ""
        return next((part for part in self.parts if part[0].entry == entry), self.parts[0])

    def verdict_on(self, case: Case | Property,
                   take: Callable[[], Trial] | None = None) -> CaseResult:
        """Judge one case, whatever happens; a hang or a crash costs this case alone.

        ``take`` gives its trial, where it was run ahead.
        """
        started = time.monotonic()
        self.turn_to(case)
        self._leads = self.order.leads(case)
        if self._leads and self._failed:
            self._in_vain.clear()  # what a case further back could not tell, the first one may
        if self._failed and self._effort == "whole" and started - self._started > PATIENCE_S:
            late = f"not run: {PATIENCE_S:.0f} s had passed, and a case before it had failed"
            self._over = self._over or late
        if self._over:
            result = CaseResult(case.name, case.kind, Verdict.SKIPPED, reason=self._over)
        else:
            try:
                result = self._one(case, take)
            except Stopped as stop:
                lost_s = self.session.lost_s
                if stop.final:
                    self._over = "not run: the file could not be used"
                elif lost_s > LOST_S:
                    self._over = (f"not run: cases before it did not end normally, which took "
                                  f"{lost_s:.0f} s")
                result = result_of(case, [stop.finding])
            except SandboxBroken:
                raise
            except Exception:  # ours: an error verdict, never a failure of the learner
                result = CaseResult(case.name, case.kind, Verdict.ERROR,
                                    reason=traceback.format_exc())
                if refusal := self.gate.refusal_in(case.name):  # what no GPU runs need not run here
                    result = result_of(case, [refusal])
        result = replace(result, seconds=time.monotonic() - started, advisory=case.advisory,
                         details=self._notes.details() if self._notes else None,
                         clocked=isinstance(case, Case) and large.is_measured(case))
        self._failed |= result.fails
        self.order.note(result)
        return result

    def separation(self, results: Sequence[CaseResult]) -> str:
        """What tells the failing value cases from the passing ones; looked for after a failure.

        Of several functions, all cases are of the one whose case is the first to fail.
        """
        cases = {case.name: case for case in self.whole.all_cases}
        deciding = [(self._traits[r.name], r.verdict) for r in results
                    if r.name in self._traits and not r.advisory
                    and not (r.findings and r.findings[0].code.startswith("T"))]
        lead = next((r.name for r in results if r.fails), "")
        leading = [traits for traits, _ in deciding if traits.name == lead]
        if not leading:
            return ""  # the failure that is shown first is of another kind
        first = cases[lead].function
        failed, passed = ([traits for traits, verdict in deciding if verdict is wanted
                           and cases[traits.name].function == first]
                          for wanted in (Verdict.FAILED, Verdict.PASSED))

        if not leading[0].elements and any(traits.elements for traits in failed):
            return ""

        def values(traits: Traits) -> Values | None:
            specs = cases[traits.name].inputs
            return values_of(self.draws.draw(traits.name, specs, block=traits.drawn_for))

        return separation(failed, passed, values)

    def _one(self, case: Case | Property, take: Callable[[], Trial] | None) -> CaseResult:
        if not isinstance(case, Case) or not large.is_tried(case):
            self._sized_by(case)
        if isinstance(case, Property):
            return asked.law(self, case)
        if case.sizes is not None:
            return drawn.verdict(self, case, shrink=self._leads)
        if case.reading is not None or case.call is not None:
            return asked.host_code(self, case)
        if large.is_measured(case):
            if self.spares_work:
                return CaseResult(case.name, case.kind, Verdict.SKIPPED, reason=SPARED)
            said = speed.foretold(self, case)
            if self.device is not None:
                self.device.foretold[case.name] = said
            return said.result()
        if large.is_large(case):
            return large.sampled(self, case)
        trial = take() if take else self._replay(self._call(case)())()
        if case.raises:
            return result_of(case, list(trial.outcome.findings)
                             or broken_refusal(case, trial.outcome.error))
        return self.values(trial)

    def _call(self, case: Case) -> Later[Trial]:
        """Begin to have the learner's function called: the first step of a case.

        Raises:
            Stopped: here or later, as it did not end normally.
        """
        block = self._sized_by(case)
        inputs = self.draw(case.name, case.inputs, block)
        self.order.learn(case, None)
        _, session = self._part(case)
        outcome = session.begin_record(inputs, as_they_are=bool(case.raises))

        def called() -> Trial:
            trial = Trial(case, inputs, block, outcome())
            recorded = trial.outcome.recording
            if case.kind is Kind.CORRECTNESS and recorded and (learned := block_of(recorded)):
                self.draws.blocks[case.function] = learned
                self.order.learn(case, learned)
            return trial

        return called

    def _sized_by(self, case: Case | Property) -> int:
        """The block that sizes of a case follow: that of the last case before it in the suite."""
        function = case.function if isinstance(case, Case) else ""
        if self.order.changed and (isinstance(case, Property) or case.follows_block):
            try:
                shown = self.order.block_before(case, self._block_shown)
            except Stopped:  # which that case itself has to tell
                shown = None
            self.draws.blocks[function] = shown or DEFAULT_BLOCK
        return self.draws.block(function)

    def _block_shown(self, case: Case) -> int | None:
        """The block of the learner's launches in a case that comes later than it should."""
        _, session = self._part(case)
        recording = session.record(self.draw(case.name, case.inputs, DEFAULT_BLOCK)).recording
        return block_of(recording) if recording else None

    def _replay(self, trial: Trial) -> Later[Trial]:
        """Begin to have the recorded launches run: the second step.

        Raises:
            Stopped: here or later, as they did not end normally.
        """
        if trial.case.raises:
            return lambda: trial
        suite, session = self._part(trial.case)
        recording = trial.outcome.recording
        findings = unusable(trial.outcome)
        if recording is not None and not findings:
            findings = idle_grid(suite, session, recording, trial.inputs)
        if recording is None or findings:
            return lambda: replace(trial, findings=findings)
        # Drawn sizes are of kind PROPERTY. They are not compiled: a variant for each would take
        # longer than all cases together. Triton specializes on dtypes, on sizes of 1 and multiples
        # of 16, and on constexprs, all of which fixed cases show it.
        if not trial.case.advisory and trial.case.kind is not Kind.PROPERTY:
            self.gate.add(trial.case.name, recording, trial.outcome.configurations)
        run = session.begin_replay(recording, trial.inputs, {"other": True})
        return lambda: replace(trial, run=run())

    def draw(self, name: str, specs: Sequence[Any], block: int | None = None) -> list[Any]:
        """Inputs for the learner's function; none are drawn before its file was imported."""
        self.session.ready()
        drawn = self.draws.draw(name, specs, block or self.draws.block())
        if self._notes:
            self._notes.drew(drawn)
        return drawn

    def outlines(self, case: Case) -> list[Any]:
        """Inputs at their real size that take no memory: tensors without values, where that does.
        """
        self.session.ready()
        block = self.draws.block(case.function)
        return self.draws.draw(case.name, case.inputs, block, outlines=True)

    def trials(self, cases: Sequence[Case]) -> Iterator[Trial]:
        """Trials of cases that the suite does not list, begun ahead of the one that is taken."""
        ahead = self._ahead(cases)
        return (ahead.take() for _ in cases)

    def sizes(self, case: Case) -> list[Drawn]:
        """The sizes of a case that draws them; none are drawn before the file was imported."""
        assert case.sizes is not None
        self.session.ready()
        return self.draws.sizes(case.name, case.sizes)

    @contextmanager
    def without_notes(self) -> Iterator[None]:
        """Inside, no details of the one case that is graded are gathered."""
        notes, self._notes = self._notes, None
        try:
            yield
        finally:
            self._notes = notes

    def findings(self, trial: Trial) -> list[Finding]:
        """The findings of a call, without their cause."""
        case, inputs, run = trial.case, trial.inputs, trial.run
        recording = trial.outcome.recording
        if recording is None or run is None:
            return trial.findings
        findings = self._said_of_run(run.findings, recording, inputs)
        broken = broken_contract(self.suite, case, recording, inputs)
        if not findings or (broken and wrong_places_follow(broken[0], findings)):
            findings = broken
        if not findings:
            findings += self.wrong_values(run.results, inputs, recording)
        if not run.findings and (not findings or findings[0].code.startswith("N")):
            findings = undefined_or_ordered(
                self.session, recording, inputs, run, None if self.suite.reproducible else
                lambda results: self.difference(results, inputs) is None) or findings
        return findings

    def values(self, trial: Trial) -> CaseResult:
        """The verdict on a call, with the cause of its findings."""
        case, inputs, run = trial.case, trial.inputs, trial.run
        recording = trial.outcome.recording
        self._look_at(trial)
        if self.device is not None:
            self.device.keep(trial)
        findings = self.findings(trial)
        if recording is None or run is None:
            return result_of(case, findings)
        if run.printed:
            self.printed[case.name] = run.printed
        if findings:
            findings = self.session.decided_by_values(recording, inputs) or findings
        if findings:
            findings = located(codes.in_order(findings), self.text, recording, run.facts,
                               self.suite.result_names)
            findings = name_the_cause(inputs, findings, self._passes)
            findings = explained_by_precedence(findings, self.submitted.text)
        if not findings and case.kind is Kind.CORRECTNESS and not case.advisory:
            findings = self._configurations.others(self, case, inputs,
                                                   trial.outcome.configurations)
        facts, over_limit = self._costs(trial, run, recording)
        return result_of(case, [*findings, *over_limit], facts)

    def ask(self, call: Call, inputs: list[Any]) -> Answer:
        """What host code answers; asked for the same plain values again, what it answered before.

        Raises:
            Stopped: the worker did not survive it.
        """
        try:
            asked = json.dumps([call.of, call.eager, call.seconds, plain.to_json(inputs)])
        except plain.NotPlain:  # tensors are drawn anew for each case
            return self.session.ask(call, inputs, self.whole.calls)
        if asked not in self._answers:
            self._answers[asked] = self.session.ask(call, inputs, self.whole.calls)
        return self._answers[asked]

    @property
    def tells_all(self) -> bool:
        """Whether a failure is told in full, and not only what kind of failure it is."""
        return self._effort not in ("diagnosis", "first")

    @property
    def spares_work(self) -> bool:
        """Whether nothing that takes long is begun any more, as this is known to fail."""
        return self._effort == "uncompiled" or (
            self._failed and self._effort in ("values", "diagnosis"))

    def _costs(self, trial: Trial, run: Run,
               recording: Recording) -> tuple[dict[str, str], list[Finding]]:
        """What a performance case tells, and what is over its limits."""
        case, limits = trial.case, trial.case.limits
        if limits is None:
            return {}, []
        needed = large.least(self.suite, trial.inputs)
        facts, findings = count(limits, needed.bytes, run.facts, trial.drawn_for)
        for told, missing in (
            operations(limits, needed.flops, run.facts), scratch(limits, recording),
            axes(limits, recording), described(limits, recording),
        ):
            facts, findings = facts | told, [*findings, *missing]
        enough = bool(findings) and self._effort != "whole"
        if limits.of_code and not enough and not self.spares_work:
            self._tell(f"{case.name}: waiting for the compiler")
            made = self.gate.compiled(recording, limits.target)
            found, more = code_limits(limits, run.facts, made.binaries)
            return facts | found, [*findings, *made.findings, *more]
        return facts, findings

    def _said_of_run(self, findings: Sequence[Finding], recording: Recording,
                     inputs: Sequence[Any]) -> list[Finding]:
        """What a run found; where it refused a kernel, in the compiler's own words, and where it
        modified an input, by the function's name for it.
        """
        if not findings:
            return []
        if findings[0].code == "L05":
            return [self.gate.in_its_words(findings[0], recording), *findings[1:]]
        names = [name for name, value in zip(self.suite.named_inputs, inputs, strict=False)
                 if isinstance(value, torch.Tensor)]
        places = self.submitted.places(self.whole.exercise).lines
        return [details.by_argument(finding, recording, names, places) for finding in findings]

    def _look_at(self, trial: Trial) -> None:
        """Keep what may tell, after a failure, why this case ended otherwise than others."""
        name, recording = trial.case.name, trial.outcome.recording
        traits = traits_of(name, trial.inputs, trial.drawn_for)
        if traits and recording is not None:
            programs = sum(launch.programs for launch in recording.launches)
            traits = replace(traits, block=block_of(recording), programs=programs)
        if traits:
            self._traits[name] = traits
        if self._notes and recording is not None:
            self._notes.recorded(recording)
            self._printed = self.session.output()  # what is run for the diagnosis prints too

    def wrong_values(self, results: Sequence[torch.Tensor], inputs: list[Any],
                     recording: Recording | None = None) -> list[Finding]:
        difference = self.difference(results, inputs)
        if difference is None:
            return []
        if self._notes:
            self._notes.differed(difference)
        return [self.wrong(difference, inputs, recording)]

    def wrong(self, difference: compare.Difference, inputs: Sequence[Any],
              recording: Recording | None = None, *, pattern: bool = True) -> Finding:
        """A difference from the reference in words.

        ``pattern``: also say how the wrong values lie, of the first failure.
        """
        code = "N05" if difference.kind == "tf32" else "N01"
        if difference.kind == "nonfinite":
            tensors = [value for value in inputs if isinstance(value, torch.Tensor)]
            code = "N02" if all(map(compare.is_finite, tensors)) else "N03"
        elif compare.right_as_float32(difference):
            code = "N04"
        # Only the first failure is shown in full; any other is described when graded alone.
        described = "" if not self._leads or not pattern else \
            details.pattern(difference, self.suite, list(inputs), recording)
        return Finding(code, f"{sentence(str(difference))} {described}".strip())

    def difference(self, results: Sequence[torch.Tensor], inputs: list[Any], *,
                   on_gpu: bool = False) -> compare.Difference | None:
        """Against the reference, computed from the judge's own inputs."""
        suite = self.suite
        tolerance = suite.tolerance.of_a_gpu() if on_gpu else suite.tolerance
        names = [f"`{name}`" for name in suite.result_names]
        found = compare.judge(results, inputs, suite.reference, tolerance, names)
        return found[0] if found else None

    def _passes(self, inputs: Sequence[Any]) -> bool:
        """Whether the submission is right on these; what is wrong on all of them is not asked on.
        """
        entry = self.suite.entry
        if self._in_vain[entry] >= IN_VAIN:
            return False
        right = self._is_right(list(inputs))
        self._in_vain[entry] += not right
        return right

    def _is_right(self, inputs: list[Any]) -> bool:
        recording, findings, run = self.session.execute(inputs)
        if recording is None or findings or run.findings:
            return False
        case = Case("a contrast", Kind.CORRECTNESS)
        if broken_contract(self.suite, case, recording, inputs):
            return False
        return self.difference(run.results, inputs) is None
