"""The steps of an exercise whose blanks are not all filled in."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tritonlab.formats.annotations import clean

_SENTENCES = {"right": "Right.", "wrong": "Wrong.", "begun": "Right so far; blanks are left.",
              "open": "Not begun.", "unchecked": "Not checked."}


@dataclass(frozen=True)
class StepOutcome:
    """A step of an exercise with blanks, and what a grade found out about it.

    ``todos`` are the numbers of its blanks, if they have any. ``state`` is that of
    ``grader.report.Step``.
    """

    title: str
    todos: tuple[int, ...]
    state: str

    @property
    def right(self) -> bool:
        return self.state == "right"

    @property
    def sentence(self) -> str:
        return _SENTENCES[self.state]


def steps(report: Mapping[str, Any]) -> list[StepOutcome]:
    """Returns the steps of a report; none if no blanks are left."""
    return [StepOutcome(clean(f"Step {step['group']}: {step['title']}"), tuple(step["todos"]),
                        step["state"]) for step in report["steps"]]
