"""A lesson in the terminal, and as a page for a browser."""

from __future__ import annotations

import functools

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup, escape
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown
from rich.syntax import Syntax
from rich.text import Text

from tritonlab.course.course import Module
from tritonlab.render import highlight
from tritonlab.render.screen import Screen

_INDENT = 2  # columns before code and diagrams; these have at most 78
_THEME = "ansi_dark"  # the terminal's own colours, which fit its background
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
    """A left-aligned heading that keeps its number signs, for terminals without colour."""

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
    return screen.rendered(_Markdown(text, hyperlinks=False), _STYLES)


def page(module: Module, text: str) -> str:
    """The self-contained page of a lesson."""
    from tritonlab.render.html import template  # loads jinja2, which the terminal does without

    return template("lesson.html").render(module=module, body=Markup(_html().render(text)))


@functools.cache
def _html() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.add_render_rule("fence", _fence)
    parser.add_render_rule("table_open", _scrolling)
    parser.add_render_rule("table_close", _scrolled)
    return parser


def _fence(_: object, tokens: list[Token], index: int, *__: object) -> str:
    token = tokens[index]
    code = token.content.rstrip("\n").expandtabs(4)
    if token.info.strip() != "python":
        return f'<pre class="card"><code>{escape(code)}</code></pre>\n'
    parts = highlight.parts(code)
    lines = ("".join(_span(kind, text) for kind, text in parts.get(number, [("", line)]))
             for number, line in enumerate(code.split("\n"), start=1))
    return f'<pre class="card"><code>{chr(10).join(lines)}</code></pre>\n'


def _span(kind: str, text: str) -> str:
    return f'<span class="{kind}">{escape(text)}</span>' if kind else str(escape(text))


def _scrolling(*_: object) -> str:
    return '<div class="card scroll"><table>\n'


def _scrolled(*_: object) -> str:
    return "</table></div>\n"
