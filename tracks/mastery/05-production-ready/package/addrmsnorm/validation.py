"""Argument checks: all problems at once, before anything is allocated."""

from __future__ import annotations

from typing import Any


def check_arguments(x: Any, residual: Any, weight: Any, eps: Any, max_columns: int,
                    *, wrong_config: str = "") -> None:
    """Which arguments are rejected, and with which exception."""
    ...
