"""The straight line to a GPU and back, one kernel at a time: what ``gpu.py`` is made of."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

import grader
from grader import Sandbox
from grader.diagnosis.difference import as_tuple
from grader.engine.gpu import measurement
from grader.engine.gpu.measurement import Ceilings, Gpu, Measurement
from grader.gpu import client
from grader.gpu.client import NoGpu
from grader.judge import compare, oversized
from grader.judge.draws import Draws, block_of
from grader.processes.replies import Run, Stopped, Timed, unusable
from grader.processes.session import Session
from grader.recording.model import Recording
from grader.submission import source
from grader.suite import Case, Suite
from tests.benchmarks.checkout import ROOT

SOLUTION = "solution"
LADDER: tuple[tuple[Any, ...], ...] = (
    (), ("landlock",), ("seccomp",), ("landlock", "seccomp"), ("user",),
    ("user", "landlock", "seccomp"))
CHEATS = ROOT / "tests" / "fidelity" / "cheats" / "timing"
SEED = "5eed" * 8
CHUNK = 16  # cases of a solution that are run in a row
MOST_OF_A_MUTANT = 16
PASSED, FAILED = "PASSED", "FAILED"
LARGEST = 8 << 30  # bytes of a set of inputs that is timed here
CHEAT_ELEMENTS = 1 << 25


@contextmanager
def sandbox(without: Sequence[Any]) -> Iterator[Sandbox]:
    with Sandbox(tuple(without)) as box:
        yield box


def look(without: Sequence[Any], simulate: bool) -> dict[str, Any]:
    """What the GPU says of itself, or why not, with some measures left out."""
    started = time.monotonic()
    told: dict[str, Any] = {"without": list(without)}
    try:
        with sandbox(without) as box:
            told["isolation"] = box.isolation.describe()
            if simulate:
                told["gpu"] = SIMULATED.gpu.to_dict()
            else:
                with client.process(box) as ask:
                    told["gpu"] = client.look(ask).to_dict()
    except Exception as error:
        told["why"] = f"{type(error).__name__}: {error}"[-3000:]
    return {**told, "seconds": round(time.monotonic() - started, 2)}


def ceilings(without: Sequence[Any], simulate: bool) -> dict[str, Any]:
    """Measured anew, and then once more as kept."""
    if simulate:
        return SIMULATED.to_dict()
    with sandbox(without) as box, client.process(box) as ask:
        started = time.monotonic()
        made = client.ceilings(ask, again=True).to_dict()
        took = time.monotonic() - started
        again = client.ceilings(ask)
        return {**made, "seconds": round(took, 2),
                "seconds_as_kept": round(time.monotonic() - started - took, 2),
                "kept": again.to_dict() == made}


# ---------------------------------------------------------------------------------------------
# What there is to run


def modules() -> list[Path]:
    return sorted(path.parent.relative_to(ROOT / "tracks")
                  for path in (ROOT / "tracks").glob("*/*/module.toml"))


def suite_of(module: Path) -> Suite:
    return grader.load_suite(ROOT / "grader" / "suites" / module / "suite.py")


def kernels(module: Path) -> list[str]:
    """The solution, and the mutants by their ids."""
    return [SOLUTION, *(mutant.id for mutant in suite_of(module).mutants)]


@contextmanager
def submission(module: Path, name: str, suite: Suite) -> Iterator[source.Source]:
    solution = ROOT / "solutions" / module / source.KERNEL
    if name == SOLUTION:
        yield source.read(solution, suite.files, suite.kernel_file)
        return
    mutant = next(mutant for mutant in suite.mutants if mutant.id == name)
    names = [source.KERNEL, *suite.files]
    files = mutant.apply_to({
        one: (solution.parent / one).read_text() for one in names
        if (solution.parent / one).is_file()})
    with tempfile.TemporaryDirectory() as folder:
        for one, text in files.items():
            (Path(folder) / one).parent.mkdir(parents=True, exist_ok=True)
            (Path(folder) / one).write_text(text)
        yield source.read(Path(folder) / source.KERNEL, suite.files, suite.kernel_file)


def has_values(case: Case) -> bool:
    """Whether a case asks for a result that is run whole."""
    return not (oversized.is_large(case) or case.raises or case.call or case.reading or case.sizes)


# ---------------------------------------------------------------------------------------------
# Values


def chunks(module: Path) -> int:
    """In how many parts the cases of the solution are run, side by side."""
    count = sum(map(has_values, suite_of(module).all_cases))
    return -(-count // CHUNK)


def values(module: Path, name: str, box: Sandbox, *, simulate: bool = False,
           chunk: tuple[int, int] = (0, 1)) -> dict[str, Any]:
    """Run the value cases on the processor and on the GPU.

    Of a mutant those run first that it is known to get wrong, and no more once both have failed.
    ``differ`` are the cases on which they do not agree, with what each said.

    Args:
        chunk: (number, count) of the parts into which the cases are split.
    """
    started = time.monotonic()
    suite = suite_of(module)
    verdicts: dict[str, list[str]] = {"cpu": [], "gpu": []}
    differ: list[list[str]] = []
    broken: list[str] = []
    counted = 0
    mutant = next((mutant for mutant in suite.mutants if mutant.id == name), None)
    cases = [(part, case) for part in suite.parts for case in part.cases if has_values(case)]
    if mutant is not None:
        cases = sorted(cases, key=lambda pair: pair[1].name not in mutant.wrong)[:MOST_OF_A_MUTANT]
    with submission(module, name, suite) as submitted, \
            session_of(submitted, suite, box, simulate) as whole:
        draws = Draws(suite.name, SEED)
        for part, case in cases[chunk[0]::chunk[1]]:
            try:
                said = _both(whole.of(part), part, case, draws)
            except Exception as error:
                broken.append(f"{case.name}: {type(error).__name__}: {error}"[:600])
                continue
            counted += 1
            for where, what in zip(verdicts, said, strict=True):
                if what:
                    verdicts[where].append(f"{case.name}: {what}"[:300])
            if bool(said[0]) != bool(said[1]):
                differ.append([case.name, said[0][:300], said[1][:300]])
            if mutant is not None and all(verdicts.values()):
                break
    first = {where: said[:2] for where, said in verdicts.items()}
    codes = mutant.codes if mutant is not None else ()
    return {"cases": counted, "cpu": FAILED if verdicts["cpu"] else PASSED,
            "gpu": FAILED if verdicts["gpu"] else PASSED, "first": first, "differ": differ,
            "broken": broken[:5], "codes": list(codes),
            "seconds": round(time.monotonic() - started, 1)}


def _both(session: Session, part: Suite, case: Case, draws: Draws) -> tuple[str, str]:
    """What is wrong on the processor, and on the GPU; empty where nothing is."""
    inputs = draws.draw(case.name, case.inputs, draws.block(case.function))
    try:
        outcome = session.record(inputs)
    except Stopped as stop:  # the file cannot be imported, say: neither runs it
        said = f"{stop.finding.code} {stop.finding.seen}"
        return said, said
    findings = unusable(outcome)
    if findings or outcome.recording is None:
        said = f"{findings[0].code} {findings[0].seen}" if findings else "no recording"
        return said, said  # neither runs it
    recording = outcome.recording
    draws.blocks.setdefault(case.function, block_of(recording) or draws.block())
    return (_on_cpu(session, part, recording, inputs), _on_gpu(session, part, recording, inputs))


def _on_cpu(session: Session, part: Suite, recording: Recording, inputs: list[Any]) -> str:
    try:
        run = session.replay(recording, inputs)
    except Stopped as stop:
        return f"{stop.finding.code} {stop.finding.seen}"
    return _wrong(part, run, inputs)


def _on_gpu(session: Session, part: Suite, recording: Recording, inputs: list[Any]) -> str:
    runs: list[Run] = []
    for poison in (0, 1):
        try:
            runs.append(session.run_on_gpu(recording, inputs, poison=poison))
        except Stopped as stop:
            return f"{stop.finding.code} {stop.finding.seen}"
        if said := _wrong(part, runs[-1], inputs):
            return said + (" (with the other garbage alone)" if poison else "")
    return ""


def _wrong(part: Suite, run: Run, inputs: list[Any]) -> str:
    if run.findings:
        return f"{run.findings[0].code} {run.findings[0].seen}"
    shapes = [tuple(right.shape) for right in as_tuple(part.reference(*inputs))]
    if [tuple(result.shape) for result in run.results] != shapes:
        return f"S01 shapes {[tuple(result.shape) for result in run.results]}"
    found = compare.judge(run.results, inputs, part.reference, part.tolerance)
    return f"N01 {found[0]}" if found else ""


# ---------------------------------------------------------------------------------------------
# Times


def times(module: Path, box: Sandbox, known: Mapping[str, Any] | None, *, simulate: bool,
          quick: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every measured case of a solution that fits, on two sets of random inputs."""
    suite = suite_of(module)
    with submission(module, SOLUTION, suite) as submitted, \
            session_of(submitted, suite, box, simulate) as whole:
        for part in suite.parts:
            for case in part.cases:
                if oversized.is_measured(case):
                    try:
                        yield case.name, _timed(whole.of(part), part, case, known, simulate)
                    except (Stopped, NoGpu, MemoryError, torch.OutOfMemoryError) as error:
                        yield case.name, {"stopped": f"{type(error).__name__}: {error}"[:1000]}
                    except Exception as error:
                        yield case.name, {"failed": f"{type(error).__name__}: {error}"[:1000]}
                    if quick:
                        break


