"""A lesson in the terminal, and the pager that shows it."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown
from rich.syntax import Syntax
from rich.text import Text

from tritonlab.errors import shown
from tritonlab.render.lesson_text import displayed
from tritonlab.render.screen import Screen

_INDENT = 2  # columns before code and diagrams; these have at most 78
_THEME = "ansi_dark"  # the terminal's own colors, which fit its background
_LESS = "FRSX"  # leave where all fits, keep colors, never wrap a line, leave the text on screen
_STYLES = {"markdown.code": "cyan", **{f"markdown.h{level}": "bold" for level in range(1, 7)}}


class _Block(CodeBlock):
    """A code block, highlighted unless it is a diagram; never wrapped or cut."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = str(self.text).rstrip().expandtabs(4)
        text = Text(code) if self.lexer_name in ("", "text") else Syntax(
            code, self.lexer_name, theme=_THEME, background_color="default").highlight(code)
        text.rstrip()
        for line in text.split("\n"):
            line.pad_left(_INDENT)
            line.no_wrap, line.overflow = True, "ignore"
            yield line


class _Heading(Heading):
    """A left-aligned heading that keeps its number signs, for terminals without color."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        level = int(self.tag.removeprefix("h"))
        self.text.justify = "left"
        yield Text("#" * level + " ", "dim") + self.text


class _Markdown(Markdown):
    """Markdown as lessons use it."""

    elements = {**Markdown.elements, "fence": _Block, "code_block": _Block,  # noqa: RUF012
                "heading_open": _Heading}


def rendered(screen: Screen, text: str) -> str:
    """Renders a lesson for the terminal."""
    return screen.rendered(_Markdown(displayed(text), hyperlinks=False), _STYLES)


def show(screen: Screen, name: str, text: str, page: Path | None, *, paged: bool) -> None:
    """Prints a lesson, a screen at a time if wanted, or where its page is."""
    if page:
        screen.line(f"The page of {name} is in {shown(page.absolute())}.")
    elif screen.plain:
        screen.text(text.rstrip() + "\n\n")
    else:
        lesson = rendered(screen, text)
        if not (paged and screen.live and in_pager(lesson)):
            screen.text(lesson + "\n")


def in_pager(text: str) -> bool:
    """Shows text in ``$PAGER`` or less; returns False if neither starts."""
    try:
        command = shlex.split(os.environ.get("PAGER", "less"))
    except ValueError:
        return False
    if not command or shutil.which(command[0]) is None or os.environ.get("TERM") == "dumb":
        return False
    environment = {"LESS": _LESS, "LESSCHARSET": "utf-8", **os.environ}
    sys.stdout.flush()
    before = signal.signal(signal.SIGINT, lambda *_: None)  # Ctrl-C is the pager's to answer
    try:
        with subprocess.Popen(command, stdin=subprocess.PIPE, env=environment,
                              encoding="utf-8", errors="replace") as reader:
            reader.communicate(text)
    except OSError:
        return False
    finally:
        signal.signal(signal.SIGINT, before)
    return True
