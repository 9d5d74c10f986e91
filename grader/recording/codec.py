"""Typed values to and from JSON; what an untrusted process sent is checked as it is read."""

from dataclasses import dataclass, fields
from operator import index
from typing import Annotated, Any, Self

import msgspec
from msgspec import Meta

Count = Annotated[int, Meta(ge=0)]
WHOLE = r"\A[^\ud800-\udfff]*\Z"
"""Pattern of a text without halves of characters (surrogates): no file can be written with one."""
_LONGEST_ERROR = 200  # characters; it may quote what was sent


def convert(data: Any, form: Any, title: str) -> Any:
    """Converts JSON to a type, whose annotations hold the limits.

    Raises:
        ValueError: it has another form; the message begins with ``title``.
    """
    try:
        return msgspec.convert(data, form, str_keys=True)
    except ValueError as error:
        raise ValueError(f"{title}: {error}"[:_LONGEST_ERROR]) from None


class JsonArray(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A value that is a list in JSON."""


@dataclass(frozen=True)
class JsonObject:
    """A value that is an object in JSON, with exactly the fields of its dataclass."""

    @classmethod
    def from_dict(cls, data: Any) -> Self:
        """Reads what an untrusted process sent.

        Raises:
            ValueError: it has another form, or a number out of its range.
        """
        if not isinstance(data, dict) or data.keys() != {field.name for field in fields(cls)}:
            raise ValueError(f"{cls.__name__} is an object with certain names")
        value: Self = convert(data, cls, cls.__name__)
        return value

    def to_dict(self) -> dict[str, Any]:
        """Returns what ``from_dict`` reads, fit for JSON."""
        values: dict[str, Any] = msgspec.to_builtins(self, str_keys=True, enc_hook=_plain)
        return values


def _plain(value: Any) -> str | int | float:
    """Returns a number of NumPy's, or a version of torch's, as a value of Python's own types."""
    if isinstance(value, str):
        return str.__str__(value)
    return float(value) if isinstance(value, float) else index(value)
