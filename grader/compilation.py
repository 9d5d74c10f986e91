"""What is said of a recording that is compiled and surveyed: code, traffic and time by launch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from grader.binary import Binary
from grader.facts import Prediction, Survey, Unsurveyable
from grader.outcome import Stopped
from grader.recording import Launch, Recording
from grader.report import Finding
from grader.variants import Variant

Listing = tuple[tuple[int | None, str], ...]  # code, each line with the line of the learner's file


@dataclass(frozen=True)
class Compiled:
    """The launches of a recording in order; ``findings`` are those of launches without a binary."""

    binaries: tuple[Binary, ...] = ()
    findings: tuple[Finding, ...] = ()


def compiled_of(reply: Mapping[str, Any], recording: Recording) -> Compiled:
    """Read the compiler's reply.

    Raises:
        Stopped: it refused the recording, or tells no binaries that there can be.
    """
    with _reading(reply, "compiled"):
        launches = _one_each(reply["launches"], recording)
        return Compiled(
            tuple(Binary.from_dict(one["binary"]) for one in launches if "binary" in one),
            (*(Finding.from_dict(one["finding"]) for one in launches if "finding" in one),
             *(_given_up(launch, one["given_up"])
               for launch, one in zip(recording.launches, launches, strict=True)
               if "given_up" in one)))


@dataclass(frozen=True)
class Surveyed:
    """What the launches of a recording move, in order; None where it cannot be told.

    ``findings`` are accesses outside their tensors; ``unknown`` are sentences that say why.
    """

    surveys: tuple[Survey | None, ...] = ()
    findings: tuple[Finding, ...] = ()
    unknown: tuple[str, ...] = ()


def surveyed_of(reply: Mapping[str, Any], recording: Recording) -> Surveyed:
    """Read the executor's reply to a survey.

    Raises:
        Stopped: it refused the recording, or tells no traffic that there can be.
    """
    with _reading(reply, "surveyed"):
        unknown = [Unsurveyable.from_dict(one).why for one in reply["launches"] if "why" in one]
        known = [None if "why" in one else Survey.from_dict(one) for one in reply["launches"]]
        missing = len(recording.launches) - len(known)
        if missing < 0:
            raise ValueError("more launches than were asked for")
        findings = tuple(Finding.from_dict(one) for one in reply["findings"])
        return Surveyed((*known, *[None] * missing), findings, tuple(dict.fromkeys(unknown)))


@dataclass(frozen=True)
class Times:
    """The predicted time of each launch in order, and of all, where their traffic is known."""

    launches: tuple[Prediction | None, ...]
    whole: Prediction | None


def times_of(reply: Mapping[str, Any], recording: Recording) -> Times:
    """Read the compiler's reply about times.

    Raises:
        Stopped: it refused the recording, or tells no times that there can be.
    """
    with _reading(reply, "timed"):
        each = tuple(one and Prediction.from_dict(one)
                     for one in _one_each(reply["launches"], recording))
        return Times(each, reply["whole"] and Prediction.from_dict(reply["whole"]))


def listings_of(reply: Mapping[str, Any]) -> tuple[Listing, Listing]:
    """Read the compiler's reply about code: PTX and SASS.

    Raises:
        Stopped: it refused the recording, or tells no code.
    """
    with _reading(reply, "listed"):
        return _listing(reply["ptx"]), _listing(reply["sass"])


def variants_of(reply: Mapping[str, Any]) -> list[Variant]:
    """Read the compiler's reply about variants, one for each launch.

    Raises:
        Stopped: it refused a recording, or a launch is none.
    """
    with _reading(reply, "told apart"):
        if "finding" in reply:
            raise Stopped(Finding.from_dict(reply["finding"]))
        return [Variant.from_dict(one) for one in reply["variants"]]


def _listing(rows: Any) -> Listing:
    return tuple((None if line is None else int(line), str(text)) for line, text in rows)


@contextmanager
def _reading(reply: Mapping[str, Any], done: str) -> Iterator[None]:
    """Inside, a reply is read; ``done`` says what was to be done with the launches.

    Raises:
        Stopped: the recording was refused, or what is inside finds the reply to be none.
    """
    if reply["status"] != "done":
        raise Stopped(Finding("R03", f"The recorded launches cannot be {done}: "
                                     f"{reply.get('why', reply['status'])}."))
    try:
        yield
    except (KeyError, TypeError, ValueError) as error:
        raise Stopped(Finding("R03", f"The process in which launches are {done} answered with "
                                     f"something that is no account of them: {error}.")) from error


def _one_each(answers: Any, recording: Recording) -> list[Any]:
    known = list(answers)
    if len(known) != len(recording.launches):
        raise ValueError(f"{len(known)} answers for {len(recording.launches)} launches")
    return known


def too_long(kernels: Iterable[str], how: str, line: int | None = None) -> Finding:
    """R02 of kernels that compiling takes too long; ``how`` says what it did instead of ending."""
    names = " and ".join(f"`{name}`" for name in dict.fromkeys(kernels))
    return Finding("R02", f"Compiling {names} {how}.", line=line, means=(
        "The compiler writes out every operation of a thread: with large blocks on few warps, or "
        "loops that are unrolled, there are too many of them. Larger `num_warps`, smaller blocks "
        "or loops that are not unrolled make fewer."))


def _given_up(launch: Launch, spent: Mapping[str, Any]) -> Finding:
    """R02 of a kernel whose variants have taken too much CPU time; nothing more is compiled."""
    variant = f" (with {spent['slowest']})" if spent["slowest"] else ""
    return too_long((launch.kernel,), f"was given up after {spent['cpu_s']:.0f} s of CPU time: "
                    f"one variant{variant} took {spent['slowest_s']:.0f} s. Values "
                    "and memory accesses were judged without it", launch.line)


def slow(stop: Stopped, recording: Recording) -> Stopped:
    """Compiling the launches did not end in time: the same in words that say what was compiled."""
    how = stop.finding.seen.partition(" a kernel ")[2].rstrip(".")
    how += ", the limit for the launches of one call"
    lines = {launch.line for launch in recording.launches}
    return Stopped(too_long((launch.kernel for launch in recording.launches), how,
                            lines.pop() if len(lines) == 1 else None))


def crashed(stop: Stopped, recording: Recording, title: str) -> Compiled:
    """A compiler that died of a kernel has refused it; it would take the learner's Python along."""
    names = list(dict.fromkeys(f"`{launch.kernel}`" for launch in recording.launches))
    lines = {launch.line for launch in recording.launches}
    return Compiled(findings=(Finding(
        "L05", f"Triton's compiler crashed on {' or '.join(names)}, for the {title}: "
               f"{stop.finding.seen} The launch would end any program in the same way.",
        line=lines.pop() if len(lines) == 1 else None),))
