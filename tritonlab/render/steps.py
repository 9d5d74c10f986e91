"""Short answers: what `start` did, a hint, and the steps of the tour."""

from __future__ import annotations

from pathlib import Path

from grader.words import ranges
from tritonlab.begin import Begun
from tritonlab.course import Module
from tritonlab.errors import shown
from tritonlab.hints import Given
from tritonlab.render.course import hours
from tritonlab.render.report import diagnosis
from tritonlab.render.screen import Screen
from tritonlab.reset import Backup
from tritonlab.tour import Step


def show_start(screen: Screen, begun: Begun, *, typed: bool = True) -> None:
    """Where the exercise is, and what to read, edit and, if anything is ``typed``, to type."""
    module, started, missing = begun.module, begun.started, begun.missing
    screen.line((module.id, "strong"), f"  {module.title}, about {hours(module.minutes)}")
    if module.summary:
        screen.line((module.summary, "dim"))
    screen.blank()
    where = shown(started.kernel.parent)
    if started.kernel.name in started.kept:
        screen.line(f"Your exercise is already there, and nothing in it was changed: {where}")
    else:
        screen.line(f"The exercise is in {where}")
    if started.copied and started.kept:
        screen.line(f"Copied beside your work: {', '.join(started.copied)}.")
    folders = [f"{name}/" for name in module.packages]
    tops = {name.partition("/")[0] + "/" * ("/" in name) for name in module.files}
    given = sorted(tops - set(folders))
    there = (*started.copied, *started.kept, *folders, *given)
    exercise = "what is graded; it imports the rest" if folders else "the exercise to edit"
    for name, why in (("README.md", "the lesson"), ("lesson.py", "a worked example to run"),
                      ("kernel.py", exercise), *((name, "given with it") for name in given),
                      *((name, "the exercise to edit") for name in folders)):
        if name in there:
            label = f"{name}: " if screen.plain else f"  {name:<10} "
            screen.line((why, "dim"), lead=(label,))
    if missing:
        screen.blank()
        plural = "is" if len(missing) == 1 else "are"
        screen.line(f"It builds on {', '.join(missing)}, which {plural} not passed yet. "
                    "You can go on all the same.")
    screen.blank()
    if typed:
        screen.next(begun.command, f"Edit {' and '.join(folders) or 'kernel.py'}, then type: ")


def show_hint(screen: Screen, given: Given, onward: str = "") -> None:
    """One rung of a ladder; ``onward`` says what to do next where no command is typed."""
    module, group = given.module, given.group
    todos = ranges(group.todos)
    screen.line((module.id, "strong"), f"  {group.title}",
                (f" ({module.marker} {todos}{', which share their hints' * (len(group.todos) > 1)})"
                 if todos else "", "dim"))
    screen.line(given.text, lead=(f"Hint {given.rung} of {len(group.rungs)}: ",))
    if given.repeated:
        screen.line(("This was the last one; it is shown again.", "dim"))
    if onward:
        screen.line(onward)
    else:
        screen.next(given.command)


def show_reset(screen: Screen, made: Backup, place: Path, command: str) -> None:
    """Where the work went, what is in its ``place`` now, and the way back."""
    module = made.module
    screen.line((module.id, "strong"), f"  {module.title}")
    if not made.changed:
        screen.line("Nobody has touched this exercise, so nothing was changed.")
        screen.next(command, "Edit it, then type: ")
        return
    if made.restored:
        screen.line(f"Your work is back in {shown(place)}; it stays in its backup too.")
        _backup(screen, made.restored)
    if made.folder:
        what = "What was there" if made.restored else "Your work"
        screen.line(f"{what} was moved to {'another' if made.restored else 'a'} backup: "
                    f"{', '.join(made.names)}.")
        _backup(screen, made.folder)
    if not made.restored:
        screen.line("A fresh exercise is in its place.")
    if made.folder:
        screen.command(f"tritonlab reset {module.id} --undo", "To go back, type: ")
    screen.next(command, "Next: " if made.restored else "Edit it, then type: ")


def _backup(screen: Screen, folder: Path) -> None:
    screen.command(shown(folder), lead="Backup: " if screen.plain else "  Backup  ")


def show_step(screen: Screen, number: int, step: Step, module: Module) -> None:
    """One step of the tour: what happens and why, then what the grader said."""
    screen.line((step.title, "strong"), lead=(f"{number}. ",))
    indent = () if screen.plain else ("   ",)
    screen.line(step.why, lead=indent)
    if step.said:
        screen.line(step.said, lead=indent)
    if step.finding:
        for label, text in diagnosis(module, step.finding):
            screen.line((text, "dim"), lead=(f"{label}: " if screen.plain else f"   {label:<8}",))
    if not step.ok:
        screen.line(("This is not what had to happen: ", "fail"), step.expected, lead=indent)
    screen.blank()
