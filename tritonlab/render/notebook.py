"""Output of a notebook's cell: the lines of a report as HTML, and as text for those without it."""

import io
import re
from collections.abc import Sequence

from markupsafe import Markup, escape

from tritonlab.render.screen import Part, Screen, clean

_WIDTH = 90
_COMMANDS = (  # of a terminal, and what a cell takes instead
    (re.compile(r"[Rr]un `tritonlab grade` again"), "run the cell again"),
    (re.compile(r"`tritonlab start ([^`]*)`"), r"`%kernel \1`"),
    (re.compile(r"`tritonlab (hint|trace)\b"), r"`%\1"),
    (re.compile(r"`tritonlab "), "`!tritonlab "))
# Colors are mixed with that of the text, which is dark or light as the notebook's theme has it.
_STYLE = """<style>
.tritonlab { font-size: 14px; line-height: 1.45; max-width: 60em; }
.tritonlab p { margin: 2px 0; display: flex; gap: 1em; }
.tritonlab p > b:first-child { flex: 0 0 5.5em; font-weight: 600; opacity: .75; }
.tritonlab pre { margin: 4px 0 4px 6.5em; overflow-x: auto; background: none; color: inherit; }
.tritonlab .pass { color: color-mix(in srgb, #0a0 55%, currentColor); font-weight: 700; }
.tritonlab .fail { color: color-mix(in srgb, #e00 60%, currentColor); font-weight: 700; }
.tritonlab .skip { color: color-mix(in srgb, #c80 55%, currentColor); }
.tritonlab .dim { opacity: .8; }
.tritonlab .strong { font-weight: 700; }
</style>"""


class NotebookScreen(Screen):
    """A screen whose lines are collected, each as text and as HTML."""

    def __init__(self) -> None:
        super().__init__(io.StringIO(), width=_WIDTH, terminal=False)  # despite FORCE_COLOR
        self._html: list[str] = []
        self._code: list[str] = []  # rows of the block that the last call added to

    @property
    def outputs(self) -> dict[str, str]:
        """The lines by MIME type."""
        assert isinstance(self.stream, io.StringIO)
        self._end_code()
        body = "\n".join(self._html)
        return {"text/plain": self.stream.getvalue().rstrip(),
                "text/html": f'{_STYLE}<div class="tritonlab">\n{body}\n</div>'}

    def line(self, *parts: Part, lead: Sequence[Part] = ()) -> None:
        """Adds a paragraph; a lead that is a label becomes bold."""
        self._end_code()
        parts, lead = tuple(map(_typed, parts)), tuple(map(_typed, lead))
        label = "".join(map(_words, lead)).strip()
        before = f"<b>{escape(label)}</b>" if label else "<b></b>" if lead else ""
        body = "".join(map(_span, parts))
        self._html.append(f"<p>{before}<span>{body}</span></p>")
        super().line(*parts, lead=lead)

    def pair(self, left: Sequence[Part], right: Part, *, indent: int = 0,
             lead: Sequence[Part] = ()) -> None:
        """Adds a paragraph that ends with ``right``."""
        self.line(*left, "  ", right, lead=lead)

    def quote(self, lines: Sequence[str], *, indent: int) -> None:
        """Adds lines to a block of code."""
        self._code += lines
        super().quote(lines, indent=indent)

    def row(self, *parts: Part) -> None:
        """Adds a line to a block of code."""
        self._code.append("".join(map(_words, parts)))
        super().row(*parts)

    def command(self, command: str, lead: str) -> None:
        """Adds a command."""
        self.line(f"`{command}`", lead=(lead,))

    def _end_code(self) -> None:
        if self._code:
            rows = "\n".join(clean(row) for row in self._code)
            self._html.append(f"<pre>{escape(rows)}</pre>")
            self._code = []


def _typed(part: Part) -> Part:
    """A part whose commands can be typed into a cell."""
    words, *style = (part,) if isinstance(part, str) else part
    for pattern, replacement in _COMMANDS:
        words = pattern.sub(replacement, words)
    return (words, *style) if style else words  # type: ignore[return-value]


def _words(part: Part) -> str:
    return part if isinstance(part, str) else part[0]


def _span(part: Part) -> str:
    """The HTML of words; what is between backticks is code."""
    text = re.sub(r"`([^`]*)`", r"<code>\1</code>", str(escape(clean(_words(part)))))
    return Markup(text) if isinstance(part, str) or not part[1] else \
        f'<span class="{escape(part[1])}">{text}</span>'
