"""An exercise: files after `start`, a hint, the backup of `reset`."""

from __future__ import annotations

from pathlib import Path

from grader.text import ranges
from tritonlab.errors import shown
from tritonlab.grading.hints import Hint
from tritonlab.render.progress import hours
from tritonlab.render.screen import Screen
from tritonlab.workspace.reset import Backup
from tritonlab.workspace.start import StartedModule


def show_start(screen: Screen, begun: StartedModule, *, typed: bool = True) -> None:
    """Prints the files of an exercise; ``typed``: also the next command."""
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


def show_hint(screen: Screen, given: Hint, onward: str = "") -> None:
    """Prints one hint; ``onward`` replaces the next command, for instance under `watch`."""
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


def show_reset(screen: Screen, backup: Backup, place: Path, command: str) -> None:
    """Prints the backup's folder, the new state of ``place`` and the command to undo."""
    module = backup.module
    screen.line((module.id, "strong"), f"  {module.title}")
    if not backup.changed:
        screen.line("Nobody has touched this exercise, so nothing was changed.")
        screen.next(command, "Edit it, then type: ")
        return
    if backup.restored:
        screen.line(f"Your work is back in {shown(place)}; it stays in its backup too.")
        screen.command(shown(backup.restored), lead=screen.label("Backup"))
    if backup.folder:
        moved = "What was there" if backup.restored else "Your work"
        screen.line(f"{moved} was moved to {'another' if backup.restored else 'a'} backup: "
                    f"{', '.join(backup.names)}.")
        screen.command(shown(backup.folder), lead=screen.label("Backup"))
    if not backup.restored:
        screen.line("A fresh exercise is in its place.")
    if backup.folder:
        screen.command(f"tritonlab reset {module.id} --undo", "To go back, type: ")
    screen.next(command, "Next: " if backup.restored else "Edit it, then type: ")
