"""TRACE: what `tritonlab trace` draws of one case."""

from grader.trace.trace import Mark, TracedCase, trace

__all__ = ["Mark", "TracedCase", "trace"]
