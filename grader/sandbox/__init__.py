"""The process side: a warm zygote, a fork per grade, limits, and messages that are only data."""

from __future__ import annotations

from grader.sandbox.client import Sandbox
from grader.sandbox.confinement import Isolation, Measure
from grader.sandbox.conversation import Child
from grader.sandbox.errors import (
    Cancelled,
    ChildDied,
    ChildError,
    ChildOutOfMemory,
    ChildTimedOut,
    MalformedReply,
    NotStarted,
    SandboxBroken,
)
from grader.sandbox.limits import Limits, Role

__all__ = [
    "Cancelled",
    "Child",
    "ChildDied",
    "ChildError",
    "ChildOutOfMemory",
    "ChildTimedOut",
    "Isolation",
    "Limits",
    "MalformedReply",
    "Measure",
    "NotStarted",
    "Role",
    "Sandbox",
    "SandboxBroken",
]
