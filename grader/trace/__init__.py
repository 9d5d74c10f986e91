"""TRACE: what `tritonlab trace` draws of one case."""

from grader.trace.traced_case import (
    Mark,
    NoSuchProgram,
    NotTraceable,
    TracedCase,
    is_traceable,
    trace,
)

__all__ = ["Mark", "NoSuchProgram", "NotTraceable", "TracedCase", "is_traceable", "trace"]
