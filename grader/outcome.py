"""What a call of the learner's function gave, and what a run of its launches gave."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from grader.budgets import over_budget
from grader.facts import LaunchFacts
from grader.recording import MalformedRecording, Recording, View, from_json
from grader.report import Finding
from grader.words import sentence


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
    """What one execution gave: findings, the results as tensors, and facts of each launch.

    ``determined``: with the programs in another order, or with other garbage where nothing is
    defined, the same would come out.
    """

    findings: tuple[Finding, ...]
    results: tuple[torch.Tensor, ...]
    facts: tuple[LaunchFacts, ...] = ()
    determined: bool = False

    @property
    def bytes(self) -> int:
        return sum(launch.bytes_loaded + launch.bytes_stored for launch in self.facts)


def outcome_of(reply: Mapping[str, Any], given: Sequence[View]) -> Outcome:
    """Read the worker's reply to a call; ``given`` are the views of the inputs.

    Raises:
        Stopped: it holds no recording.
    """
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
        if recording.inputs != given:
            raise MalformedRecording("its inputs are others than those that were given")
        return Outcome(recording, configurations=_configurations(reply))
    except MalformedRecording as error:
        raise Stopped(Finding("R03", "The process that ran the function answered with "
                                     f"something that is no recording: {error}.")) from error


def run_of(reply: Mapping[str, Any], results: MemoryFile) -> Run:
    """Read the executor's reply to a run; ``results`` is the file that it wrote to.

    Raises:
        Stopped: it refused the recording, or tells no facts.
    """
    if reply["status"] != "done":
        raise Stopped(Finding("R03", "The recorded launches cannot be replayed: "
                                     f"{reply.get('why', reply['status'])}."))
    return Run(
        tuple(Finding.from_dict(item) for item in reply["findings"]),
        tuple(results.read(place) for place in reply["results"]),
        _facts(reply["launches"]),
        determined=reply.get("determined") is True,
    )


class MemoryFile:
    """A file in memory for the results of a run, closed when nobody holds it any more."""

    def __init__(self, name: str) -> None:
        self.fd = os.memfd_create(name, os.MFD_CLOEXEC)

    def __del__(self) -> None:
        os.close(self.fd)

    def read(self, place: Sequence[Any]) -> torch.Tensor:
        """One result, copied out once."""
        dtype, shape, offset, nbytes = place
        if nbytes == 0:
            return torch.empty(shape, dtype=getattr(torch, dtype))
        data = bytearray(os.pread(self.fd, nbytes, offset))
        return torch.frombuffer(data, dtype=getattr(torch, dtype)).view(shape)


def _configurations(reply: Mapping[str, Any]) -> int:
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


def hint(message: str) -> str:
    """What an exception has to do with how a grade runs, as a further sentence."""
    said = message.casefold()
    if "outside of the scope of a kernel" in said:
        return " A kernel is launched with its grid: `kernel[grid](...)`."
    if "_init_handles" in said or "has no attribute 'asm'" in said:
        return " Launches are written down here and not compiled, so they return nothing."
    if any(word in said for word in ("cuda", "gpu", "active drivers")):
        return (" The tensors of this grade are on the CPU; their device says so, and "
                "`torch.cuda.is_available()` that there is no GPU.")
    return ""


def unusable(outcome: Outcome) -> list[Finding]:
    """Why a call gave no single new tensor to judge: its findings first; empty when it did."""
    if outcome.findings:
        return list(outcome.findings)
    if outcome.error:
        error = outcome.error
        code = "R04" if "MemoryError" in error.types else "R01"
        said = f": {error.message}" if error.message else ""
        seen = sentence(f"The function raised {error.types[0]}{said}")
        seen += hint(error.message)
        return [Finding(code, seen, line=error.line)]
    if outcome.recording is None:
        kind = outcome.value or "something else"
        seen = f"The function returned a {kind}, expected a torch.Tensor."
        if kind == "NoneType":
            seen += " A launch returns nothing; the result is the tensor that it wrote to."
        return [Finding("S01", seen)]
    results = outcome.recording.results
    if len(results) != 1 or outcome.recording.returned_tuple:
        seen = f"The function returned {len(results)} tensors in a tuple, expected one tensor."
        return [Finding("S01", seen)]
    if results[0].storage in {view.storage for view in outcome.recording.inputs}:
        return [Finding("S01", "The function returned its input, or a view of it; a new tensor is "
                               "expected.")]
    return over_budget(outcome.recording)


def same_bits(first: torch.Tensor, second: torch.Tensor) -> bool:
    """Whether two contiguous tensors hold the same bytes, NaN included."""
    return torch.equal(first.view(-1).view(torch.uint8), second.view(-1).view(torch.uint8))


def dtype_name(value: Any) -> str:
    return str(value.dtype).removeprefix("torch.")
