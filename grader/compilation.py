"""What the compiler process says of a recording: a binary for each launch, or why there is none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from grader.binary import Binary
from grader.outcome import Stopped
from grader.recording import Recording
from grader.report import Finding


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
    if reply["status"] != "done":
        raise Stopped(Finding("R03", "The recorded launches cannot be compiled: "
                                     f"{reply.get('why', reply['status'])}."))
    try:
        launches = list(reply["launches"])
        if len(launches) != len(recording.launches):
            raise ValueError(f"{len(launches)} answers for {len(recording.launches)} launches")
        return Compiled(
            tuple(Binary.from_dict(one["binary"]) for one in launches if "binary" in one),
            tuple(Finding.from_dict(one["finding"]) for one in launches if "finding" in one))
    except (KeyError, TypeError, ValueError) as error:
        raise Stopped(Finding("R03", "The process that compiled the kernels answered with "
                                     f"something that is no account of them: {error}.")) from error


def crashed(stop: Stopped, title: str) -> Compiled:
    """A compiler that died of a kernel has refused it; it would take the learner's Python along."""
    return Compiled(findings=(Finding(
        "L05", f"Triton's compiler crashed on a kernel while compiling it for {title}: "
               f"{stop.finding.seen} The launch would end any program in the same way."),))
