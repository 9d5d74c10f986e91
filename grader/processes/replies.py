"""Replies of the processes: outcomes of calls, runs of launches, code, traffic and time.

Each reader raises ``Stopped`` where a recording was refused, or the reply is not what it reads.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import prod
from typing import Annotated, Any

import torch
from msgspec import Meta

from grader.diagnosis.messages import NOT_WRITTEN, TOO_MANY_OPERATIONS
from grader.engine.gpu.measurement import Measurement
from grader.finding import Fault, Figure, data_from_json, fault, value_of
from grader.recording import arena, host_values, model
from grader.recording.budget import over_budget, replaced_code
from grader.recording.codec import JsonObject, convert
from grader.recording.compiled_kernel import Binary
from grader.recording.launch_stats import LaunchFacts, Prediction, Survey, Unsurveyable
from grader.recording.model import MAX_MESSAGE, Launch, Line, MalformedRecording, Recording, View
from grader.recording.trace import MAX_TRACE_BYTES, Trace, decode
from grader.report import Finding, words
from grader.sandbox.limits import ResourceLimits
from grader.suite import Function

MAX_NAME = 200  # characters of a class's name
MAX_CLASSES = 64  # of an exception, along its MRO
MAX_COUNT = 1 << 20  # of launches before an exception, and of configurations
MEMORY_LIMIT = ResourceLimits().address_space  # bytes that a submission may take beside its inputs
# What the worker itself can see. Others are for the judge and the executor to say.
WORKER_CODES = frozenset(("L01", "L05", "X01", "M01", "M07", "S01", "T03"))
# What the engine may say as well, where it runs in the worker.
EAGER_CODES = frozenset(f"M{number:02}" for number in range(1, 10)) | {"L03", "R02"}
MAPPED = 16 << 20  # bytes of a result, from where on it is not copied
MAX_SHOWN = 4  # of the values of an argument, in a message
_Name = Annotated[str, Meta(max_length=MAX_NAME)]
_NOT_IN_TORCH = re.compile(r"aten::|not implemented for|__torch_\w+__")
_NO_MODULE = re.compile(r"^No module named '(\w+)'")
_NO_THREAD = re.compile(r"can't start new thread|thread constructor failed")
_NO_WHOLE_NUMBER = re.compile(  # in the words of Python and torch
    r"ints, ?but (got|found element of type) float|ints, not float|indices \(got float\)|"
    "'float' object cannot be interpreted as an integer|non-int of type 'float'")
_COMPILER_SAYS = re.compile(r"(?s)(.*) \(kernel\.py, line \d+\)")

_Register = Annotated[int, Meta(ge=0, le=256)]
_Live = tuple[tuple[Annotated[int, Meta(ge=1, le=10_000_000)], _Register], ...]
Listing = tuple[tuple[int | None, str], ...]  # code, each line with the line of the learner's file


class Stopped(Exception):
    """A run of the submission did not end normally: it hung, died or ran out of memory.

    ``final``: no other run can fare better, as the file itself cannot be used.
    """

    def __init__(self, finding: Finding, *, final: bool = False) -> None:
        super().__init__(finding.seen)
        self.finding = finding
        self.final = final


@dataclass(frozen=True)
class Raised:
    """An exception of the learner's function: class names along its MRO, message, line."""

    types: Annotated[tuple[_Name, ...], Meta(min_length=1, max_length=MAX_CLASSES)]
    message: str
    line: Line
    launches: Annotated[int, Meta(ge=0, le=MAX_COUNT)] = 0  # made before it was raised


@dataclass(frozen=True)
class Outcome:
    """The outcome of a call in the worker: a recording, an error, or a value that is not a tensor.

    ``configurations``: how many the largest autotuner of the call had to choose from.
    """

    recording: Recording | None
    findings: tuple[Finding, ...] = ()
    error: Raised | None = None
    value: str = ""  # the type's name
    configurations: int = 1