def _timed(session: Session, part: Suite, case: Case, known: Mapping[str, Any] | None,
           simulate: bool) -> dict[str, Any]:
    started = time.monotonic()
    draws = Draws(part.name, SEED)
    outlines = draws.draw(case.name, case.inputs, outlines=True)
    nbytes = sum(value.nbytes for value in outlines if hasattr(value, "nbytes"))
    outcomes = [session.record(outlines)]
    count = outcomes[0].configurations
    outcomes += [session.record(outlines, config=number) for number in range(1, min(count, 8))]
    recordings = [one.recording for one in outcomes if one.recording is not None]
    if not recordings or unusable(outcomes[0]):
        return {"failed": [f.seen for f in unusable(outcomes[0])]}
    if nbytes > LARGEST:
        return {"left out": f"{nbytes / 1e9:.1f} GB of inputs"}
    sets = [[_random(value, seed, simulate) for value in outlines] for seed in (1, 2)]
    drawn = time.monotonic()
    timed = session.measure(recordings[0], sets, others=recordings[1:], windows=None)
    answer: dict[str, Any] = {
        "bytes": nbytes, "draw_s": round(drawn - started, 1),
        "findings": [f"{f.code} {f.seen}" for f in timed.findings],
        "configurations": [one.to_dict() for one in timed.configurations],
        "differs_when_timed": bool(timed.untimed),
        "seconds": round(time.monotonic() - started, 1)}
    if timed.measurement is None:
        return answer
    needed = part.cost(*(getattr(value, "like", value) for value in outlines))
    assert case.limits is not None and case.limits.pass_at is not None
    answer |= {"measurement": timed.measurement.to_dict(), "pass_at": case.limits.pass_at,
               "stretch": case.limits.stretch, "bytes": needed.bytes, "flops": needed.flops,
               "gb_s": measurement.gb_s(timed.measurement, needed)}
    if known:
        made = Ceilings.from_dict({name: value for name, value in known.items()
                                   if name in {f.name for f in dataclasses.fields(Ceilings)}})
        verdict, said = measurement.judge(timed.measurement, needed, made, case.limits.pass_at)
        answer |= {"verdict": str(verdict), "said": said,
                   "share": measurement.share(timed.measurement, needed, made)}
    return answer


