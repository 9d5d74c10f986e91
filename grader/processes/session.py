"""One submission in its processes: recorded in the worker, replayed, compiled, run on a GPU."""

from __future__ import annotations

import copy
import itertools
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import replace
from typing import Any, TypeVar

import torch
from msgspec import msgpack, to_builtins

from grader.engine.compiler import targets
from grader.engine.compiler.targets import Target
from grader.engine.gpu.measurement import Ceilings, Gpu
from grader.finding import fault
from grader.gpu import client
from grader.gpu.client import NoGpu
from grader.processes import replies
from grader.processes.decoy_inputs import Drawn, decoys, difference
from grader.processes.launch_cache import LaunchCache
from grader.processes.pool import Later, Processes
from grader.processes.replies import Answer, MemoryFile, Outcome, Run, Stopped, Timed, unusable
from grader.processes.time_limit import OutOfTime, TimeLimit
from grader.recording import host_values, model
from grader.recording.arena import Arena, SparseTensor, pack
from grader.recording.compiled_kernel import AccessLayout
from grader.recording.launch_stats import Survey
from grader.recording.model import (
    Launch,
    Recording,
    View,
    dtype_name,
    to_json,
    views_of,
)
from grader.recording.trace import Trace
from grader.report import Finding
from grader.sandbox import NotStarted, ResourceLimits, Sandbox
from grader.submission.source import Source
from grader.suite import Function
from grader.suite.cases import Call

T = TypeVar("T")

SURVEY_S = 20.0  # it takes at most two
COMPILE_S = 25.0  # for all launches of a call; most take a tenth of a second
WHOLE = 15  # times what the front end takes, which most others only pass through
CALL_S = 10.0  # to run the learner's function, which only allocates and launches
RUN_S, RUN_S_PER_PROGRAM = 10.0, 0.02  # to interpret; a program of a large matmul takes so long
TRACE_S = 60.0  # to interpret with every line traced, up to four times
GPU_RUN_S = 90.0  # to compile all launches of a call for a GPU, and to run them
GPU_TIME_S = 60.0  # to time one configuration, on top of that; with large inputs some more
MAX_RUN_S = 120.0  # for all launches of a call; most programs take microseconds