@dataclass(frozen=True)
class Answer:
    """The answer of host code: plain values, an error, or ``other``, the type of another value.

    ``findings`` are about launches that ran meanwhile.
    """

    value: Any = None
    findings: tuple[Finding, ...] = ()
    error: Raised | None = None
    other: str = ""


@dataclass(frozen=True)
class Run:
    """One execution of the launches: findings, results as tensors, and statistics by launch.

    ``determined``: with the programs in another order, or with other garbage where nothing is
    defined, the same would come out. ``other``: the results of another run, with both changed;
    none where it was not asked for, not needed, or did not fit. ``printed``: the first lines that
    kernels printed. ``passed_before``: a grade that passed had an equal run, so the launches
    were not executed, and ``results`` is empty.
    """

    findings: tuple[Finding, ...]
    results: tuple[torch.Tensor, ...]
    facts: tuple[LaunchFacts, ...] = ()
    determined: bool = False
    other: tuple[torch.Tensor, ...] = ()
    printed: tuple[str, ...] = ()
    passed_before: bool = False


@dataclass(frozen=True)
class Timed:
    """The timing of a call; of several configurations, the fastest is the ``measurement``.

    ``results`` are those that the last timed repeats left, a tuple for each set of inputs.
    ``untimed`` are those of the run before, only where they differ, as sums in any order may.
    """

    findings: tuple[Finding, ...]
    measurement: Measurement | None = None
    configurations: tuple[Measurement, ...] = ()
    results: tuple[tuple[torch.Tensor, ...], ...] = ()
    untimed: tuple[tuple[torch.Tensor, ...], ...] = ()


# ---------------------------------------------------------------------------------------------
# The worker's replies. Code that it runs can forge them, so nothing else of one is ever read.


def refusal_of(reply: Mapping[str, Any]) -> Finding | None:
    """Reads the worker's reply to ``load``: why it cannot use the file, None if it can."""
    with reading("no reply", task="importing the file", final=True):
        match reply.get("status"):
            case "ready":
                return None
            case "raised":
                return _unimportable(_raised(reply))
        raise MalformedRecording(f"the status {reply.get('status')!r:.40}")


def outcome_of(reply: Mapping[str, Any], given: Sequence[View], entry: str) -> Outcome:
    """Reads the worker's reply to a call of ``entry``; ``given`` are the views of the inputs."""
    with reading("no reply", task="the function"):
        findings = _findings(reply.get("findings", []))
        match reply.get("status"):
            case "missing":
                return Outcome(None, (Finding("P04", fault("no function", name=entry)),))
            case "raised":
                return Outcome(None, findings, error=_raised(reply))
            case "value":
                return Outcome(None, findings, value=_cut(reply.get("type"), MAX_NAME))
            case "returned":
                if findings := findings or _strange_dtypes(reply.get("recording")):
                    return Outcome(None, findings)
                recording = model.from_json(reply.get("recording"))
                if recording.inputs != given:
                    raise MalformedRecording("its inputs are others than those that were given")
                if len(recording.results) > model.MAX_EVENTS:
                    raise MalformedRecording(f"more than {model.MAX_EVENTS} results")
                return Outcome(recording, configurations=convert(
                    reply.get("configurations", 1), Annotated[int, Meta(ge=1, le=MAX_COUNT)],
                    "no number of configurations"))
        raise MalformedRecording(f"the status {reply.get('status')!r:.40}")


def question_of(reply: Mapping[str, Any]) -> Recording:
    """Reads a request for figures: the launch, alone in a recording."""
    with reading("no reply", task="the function"):
        recording = model.from_json(reply.get("question"))
        if len(recording.events) != 1 or len(recording.launches) != 1:
            raise MalformedRecording("a question is about one launch")
        return recording


