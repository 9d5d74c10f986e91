"""Compiled code of launches, kept between grades by all that the code depends on."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib.metadata import version
from typing import Any

from msgspec import structs

from grader.engine.compiler.targets import Target
from grader.processes.cache import Cache, sources_sha256
from grader.recording.compiled_kernel import Binary
from grader.recording.launch_stats import Survey
from grader.recording.model import Launch, Recording
from grader.recording.specialization import specialization
from grader.submission.kernel_digest import KernelCode, kernel_code

Json = dict[str, Any]

_PACKAGES = ("engine/compiler", "executor", "recording")  # whose code makes the answers
_WITH_LINES = ("accesses", "products", "loop_shuffles")  # rows of a binary that begin with a line


@dataclass(frozen=True)
class _Entry:
    key: str
    code: KernelCode


class CompileCache:
    """What the compiler answered about the launches of one file, and of files like it.

    Only the judge writes it, from answers of the sandboxed compiler. Refusals are not kept: the
    compiler words them anew, with the lines and the code of this very file.
    """

    def __init__(self, text: str, *, disk: Callable[[], bool]) -> None:
        """Reads nothing yet.

        Args:
            text: of the file that holds the kernels.
            disk: whether the sandbox keeps the learner's code from the disk; without, nothing is
                kept.
        """
        self._text = text
        self._disk = disk
        self._cache = Cache("compiled")

    def read(self, launch: Launch, target: Target, *, whole: bool) -> Json | None:
        """Returns the compiler's answer about a launch, with the lines of this file; else None.

        Args:
            whole: only with a binary, not where the front end alone accepted the launch.
        """
        entry = self._entry(launch, target)
        if entry is None or (answer := self._cache.read(entry.key)) is None:
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
        if not answer and self._cache.read(entry.key) is not None:
            return
        index = {line: number for number, line in enumerate(entry.code.lines)}
        try:
            self._cache.write(entry.key, _moved(answer, index.__getitem__))
        except KeyError:  # a line that holds no code of the kernel
            return

    def read_times(self, recording: Recording, surveys: Sequence[Survey | None],
                   target: Target) -> Any:
        """Returns the compiler's reply about the time of launches with this traffic; else None."""
        key = self._times_key(recording, surveys, target)
        return self._cache.read(key) if key else None

    def write_times(self, recording: Recording, surveys: Sequence[Survey | None], target: Target,
                    reply: Json) -> None:
        """Keeps a reply about times."""
        if key := self._times_key(recording, surveys, target):
            self._cache.write(key, reply)

    def _times_key(self, recording: Recording, surveys: Sequence[Survey | None],
                   target: Target) -> str:
        """The key of a prediction; empty where it must not be kept."""
        parts = []
        for launch, survey in zip(recording.launches, surveys, strict=True):
            entry = self._entry(launch, target)
            if entry is None or (survey and not _lines(survey) <= {*entry.code.lines}):
                return ""
            index = entry.code.lines.index
            parts.append([entry.key, survey and replace(
                survey, traffic=tuple(structs.replace(row, line=row.line and index(row.line))
                                      for row in survey.traffic),
                executions={index(line): n for line, n in survey.executions.items()}).to_dict()])
        return _sha256("times", parts)

    def _entry(self, launch: Launch, target: Target) -> _Entry | None:
        """The key of a launch; None where it cannot be named or must not be kept."""
        code = kernel_code(self._text, launch.kernel,
                           frozenset(_functions(launch.arguments.values())))
        if code is None or not self._disk():
            return None
        kind, form = specialization(launch, code.constants)
        return _Entry(_sha256(code.sha256, repr(kind), form.sizes, form.details, asdict(target),
                              _surroundings()), code)


def _functions(arguments: Any) -> list[str]:
    """The kernels among the arguments of a launch."""
    names = []
    for argument in arguments:
        if argument.kind == "function":
            names.append(argument.value)
        elif argument.kind == "tuple":
            names += _functions(argument.value)
    return names


def _lines(survey: Survey) -> set[int]:
    return {*filter(None, (row.line for row in survey.traffic)), *survey.executions}


def _moved(answer: Json, place: Callable[[int], int]) -> Json:
    """The answer with each line replaced.

    Raises:
        LookupError: there is no other for one.
    """
    if not answer:
        return {}
    binary = dict(answer["binary"])
    for name in _WITH_LINES:
        binary[name] = [[line and place(line), *rest] for line, *rest in binary[name]]
    return {"binary": binary}


@cache
def _surroundings() -> str:
    """All besides the launch and its kernel that an answer depends on."""
    return _sha256(version("triton"), os.environ.get("TRITON_DEBUG", ""),
                   sources_sha256(_PACKAGES))


def _sha256(*parts: Any) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
