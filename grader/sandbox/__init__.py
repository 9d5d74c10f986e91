"""Process isolation: a warm zygote, a fork per grade, resource limits, framed messages."""

from __future__ import annotations

from grader.sandbox.child_client import Child
from grader.sandbox.client import Sandbox
from grader.sandbox.confinement import Isolation, Measure
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
from grader.sandbox.handlers import Handlers
from grader.sandbox.limits import ResourceLimits, Role

__all__ = [
    "Cancelled",
    "Child",
    "ChildDied",
    "ChildError",
    "ChildOutOfMemory",
    "ChildTimedOut",
    "Handlers",
    "Isolation",
    "MalformedReply",
    "Measure",
    "NotStarted",
    "ResourceLimits",
    "Role",
    "Sandbox",
    "SandboxBroken",
]