def in_place(outcome: Outcome, function: Function, given: Mapping[int, View]) -> Outcome:
    """Makes the changed arguments the results of a function that works in place.

    S01 where it returned something else than the suite says. ``given`` are the views of tensors
    among the inputs, by their positions.
    """
    recording, positions = outcome.recording, function.in_place_at()
    if not positions or (recording is None and not outcome.value):
        return outcome if recording is None else replace(
            outcome, recording=replace(recording, in_place=False))
    results = tuple(given[position] for position in positions if position in given)
    returned = () if recording is None else recording.results
    wanted = results if function.returns_self else ()
    if recording is None or returned != wanted or (
            recording.returned_tuple and len(returned) < 2):
        got = "value" if recording is None else \
            "other" if returned and wanted else "tensor" if returned else "nothing"
        return Outcome(None, (*outcome.findings, Finding("S01", fault(
            "in place", names=function.in_place if wanted else (), got=got, type=outcome.value))))
    return replace(outcome, recording=replace(
        recording, results=results, returned_tuple=len(results) > 1, in_place=True))


def answer_of(reply: Mapping[str, Any], of: str) -> Answer:
    """Reads the worker's reply to a call of host code; ``of`` names the function."""
    with reading("no reply", task="the function"):
        findings = _findings(reply.get("findings", []), codes=WORKER_CODES | EAGER_CODES)
        match reply.get("status"):
            case "missing":
                return Answer(findings=(Finding("P04", fault("no function", name=of)),))
            case "raised":
                return Answer(findings=findings, error=_raised(reply))
            case "value":
                return Answer(findings=findings, other=_cut(reply.get("type"), MAX_NAME))
            case "answered":
                return Answer(host_values.from_json(reply.get("answer")), findings)
        raise MalformedRecording(f"the status {reply.get('status')!r:.40}")


@contextmanager
def reading(kind: str, *, final: bool = False, **figures: str) -> Iterator[None]:
    """Turns errors of reading a reply into ``Stopped``, by R03 of this kind."""
    try:
        yield
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        finding = Finding("R03", fault(kind, text=str(error), **figures))
        raise Stopped(finding, final=final) from error


def _check_done(reply: Mapping[str, Any], done: str) -> None:
    """Raises ``Stopped`` where a recording was refused; ``done`` is a participle for messages."""
    if reply["status"] != "done":
        raise Stopped(Finding("R03", fault("refused recording", done=done,
                                           text=str(reply.get("why", reply["status"])))))


def _unimportable(error: Raised) -> Finding:
    """P02, or R04 where memory ran out.

    The message of Python's compiler about a file that it could parse ends with name and line.
    """
    if _out_of_memory(error):
        return Finding("R04", fault("import", exception=error.types[0], limit=MEMORY_LIMIT),
                       line=error.line)
    compiler_error = _COMPILER_SAYS.fullmatch(error.message)
    if error.types[0] == "SyntaxError" and compiler_error and error.line:
        data = fault("uncompilable", line=error.line, text=compiler_error[1], **hint(error.message))
    else:
        data = fault("import", exception=error.types[0], text=error.message, **hint(error.message))
    return Finding("P02", data, line=error.line)


def _raised(reply: Mapping[str, Any]) -> Raised:
    raised: Raised = convert(reply, Raised, "no exception")
    return replace(raised, types=tuple(_cut(name, MAX_NAME) for name in raised.types),
                   message=_cut(raised.message, MAX_MESSAGE), line=raised.line or None)


def _findings(data: Any, codes: frozenset[str] = WORKER_CODES) -> tuple[Finding, ...]:
    if not isinstance(data, list) or len(data) > model.MAX_FINDINGS:
        raise MalformedRecording(f"findings are a list of at most {model.MAX_FINDINGS}")
    return tuple(_finding(item, codes) for item in data)


