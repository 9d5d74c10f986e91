"""Skips runs that equal those of the last grade that passed.

A run is equal to another if the same case launches the same kernels with the same arguments, on
tensors of the same shapes. Only the random values differ.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from grader.processes.launch_cache import launched_code, without_lines
from grader.processes.pool import Later
from grader.processes.replies import Run
from grader.recording.model import Recording, dtype_name, to_json
from grader.submission.source import Source
from grader.suite import Case, Suite

_PASSED_BEFORE = Run((), (), passed_before=True)


@dataclass
class PassedRuns:
    """The keys of the runs of the last grade that passed.

    Runs of a grade that fails do not count: kernels that are right now and then would pass case by
    case, in several grades.
    """

    keys: frozenset[str] = frozenset()


class GradeRuns:
    """The runs of one grade; those that passed before are skipped."""

    def __init__(self, submitted: Source, suite: Suite, passed: PassedRuns) -> None:
        """Nothing is run yet; ``passed`` changes only if ``keep`` is called."""
        self._submitted, self._suite, self._passed = submitted, suite, passed
        self._keys: set[str] = set()

    def begin(self, case: Case, recording: Recording, inputs: Sequence[Any],
              begin: Callable[[], Later[Run]]) -> Later[Run]:
        """Begins a run by ``begin``, unless an equal one passed before."""
        key = self._key(case, recording, inputs)
        if key:
            self._keys.add(key)
        return (lambda: _PASSED_BEFORE) if key in self._passed.keys else begin()

    def keep(self) -> None:
        """Keeps the runs of this grade, which passed, in place of those before."""
        self._passed.keys = frozenset(self._keys)

    def _key(self, case: Case, recording: Recording, inputs: Sequence[Any]) -> str:
        """Returns the key of a run; empty for cases that always run, and for unclear kernels."""
        if case.limits is not None or case.advisory:
            return ""
        kernels = [launched_code(self._submitted.text, launch) for launch in recording.launches]
        digests = [kernel.sha256 for kernel in kernels if kernel]
        if not kernels or None in kernels:
            return ""
        parts = (self._suite.sha256, case.function, case.name, list(map(_outline, inputs)),
                 digests, to_json(without_lines(recording)))
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _outline(value: Any) -> Any:
    """An input without random values."""
    if isinstance(value, torch.Tensor):
        return dtype_name(value), list(value.shape), list(value.stride())
    return repr(value)
