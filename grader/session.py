"""One submission in its processes: record in the worker, replay in the executor."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import torch

from grader.budgets import over_budget
from grader.decoys import decoys, difference
from grader.facts import LaunchFacts
from grader.recording import MalformedRecording, Recording, from_json, to_json, view_to_json
from grader.report import Finding
from grader.sandbox import (
    Child,
    ChildDied,
    ChildOutOfMemory,
    ChildTimedOut,
    Limits,
    MalformedReply,
    Sandbox,
    folders,
)
from grader.sandbox.arena import SparseTensor, pack
from grader.source import Source
from grader.words import sentence

LOAD_S = 20.0  # to import the learner's file
CALL_S = 10.0  # to run the learner's function, which only allocates and launches
RUN_S, RUN_S_PER_PROGRAM = 10.0, 0.02  # to interpret; a program of a large matmul takes so long
MAX_RUN_S = 120.0  # for all launches of a call; most programs take microseconds


class Stopped(Exception):
    """The submission cannot be run any further: it hung, died or ran out of memory."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.seen)
        self.finding = finding


@dataclass(frozen=True)
class Raised:
    """An exception of the learner's function: class names along its MRO, message, line."""

    types: tuple[str, ...]
    message: str
    line: int | None
    launches: int  # made before it was raised


@dataclass(frozen=True)
class Outcome:
    """What a call in the worker gave: a recording, or an error, or a value that is no tensor.

    ``configurations``: how many the largest autotuner of the call had to choose from.
    """

    recording: Recording | None
    findings: tuple[Finding, ...] = ()
    error: Raised | None = None
    value: str = ""  # the type's name
    configurations: int = 1


@dataclass(frozen=True)
class Run:
    """What one execution gave: findings, the results as tensors, and facts of each launch."""

    findings: tuple[Finding, ...]
    results: tuple[torch.Tensor, ...]
    facts: tuple[LaunchFacts, ...] = ()

    @property
    def bytes(self) -> int:
        return sum(launch.bytes_loaded + launch.bytes_stored for launch in self.facts)


class Session:
    """A worker and an executor for one submission. They are started when first needed.

    The file is copied before anything runs, so that saving it during a grade mixes no two versions.
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
        self._worker: Child | None = None
        self._executor: Child | None = None
        self._printed = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.stop()
        if self._folder is not None:
            folders.remove(self._folder)

    def stop(self) -> None:
        """Kill both processes; the next call starts new ones."""
        if self._worker is not None:
            self._printed = self._worker.output()
            self._worker.kill()
        if self._executor is not None:
            self._executor.kill()
        self._worker = self._executor = None

    def output(self) -> str:
        """What the learner's code printed."""
        return self._worker.output() if self._worker else self._printed

    def ready(self) -> None:
        """Have the learner's file imported in the worker and its kernels taken by the executor.

        Raises:
            Stopped: the file cannot be imported, or its kernels are refused.
        """
        self._ready_worker()
        self._ready_executor()

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
        if as_they_are:
            return self._record(inputs, config)
        blind = self._record(decoys(inputs, self._host_reads), config)
        if blind.recording is not None or blind.error is None:
            return blind
        seeing = self._record(inputs, config)
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
        seeing = self._record(inputs, config).recording
        finding = difference(recording, seeing) if seeing is not None else None
        return [finding] if finding else []

    def _record(self, inputs: Sequence[Any], config: int) -> Outcome:
        with pack([value for value in inputs if _is_stored(value)]) as arena:
            views = iter(arena.views)
            request = {
                "op": "call",
                "layout": arena.layout(),
                "arguments": [_argument(value, views) for value in inputs],
                "config": config,
            }
            reply = _ask(self._ready_worker(), request, [arena.fd], CALL_S, "the function")
        findings = tuple(Finding.from_dict(item) for item in reply.get("findings", ()))
        match reply["status"]:
            case "raised":
                error = Raised(tuple(reply["types"]), reply["message"], reply["line"],
                               reply["launches"])
                return Outcome(None, findings, error=error)
            case "value":
                return Outcome(None, findings, value=reply["type"])
        if findings:
            return Outcome(None, findings)
        try:
            recording = from_json(reply.get("recording"))
            if recording.inputs != arena.views:
                raise MalformedRecording("its inputs are others than those that were given")
            return Outcome(recording, configurations=_configurations(reply))
        except MalformedRecording as error:
            raise Stopped(Finding("R03", "The process that ran the function answered with "
                                         f"something that is no recording: {error}.")) from error

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
        fd = os.memfd_create("tritonlab-results", os.MFD_CLOEXEC)
        try:
            with pack([value for value in inputs if _is_stored(value)]) as arena:
                request = {
                    "op": "run",
                    "recording": to_json(recording),
                    "layout": arena.layout(),
                    "order": order,
                    "poison": poison,
                    "duplicate_writes": self._duplicate_writes,
                    "sample": sample,
                    "windows": windows,
                }
                programs = sum(launch.programs for launch in recording.launches)
                seconds = RUN_S + (0 if sample else RUN_S_PER_PROGRAM * programs)
                seconds = min(seconds, MAX_RUN_S)
                reply = _ask(self._ready_executor(), request, [arena.fd, fd], seconds, "a kernel")
            if reply["status"] != "done":
                raise Stopped(Finding("R03", "The recorded launches cannot be replayed: "
                                             f"{reply.get('why', reply['status'])}."))
            return Run(
                tuple(Finding.from_dict(item) for item in reply["findings"]),
                tuple(_read_result(fd, place) for place in reply["results"]),
                _facts(reply["launches"]),
            )
        finally:
            os.close(fd)

    def _copy(self) -> Path:
        """The submission's own copy, in the folder of the sandbox that is running now."""
        if self._folder is None or not self._folder.is_relative_to(self._sandbox.folder):
            self._folder = Path(tempfile.mkdtemp(prefix="submission-", dir=self._sandbox.folder))
            (self._folder / "kernel.py").write_bytes(self._data)
        return self._folder / "kernel.py"

    def _ready_worker(self) -> Child:
        """A worker that has imported the learner's file."""
        if self._worker is None:
            self._worker = self._sandbox.fork("worker", self._limits)
            request = {"op": "load", "path": str(self._copy()), "entry": self._entry}
            reply = _ask(self._worker, request, [], LOAD_S, "importing the file")
            if reply["status"] == "raised":
                seen = f"Importing the file raised {reply['types'][0]}: {reply['message']}"
                raise Stopped(Finding("P02", sentence(seen), line=reply["line"]))
            if reply["status"] == "missing":
                seen = f"The file defines no function `{self._entry}`."
                raise Stopped(Finding("P04", seen))
        return self._worker

    def _ready_executor(self) -> Child:
        """An executor that has taken the kernels from the learner's file."""
        if self._executor is None:
            self._executor = self._sandbox.fork("executor", self._limits)
            request = {"op": "load", "path": str(self._copy())}
            reply = _ask(self._executor, request, [], LOAD_S, "reading the kernels")
            if reply["status"] == "refused":
                raise Stopped(Finding.from_dict(reply["findings"][0]))
        return self._executor


