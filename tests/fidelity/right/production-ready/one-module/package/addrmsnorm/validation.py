"""Checks live beside the function, in api.py; this module keeps their old address."""

from __future__ import annotations

from addrmsnorm.errors import InputTypeError, InputValidationError

__all__ = ["InputTypeError", "InputValidationError"]
