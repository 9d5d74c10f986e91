"""Reads the YAML that workflows are written in, and says what is wrong where it is none.

That is mappings and lists by indentation, text in and without quotes, lists and mappings in
brackets, and blocks of text. Anchors, tags and several documents in a file are refused by name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

_KEY = re.compile(
    r"""(?P<key>"[^"]*"|'[^']*'|[^\s\[\]{}#&*!|>'"%@`,?-][^#]*?|-[^\s#][^#]*?):(?=\s|$)""")
_MOST = 20_000  # characters; no workflow of one package has as many
_BLOCK = re.compile(r"[|>][+-]?\d?[+-]?$")
_NUMBER = re.compile(r"[-+]?\d+$")


class NotYaml(ValueError):
    """What is wrong, with the line."""


@dataclass
class _Line:
    number: int
    indent: int
    text: str


def read(text: str) -> Any:
    """The value: dicts, lists, text, whole numbers, booleans and None.

    Raises:
        NotYaml: it is none, or uses a form that is not read here.
    """
    if len(text) > _MOST:
        raise NotYaml(f"it has more than {_MOST:,} characters")
    try:
        return _Reader(text).whole()
    except RecursionError:
        raise NotYaml("it is nested too deeply") from None


class _Reader:
    def __init__(self, text: str) -> None:
        self._raw = text.split("\n")
        self._lines = [line for number, raw in enumerate(self._raw, 1)
                       if (line := _line(number, raw)) is not None]
        if self._lines and self._lines[0].text == "---":
            del self._lines[0]
        self._at = 0

    def whole(self) -> Any:
        if not self._lines:
            return None
        value = self._block(self._lines[0].indent)
        if self._at < len(self._lines):
            raise _wrong(self._lines[self._at], "its indentation belongs to nothing above it")
        return value

    def _peek(self) -> _Line | None:
        return self._lines[self._at] if self._at < len(self._lines) else None

    def _block(self, indent: int) -> Any:
        line = self._lines[self._at]
        if line.text == "-" or line.text.startswith("- "):
            return self._list(indent)
        if _KEY.match(line.text):
            return self._mapping(indent)
        self._at += 1
        return self._scalar(line, line.text, indent - 1)

    def _list(self, indent: int) -> list[Any]:
        items = []
        while (line := self._peek()) and line.indent == indent and (
                line.text == "-" or line.text.startswith("- ")):
            rest = line.text[1:].lstrip()
            if rest:
                inner = indent + len(line.text) - len(rest)
                self._lines[self._at] = _Line(line.number, inner, rest)
                items.append(self._block(inner))
            else:
                self._at += 1
                items.append(self._below(indent))
        if line is not None and line.indent > indent:
            raise _wrong(line, "it is indented more than the list above it")
        return items

    def _mapping(self, indent: int) -> dict[str, Any]:
        made: dict[str, Any] = {}
        while (line := self._peek()) and line.indent == indent:
            match = _KEY.match(line.text)
            if match is None:
                raise _wrong(line, "a key with a colon is expected here")
            key = match["key"].strip().strip("\"'")
            if key in made:
                raise _wrong(line, f"the key `{key}` stands there twice")
            self._at += 1
            rest = line.text[match.end():].strip()
            made[key] = self._scalar(line, rest, indent) if rest else self._below(indent, True)
        if line is not None and line.indent > indent:
            raise _wrong(line, "it is indented more than the keys above it")
        return made

    def _below(self, indent: int, lists_too: bool = False) -> Any:
        """What stands under a key or a dash; a list may have the indentation of its key."""
        line = self._peek()
        if line is None:
            return None
        is_list = line.text == "-" or line.text.startswith("- ")
        if line.indent > indent or (lists_too and is_list and line.indent == indent):
            return self._block(line.indent)
        return None

    def _scalar(self, line: _Line, text: str, indent: int) -> Any:
        if _BLOCK.match(text):
            return self._text_block(line, indent, folded=text[0] == ">")
        if text[0] in "[{":
            while not _closed(text) and (more := self._peek()):
                text += " " + more.text
                self._at += 1
            value, rest = _flow(line, text)
            if rest.strip():
                raise _wrong(line, f"`{rest.strip():.20}` follows a bracket that is closed")
            return value
        while (more := self._peek()) and more.indent > indent and text[0] not in "\"'":
            text += " " + more.text  # text without quotes may go on in the next line
            self._at += 1
            if _KEY.match(more.text):
                raise _wrong(more, "a key stands inside of text")
        return _plain(line, text)

    def _text_block(self, line: _Line, indent: int, *, folded: bool) -> str:
        kept = []
        number = line.number
        while number < len(self._raw):
            raw = self._raw[number]
            if raw.strip() and len(raw) - len(raw.lstrip(" ")) <= indent:
                break
            kept.append(raw.strip())
            number += 1
        while (more := self._peek()) and more.number <= number:
            self._at += 1
        return (" " if folded else "\n").join(kept).strip() + "\n"


def _line(number: int, raw: str) -> _Line | None:
    text = raw.strip(" \r")
    indent = len(raw) - len(raw.lstrip(" "))
    if "\t" in raw[:len(raw) - len(raw.lstrip())]:
        raise NotYaml(f"line {number}: a tab indents it; YAML is indented by spaces")
    if not text or text.startswith("#"):
        return None
    return _Line(number, indent, _without_comment(text))


def _without_comment(text: str) -> str:
    quote = ""
    for place, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'" and (place == 0 or text[place - 1] in " [{,:"):
            quote = letter
        elif letter == "#" and text[place - 1] == " ":
            return text[:place].rstrip()
    return text


def _closed(text: str) -> bool:
    return sum(text.count(c) for c in "[{") <= sum(text.count(c) for c in "]}")


def _flow(line: _Line, text: str) -> tuple[Any, str]:
    """A value in brackets, or a part of one; and what follows it."""
    text = text.lstrip()
    if text[:1] == "[":
        items, text = [], text[1:].lstrip()
        while text[:1] != "]":
            item, text = _flow(line, text)
            items.append(item)
            text = _after_item(line, text, "]")
        return items, text[1:]
    if text[:1] == "{":
        made, text = {}, text[1:].lstrip()
        while text[:1] != "}":
            key, text = _flow(line, text)
            text = text.lstrip()
            if text[:1] == ":":
                made[str(key)], text = _flow(line, text[1:])
            else:
                made[str(key)] = None
            text = _after_item(line, text, "}")
        return made, text[1:]
    match = re.match(r"""\s*("[^"]*"|'[^']*'|[^,\[\]{}:]+(?::(?!\s)[^,\[\]{}:]*)*)""", text)
    if match is None:
        raise _wrong(line, "a bracket is not closed")
    return _plain(line, match[1].strip()), text[match.end():]


def _after_item(line: _Line, text: str, end: str) -> str:
    text = text.lstrip()
    if text[:1] == ",":
        return text[1:].lstrip()
    if text[:1] != end:
        raise _wrong(line, f"`{end}` or a comma is expected")
    return text


def _plain(line: _Line, text: str) -> Any:
    if text[0] in "\"'":
        if len(text) < 2 or text[-1] != text[0]:
            raise _wrong(line, "a quotation mark is not closed")
        return text[1:-1]
    if text[0] in "&*!":
        raise _wrong(line, f"`{text:.20}` is an anchor, an alias or a tag, which is not read here")
    if text[0] in "%@`" or ": " in text:
        raise _wrong(line, f"`{text:.40}` needs quotation marks")
    if text in ("true", "True", "false", "False"):
        return text.lower() == "true"
    if text in ("null", "~"):
        return None
    return int(text) if _NUMBER.match(text) else text


def _wrong(line: _Line, why: str) -> NotYaml:
    return NotYaml(f"line {line.number}: {why}")