def _random(value: Any, seed: int, simulate: bool) -> Any:
    """Numbers in place of an outline; what has values keeps them."""
    like = getattr(value, "like", None)
    if like is None:
        return value
    if simulate:
        return value
    device = "cuda" if torch.cuda.is_available() else "cpu"
    generator = torch.Generator(device).manual_seed(seed)
    drawn = torch.randn(like.shape, generator=generator, device=device, dtype=torch.float32)
    return drawn.to(like.dtype).cpu()


# ---------------------------------------------------------------------------------------------
# Cheats


def cheats() -> list[str]:
    """The honest one first."""
    names = sorted(path.stem for path in CHEATS.glob("*.py"))
    return ["honest", *(name for name in names if name != "honest")]


@functools.cache
def _pairs(count: int) -> list[list[torch.Tensor]]:
    return [[torch.randn(count, generator=torch.Generator().manual_seed(10 * one + two))
             for two in range(2)] for one in range(2)]


def cheat(name: str, box: Sandbox, *, simulate: bool) -> dict[str, Any]:
    """What a naive clock says of a file, and what comes of it here."""
    answer: dict[str, Any] = {}
    if not simulate:
        done = subprocess.run([sys.executable, "-W", "ignore", "-c", _NAIVE,
                               str(CHEATS / f"{name}.py"), str(CHEAT_ELEMENTS)],
                              capture_output=True, text=True, timeout=60, cwd=ROOT)
        try:
            answer["naive_ms"] = json.loads(done.stdout.strip().splitlines()[-1])
        except (ValueError, IndexError):
            answer["naive_failed"] = (done.stdout + done.stderr)[-500:]
    sets = _pairs(1000 if simulate else CHEAT_ELEMENTS)
    cls = Simulated if simulate else Session
    with cls(source.read(CHEATS / f"{name}.py"), "vector_add", box) as session:
        try:
            session.record(sets[0], as_they_are=True)
            outcome = session.record(sets[0], as_they_are=True)
            if findings := unusable(outcome):
                return answer | {"refused": f"{findings[0].code} {findings[0].seen}"[:300]}
            assert outcome.recording is not None
            timed = session.measure(outcome.recording, sets)
        except Stopped as stop:
            return answer | {"refused": f"{stop.finding.code} {stop.finding.seen}"[:300]}
    right = all(torch.equal(result, x + y)
                for [result], [x, y] in zip(timed.results, sets, strict=True))
    return answer | {"ms": timed.measurement and timed.measurement.ms, "right": right,
                     "findings": [f.code for f in timed.findings]}


