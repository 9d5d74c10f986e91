"""The lesson of a module: its README, as Markdown."""

from __future__ import annotations

from tritonlab.course import Module
from tritonlab.errors import BadCourse
from tritonlab.workspace import LESSON


def text(module: Module) -> str:
    """The lesson as its author wrote it.

    Raises:
        BadCourse: it is missing or no text.
    """
    try:
        return (module.folder / LESSON).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadCourse(f"The lesson of {module.id} cannot be read: {module.folder / LESSON}.",
                        "Install tritonlab again.") from error
