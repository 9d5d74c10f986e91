"""Code, traffic and predicted times of launches, kept by all that they depend on."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib.metadata import version
from typing import Any

from msgspec import structs

from grader.engine.compiler.targets import Target
from grader.processes.cache import Cache, sources_sha256
from grader.recording.compiled_kernel import Binary
from grader.recording.launch_stats import Survey
from grader.recording.model import Alloc, Launch, Recording, to_json
from grader.recording.specialization import specialization
from grader.submission.kernel_digest import KernelCode, kernel_code

Json = dict[str, Any]

_PACKAGES = ("engine", "executor", "recording")  # whose code makes the answers
# rows of a binary that begin with a line
_WITH_LINES = ("accesses", "products", "loop_shuffles", "layouts")


@dataclass(frozen=True)
class _Entry:
    key: str
    code: KernelCode


class LaunchCache:
    """Answers about the launches of one file, kept for the next grade of the same kernels.

    This grade finds them in memory. Only the judge writes them, from replies of the sandboxed
    compiler and executor. Refusals and faults are not kept: they are worded anew, with the lines
    and the code of this very file.
    """

    def __init__(self, text: str, *, disk: Callable[[], bool]) -> None:
        """Reads nothing yet.

        Args:
            text: of the file that holds the kernels.
            disk: whether the sandbox keeps the learner's code from the disk; without, nothing is
                written there or read.
        """
        self._text = text
        self._disk = disk
        self._cache = Cache("compiled")
        self._memory: dict[str, Any] = {}

    def read(self, launch: Launch, target: Target, *, whole: bool) -> Json | None:
        """Returns the compiler's answer about a launch, with the lines of this file; else None.

        Args:
            whole: only with a binary, not where the front end alone accepted the launch.
        """
        entry = self._entry(launch, target)
        if entry is None or (answer := self._read(entry.key)) is None:
            return None
        if answer == {}:
            return None if whole else {}
        try:
            moved = _moved(answer, entry.code.lines.__getitem__)
            Binary.from_dict(moved["binary"])
        except (LookupError, TypeError, ValueError):  # not an answer of this compiler
            return None
        return moved

    def write(self, launch: Launch, target: Target, answer: Json) -> None:
        """Keeps an answer, unless it is a refusal, or the front end's where a binary is kept."""
        entry = self._entry(launch, target)
        if entry is None or not (answer.keys() <= {"binary"}):
            return
        if not answer and self._read(entry.key) is not None:
            return
        index = {line: number for number, line in enumerate(entry.code.lines)}
        try:
            self._write(entry.key, _moved(answer, index.__getitem__))
        except KeyError:  # a line that holds no code of the kernel
            return

    def read_surveys(self, recording: Recording, resident: Sequence[int],
                     target: Target) -> tuple[Survey, ...] | None:
        """Returns the surveys of launches on inputs without values; None where they are not kept.

        Args:
            resident: how many programs of each launch the target holds at the same time.
        """
        key, entries = self._survey_key(recording, resident, target)
        kept = self._read(key) if key else None
        try:
            return kept and tuple(
                _renumbered(Survey.from_dict(one), entry.code.lines.__getitem__)
                for one, entry in zip(kept, entries, strict=True))
        except (LookupError, TypeError, ValueError):  # not surveys
            return None

    def write_surveys(self, recording: Recording, resident: Sequence[int], target: Target,
                      surveys: Sequence[Survey | None]) -> None:
        """Keeps surveys, if every launch has one."""
        key, entries = self._survey_key(recording, resident, target)
        with suppress(ValueError):  # an access on a line that holds no code of the kernel
            if key and None not in surveys:
                self._write(key, [
                    _renumbered(survey, entry.code.lines.index).to_dict()
                    for survey, entry in zip(surveys, entries, strict=True) if survey])

    def read_times(self, recording: Recording, surveys: Sequence[Survey | None],
                   target: Target) -> Any:
        """Returns the compiler's reply about the time of launches with this traffic; else None."""
        key = self._times_key(recording, surveys, target)
        return self._read(key) if key else None

    def write_times(self, recording: Recording, surveys: Sequence[Survey | None], target: Target,
                    reply: Json) -> None:
        """Keeps a reply about times."""
        if key := self._times_key(recording, surveys, target):
            self._write(key, reply)

    def _read(self, key: str) -> Any:
        if key not in self._memory:
            kept = self._cache.read(key) if self._disk() else None
            if kept is None:
                return None
            self._memory[key] = kept
        return self._memory[key]

    def _write(self, key: str, value: Any) -> None:
        if self._memory.get(key) == value:
            return
        self._memory[key] = value
        if self._disk():
            self._cache.write(key, value)

    def _times_key(self, recording: Recording, surveys: Sequence[Survey | None],
                   target: Target) -> str:
        """The key of a prediction; empty where it must not be kept."""
        entries = self._entries(recording, target)
        try:
            traffic = [survey and _renumbered(survey, entry.code.lines.index).to_dict()
                       for survey, entry in zip(surveys, entries, strict=True)]
        except ValueError:  # no entries, or a line that holds no code of the kernel
            return ""
        return _sha256("times", [entry.key for entry in entries], traffic)

    def _survey_key(self, recording: Recording, resident: Sequence[int],
                    target: Target) -> tuple[str, list[_Entry]]:
        """The key of surveys, which is empty where they must not be kept."""
        entries = self._entries(recording, target)
        if not entries:
            return "", []
        return _sha256("survey", [entry.key for entry in entries], list(resident),
                       to_json(without_lines(recording))), entries

    def _entries(self, recording: Recording, target: Target) -> list[_Entry]:
        """The entries of all launches; none where one cannot be named."""
        entries = [self._entry(launch, target) for launch in recording.launches]
        return [] if None in entries else [entry for entry in entries if entry]

    def n_lines(self, launch: Launch) -> int:
        """Lines of the code that a launch depends on; 1 where that is not clear."""
        code = launched_code(self._text, launch)
        return len(code.lines) if code else 1

    def _entry(self, launch: Launch, target: Target) -> _Entry | None:
        """The key of a launch; None where it cannot be named."""
        code = launched_code(self._text, launch)
        if code is None:
            return None
        kind, form = specialization(launch, code.constants)
        return _Entry(_sha256(code.sha256, repr(kind), vars(form), _spelled(target),
                              _surroundings()), code)