def _finding(data: Any, codes: frozenset[str]) -> Finding:
    code = data.get("code") if isinstance(data, dict) else None
    if not isinstance(code, str) or code not in codes:
        raise MalformedRecording(f"a finding with the code {code!r:.40}")
    finding = Finding(code, data_from_json(_cut_texts(data.get("data"))),
                      model.line_from_json(data.get("line")))
    try:
        too_long = len(finding.seen) > 4 * MAX_MESSAGE  # and it can be rendered
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise MalformedRecording(f"{type(error).__name__}: {error}") from error
    if too_long:
        raise MalformedRecording("a finding of more characters than there can be")
    return finding


def _cut_texts(value: Any) -> Any:
    """The data of a finding with texts that can be shown."""
    if isinstance(value, dict):
        return {name: _cut_texts(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_cut_texts(one) for one in value]
    return _cut(value, MAX_MESSAGE) if isinstance(value, str) else value


def _cut(value: Any, longest: int) -> str:
    """Shortens a text and escapes surrogates, so that it can be printed."""
    if not isinstance(value, str):
        raise MalformedRecording(f"not a text: {value!r:.40}")
    return value[:longest].encode("utf-8", "backslashreplace").decode()


def _strange_dtypes(recording: Any) -> tuple[Finding, ...]:
    """Returns S01 for a result of a dtype that cannot cross, such as a quantized one."""
    results = recording.get("results") if isinstance(recording, dict) else None
    for result in results if isinstance(results, list) else ():
        name = result[1] if isinstance(result, list) and len(result) > 1 else None
        if not isinstance(name, str) or not name.isidentifier() or name in model.DTYPES:
            continue
        dtype = getattr(torch, name, None)
        if isinstance(dtype, torch.dtype) and str(dtype) == f"torch.{name}":
            return (Finding("S01", fault("strange dtype", dtype=name)),)
    return ()


# ---------------------------------------------------------------------------------------------
# Replies of executor and GPU process about runs


def run_of(reply: Mapping[str, Any], results: MemoryFile) -> Run:
    """Reads the reply to a run; ``results`` is the file that it wrote to.

    A GPU's reply has neither ``determined`` nor ``other`` nor ``printed``.
    """
    _check_done(reply, "replayed")
    with reading("no reply", task="the kernels"):
        tensors, other = (tuple(map(results.read, reply.get(name, ())))
                          for name in ("results", "other"))
    with reading("no account"):
        facts = tuple(map(LaunchFacts.from_dict, reply["launches"]))
    return Run(tuple(map(Finding.from_json, reply["findings"])), tensors, facts,
               determined=reply.get("determined") is True, other=other,
               printed=tuple(str(line)[:model.MAX_PRINTED_LINE]
                             for line in reply.get("printed", ())[:model.MAX_PRINTED]))


def trace_of(reply: Mapping[str, Any], results: MemoryFile) -> tuple[Trace, list[Finding]]:
    """Reads the reply to a trace, which lies in the file ``results``."""
    _check_done(reply, "traced")
    with reading("no reply", task="the traced kernels"):
        return (decode(results.content(MAX_TRACE_BYTES)),
                [*map(Finding.from_json, reply["findings"])])


def timed_of(reply: Mapping[str, Any], results: MemoryFile) -> Timed:
    """Reads the GPU process' reply to a measurement; ``results`` is the file that it wrote to."""
    _check_done(reply, "timed")
    with reading("no reply", task="the kernels on the GPU"):
        measured = reply["measurement"]
        return Timed(
            tuple(map(Finding.from_json, reply["findings"])),
            None if measured is None else Measurement.from_dict(measured),
            tuple(map(Measurement.from_dict, reply["configurations"])),
            *(tuple(tuple(map(results.read, places)) for places in reply[name])
              for name in ("results", "untimed")))


class MemoryFile:
    """A memory file for the results of a run, closed with its last reference."""

    def __init__(self, name: str) -> None:
        self.fd = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)

    def __del__(self) -> None:
        os.close(self.fd)

    def content(self, most: int) -> bytes:
        """Copies out all of it, at most so many bytes."""
        return os.pread(self.fd, most, 0)

    def read(self, place: Sequence[Any]) -> torch.Tensor:
        """Returns one result: a copy, or of a large one a private mapping of the sealed file.

        Raises:
            MalformedRecording: it is not in the file, or of a dtype that cannot be read.
        """
        name, shape, offset, nbytes = place
        dtype = getattr(torch, model.dtype_from_json(name))
        if not all(type(number) is int and number >= 0 for number in (*shape, offset, nbytes)):
            raise MalformedRecording("a result has sizes and a place in the file")
        elements = prod(max(n, 1) for n in shape)
        if nbytes != prod(shape) * dtype.itemsize or elements > model.MAX_ELEMENTS:
            raise MalformedRecording("a result has as many bytes as its elements need")
        is_mapped = nbytes >= MAPPED and self._is_sealed()
        if offset + nbytes > os.fstat(self.fd).st_size:
            raise MalformedRecording("a result lies beyond the end of the file")
        if nbytes == 0:
            return torch.empty(shape, dtype=dtype)
        if is_mapped and not offset % dtype.itemsize:
            return arena.private_bytes(self.fd, offset, nbytes).view(dtype).view(shape)
        data = bytearray(nbytes)
        rest = memoryview(data)
        while rest:  # one call reads 2 GiB at most
            count = os.preadv(self.fd, [rest[:1 << 30]], offset + nbytes - len(rest))
            if not count:
                raise MalformedRecording("a result was cut off while it was read")
            rest = rest[count:]
        return torch.frombuffer(data, dtype=dtype).view(shape)

    def _is_sealed(self) -> bool:
        """Whether nobody can change the file any more."""
        try:
            arena.seal(self.fd, arena.SHRINK | arena.GROW | arena.WRITE)
        except OSError:  # its writer has mapped it, or sealed it before
            return False
        return True


