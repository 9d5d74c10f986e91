"""What can go wrong with a child, each as an exception of its own."""

from __future__ import annotations


class SandboxBroken(RuntimeError):
    """The grader's own helper process is gone; nothing is known of the kernel."""


class Cancelled(BaseException):
    """Nobody wants the result any more. No Exception, as no verdict may be made of it."""


class ChildError(Exception):
    """A child gave no answer. ``line`` is where in the learner's file it was, if known."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


class ChildTimedOut(ChildError):
    """The child did not answer in time and was killed. ``held`` is how many bytes it had taken."""

    def __init__(self, timeout_s: float, line: int | None = None, held: int = 0) -> None:
        super().__init__(f"no answer within {timeout_s:g} s", line)
        self.timeout_s = timeout_s
        self.held = held


class ChildDied(ChildError):
    """The child ended by itself. ``how`` is "killed by SIGSEGV" or "exited with status 0"."""

    def __init__(self, how: str, line: int | None = None) -> None:
        super().__init__(how, line)
        self.how = how


class NotStarted(ChildError):
    """The child ended over an earlier request; nothing is known of this one."""

    def __init__(self) -> None:
        super().__init__("the process ended before it came to this")


class ChildOutOfMemory(ChildError):
    """The child and its descendants held ``resident`` bytes, too many, and were killed."""

    def __init__(self, resident: int, limit: int, line: int | None = None) -> None:
        super().__init__(f"{resident / 1e9:.1f} GB of memory, limit {limit / 1e9:.1f} GB", line)
        self.resident = resident
        self.limit = limit


class MalformedReply(ChildError):
    """What the child sent is no reply. ``why`` says what is wrong with it."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why
