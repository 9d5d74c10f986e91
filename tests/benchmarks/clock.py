"""Times on a GPU, by the grader's own clock."""

from __future__ import annotations

from grader.engine.gpu.clock import milliseconds

__all__ = ["milliseconds"]