def hint(message: str) -> dict[str, str]:
    """Returns what explains an exception, as figures; empty if nothing is known."""
    lowered = message.casefold()
    if missing := _NO_MODULE.search(message):
        return {"hint": "libdevice" if missing[1] == "libdevice" else "module",
                "module": missing[1]}
    if _NO_THREAD.search(lowered):
        return {"hint": "threads"}
    if "outside of the scope of a kernel" in lowered:
        return {"hint": "grid"}
    if _NO_WHOLE_NUMBER.search(message):
        return {"hint": "float"}
    return {"hint": "device"} if "cuda" in lowered or "gpu" in lowered else {}


def not_written(error: Raised, function: str = "") -> list[Finding]:
    """Returns R01 for a part left for later; NotImplementedError of torch has a message."""
    if error.types[0] != "NotImplementedError" or _NOT_IN_TORCH.search(error.message):
        return []
    return [Finding("R01", fault("raised", name=function, exception="NotImplementedError",
                                 text=error.message), line=error.line, means=NOT_WRITTEN)]


def _out_of_memory(error: Raised) -> bool:
    """Whether Python's or torch's allocator ran out of memory."""
    return "MemoryError" in error.types or "can't allocate memory" in error.message


def unusable(outcome: Outcome) -> list[Finding]:
    """Returns why a call has no new tensors to judge; empty if it has."""
    if outcome.findings:
        return list(outcome.findings)
    if outcome.error:
        error = outcome.error
        if later := not_written(error):
            return later
        code, cause = ("R04", {"limit": MEMORY_LIMIT}) if _out_of_memory(error) else \
            ("R01", hint(error.message))
        return [Finding(code, fault("raised", exception=error.types[0], text=error.message,
                                    **cause), line=error.line)]
    if outcome.recording is None:
        return [Finding("S01", fault("no tensor", type=outcome.value))]
    given = {view.storage for view in outcome.recording.inputs}
    if not outcome.recording.in_place and any(
            result.storage in given for result in outcome.recording.results):
        return [Finding("S01", fault("input returned"))]
    return replaced_code(outcome.recording) or over_budget(outcome.recording)