class Session(AbstractContextManager["Session"]):
    """The submission's functions, recorded in a worker, replayed in an executor, and compiled.

    Of a suite with several functions, each has a session of its own with the same processes.

    Requests raise ``Stopped``, at once or where their result is waited for, if the process did not
    survive or its reply is not one. Those to a GPU raise ``grader.gpu.client.NoGpu`` where none can
    be used or it is too small. What is begun by ``begin_…`` is waited for by the function that is
    returned; several may be begun, and one that a process did not come to is begun again.
    """

    def __init__(self, submitted: Source, entry: str, sandbox: Sandbox,
                 limits: ResourceLimits | None = None, *, target: str = targets.DEFAULT,
                 values_first: bool = False, time_limit: TimeLimit | None = None) -> None:
        """Nothing is started yet; ``entry`` is the function that is called, and ``target`` names
        the GPU that the submission finds where it asks for one.
        """
        def compiled(recording: Recording) -> replies.Compiled:
            return self.begin_compile(recording, targets.find(target), whole=True)()

        self.processes = Processes(submitted, sandbox, limits, target=target, compiled=compiled,
                                   values_first=values_first, time_limit=time_limit)
        self._kept = LaunchCache(submitted.text,
                                 disk=lambda: sandbox.isolation.landlock > 0)
        self._apart: dict[bytes, Hashable] = {}  # keys of compilers by encoded launches
        # keys of the compilers that first got a kernel, by target and kernel
        self._builders: dict[tuple[str, str], Hashable] = {}
        self._function = Function(entry)
        self._drivers = ""  # the text of calls.py, for a function that is called by a driver

    def of(self, function: Function, drivers: str = "") -> Session:
        """Returns a session of another function; ``drivers`` is the text of its calls.py."""
        other = copy.copy(self)
        other._function = function
        other._drivers = drivers if function.drives else ""
        return other

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.processes.close()

    def ready(self) -> None:
        """Imports the learner's file."""
        self.processes.ready()

    def execute(self, inputs: Sequence[Any]) -> tuple[Recording | None, list[Finding], Run]:
        """Records the learner's function and replays it; findings say why there is no recording."""
        outcome = self.record(inputs)
        findings = unusable(outcome)
        if findings or outcome.recording is None:
            return None, findings, Run((), ())
        return outcome.recording, [], self.replay(outcome.recording, inputs)

    def record(self, inputs: Sequence[Any], **how: Any) -> Outcome:
        """Calls the learner's function in the worker, as ``begin_record`` does."""
        return self.begin_record(inputs, **how)()

    def configurations(self, inputs: Sequence[Any], most: int) -> Iterator[Outcome]:
        """Records the call with each configuration of its autotuners, at most ``most`` times."""
        number, count = 0, 1
        while number < min(count, most):
            outcome = self.record(inputs, config=number)
            count = outcome.configurations
            number += 1
            yield outcome

    def begin_record(self, inputs: Sequence[Any], *, config: int = 0, trials: int = 0,
                     as_they_are: bool = False) -> Later[Outcome]:
        """Begins to call the learner's function in the worker; no kernel runs there.

        Args:
            inputs: tensors and plain values.
            config: which of its configurations every autotuner takes, counted round.
            trials: how many of them it tries before, as in the very first call.
            as_they_are: pass these very values. Otherwise the function gets decoys, and the inputs
                only if it raised on the decoys, to find out why.
        """
        if as_they_are:
            return self._begin_call(inputs, config, trials)
        others = inputs.decoys if isinstance(inputs, Drawn) else decoys(inputs)
        begun = self._begin_call(others, config, trials)

        def outcome() -> Outcome:
            blind = begun()
            if blind.recording is not None or blind.error is None:
                return blind
            seeing = self._begin_call(inputs, config, trials)()
            if seeing.recording is None:
                return seeing
            return replace(seeing, recording=None, findings=(*blind.findings, Finding(
                "X01", fault("raised for others", exception=blind.error.types[0],
                             text=blind.error.message), line=blind.error.line)))

        return outcome

    def decided_by_values(self, recording: Recording, inputs: Sequence[Any]) -> list[Finding]:
        """Returns X01 if the function launches other work on the inputs than on decoys."""
        seeing = self._begin_call(inputs)().recording
        finding = difference(recording, seeing) if seeing is not None else None
        return [finding] if finding else []

    def _begin_call(self, inputs: Sequence[Any], config: int = 0,
                    trials: int = 0) -> Later[Outcome]:
        given = max(0, len(inputs) - len(self._function.parameters))
        tensors = [n for n, value in enumerate(inputs) if _is_stored(value)]
        stored: Sequence[View] = ()

        def begin() -> Later[dict[str, Any]]:
            nonlocal stored
            with _packed(inputs) as arena:
                stored = arena.views
                request = {"op": "call", "entry": self._function.entry, "layout": arena.layout(),
                           "arguments": _arguments(inputs, stored), "trials": trials,
                           "keywords": self._function.keyword_only[:given], "config": config,
                           "in_place": self._function.in_place_at(), "drivers": self._drivers}
                return self.processes.ask("worker", request, [arena.fd], CALL_S, "the function")

        def read(reply: dict[str, Any]) -> Outcome:
            recorded = replies.outcome_of(reply, stored, self._function.entry)
            return replies.in_place(recorded, self._function,
                                    dict(zip(tensors, stored, strict=True)))

        return _begun(begin, read)

    def begin_ask(self, call: Call, inputs: Sequence[Any], drivers: str, *,
                  at_once: bool = False) -> Later[Answer]:
        """Begins to call host code on these very inputs.

        Args:
            drivers: the text of the suite's calls.py.
            at_once: do not wait until the learner's file is imported.
        """
        def begin() -> Later[dict[str, Any]]:
            with _packed(inputs) as arena:
                request = {"op": "ask", "of": call.of, "drivers": drivers, "eager": call.eager,
                           "layout": arena.layout(), "arguments": _arguments(inputs, arena.views)}
                return self.processes.ask("worker", request, [arena.fd], call.seconds,
                                          "the function", at_once=at_once)

        return _begun(begin, lambda reply: replies.answer_of(reply, call.of))

    def replay(self, recording: Recording, inputs: Sequence[Any], **settings: Any) -> Run:
        """Runs the recorded launches in the executor, as ``begin_replay`` does."""
        return self.begin_replay(recording, inputs, **settings)()

    def begin_replay(self, recording: Recording, inputs: Sequence[Any], *, order: str = "forward",
                     poison: int = 0, sample: int | None = None,
                     windows: Sequence[tuple[int, int]] | None = None,
                     other: bool = False) -> Later[Run]:
        """Begins to run the recorded launches on fresh memory in the executor.

        Args:
            order: ``forward`` or ``reverse``, of the programs of each launch.
            poison: which of two patterns fills fresh memory and masked elements.
            sample: run only so many of the first and of the last programs.
            windows: (first element, count) of the result to read instead of all of it.
            other: follow a short run, after which another order or other garbage may give something
                else, by one with both.
        """
        programs = 0 if sample is not None else sum(one.programs for one in recording.launches)
        seconds = min(RUN_S + RUN_S_PER_PROGRAM * programs, MAX_RUN_S)
        results = MemoryFile("tritonlab-results")

        def begin() -> Later[dict[str, Any]]:
            with _packed(inputs) as arena:
                request = {"op": "run", "recording": to_json(recording), "layout": arena.layout(),
                           "duplicate_writes": self._function.duplicate_writes,
                           "zeroed": self._function.zeroed,
                           "names": list(self._function.result_names), "order": order,
                           "poison": poison, "sample": sample, "windows": windows, "other": other}
                return self.processes.ask("executor", request, [arena.fd, results.fd], seconds,
                                          "a kernel")

        return _begun(begin, lambda reply: replies.run_of(reply, results))

    def trace(self, recording: Recording, inputs: Sequence[Any],
              programs: Sequence[int] = ()) -> tuple[Trace, list[Finding]]:
        """Replays the recorded launches with every step traced; findings are those of the run.

        Args:
            programs: which are traced even where all are too many.
        """
        results = MemoryFile("tritonlab-trace")

        def begin() -> Later[dict[str, Any]]:
            with _packed(inputs) as arena:
                request = {"op": "trace", "recording": to_json(recording),
                           "layout": arena.layout(), "programs": list(programs)}
                return self.processes.ask("executor", request, [arena.fd, results.fd], TRACE_S,
                                          "a kernel")

        return _begun(begin, lambda reply: replies.trace_of(reply, results))()

    def begin_compile(self, recording: Recording, target: Target, *,
                      whole: bool = False, apart: int = 0) -> Later[replies.Compiled]:
        """Begins to compile the recorded launches.

        Args:
            target: the GPU that they are compiled for.
            whole: give a binary for each launch; otherwise some may be read by the front end only.
            apart: unless 0, launches with other numbers may be compiled by other compilers.
        """
        for launch in recording.launches if apart else ():
            self._apart.setdefault(msgpack.encode(launch), (form(launch), apart))
        kept = [self._kept.read(launch, target, whole=whole) for launch in recording.launches]
        missing = [number for number, answer in enumerate(kept) if answer is None]
        parts = [(numbers, part, self._begin_compiler(
                     "compile", part, target, "compiling a kernel", lambda reply: reply,
                     cost=sum(self._cost(one, whole) for one in part.launches), whole=whole,
                     built=self._built_elsewhere(part, target)))
                 for numbers, part in self._by_compiler(recording, missing)]

        def answers_of(part: Recording, reply: Later[dict[str, Any]]) -> list[Any]:
            answers = replies.answers_of(reply(), part)
            replies.compiled_of(answers, part)  # checked before they are kept
            for launch, answer in zip(part.launches, answers, strict=True):
                self._kept.write(launch, target, answer)
            return answers

        def waited() -> replies.Compiled:
            answers: list[Any] = list(kept)
            for numbers, part, reply in parts:
                try:
                    for number, answer in zip(numbers, answers_of(part, reply), strict=True):
                        answers[number] = answer
                except Stopped as stop:
                    if stop.finding.code == "R02":
                        raise replies.slow(stop, part) from None
                    if stop.finding.code != "R03":
                        raise
                    return replies.crashed(stop, part, target.title)
            return replies.compiled_of(answers, recording)

        return waited

    def divide(self, recordings: Sequence[Recording]) -> None:
        """Divides recordings that will be compiled, not ``whole``, among the compilers."""
        costs = Counter[Hashable]()
        for launch in {msgpack.encode(one): one for recording in recordings
                       for one in recording.launches}.values():
            costs[self._alike(launch)] += self._cost(launch, whole=False)
        self.processes.divide(costs)

    def begin_listings(self, recordings: Sequence[Recording], target: Target) -> None:
        """Begins to disassemble launches that are being compiled, before their time is asked for.

        Launches whose code was kept are left out, as their time was kept too.
        """
        parts: dict[int, list[Recording]] = {}
        for recording in recordings:
            if any(self._kept.read(one, target, whole=True) is None for one in recording.launches):
                for _, part in self._by_compiler(recording, range(len(recording.launches))):
                    place = self.processes.compiler_of(self._alike(part.launches[0]))
                    parts.setdefault(place, []).append(part)
        for some in parts.values():
            self._begin_compiler("disassemble", some[0], target, "listing kernels",
                                 lambda reply: reply, recordings=list(map(to_json, some)))

    def variants(self, recordings: Sequence[Recording], target: Target) -> list[replies.Variant]:
        """Returns the variant of its kernel that Triton would compile for each launch."""
        return self._begin_compiler("variants", recordings[0], target, "asking for variants",
                                    replies.variants_of,
                                    recordings=[to_json(one) for one in recordings])()

    def begin_survey(self, recording: Recording, inputs: Sequence[Any], resident: Sequence[int],
                     target: Target, layouts: Sequence[Sequence[AccessLayout]] = (),
                     ) -> Later[replies.Surveyed]:
        """Begins to estimate the traffic of the launches at the size of ``inputs``.

        Args:
            resident: how many programs of each launch the target holds at the same time.
            layouts: of each launch, those of its accesses, as they are compiled for the target.
        """
        without_values = not any(_has_values(value) for value in inputs)
        if without_values and (kept := self._kept.read_surveys(recording, resident, target)):
            return lambda: replies.Surveyed(kept)

        def begin() -> Later[dict[str, Any]]:
            with _packed(inputs) as arena:
                request = {"op": "survey", "recording": to_json(recording), "l2_bytes": target.l2,
                           "layout": arena.layout(), "resident": list(resident),
                           "layouts": to_builtins(layouts)}
                return self.processes.ask("executor", request, [arena.fd], SURVEY_S, "a kernel")

        def read(reply: dict[str, Any]) -> replies.Surveyed:
            surveyed = replies.surveyed_of(reply, recording)
            if without_values and not surveyed.findings:
                self._kept.write_surveys(recording, resident, target, surveyed.surveys)
            return surveyed

        return _begun(begin, read)

    def time(self, recording: Recording, surveys: Sequence[Survey | None],
             target: Target) -> replies.Times:
        """Predicts the time of the launches from their code and traffic."""
        kept = self._kept.read_times(recording, surveys, target)
        with suppress(Stopped, AttributeError, LookupError, TypeError):  # not a compiler's reply
            if kept is not None:
                return replies.times_of(kept, recording)

        reply: dict[str, Any] = {"status": "done", "launches": [None] * len(surveys), "whole": None}
        times = replies.times_of(reply, recording)
        for numbers, _ in self._by_compiler(recording, range(len(surveys))):
            reply = self._begin_compiler(
                "time", recording, target, "timing a kernel", lambda reply: reply,
                surveys=[survey and survey.to_dict() for survey in surveys],
                timed=reply["launches"], mine=[n in numbers for n in range(len(surveys))],
                alike=self._alike(recording.launches[numbers[0]]))()
            times = replies.times_of(reply, recording)  # checked before they are used or kept
        self._kept.write_times(recording, surveys, target, reply)
        return times

    def listings(self, recording: Recording, number: int,
                 target: Target) -> replies.Listings:
        """Returns the code of the launch at place ``number`` of the recording."""
        return self._begin_compiler("list", recording, target, "listing a kernel",
                                    replies.listings_of, launch=number,
                                    alike=self._alike(recording.launches[number]))()

    def _begin_compiler(self, op: str, recording: Recording, target: Target, task: str,
                        read: Callable[[dict[str, Any]], T], *, alike: Hashable = None,
                        cost: int = 0, **more: Any) -> Later[T]:
        """Sends a request to the compiler that got the key ``alike`` before.

        By default the key is the form of the first launch.
        """
        alike = alike or next(map(self._alike, recording.launches), None)
        request = {"op": op, "recording": to_json(recording), "target": target.name, **more}
        return _begun(lambda: self.processes.ask("compiler", request, [], COMPILE_S, task,
                                                 alike=alike, cost=cost), read)

    def _cost(self, launch: Launch, whole: bool) -> int:
        """The time to compile a launch, beside that of others: it grows with the kernel's code."""
        return self._kept.n_lines(launch) * (WHOLE if whole else 1)

    def _built_elsewhere(self, part: Recording, target: Target) -> list[str]:
        """Kernels of which another compiler, which got them first, compiles a launch to the end."""
        return [launch.kernel for launch in part.launches if (alike := self._alike(launch)) !=
                self._builders.setdefault((target.name, launch.kernel), alike)]

    def _alike(self, launch: Launch) -> Hashable:
        """The key of the compiler that gets a launch: its form, unless it is compiled apart."""
        apart = self._apart and self._apart.get(msgpack.encode(launch))
        return apart or form(launch)

    def _by_compiler(self, recording: Recording,
                     numbers: Iterable[int]) -> list[tuple[list[int], Recording]]:
        """Parts of a recording for one compiler each: places of launches, and these alone."""
        places: dict[Hashable, list[int]] = {}
        for number in numbers:
            places.setdefault(self._alike(recording.launches[number]), []).append(number)
        return [(some, _only(recording, some)) for some in places.values()]

    def wake_gpu(self) -> None:
        """Begins to start CUDA in the GPU process, which takes seconds; ``look`` then reports."""
        with suppress(Stopped):
            self.processes.ask("gpu", {"op": "look"}, [], client.LOOK_S, "starting CUDA",
                               at_once=True)

    def compile_on_gpu(self, recordings: Sequence[Recording]) -> None:
        """Begins to compile launches in the GPU process; runs would do it one after the other."""
        request = {"op": "compile", "recordings": list(map(to_json, recordings))}
        with suppress(Stopped, OutOfTime, ValueError):  # the last for a request that is too long
            self.processes.ask("gpu", request, [], GPU_RUN_S, "compiling for the GPU",
                               at_once=True)

    def look(self) -> Gpu:
        """Describes the GPU of this machine."""
        return client.look(self._ask_gpu)

    def ceilings(self) -> Ceilings:
        """Returns the GPU's ceilings, from the cache while a copy is as fast as it was."""
        return client.ceilings(self._ask_gpu)

    def _ask_gpu(self, request: dict[str, Any], fds: Sequence[int], seconds: float,
                 task: str) -> dict[str, Any]:
        try:
            return self.processes.ask("gpu", request, fds, seconds, task)()
        except Stopped as stop:  # nothing of the learner was run
            raise NoGpu(stop.finding.seen) from stop

    def run_on_gpu(self, recording: Recording, inputs: Sequence[Any], *, poison: int = 0,
                   windows: Sequence[tuple[int, int]] | None = None) -> Run:
        """Runs the recorded launches on the GPU, each allocation between red zones.

        Args:
            poison: which of two patterns fills fresh memory and the zones.
            windows: (first element, count) of each result to read instead of all of it.
        """
        request = {"op": "run", "recording": to_json(recording), "poison": poison,
                   "windows": windows}
        return replies.run_of(*self._on_gpu(request, [inputs], GPU_RUN_S, alone=False))

    def measure(self, recording: Recording, input_sets: Sequence[Sequence[Any]], *,
                others: Sequence[Recording] = (),
                windows: Sequence[tuple[int, int]] | None = None) -> Timed:
        """Times the recorded launches on the GPU, on several sets of inputs in turn.

        Args:
            input_sets: at least two, of the same shapes; on each the launches are run and timed.
            others: the same call with the other configurations of its autotuners.
            windows: (first element, count) of each result to read instead of all of it.
        """
        request = {"op": "measure", "recordings": [to_json(recording), *map(to_json, others)],
                   "windows": windows}
        seconds = (GPU_RUN_S + GPU_TIME_S) * (1 + len(others))
        return replies.timed_of(*self._on_gpu(request, input_sets, seconds, alone=True))

    def _on_gpu(self, request: dict[str, Any], input_sets: Sequence[Sequence[Any]],
                seconds: float, *, alone: bool) -> tuple[dict[str, Any], MemoryFile]:
        """Sends a request with sets of inputs; returns the reply and the file of the results.

        Args:
            seconds: its time limit, to which the time to move the inputs is added.
            alone: keep others from the GPU meanwhile.

        Raises:
            Stopped: a kernel broke the process, which the next call starts anew.
        """
        results = MemoryFile("tritonlab-results")
        with ExitStack() as open_files:
            arenas = [open_files.enter_context(_packed(inputs)) for inputs in input_sets]
            request["layouts"] = [arena.layout() for arena in arenas]
            # To and from the GPU through memory files, on a slow machine.
            seconds += sum(arena.nbytes for arena in arenas) / 200e6
            fds = [*(arena.fd for arena in arenas), results.fd]
            with client.turn(alone=alone):
                reply = self.processes.ask("gpu", request, fds, seconds, "a kernel on the GPU")()
        match reply.get("status"):
            case "faulted":
                self.processes.gpu.stop()  # a kernel has broken its context
                raise Stopped(Finding.from_json(reply["findings"][0]))
            case "none" | "small":
                client.done_reply(reply)
        return reply, results

