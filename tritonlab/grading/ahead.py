"""Starts the grader's processes before the command line is read: they take longest to start."""

from __future__ import annotations

import atexit
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from grader.sandbox import Sandbox

_begun: list[Sandbox] = []


def start() -> None:
    """Starts a sandbox, which ends with this process; what fails here fails again where it counts.

    Only light modules are imported.
    """
    from grader.processes.sandbox import GradingSandbox
    from grader.sandbox import SandboxBroken

    with suppress(OSError, SandboxBroken):
        _begun.append(sandbox := GradingSandbox())
        atexit.register(sandbox.close)


def take() -> Sandbox | None:
    """The sandbox that was started, once; it is then the caller's to close."""
    return _begun.pop() if _begun else None