def same_bits(first: torch.Tensor, second: torch.Tensor) -> bool:
    """Whether two contiguous tensors hold the same bytes, NaN included."""
    return torch.equal(first.view(-1).view(torch.uint8), second.view(-1).view(torch.uint8))


# ---------------------------------------------------------------------------------------------
# Replies about code, traffic and time of launches


@dataclass(frozen=True)
class Compiled:
    """Binaries of the launches of a recording; ``findings`` are of launches without one."""

    binaries: tuple[Binary, ...] = ()
    findings: tuple[Finding, ...] = ()


@contextmanager
def _account(reply: Mapping[str, Any], done: str) -> Iterator[None]:
    _check_done(reply, done)
    with reading("no account", done=done):
        yield


def answers_of(reply: Mapping[str, Any], recording: Recording) -> list[Any]:
    """Reads the compiler's reply: an answer for each launch."""
    with _account(reply, "compiled"):
        return _one_each(reply["launches"], recording)


def compiled_of(launches: Sequence[Any], recording: Recording) -> Compiled:
    """Reads the compiler's answers, one for each launch."""
    with reading("no account", done="compiled"):
        return Compiled(
            tuple(Binary.from_dict(one["binary"]) for one in launches if "binary" in one),
            (*(Finding.from_json(one["finding"]) for one in launches if "finding" in one),
             *(_given_up(launch, one["given_up"])
               for launch, one in zip(recording.launches, launches, strict=True)
               if "given_up" in one)))


@dataclass(frozen=True)
class Surveyed:
    """Surveys of the launches of a recording in order; None where there is none.

    ``findings`` are accesses outside their tensors; ``unsurveyed`` are sentences that say why there
    is none.
    """

    surveys: tuple[Survey | None, ...] = ()
    findings: tuple[Finding, ...] = ()
    unsurveyed: tuple[str, ...] = ()

    @property
    def unknown(self) -> tuple[str, ...]:
        """Sentences: why traffic or time of a launch is unknown."""
        guessed = [words("unknown trip count", kernel=one.kernel, line=one.guessed)
                   for one in self.surveys if one and one.guessed]
        return tuple(dict.fromkeys((*self.unsurveyed, *guessed)))


def surveyed_of(reply: Mapping[str, Any], recording: Recording) -> Surveyed:
    """Reads the executor's reply to a survey."""
    with _account(reply, "surveyed"):
        unknown = [Unsurveyable.from_dict(one).why for one in reply["launches"] if "why" in one]
        surveys = [None if "why" in one else Survey.from_dict(one) for one in reply["launches"]]
        missing = len(recording.launches) - len(surveys)
        if missing < 0:
            raise ValueError("more launches than were asked for")
        findings = tuple(Finding.from_json(one) for one in reply["findings"])
        return Surveyed((*surveys, *[None] * missing), findings, tuple(unknown))


@dataclass(frozen=True)
class Times:
    """The predicted time of each launch in order, and of all, where their traffic is known."""

    launches: tuple[Prediction | None, ...]
    whole: Prediction | None


def times_of(reply: Mapping[str, Any], recording: Recording) -> Times:
    """Reads the compiler's reply about times."""
    with _account(reply, "timed"):
        each = tuple(one and Prediction.from_dict(one)
                     for one in _one_each(reply["launches"], recording))
        return Times(each, reply["whole"] and Prediction.from_dict(reply["whole"]))


@dataclass(frozen=True)
class Listings:
    """The code of one launch; ``live``: the most live registers of each line."""

    ptx: Listing
    sass: Listing
    live: tuple[tuple[int, int], ...]


def listings_of(reply: Mapping[str, Any]) -> Listings:
    """Reads the compiler's reply about code: PTX, SASS and live registers."""
    with _account(reply, "listed"):
        return Listings(convert(reply["ptx"], Listing, "PTX"),
                        convert(reply["sass"], Listing, "SASS"),
                        convert(reply["live"], _Live, "live registers"))


