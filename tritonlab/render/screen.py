"""The screen: styled, wrapped lines on a terminal, bare lines in plain mode."""

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Self, TextIO

from rich.console import Console, RenderableType
from rich.text import Text
from rich.theme import Theme

from tritonlab.errors import silence_broken_pipe

Part = str | tuple[str, str]  # words, or words with a style

WIDEST = 100
_LEAST_ROOM = 12  # columns for words beside others; with less they stand below each other
_LEAST_PROSE = 20  # columns for a paragraph beside its lead
_BELOW = 4  # columns before a paragraph that stands below its lead
STYLES = {"pass": "green", "fail": "bold red", "skip": "yellow", "wait": "dim", "dim": "dim",
          "strong": "bold", "command": "bold cyan", "note": "cyan"}
WORDS = {"PASSED": "PASS", "FAILED": "FAIL", "SKIPPED": "SKIP", "ERROR": "ERROR",
         "INCONCLUSIVE": "NOISY"}
WORD_STYLES = {"PASS": "pass", "FAIL": "fail", "SKIP": "skip", "ERROR": "fail", "NOISY": "skip",
               "OPEN": "skip", "NOTE": "skip", "WAIT": "wait"}


class Screen:
    """The output of a command. Color only repeats what words say.

    ``plain`` prints one fact a line: no wrapping, indentation or color, and callers leave tables
    out. Control characters, which a learner's text may hold, are never passed on.
    """

    def __init__(self, stream: TextIO | None = None, *, plain: bool = False,
                 width: int | None = None, terminal: bool | None = None) -> None:
        self.stream = stream or sys.stdout
        self.plain = plain
        self._console = Console(file=self.stream, width=width, highlight=False, markup=False,
                                emoji=False, force_terminal=terminal,
                                force_jupyter=False)  # it would print beside the stream
        self.full_width = self._console.width  # for tables; prose is easier to read below WIDEST
        self.width = min(self.full_width, WIDEST)
        self.is_terminal = self._console.is_terminal
        self.color = self._console.color_system is not None and not self._console.no_color
        self.live = not (plain or self.stream.closed or in_notebook()
                         or self._console.is_dumb_terminal) and self.stream.isatty()

    def line(self, *parts: Part, lead: Sequence[Part] = ()) -> None:
        """Prints a paragraph; ``lead`` stands before its first line and indents the others.

        Where that leaves no room for the words, they stand below it.
        """
        if self.plain:
            self.text(" ".join(_plain((*lead, *parts)).split()) + "\n")
            return
        head = _text(lead)
        if self.width - head.cell_len < _LEAST_PROSE:
            self._wrap(Text(), head, self.width)
            head = Text(" " * _BELOW)
        self._wrap(head, _text(parts), max(self.width - head.cell_len, _LEAST_PROSE))

    def pair(self, left: Sequence[Part], right: Part, *, indent: int = 0,
             lead: Sequence[Part] = ()) -> None:
        """Prints words on the left and one at the right edge (beside them in plain mode).

        Where the left does not fit beside the right it wraps, below what follows ``lead``.
        """
        if self.plain:
            self.line(*lead, *left, ": ", right)
            return
        head, tail = Text(" " * indent) + _text(lead), _text((right,))
        room = self.width - head.cell_len - tail.cell_len - 2
        if room < _LEAST_ROOM:
            self.line(*lead, *left, lead=(" " * indent,))
            self.line(right, lead=(" " * indent,))
            return
        self._wrap(head, _text(left), room, tail)

    def quote(self, lines: Sequence[str], *, indent: int) -> None:
        """Prints code; long lines are cut, so that a caret stays below its column."""
        for line in lines:
            if not self.plain:
                room = max(self.width - indent, 1)
                cut = f"{line[:room - 1]}…" if len(line) > room else line
                self._print(_text((" " * indent, cut)))
            elif line.strip("^ "):  # where the caret points is in the sentence before
                self.text(clean(line) + "\n")

    def row(self, *parts: Part) -> None:
        """Prints a line without wrapping or cutting it."""
        text = _text(parts)
        text.rstrip()
        self._print(text)

    def rows(self, rows: Iterable[Sequence[Part]]) -> None:
        """Prints many lines as ``row`` does, at once."""
        if self.color:
            self._print(Text("\n").join(_text(parts) for parts in rows))
        else:
            self.text("".join(f"{_plain(parts).rstrip()}\n" for parts in rows))

    def rendered(self, text: RenderableType, styles: Mapping[str, str]) -> str:
        """Renders a rich object as text, with additional styles."""
        with self._console.use_theme(Theme(styles)), self._console.capture() as captured:
            self._console.print(text, width=self.width, crop=False)
        return "\n".join(line.rstrip() for line in captured.get().split("\n"))

    def verdict(self, verdict: str) -> tuple[Part, ...]:
        """A verdict as the lead of a line."""
        return "  ", word(verdict), " "

    def facts(self, name: str, *facts: str | None) -> None:
        """Prints facts below a verdict; in plain mode each names what it belongs to."""
        for fact in filter(None, facts):
            self.line((fact, "dim"), lead=(f"{name}: " if self.plain else " " * 8,))

    def label(self, label: str, indent: int = 2, width: int = 8) -> str:
        """The lead of a paragraph that begins with a label."""
        return f"{label}: " if self.plain else f"{' ' * indent}{label:<{width}}"

    def heading(self, title: str, more: str = "") -> None:
        """A heading, which plain mode does without."""
        if not self.plain:
            self.blank()
            self.line((title, "strong"), (f"  {more}" if more else "", "dim"))

    def blank(self) -> None:
        if not self.plain:
            self.text("\n")

    def command(self, command: str, lead: str) -> None:
        """Prints a command on one line, so that it can be copied."""
        if self.plain:
            self.line(lead, command)
        else:
            self._print(_text((lead, (command, "command"))))

    def next(self, command: str, before: str) -> None:
        """Prints the next command on one line, below ``before`` where both do not fit."""
        if not self.plain and len(before) + len(command) > self.width:
            self.line(before)
            before = "  "
        self.command(command, before)

    def status(self, text: str) -> None:
        """Writes over the last line of a terminal."""
        if self.live:
            self.stream.write(text)
            self.stream.flush()

    def _wrap(self, head: Text, body: Text, room: int, tail: Text | None = None) -> None:
        """Prints text wrapped behind ``head``, and ``tail`` at the end of its first line."""
        for row in body.wrap(self._console, room) or [Text()]:
            row.rstrip()
            if tail:
                row.pad_right(room + 2 - row.cell_len)
                row += tail
            self._print(head + row)
            head, tail = Text(" " * head.cell_len), None

    def _print(self, text: Text) -> None:
        with self._console.capture() as captured:
            self._console.print(text, soft_wrap=True)
        self.text(captured.get())

    def text(self, text: str) -> None:
        """Prints rendered text."""
        try:
            self.stream.write(text)
            self.stream.flush()
        except BrokenPipeError:
            silence_broken_pipe()


