"""One submission in its processes: record in the worker, replay in the executor."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar

import torch

from grader.compilation import (
    Compiled,
    Listing,
    Surveyed,
    Times,
    compiled_of,
    crashed,
    listings_of,
    surveyed_of,
    times_of,
)
from grader.decoys import decoys, difference
from grader.engine.compiler.targets import Target
from grader.facts import Survey
from grader.outcome import (
    MemoryFile,
    Outcome,
    Run,
    Stopped,
    outcome_of,
    refusal_of,
    run_of,
    unusable,
)
from grader.recording import Recording, dtype_name, to_json, view_to_json
from grader.report import Finding
from grader.sandbox import (
    Child,
    ChildDied,
    ChildOutOfMemory,
    ChildTimedOut,
    Limits,
    MalformedReply,
    NotStarted,
    Sandbox,
    folders,
)
from grader.sandbox.arena import Arena, SparseTensor, pack
from grader.source import Source
from grader.words import sentence

T = TypeVar("T")
Later = Callable[[], T]  # waits for what was begun

LOAD_S = 20.0  # to import the learner's file
SURVEY_S = 20.0  # it takes at most two
COMPILE_S = 60.0  # for all launches of a call; most take a tenth of a second
CALL_S = 10.0  # to run the learner's function, which only allocates and launches
RUN_S, RUN_S_PER_PROGRAM = 10.0, 0.02  # to interpret; a program of a large matmul takes so long
MAX_RUN_S = 120.0  # for all launches of a call; most programs take microseconds
LESS_PATIENCE = 3.0  # once a run has hung, all later ones get this fraction of their time


class _Process:
    """One of the two processes of a session: forked and loaded when needed, and when it was lost.
    """

    def __init__(self, fork: Callable[[], Child], load: Callable[[Child], Later[None]]) -> None:
        self._fork, self._load = fork, load
        self._child: Child | None = None
        self._loaded: Later[None] | None = None
        self._refusal: Stopped | None = None  # a file that cannot be used stays so
        self._printed = ""

    def begin(self) -> None:
        """Start it, if it does not run; ``ready`` waits until it is loaded."""
        if self._child is not None and not self._child.alive:
            self.stop()
        if self._child is None:
            self._child = self._fork()
            self._loaded = self._load(self._child)

    def ready(self) -> Child:
        """The process, loaded.

        Raises:
            Stopped: it did not survive, or refuses the file.
        """
        if self._refusal is not None:
            raise self._refusal
        self.begin()
        assert self._child is not None
        if self._loaded is not None:
            loaded, self._loaded = self._loaded, None
            try:
                loaded()
            except Stopped as stop:
                self._refusal = stop
                raise
        return self._child

    def output(self) -> str:
        """What it printed, and those before it."""
        return self._printed + (self._child.output() if self._child else "")

    def stop(self) -> None:
        if self._child is not None:
            self._child.dismiss()
            self._printed = self.output()
        self._child = self._loaded = None


class Session:
    """A worker, an executor and a compiler for one submission.

    They are started when first needed, and again after one of them was lost. What is begun goes on
    while the judge does something else. The file is copied before anything runs, so that saving it
    during a grade mixes no two versions.
    """

    def __init__(self, submitted: Source, entry: str, sandbox: Sandbox,
                 limits: Limits | None = None, duplicate_writes: bool = False,
                 host_reads: Collection[int] = ()) -> None:
        """Nothing is started yet; ``host_reads`` are positions of inputs that get no decoys."""
        self._entry = entry
        self._sandbox = sandbox
        self._limits = limits or Limits()
        self._duplicate_writes = duplicate_writes
        self._host_reads = host_reads
        self._data = submitted.data
        self._folder: Path | None = None
        self._worker = _Process(lambda: sandbox.fork("worker", self._limits), self._load_worker)
        self._executor = _Process(lambda: sandbox.fork("executor", self._limits),
                                  partial(self._load_kernels, "reading the kernels"))
        self._compiler = _Process(lambda: sandbox.fork("compiler"),
                                  partial(self._load_kernels, "reading the kernels to compile"))
        self.lost_s = 0.0  # with runs that did not end normally
        self._hung = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        try:
            self.stop()
        finally:
            if self._folder is not None:
                folders.remove(self._folder)

    def stop(self) -> None:
        """Kill all processes; the next call starts new ones."""
        with ExitStack() as stopping:  # all of them, even where one is interrupted
            for process in (self._worker, self._executor, self._compiler):
                stopping.callback(process.stop)

    def output(self) -> str:
        """What the learner's code printed."""
        return self._worker.output()

    def ready(self) -> None:
        """Have the learner's file imported in the worker; the others start meanwhile.

        Raises:
            Stopped: it cannot be imported.
        """
        self._worker.begin()
        self._executor.begin()
        self._compiler.begin()
        self._worker.ready()

    def execute(self, inputs: Sequence[Any], *,
                config: int = 0) -> tuple[Recording | None, list[Finding], Run]:
        """Record the learner's function on tensors and plain values, and replay the recording.

        Without a recording, the findings say why.
        """
        outcome = self.record(inputs, config=config)
        findings = unusable(outcome)
        if findings or outcome.recording is None:
            return None, findings, Run((), ())
        return outcome.recording, [], self.replay(outcome.recording, inputs)

    def record(self, inputs: Sequence[Any], *, config: int = 0,
               as_they_are: bool = False) -> Outcome:
        """Call the learner's function in the worker; no kernel runs there.

        Args:
            inputs: tensors and plain values.
            config: which of its configurations every autotuner takes, counted round.
            as_they_are: hand over these very values. Otherwise the function gets decoys, and the
                inputs only where it made nothing of the decoys, to say why.

        Raises:
            Stopped: the worker did not survive, or its answer is no recording.
        """
        return self.begin_record(inputs, config=config, as_they_are=as_they_are)()

    def begin_record(self, inputs: Sequence[Any], *, config: int = 0,
                     as_they_are: bool = False) -> Later[Outcome]:
        """``record`` in two steps: what is returned waits for the outcome."""
        if as_they_are:
            return self._begin_call(inputs, config)
        blind = self._begin_call(decoys(inputs, self._host_reads), config)
        return lambda: self._checked(blind(), inputs, config)

    def _checked(self, blind: Outcome, inputs: Sequence[Any], config: int) -> Outcome:
        """The outcome on decoys; where the function raised, that on the inputs themselves."""
        if blind.recording is not None or blind.error is None:
            return blind
        seeing = self._begin_call(inputs, config)()
        if seeing.recording is None:
            return seeing
        raised = f"{blind.error.types[0]}: {blind.error.message}".rstrip(": ")
        return replace(seeing, recording=None, findings=(*blind.findings, Finding(
            "X01", sentence(f"For other values of the same shapes the function raised {raised}"),
            line=blind.error.line)))

    def decided_by_values(self, recording: Recording, inputs: Sequence[Any],
                          config: int = 0) -> list[Finding]:
        """X01 when the function asks for other work on the inputs than it did on decoys.

        To be asked where ``recording`` gave a wrong result: then this is why.
        """
        seeing = self._begin_call(inputs, config)().recording
        finding = difference(recording, seeing) if seeing is not None else None
        return [finding] if finding else []

    def _begin_call(self, inputs: Sequence[Any], config: int) -> Later[Outcome]:
        with _packed(inputs) as arena:
            views = iter(arena.views)
            request = {
                "op": "call",
                "layout": arena.layout(),
                "arguments": [_argument(value, views) for value in inputs],
                "config": config,
            }
            reply = self._begin(self._worker.ready(), request, [arena.fd], CALL_S, "the function",
                                forgeable=True)
            given = arena.views

        def outcome() -> Outcome:
            try:
                return outcome_of(reply(), given)
            except NotStarted:
                return self._begin_call(inputs, config)()

        return outcome

    def replay(self, recording: Recording, inputs: Sequence[Any], *, order: str = "forward",
               poison: int = 0, sample: int | None = None,
               windows: Sequence[tuple[int, int]] | None = None) -> Run:
        """Run the recorded launches on fresh memory in the executor.

        Args:
            order: ``forward`` or ``reverse``, of the programs of each launch.
            poison: which of two patterns fills fresh memory and masked lanes.
            sample: run only so many of the first and of the last programs.
            windows: (first element, count) of the result to read instead of all of it.

        Raises:
            Stopped: the executor did not survive, or refuses the recording.
        """
        settings = {"order": order, "poison": poison, "sample": sample, "windows": windows}
        return self.begin_replay(recording, inputs, settings)()

    def begin_replay(self, recording: Recording, inputs: Sequence[Any],
                     settings: Mapping[str, Any] | None = None) -> Later[Run]:
        """``replay`` in two steps: what is returned waits for the run.

        Several may be begun. Where one takes the executor down with it, others run on a new one.
        """
        programs = sum(launch.programs for launch in recording.launches)
        sampled = settings is not None and settings.get("sample") is not None
        seconds = min(RUN_S + (0 if sampled else RUN_S_PER_PROGRAM * programs), MAX_RUN_S)
        executor = self._executor.ready()
        results = MemoryFile("tritonlab-results")
        with _packed(inputs) as arena:
            request = {
                "op": "run",
                "recording": to_json(recording),
                "layout": arena.layout(),
                "duplicate_writes": self._duplicate_writes,
                **(settings or {}),
            }
            reply = self._begin(executor, request, [arena.fd, results.fd], seconds, "a kernel")

        def run() -> Run:
            try:
                return run_of(reply(), results)
            except NotStarted:
                return self.begin_replay(recording, inputs, settings)()

        return run

    def begin_compile(self, recording: Recording, target: Target, *,
                      whole: bool = False) -> Later[Compiled]:
        """Have the recorded launches compiled; what is returned waits for it.

        Args:
            target: the GPU that they are compiled for.
            whole: give a binary for each launch; otherwise some may be read by the front end only.

        Raises:
            Stopped: here or later, as compiling did not end in time.
        """
        request = {"op": "compile", "recording": to_json(recording), "target": target.name,
                   "whole": whole}
        reply = self._begin(self._compiler.ready(), request, [], COMPILE_S, "compiling a kernel")

        def compiled() -> Compiled:
            try:
                return compiled_of(reply(), recording)
            except NotStarted:
                return self.begin_compile(recording, target, whole=whole)()
            except Stopped as stop:
                if stop.finding.code != "R03":
                    raise
                return crashed(stop, recording, target.title)

        return compiled

    def survey(self, recording: Recording, inputs: Sequence[Any], resident: Sequence[int],
               target: Target) -> Surveyed:
        """Count what the launches move at the size of ``inputs``, from some of their programs.

        Args:
            resident: how many programs of each launch the target holds at the same time.

        Raises:
            Stopped: the executor did not survive, or refuses the recording.
        """
        executor = self._executor.ready()
        with _packed(inputs) as arena:
            request = {"op": "survey", "recording": to_json(recording), "layout": arena.layout(),
                       "resident": list(resident), "l2_bytes": target.l2}
            reply = self._begin(executor, request, [arena.fd], SURVEY_S, "a kernel")
        return surveyed_of(reply(), recording)

    def time(self, recording: Recording, surveys: Sequence[Survey | None],
             target: Target) -> Times:
        """Predict how long the launches would take, from their code and what they move.

        Raises:
            Stopped: the compiler did not survive.
        """
        request = {"op": "time", "recording": to_json(recording), "target": target.name,
                   "surveys": [survey and survey.to_dict() for survey in surveys]}
        return times_of(self._begin(self._compiler.ready(), request, [], COMPILE_S,
                                    "timing a kernel")(), recording)

    def listings(self, recording: Recording, number: int,
                 target: Target) -> tuple[Listing, Listing]:
        """PTX and SASS of one launch, by its place in the recording.

        Raises:
            Stopped: the compiler did not survive.
        """
        request = {"op": "list", "recording": to_json(recording), "target": target.name,
                   "launch": number}
        return listings_of(self._begin(self._compiler.ready(), request, [], COMPILE_S,
                                       "listing a kernel")())

    def _copy(self) -> Path:
        """The submission's own copy, in the folder of the sandbox that is running now."""
        if self._folder is None or not self._folder.is_relative_to(self._sandbox.folder):
            self._folder = Path(tempfile.mkdtemp(prefix="submission-", dir=self._sandbox.folder))
            (self._folder / "kernel.py").write_bytes(self._data)
        return self._folder / "kernel.py"

    def _load_worker(self, worker: Child) -> Later[None]:
        """Have the worker import the learner's file."""
        request = {"op": "load", "path": str(self._copy()), "entry": self._entry}
        reply = self._begin(worker, request, [], LOAD_S, "importing the file", final=True)

        def loaded() -> None:
            refusal = refusal_of(reply(), self._entry)
            if refusal is not None:
                raise Stopped(refusal, final=True)

        return loaded

    def _load_kernels(self, what: str, child: Child) -> Later[None]:
        """Have an executor or a compiler take the kernels from the learner's file."""
        request = {"op": "load", "path": str(self._copy())}
        reply = self._begin(child, request, [], LOAD_S, what, final=True)

        def loaded() -> None:
            answer = reply()
            if answer["status"] == "refused":
                raise Stopped(Finding.from_dict(answer["findings"][0]), final=True)

        return loaded

    def _begin(self, child: Child, request: dict[str, Any], fds: Sequence[int], seconds: float,
               what: str, *, final: bool = False, forgeable: bool = False
               ) -> Later[dict[str, Any]]:
        seconds = seconds / LESS_PATIENCE if self._hung else seconds
        reply = child.begin(request, fds, seconds)
        return partial(self._finish, reply, seconds, what, final=final, forgeable=forgeable)

    def _finish(self, later: Later[dict[str, Any]], seconds: float, what: str, *,
                final: bool, forgeable: bool) -> dict[str, Any]:
        """The reply; what happens to a child that runs learners' code is a finding, not an error.

        ``forgeable``: that code ran before, so a reply that blames the grader may be its own.
        """
        waited = time.monotonic()
        try:
            reply = later()
        except NotStarted:
            raise
        except ChildTimedOut as error:
            self._hung = True
            finding = Finding("R02", f"{what} did not end within {seconds:.0f} s", error.line)
        except ChildOutOfMemory as error:
            finding = Finding("R04", f"{what} used too much memory", error.line)
        except ChildDied as error:
            how = f"was {error.how}" if error.how.startswith("killed") else error.how
            seen = f"the process ended while {what} ran: it {how}"
            finding = Finding("R03", seen, error.line)
        except MalformedReply as error:
            finding = Finding("R03", f"the process that ran {what} answered with something that "
                                     f"is no reply: {error}")
        else:
            if reply.get("status") == "broken" and not forgeable:
                raise RuntimeError(f"the grader's own code failed:\n{reply.get('traceback')}")
            return reply
        self.lost_s += time.monotonic() - waited
        raise Stopped(replace(finding, seen=sentence(finding.seen)), final=final)


def _packed(inputs: Sequence[Any]) -> Arena:
    return pack([value for value in inputs if _is_stored(value)])


def _is_stored(value: Any) -> bool:
    """Whether a value lies in the arena; a tensor on torch's meta device has no bytes."""
    if isinstance(value, torch.Tensor):
        return value.device.type != "meta"
    return isinstance(value, SparseTensor)


def _argument(value: Any, views: Iterator[Any]) -> dict[str, Any]:
    if _is_stored(value):
        return {"tensor": view_to_json(next(views))}
    if isinstance(value, torch.Tensor):
        return {"meta": [dtype_name(value), list(value.shape)]}
    return {"value": value}