@dataclass(frozen=True)
class Variant(JsonObject):
    """The key by which Triton caches compiled code.

    ``parts`` say for each parameter what the compiler knows of it, and ``options`` those of the
    launch. ``in_vain`` are constexpr parameters that `do_not_specialize` names all the same.
    """

    kernel: str
    parts: tuple[tuple[str, str], ...]
    options: str
    in_vain: tuple[str, ...] = ()


def variants_of(reply: Mapping[str, Any]) -> list[Variant]:
    """Reads the compiler's reply about variants, one for each launch."""
    with _account(reply, "told apart"):
        if "finding" in reply:
            raise Stopped(Finding.from_json(reply["finding"]))
        return [Variant.from_dict(one) for one in reply["variants"]]


def _one_each(answers: Any, recording: Recording) -> list[Any]:
    if len(answers) != len(recording.launches):
        raise ValueError(f"{len(answers)} answers for {len(recording.launches)} launches")
    return list(answers)


def _too_long(data: Fault, line: int | None) -> Finding:
    """Makes R02 for kernels that take too long to compile."""
    return Finding("R02", data, line=line, means=TOO_MANY_OPERATIONS)


def _given_up(launch: Launch, spent: Mapping[str, Any]) -> Finding:
    """Makes R02 for a kernel whose variants took too much CPU time."""
    return _too_long(fault("compiling given up", kernels=(launch.kernel,), cpu_s=spent["cpu_s"],
                           slowest=spent["slowest"], slowest_s=spent["slowest_s"]), launch.line)


def slow(stop: Stopped, recording: Recording) -> Stopped:
    """Names the kernels in the finding of a compilation that timed out."""
    return Stopped(_too_long(fault("compiling", kernels=_kernels(recording),
                                   seconds=value_of(stop.finding.data, "seconds")),
                             _only_line(recording)))


def crashed(stop: Stopped, recording: Recording, title: str) -> Compiled:
    """Makes L05 for kernels that crashed the compiler, as they would crash any program."""
    crash = replace(stop.finding, code="L05", line=_only_line(recording))
    return Compiled(findings=(crash.within("crash", kernels=_kernels(recording), target=title),))


def _kernels(recording: Recording) -> tuple[str, ...]:
    return tuple(dict.fromkeys(launch.kernel for launch in recording.launches))


def _only_line(recording: Recording) -> int | None:
    lines = {launch.line for launch in recording.launches}
    return lines.pop() if len(lines) == 1 else None


def too_many(launched: Sequence[Variant], most: int, of: str) -> list[Finding]:
    """Returns Q01 for more than ``most`` variants; ``of`` names the calls.

    A constexpr that `do_not_specialize` names is L05: its values are told apart all the same, and
    Triton refuses to compile such a kernel.
    """
    variants = list(dict.fromkeys(launched))
    if len(variants) <= most:
        return []
    for one in variants:
        if one.in_vain:
            return [Finding("L05", fault("not specialized", kernel=one.kernel, name=one.in_vain[0],
                                         count=len(variants), calls=of))]
    return [Finding("Q01", fault(
        "variants", count=len(variants), calls=of, most=most,
        kernels=tuple(dict.fromkeys(one.kernel for one in variants)), **_differing(variants)))]


def _differing(variants: Sequence[Variant]) -> dict[str, Figure]:
    """The argument with the most specializations, and the first of them; empty without."""
    by_argument: dict[tuple[str, str], dict[str, None]] = {}
    for one in variants:
        for name, part in one.parts:
            by_argument.setdefault((one.kernel, name), {})[part] = None
    if not by_argument:
        return {}
    (kernel, name), parts = max(by_argument.items(), key=lambda item: len(item[1]))
    if len(parts) < 2:
        return {}
    return {"kernel": kernel, "name": name, "n_parts": len(parts),
            "parts": tuple(parts)[:MAX_SHOWN]}