def launched_code(text: str, launch: Launch) -> KernelCode | None:
    """The code of a file that a launch runs; None where that is not clear."""
    return kernel_code(text, launch.kernel, frozenset(_functions(launch.arguments.values())))


def without_lines(recording: Recording) -> Recording:
    """The recording without the lines of host code."""
    return replace(recording, events=tuple(
        event if isinstance(event, Alloc) else structs.replace(event, line=None)
        for event in recording.events))


def _functions(arguments: Any) -> list[str]:
    """The kernels among the arguments of a launch."""
    names = []
    for argument in arguments:
        if argument.kind == "function":
            names.append(argument.value)
        elif argument.kind == "tuple":
            names += _functions(argument.value)
    return names


def _renumbered(survey: Survey, place: Callable[[int], int]) -> Survey:
    """The survey with each line replaced.

    Raises:
        LookupError, ValueError: a line has no counterpart.
    """
    return replace(
        survey, traffic=tuple(structs.replace(row, line=None if row.line is None else
                                              place(row.line)) for row in survey.traffic),
        executions={place(line): count for line, count in survey.executions.items()},
        guessed=place(survey.guessed) if survey.guessed else 0,
        blocks=tuple(structs.replace(
            one, calls=tuple(map(place, one.calls)), first=place(one.first), last=place(one.last),
            header=place(one.header) if one.header else 0) for one in survey.blocks))


def _moved(answer: Json, place: Callable[[int], int]) -> Json:
    """The answer with each line replaced.

    Raises:
        LookupError: a line has no counterpart.
    """
    if not answer:
        return {}
    binary = dict(answer["binary"])
    for name in _WITH_LINES:
        binary[name] = [[None if line is None else place(line), *rest]
                        for line, *rest in binary[name]]
    return {"binary": binary}


_spelled = cache(asdict)  # of targets


@cache
def _surroundings() -> str:
    """All besides the launch and its kernel that an answer depends on."""
    return _sha256(version("triton"), os.environ.get("TRITON_DEBUG", ""),
                   sources_sha256(_PACKAGES))


def _sha256(*parts: Any) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