_NAIVE = '''
import importlib.util, json, statistics, sys, time
import torch
path, n = sys.argv[1], int(sys.argv[2])
x, y = (torch.randn(n, device="cuda") for _ in range(2))
spec = importlib.util.spec_from_file_location("kernel", path)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
for _ in range(3):
    module.vector_add(x, y)
torch.cuda.synchronize()
pairs = []
for _ in range(20):
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    module.vector_add(x, y)
    end.record()
    pairs.append((start, end))
torch.cuda.synchronize()
end.synchronize()
print(json.dumps(statistics.median(start.elapsed_time(end) for start, end in pairs)))
'''


# ---------------------------------------------------------------------------------------------
# Whole grades


def grade(module: Path, box: Sandbox) -> dict[str, Any]:
    """A whole grade of a solution with the GPU, where the judge knows of one."""
    if "gpu" not in inspect.signature(grader.grade).parameters:
        return {"left out": "this judge asks no GPU"}
    suite = suite_of(module)
    kernel = ROOT / "solutions" / module / source.KERNEL
    more: dict[str, Any] = {"gpu": "found"}
    report: Any = grader.grade(kernel, suite, sandbox=box, **more)
    return {
        "verdict": str(report.verdict), "evidence": str(getattr(report, "evidence", "")),
        "engine": report.engine, "seconds": round(report.seconds, 1),
        "reason": report.reason[-800:],
        "unusable_gpu": getattr(report, "unusable_gpu", ""),
        "not_passed": [
            {"case": one.name, "verdict": str(one.verdict), "reason": one.reason[-800:],
             "findings": [f"{f.code} {f.seen}"[:300] for f in one.findings]}
            for one in (*report.results, *getattr(report, "on_gpu", ()))
            if str(one.verdict) != PASSED],
        "measured": {one.name: dict(one.facts) for one in report.results
                     if "measured" in one.facts},
    }


# ---------------------------------------------------------------------------------------------
# Where there is no GPU


SIMULATED = Ceilings(
    Gpu("a simulated GPU", "GPU-0", "0", (9, 0), 60 << 20, 132, 140 << 30), 4250.0, 760.0,
    "2026-01-01T00:00:00+0000", {"torch": torch.__version__, "triton": "0"})


class Simulated(Session):
    """Takes the interpreter for a GPU, and a millisecond for the time of everything."""

    def look(self) -> Gpu:
        return SIMULATED.gpu

    def ceilings(self, *, again: bool = False) -> Ceilings:
        return SIMULATED

    def run_on_gpu(self, recording: Recording, inputs: Sequence[Any], *, poison: int = 0,
                   windows: Any = None) -> Run:
        return self.replay(recording, inputs, poison=poison, windows=windows)

    def measure(self, recording: Recording, input_sets: Sequence[Sequence[Any]], *,
                others: Sequence[Recording] = (), windows: Any = None) -> Timed:
        made = Measurement(1.0, 0.99, 1.01, 20, True)
        small = all(isinstance(v, torch.Tensor) and v.numel() < 10_000 for v in input_sets[0])
        results = tuple(self.replay(recording, one).results for one in input_sets) if small else ()
        return Timed((), made, (made,), results)


def session_of(submitted: source.Source, suite: Suite, box: Sandbox, simulate: bool) -> Session:
    return (Simulated if simulate else Session)(submitted, suite.entry, box,
                                                oversized.limits(suite))

