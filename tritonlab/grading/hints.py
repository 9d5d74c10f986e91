"""Hints: the group for a failure, and its next rung."""

import re
from dataclasses import dataclass, replace
from typing import Any

from grader.report import Finding
from tritonlab.course.course import Course, HintGroup, Module
from tritonlab.errors import TritonlabError
from tritonlab.progress.journal import JournalReading
from tritonlab.workspace.workspace import Workspace


def choose(module: Module, reading: JournalReading, todo: int | None = None,
           function: str | None = None) -> HintGroup:
    """Returns the group of ``todo``, ``function`` or the last failure, else the first unused one.

    Raises:
        TritonlabError: the module has no hints, or none for that place.
    """
    if not module.hints:
        raise TritonlabError(f"{module.id} has no hints.", "See its README.md.")
    if todo is not None or function is not None:
        group = module.hint_group(todo, function if todo is None and function else "")
        if group is not None:
            titled = function == group.title and function not in group.functions
            return group if titled else _unread(module, group, reading)
        numbers = sorted(n for group in module.hints for n in group.todos)
        names = ", ".join(dict.fromkeys(n for group in module.hints for n in group.functions))
        if todo is not None:
            message = f"no {module.marker} {todo}." + (
                f" They go from {numbers[0]} to {numbers[-1]}." if numbers else "")
        else:
            message = f"no hints for '{function}'." + (
                f" There are hints for {names}." if names else "")
        raise TritonlabError(f"{module.id} has {message}",
                             f"`tritonlab hint {module.id}` chooses one for you.")
    last = reading.last_grade(module.id)
    for number in (last["todos"] or ()) if last else ():
        if group := module.hint_group(number):
            return group
    if last and (group := module.hint_group(function=last["function"] or "")):
        return _unread(module, group, reading)
    left = (g for g in module.hints if reading.hints(module.id, g.group) < len(g.rungs))
    return next(left, module.hints[-1])


def _unread(module: Module, group: HintGroup, reading: JournalReading) -> HintGroup:
    """Returns the first group for the same function with hints that were not shown."""
    same = [one for one in module.hints if one == group or
            set(group.functions).intersection(one.functions)]
    return next((one for one in same if reading.hints(module.id, one.group) < len(one.rungs)),
                same[-1])


@dataclass(frozen=True)
class Hint:
    """A hint: the rung of a group, from 1, and whether it was shown before.

    ``typed``: the command for it, where it is offered for a failure.
    """

    module: Module
    group: HintGroup
    rung: int
    repeated: bool
    typed: str = ""

    def __str__(self) -> str:
        number = len(self.group.rungs)
        return f'hint {self.rung} of {number} on "{self.group.title}"{" again" * self.repeated}'

    def to_dict(self) -> dict[str, Any]:
        return {"command": self.typed, "group": self.group.group, "title": self.group.title,
                "rung": self.rung, "of": len(self.group.rungs), "repeated": self.repeated}

    @property
    def text(self) -> str:
        return self.group.rungs[self.rung - 1]

    @property
    def command(self) -> str:
        """The command for the next rung, or to grade after the last one."""
        more = self.rung < len(self.group.rungs)
        if more and self.group.todos:
            return f"tritonlab hint {self.module.id} --todo {self.group.todos[0]}"
        if more and self.group.functions:
            return f"tritonlab hint {self.module.id} --function {self.group.functions[0]}"
        return f"tritonlab grade {self.module.id}"


def next_rung(module: Module, group: HintGroup, reading: JournalReading) -> Hint:
    """Returns the next hint of a group; after all were shown, the last one."""
    used = reading.hints(module.id, group.group)
    return Hint(module, group, min(used + 1, len(group.rungs)), used >= len(group.rungs))


def give(course: Course, place: Workspace, module: Module, todo: int | None = None,
         function: str | None = None) -> Hint:
    """Returns the next hint of a module, which the caller shows and records.

    Raises:
        TritonlabError: the module has no hints, or none for that place.
    """
    reading = place.journal(course).read()
    return next_rung(module, choose(module, reading, todo, function), reading)


def record(course: Course, place: Workspace, given: Hint) -> str:
    """Records a hint once; returns why the certificate is out of date, if it is.

    Raises:
        NotSaved: it cannot be written.
    """
    if given.repeated:
        return ""
    return place.journal(course).append("hint", given.module.id, group=given.group.group,
                                        rung=given.rung)


def offer(module: Module, finding: Finding, reading: JournalReading) -> Hint | None:
    """Returns the next hint for the first TODO of a finding with hints, or its function."""
    todo, function = place_of(module, finding)
    group = module.hint_group(todo, function or "")
    if group is None:
        return None
    group = _unread(module, group, reading)
    place = f"--todo {todo}" if todo else f"--function {_to_type(module, group, function or '')}"
    return replace(next_rung(module, group, reading), typed=f"tritonlab hint {module.id} {place}")


def _to_type(module: Module, group: HintGroup, function: str) -> str:
    """Returns a function name of the exercise, if ``function`` exists only in the tests."""
    first = group.functions[0] if group.functions else function
    texts = [path.read_text(encoding="utf-8") for path in sorted(module.folder.glob("*.py"))]

    def defined(name: str) -> bool:
        return any(re.search(rf"^\s*(?:def|class) {re.escape(name)}\b", text, re.MULTILINE)
                   for text in texts)

    return first if defined(first) and not defined(function) else function


def place_of(module: Module, finding: Finding) -> tuple[int | None, str | None]:
    """Returns the first TODO of a finding with hints, otherwise its function if that has any."""
    todo = next((number for number in finding.todos if module.hint_group(number)), None)
    if todo is None and module.hint_group(None, finding.function):
        return None, finding.function
    return todo, None
