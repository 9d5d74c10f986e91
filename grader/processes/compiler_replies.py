"""Replies of the compiler and of surveys: code, variants, traffic and time by launch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from grader.finding import Fault, Figure, fault, value_of
from grader.processes.replies import Stopped, check_done, reading
from grader.recording.codec import JsonObject, convert
from grader.recording.compiled_kernel import Binary
from grader.recording.launch_stats import Prediction, Survey, Unsurveyable
from grader.recording.model import Launch, Recording
from grader.report import Finding

SHOWN = 4  # of the values of an argument, in a message

Listing = tuple[tuple[int | None, str], ...]  # code, each line with the line of the learner's file


@dataclass(frozen=True)
class Compiled:
    """Binaries of the launches of a recording; ``findings`` are of launches without one."""

    binaries: tuple[Binary, ...] = ()
    findings: tuple[Finding, ...] = ()


def compiled_of(reply: Mapping[str, Any], recording: Recording) -> Compiled:
    """Reads the compiler's reply.

    Raises:
        Stopped: it refused the recording, or tells no binaries that there can be.
    """
    with _reading(reply, "compiled"):
        launches = _one_each(reply["launches"], recording)
        return Compiled(
            tuple(Binary.from_dict(one["binary"]) for one in launches if "binary" in one),
            (*(Finding.from_json(one["finding"]) for one in launches if "finding" in one),
             *(_given_up(launch, one["given_up"])
               for launch, one in zip(recording.launches, launches, strict=True)
               if "given_up" in one)))


@dataclass(frozen=True)
class Surveyed:
    """Surveys of the launches of a recording in order; None where there is none.

    ``findings`` are accesses outside their tensors; ``unknown`` are sentences that say why.
    """

    surveys: tuple[Survey | None, ...] = ()
    findings: tuple[Finding, ...] = ()
    unknown: tuple[str, ...] = ()


def surveyed_of(reply: Mapping[str, Any], recording: Recording) -> Surveyed:
    """Reads the executor's reply to a survey.

    Raises:
        Stopped: it refused the recording, or tells no traffic that there can be.
    """
    with _reading(reply, "surveyed"):
        unknown = [Unsurveyable.from_dict(one).why for one in reply["launches"] if "why" in one]
        surveys = [None if "why" in one else Survey.from_dict(one) for one in reply["launches"]]
        missing = len(recording.launches) - len(surveys)
        if missing < 0:
            raise ValueError("more launches than were asked for")
        findings = tuple(Finding.from_json(one) for one in reply["findings"])
        return Surveyed((*surveys, *[None] * missing), findings, tuple(dict.fromkeys(unknown)))


@dataclass(frozen=True)
class Times:
    """The predicted time of each launch in order, and of all, where their traffic is known."""

    launches: tuple[Prediction | None, ...]
    whole: Prediction | None


def times_of(reply: Mapping[str, Any], recording: Recording) -> Times:
    """Reads the compiler's reply about times.

    Raises:
        Stopped: it refused the recording, or tells no times that there can be.
    """
    with _reading(reply, "timed"):
        each = tuple(one and Prediction.from_dict(one)
                     for one in _one_each(reply["launches"], recording))
        return Times(each, reply["whole"] and Prediction.from_dict(reply["whole"]))


def listings_of(reply: Mapping[str, Any]) -> tuple[Listing, Listing]:
    """Reads the compiler's reply about code: PTX and SASS.

    Raises:
        Stopped: it refused the recording, or tells no code.
    """
    with _reading(reply, "listed"):
        return convert(reply["ptx"], Listing, "PTX"), convert(reply["sass"], Listing, "SASS")


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
    """Reads the compiler's reply about variants, one for each launch.

    Raises:
        Stopped: it refused a recording, or a launch is none.
    """
    with _reading(reply, "told apart"):
        if "finding" in reply:
            raise Stopped(Finding.from_json(reply["finding"]))
        return [Variant.from_dict(one) for one in reply["variants"]]


@contextmanager
def _reading(reply: Mapping[str, Any], done: str) -> Iterator[None]:
    """Turns errors of reading a reply into ``Stopped``; ``done`` is a participle for messages.

    Raises:
        Stopped: the recording was refused, or what is inside finds the reply to be none.
    """
    check_done(reply, done)
    with reading("no account", done=done):
        yield


def _one_each(answers: Any, recording: Recording) -> list[Any]:
    if len(answers) != len(recording.launches):
        raise ValueError(f"{len(answers)} answers for {len(recording.launches)} launches")
    return list(answers)


def _too_long(data: Fault, line: int | None) -> Finding:
    """Makes R02 for kernels that take too long to compile."""
    return Finding("R02", data, line=line, means=(
        "The compiler writes out every operation of a thread: with large blocks on few warps, or "
        "loops that are unrolled, there are too many of them. Larger `num_warps`, smaller blocks "
        "or loops that are not unrolled make fewer."))


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
    return {"kernel": kernel, "name": name, "parts": tuple(parts)[:SHOWN], "n_parts": len(parts)}
