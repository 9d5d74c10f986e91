"""Exceptions of the sandbox and of its children."""


class SandboxBroken(RuntimeError):
    """The zygote is gone; that says nothing about the kernel."""


class Cancelled(BaseException):
    """The work was cancelled. Not an Exception, so that it never becomes a verdict."""


class ChildError(Exception):
    """A child did not reply. ``line`` is its line in the learner's file, if known."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


class ChildTimedOut(ChildError):
    """The child exceeded its time limit and was killed. ``held``: bytes of memory it had taken."""

    def __init__(self, timeout_s: float, line: int | None = None, held: int = 0) -> None:
        super().__init__(f"no answer within {timeout_s:g} s", line)
        self.held = held


class ChildDied(ChildError):
    """The child ended. The message is "killed by SIGSEGV" or "exited with status 0"."""


class NotStarted(ChildError):
    """The child ended during an earlier request, before it came to this one."""

    def __init__(self) -> None:
        super().__init__("the process ended before it came to this")


class ChildOutOfMemory(ChildError):
    """The child and its descendants exceeded the memory limit and were killed."""

    def __init__(self, resident: int, limit: int, line: int | None = None) -> None:
        super().__init__(f"{resident / 1e9:.1f} GB of memory, limit {limit / 1e9:.1f} GB", line)
        self.resident = resident
        self.limit = limit


class MalformedReply(ChildError):
    """The child sent something that is not a reply; the message describes it."""