def _ask(child: Child, request: dict[str, Any], fds: Sequence[int], seconds: float,
         what: str) -> dict[str, Any]:
    """Ask a child; what happens to it while it runs learners' code is a finding, not an error."""
    try:
        reply: dict[str, Any] = child.ask(request, fds, seconds)
    except ChildTimedOut as error:
        seen = f"{what} did not end within {seconds:.0f} s"
        raise Stopped(Finding("R02", sentence(seen), line=error.line)) from error
    except ChildOutOfMemory as error:
        raise Stopped(Finding("R04", sentence(f"{what} used too much memory"),
                              line=error.line)) from error
    except ChildDied as error:
        how = f"was {error.how}" if error.how.startswith("killed") else error.how
        seen = f"the process ended while {what} ran: it {how}"
        raise Stopped(Finding("R03", sentence(seen), line=error.line)) from error
    except MalformedReply as error:
        seen = f"the process that ran {what} answered with something that is no reply: {error}"
        raise Stopped(Finding("R03", sentence(seen))) from error
    if reply.get("status") == "broken":
        raise RuntimeError(f"the grader's own code failed:\n{reply.get('traceback')}")
    return reply


def _configurations(reply: dict[str, Any]) -> int:
    number = reply.get("configurations", 1)
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise MalformedRecording(f"no number of configurations: {number!r:.40}")
    return number


def _facts(launches: Any) -> tuple[LaunchFacts, ...]:
    try:
        return tuple(map(LaunchFacts.from_dict, launches))
    except (TypeError, ValueError) as error:
        raise Stopped(Finding("R03", "The process that ran the kernels answered with something "
                                     f"that is no account of them: {error}.")) from error


def unusable(outcome: Outcome) -> list[Finding]:
    """Why a call gave no single new tensor to judge: its findings first; empty when it did."""
    if outcome.findings:
        return list(outcome.findings)
    if outcome.error:
        error = outcome.error
        code = "R04" if "MemoryError" in error.types else "R01"
        said = f": {error.message}" if error.message else ""
        seen = sentence(f"The function raised {error.types[0]}{said}")
        if "CUDA" in error.message:
            seen += " The tensors of this grade are on the CPU; their device says so."
        return [Finding(code, seen, line=error.line)]
    if outcome.recording is None:
        kind = outcome.value or "something else"
        return [Finding("S01", f"The function returned a {kind}, expected a torch.Tensor.")]
    results = outcome.recording.results
    if len(results) != 1 or outcome.recording.returned_tuple:
        seen = f"The function returned {len(results)} tensors in a tuple, expected one tensor."
        return [Finding("S01", seen)]
    if results[0].storage in {view.storage for view in outcome.recording.inputs}:
        return [Finding("S01", "The function returned its input, or a view of it; a new tensor is "
                               "expected.")]
    return over_budget(outcome.recording)


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


def _read_result(fd: int, place: Sequence[Any]) -> torch.Tensor:
    """One result, copied out of the executor's file once."""
    dtype, shape, offset, nbytes = place
    if nbytes == 0:
        return torch.empty(shape, dtype=getattr(torch, dtype))
    data = bytearray(os.pread(fd, nbytes, offset))
    return torch.frombuffer(data, dtype=getattr(torch, dtype)).view(shape)


def same_bits(first: torch.Tensor, second: torch.Tensor) -> bool:
    """Whether two contiguous tensors hold the same bytes, NaN included."""
    return torch.equal(first.view(-1).view(torch.uint8), second.view(-1).view(torch.uint8))


def dtype_name(value: Any) -> str:
    return str(value.dtype).removeprefix("torch.")
