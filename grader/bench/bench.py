"""Bench: times functions on inputs of growing size, on a GPU or as predicted for one."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from grader.bench import benchmark
from grader.bench.benchmark import YOURS, Benchmark, Chart, Contender, Roof, Speed, Without
from grader.bench.torch_baselines import Peers
from grader.diagnosis.explain import explain_findings
from grader.engine.compiler.targets import Target
from grader.engine.gpu import measurement
from grader.engine.gpu.measurement import Ceilings, Measurement, Units
from grader.gpu import client, detect
from grader.gpu.client import NoGpu
from grader.judge import large_tensors, single_case
from grader.judge.case import first_wrong
from grader.judge.context import Context
from grader.judge.draws import Draws, rolled
from grader.judge.launch_report import examine_call, recordings_of
from grader.judge.perf_bound import MATMUL_OF_PEAK, peak_of
from grader.processes.replies import Stopped
from grader.recording.model import Recording
from grader.report import CaseResult, Finding, Kind, versions
from grader.sandbox import Sandbox
from grader.submission import source
from grader.suite import Bench, Case, Cost, Suite

MOST_CONFIGURATIONS = 32  # of an autotuner that are timed at each size
OnEvent = Callable[[str], None]


class Predicted:
    """A GPU that is not there: times predicted from compiled code and counted bytes."""

    measured = False

    def __init__(self, target: Target) -> None:
        self.target = target
        self.device = target.title
        self.of = {"target": asdict(target)}

    def roof(self, units: Units) -> Roof:
        """Copies and matrix products as fast as those of a good library."""
        return Roof(self.device, False, self.target.dram,
                    max(MATMUL_OF_PEAK) * peak_of(units, self.target), units)

    def kernels(self, case: Case, ctx: Context, name: str,
                inputs: Sequence[Any]) -> Speed | Without:
        session = ctx.session(case)
        session.ready()
        outlines = ctx.draws.draw(name, inputs, outlines=True)
        examined = examine_call(session, outlines, ctx.submitted.text, self.target)
        if examined.findings:
            return Without(findings=examined.findings)
        if examined.prediction is None or examined.unknown:
            return Without(" ".join(examined.unknown) or "Its time cannot be predicted.")
        seconds = examined.prediction.seconds
        return Speed(seconds, seconds, seconds, prediction=examined.prediction)

    def peer(self, part: Suite, size: int, *, compiled: bool) -> Speed | Without:
        raise NotImplementedError("the time of torch's kernels cannot be predicted")


class Measured:
    """The GPU of this machine. Kernels run in the process before it, torch in another one."""

    measured = True

    def __init__(self, ceilings: Ceilings, peers: Peers) -> None:
        self.ceilings = ceilings
        self.device = ceilings.gpu.name
        self.of = {"ceilings": ceilings.to_dict()}
        self._peers = peers
        self._drawn: tuple[str, list[list[Any]]] = ("", [])

    def roof(self, units: Units) -> Roof:
        return Roof(self.device, True, self.ceilings.copy_gb_s * 1e9,
                    self.ceilings.tflops_of(units) * 1e12, units)

    def kernels(self, case: Case, ctx: Context, name: str,
                inputs: Sequence[Any]) -> Speed | Without:
        suite, session = ctx.part(case), ctx.session(case)
        session.ready()
        outlines = ctx.draws.draw(name, inputs, outlines=True)
        recordings, findings = recordings_of(session, outlines, MOST_CONFIGURATIONS)
        if findings:
            return Without(findings=tuple(findings))
        sets = self._sets(ctx.draws, name, inputs)
        try:
            timed = session.measure(recordings[0], sets, others=recordings[1:])
        except NoGpu as error:
            return Without(str(error))
        if timed.findings or timed.measurement is None:
            return Without("" if timed.findings else "The GPU returned no time.", timed.findings)
        for drawn, results in zip(sets, timed.results, strict=False):
            if wrong := _wrong(suite, recordings[0], results, drawn):
                return Without(findings=(wrong,))
        return self._speed(timed.measurement, suite.cost(*sets[0]))

    def peer(self, part: Suite, size: int, *, compiled: bool) -> Speed | Without:
        measured = self._peers.measure(part.entry, size, compiled=compiled)
        return Without(measured) if isinstance(measured, str) else self._speed(measured, None)

    def _sets(self, draws: Draws, name: str, inputs: Sequence[Any]) -> list[list[Any]]:
        """The same for all contenders at one size, and kept no longer."""
        if self._drawn[0] != name:
            self._drawn = "", []
            large_tensors.free()
            first = draws.draw(name, inputs, device=large_tensors.device())
            self._drawn = name, [first, rolled(first)]
        return self._drawn[1]

    def _speed(self, time: Measurement, needed: Cost | None) -> Speed | Without:
        if needed and (why := measurement.impossible(time, needed, self.ceilings)):
            return Without(why)
        notes = (f"spread {100 * time.spread:.0f} %" if time.noisy else "",
                 f"held back: {time.throttled}" if time.throttled else "",
                 "" if time.graph else "including Python's launch overhead", time.config)
        return Speed(time.ms / 1e3, time.p20_ms / 1e3, time.p80_ms / 1e3, time.repeats,
                     "; ".join(filter(None, notes)))


@contextmanager
def measuring(sandbox: Any, suite: Path) -> Iterator[Measured]:
    """The clock of this machine's GPU, for the module with this suite.

    Raises:
        NoGpu: there is none that can be used.
    """
    if not detect.present():
        raise NoGpu("no GPU was found")
    with client.process(sandbox) as ask:
        ceilings = client.ceilings(ask)
    with Peers(suite) as peers:
        yield Measured(ceilings, peers)


def _wrong(suite: Suite, recording: Recording, results: Sequence[torch.Tensor],
           inputs: Sequence[Any]) -> Finding | None:
    """Checks the results of timed runs, where there is room to compare them."""
    case = Case("the runs that were timed", Kind.CORRECTNESS)
    try:
        findings, difference = large_tensors.check(suite, case, recording, results, inputs)
    except (MemoryError, torch.OutOfMemoryError):
        return None  # small inputs were right; a larger machine would tell of these
    finally:
        large_tensors.free()
    if findings:
        return Finding(findings[0].code, findings[0].data).within("timed")
    return Finding("N01", difference.data()).within("timed") if difference else None


Clock = Predicted | Measured


def bench(kernel: Path, suite: Suite, clock: Clock, *, sandbox: Sandbox,
          solution: Path | None = None, function: str = "",
          on_event: OnEvent | None = None) -> Benchmark:
    """Times a submission beside the reference solution and torch. Nothing is judged but values.

    Args:
        kernel: the learner's file.
        solution: the reference solution's file.
        function: the only one to be timed; all that have a ``Bench`` otherwise.
        on_event: gets a line for each thing that begins.

    Raises:
        grader.submission.source.UnreadableSubmission: there is no file to read.
        grader.sandbox.SandboxBroken: the grader's processes do not start.
    """
    tell = on_event or (lambda event: None)
    submitted = source.read(kernel, suite.files, suite.kernel_file)
    refused = source.inspect(submitted, suite.signatures, suite.blanks)
    parts = [part for part in benched(suite) if function in ("", part.entry)]
    files = {} if refused else {YOURS: submitted}
    if solution is not None:
        files[benchmark.REFERENCE] = source.read(solution, suite.files, suite.kernel_file)
    with ExitStack() as resources:
        contexts = {
            who: resources.enter_context(Context(file, suite, sandbox, effort="uncompiled"))
            for who, file in files.items()}
        charts = tuple(_charted(suite, part, contexts, clock, tell) for part in parts)
    return Benchmark(suite.name, submitted.sha256, clock.measured, clock.device, clock.of,
                     charts, explain_findings(refused, suite, submitted), versions())


def benched(suite: Suite) -> list[Suite]:
    """The functions of a suite that say what to time, each as a suite of its own."""
    return [part for part in suite.parts if part.bench]


def _charted(suite: Suite, part: Suite, contexts: Mapping[str, Context], clock: Clock,
             tell: OnEvent) -> Chart:
    plan = part.bench
    assert plan is not None
    wrong: dict[str, CaseResult | None] = {}
    if YOURS in contexts:
        tell(f"values of {part.entry}")
        wrong[YOURS] = _first_wrong(part, contexts[YOURS])
    outlines = {size: _outlines(suite, part, plan, size) for size in plan.sizes}
    needed = {size: part.cost(*inputs) for size, inputs in outlines.items()}
    roof = clock.roof(measurement.units_of(outlines[max(plan.sizes)], part.tolerance))
    times: dict[str, dict[int, Speed | Without]] = {
        who: {} for who in (YOURS, benchmark.REFERENCE, benchmark.TORCH, benchmark.COMPILED)}
    for size in plan.sizes:
        name, inputs = f"bench/{part.entry}/{size}", plan.inputs(size)
        timing = {who: partial(_kernels, part, ctx, clock, name, inputs)
                  for who, ctx in contexts.items() if not wrong.get(who)}
        if clock.measured:  # without a GPU, torch's kernels and their times are unknown
            timing |= {who: partial(clock.peer, part, size, compiled=who == benchmark.COMPILED)
                       for who in (benchmark.TORCH, benchmark.COMPILED)}
        for who, time in timing.items():
            tell(f"{part.entry}, {size:,} {plan.axis}: {who}")
            times[who][size] = time()
    contenders = (Contender(
        who, {size: time for size, time in timed.items() if isinstance(time, Speed)},
        {size: time for size, time in timed.items() if isinstance(time, Without)},
        wrong.get(who)) for who, timed in times.items())
    return Chart(part.entry, plan.axis, plan.at, plan.peer_name, roof, needed, tuple(
        one for one in contenders if one.speeds or one.without or one.wrong))


def _kernels(part: Suite, ctx: Context, clock: Clock, name: str,
             inputs: Sequence[Any]) -> Speed | Without:
    try:
        time = clock.kernels(part.cases[0], ctx, name, inputs)
    except Stopped as stop:
        time = Without(findings=(stop.finding,))
    if isinstance(time, Without):
        return replace(time, findings=explain_findings(time.findings, ctx.suite, ctx.submitted))
    return time


def _first_wrong(part: Suite, ctx: Context) -> CaseResult | None:
    """The first case that shows wrong values; a wrong kernel may be as fast as it likes."""
    result = first_wrong(part, ctx)
    return result and single_case.diagnosed(result, ctx)


def _outlines(suite: Suite, part: Suite, plan: Bench, size: int) -> list[Any]:
    """Inputs of a size without memory, as ``cost`` may see them."""
    inputs = Draws(suite.name, "0").draw("bench", plan.inputs(size), outlines=True)
    return [getattr(value, "like", value) for value in inputs]
