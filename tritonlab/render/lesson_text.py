"""The Markdown of a lesson as it is displayed outside of its repository."""

from __future__ import annotations

import re

from tritonlab.course.course import PAGES

_WORDED = re.compile(r"^```text\n(.*?)^```\n\n?<!-- In words: (.*?)-->\n", re.DOTALL | re.MULTILINE)
_PAGE = re.compile(rf"\[([^]]+)\]\([./]*({'|'.join(PAGES)})\.md\)")


def displayed(text: str) -> str:
    """The text with alternative texts in the info strings of their blocks, and no comments.

    A link to a page beside the tracks becomes the command that shows it.
    """
    text = _WORDED.sub(_with_words, text)
    text = re.sub(r"<!--.*?-->\n?", "", text, flags=re.DOTALL)
    return _PAGE.sub(r"\1 (`tritonlab read \2`)", text)


def _with_words(block: re.Match[str]) -> str:
    words = " ".join(block[2].replace("`", "").split())  # an info string has no backticks
    return f"```text {words}\n{block[1]}```\n"