def _begun(begin: Callable[[], Later[dict[str, Any]]],
           read: Callable[[dict[str, Any]], T]) -> Later[T]:
    """Begins a request; the function that is returned waits for the reply and reads it.

    The request is begun again where the process ended before it came to it.
    """
    reply = begin()

    def waited() -> T:
        nonlocal reply
        while True:
            try:
                return read(reply())
            except NotStarted:
                reply = begin()

    return waited


def form(launch: Launch) -> Hashable:
    """A key that is equal for launches that may share operations, as those of both halves do."""
    dtypes = {view.dtype.replace("bfloat16", "float16") for argument in launch.arguments.values()
              for view in views_of(argument)}
    return launch.kernel, frozenset(dtypes)


def _only(recording: Recording, numbers: Collection[int]) -> Recording:
    """The recording with the launches at these places alone."""
    place = itertools.count()
    return replace(recording, events=tuple(
        event for event in recording.events
        if not isinstance(event, Launch) or next(place) in numbers))


def _packed(inputs: Sequence[Any]) -> Arena:
    return pack([value for value in inputs if _is_stored(value)])


def _is_stored(value: Any) -> bool:
    """Whether a value lies in the arena; a tensor on torch's meta device has no bytes."""
    if isinstance(value, torch.Tensor):
        return value.device.type != "meta"
    return isinstance(value, SparseTensor)


def _has_values(value: Any) -> bool:
    """Whether a tensor has values, which differ from grade to grade."""
    return bool(value.windows) if isinstance(value, SparseTensor) else _is_stored(value)


def _arguments(inputs: Sequence[Any], stored: Sequence[View]) -> list[dict[str, Any]]:
    views = iter(stored)
    return [_argument(value, views) for value in inputs]


def _argument(value: Any, views: Iterator[Any]) -> dict[str, Any]:
    if _is_stored(value):
        lazy = isinstance(value, torch.Tensor) and value.is_conj()
        return {"tensor": model.to_json(next(views)), **({"conjugate": True} if lazy else {})}
    if isinstance(value, torch.Tensor):
        return {"meta": [dtype_name(value), list(value.shape)]}
    if isinstance(value, torch.dtype):
        return {"dtype": dtype_name(value)}
    return {"value": host_values.to_json(value)}