class Progress:
    """A status line on a terminal, erased at the end."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._done = 0

    def __enter__(self) -> Self:
        self("starting the grader")
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def __call__(self, event: object) -> None:
        """Shows an activity; counts results."""
        if isinstance(event, str):
            done = f"{self._done} done · " if self._done else ""
            self._put(clean(f"  {done}{event} …"))
        else:
            self._done += 1

    def clear(self) -> None:
        """Erases the line before other output."""
        self._done = 0
        self._put("")

    def _put(self, text: str) -> None:
        self._screen.status("\r\x1b[2K" + text[: self._screen.width - 1])


def in_notebook() -> bool:
    """Whether a notebook started this process; its kernel sets these variables.

    A cell's `!command` gets a pseudo-terminal that shows every redrawn line and takes no keys.
    """
    return "JPY_PARENT_PID" in os.environ or (
        os.environ.get("GIT_PAGER") == "cat" and "CLICOLOR_FORCE" in os.environ)


def clean(text: str) -> str:
    """The text without control characters; line ends and tabs become spaces."""
    if text.isprintable():
        return text
    return "".join(" " if c in "\n\t\r" else c if c.isprintable() else "·" for c in text)


def cropped(text: str, room: int) -> str:
    """The text if it fits, else its beginning and an ellipsis."""
    return text if len(text) <= room else text[: room - 1] + "…"


def word(verdict: str) -> tuple[str, str]:
    """A verdict as a word of one width, with its style."""
    text = WORDS.get(verdict, verdict)
    return (f"{text:<5}", WORD_STYLES.get(text, ""))


def padded(rows: Sequence[Sequence[str]], align: str, gap: str = "") -> list[list[str]]:
    """Pads the cells of a table as ``align`` says (< or > a column), and adds ``gap`` to each."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [[f"{cell:{side}{width}}{gap}"
             for cell, side, width in zip(row, align, widths, strict=True)] for row in rows]


def _plain(parts: Sequence[Part]) -> str:
    return clean("".join([part if isinstance(part, str) else part[0] for part in parts]))


def _text(parts: Sequence[Part]) -> Text:
    pairs = ((part, "") if isinstance(part, str) else part for part in parts)
    return Text.assemble(*((clean(words), STYLES.get(style, "")) for words, style in pairs))
