"""Plain values as JSON: arguments and answers of calls of host code."""

import dataclasses
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

MAX_ITEMS = 20_000  # of one answer, those inside others included
MAX_DEPTH = 12
MAX_TEXT = 1 << 20  # characters of a text


class NotPlain(ValueError):
    """A value of a type that does not cross, or too many values."""


class Fields(SimpleNamespace):
    """An instance of a dataclass of the worker: the class's name in ``type``, and its fields."""

    def __init__(self, type_: str, fields: dict[str, Any]) -> None:
        super().__init__(**fields, type=type_)

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={value!r}" for name, value in vars(self).items()
                           if name != "type")
        return f"{self.type}({inside})"


def to_json(value: Any) -> Any:
    """Encodes None, booleans, numbers, texts, lists, tuples, dicts by text, and dataclasses.

    Raises:
        NotPlain: the value holds something else, or too much.
    """
    return _to_json(value, iter(range(MAX_ITEMS)), 0, "")


def _to_json(value: Any, count: Iterator[int], depth: int, where: str) -> Any:
    if depth > MAX_DEPTH or next(count, None) is None:
        raise NotPlain(f"more than {MAX_ITEMS} values, or nested {MAX_DEPTH} times")
    kind = type(value)
    if value is None or kind is bool:
        return value
    if issubclass(kind, int):
        return {"int": str(int(value))}
    if issubclass(kind, float):
        return {"float": float(value).hex()}
    if issubclass(kind, str):
        if len(value) > MAX_TEXT:
            raise NotPlain(f"a text of more than {MAX_TEXT} characters")
        return str(value)
    if issubclass(kind, tuple | list):
        name = "tuple" if issubclass(kind, tuple) else "list"
        return {name: [_to_json(item, count, depth + 1, where) for item in value]}
    if issubclass(kind, dict):
        if not all(isinstance(key, str) for key in value):
            raise NotPlain("a dict with keys that are no texts")
        return {"dict": {str(key): _to_json(item, count, depth + 1, f"{key!r:.60} holds ")
                         for key, item in value.items()}}
    if dataclasses.is_dataclass(value):
        return {"fields": [kind.__name__, {
            field.name: _to_json(getattr(value, field.name), count, depth + 1,
                                 f"field `{field.name}` holds ")
            for field in dataclasses.fields(value)}]}
    raise NotPlain(f"{where}a {kind.__name__}")


def from_json(data: Any) -> Any:
    """Decodes a value, and checks what the worker sent.

    Raises:
        NotPlain: it has another form, or is too large.
    """
    return _from_json(data, iter(range(MAX_ITEMS)), 0)


def _from_json(data: Any, count: Iterator[int], depth: int) -> Any:
    if depth > MAX_DEPTH or next(count, None) is None:
        raise NotPlain("too many values")
    if data is None or isinstance(data, bool | str):
        return data
    if not isinstance(data, dict) or len(data) != 1:
        raise NotPlain("a value of an unknown form")
    [(kind, inside)] = data.items()
    try:
        match kind, inside:
            case "int", str() if len(inside) <= 4096:
                return int(inside)
            case "float", str():
                return float.fromhex(inside)
            case "list" | "tuple", list():
                items = [_from_json(item, count, depth + 1) for item in inside]
                return tuple(items) if kind == "tuple" else items
            case "dict", dict():
                return {key: _from_json(item, count, depth + 1) for key, item in inside.items()}
            case "fields", [str() as name, dict() as fields] if "type" not in fields:
                return Fields(name, {key: _from_json(item, count, depth + 1)
                                     for key, item in fields.items()})
    except (ValueError, OverflowError) as error:
        raise NotPlain(f"a number that does not parse: {error}") from error
    raise NotPlain("a value of an unknown form")
