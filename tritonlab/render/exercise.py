"""An exercise: files after `start`, a hint, the backup of `reset`, and the solution beside it."""

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path

from grader.text import ranges
from tritonlab.course.course import Module
from tritonlab.errors import shown
from tritonlab.grading.hints import Hint
from tritonlab.grading.solution_diff import FileComparison
from tritonlab.render.progress import hours
from tritonlab.render.screen import Part, Screen
from tritonlab.workspace.reset import Backup
from tritonlab.workspace.start import StartedModule

_CODE_INDENT = 4
_SIDE_BY_SIDE = 160  # columns from which on two files fit beside each other
_FENCED = re.compile(r"^```\w*\n(.*?)^```\n?", re.DOTALL | re.MULTILINE)
_SIGNS = {"+": "pass", "-": "fail", "@": "note"}


def show_start(screen: Screen, begun: StartedModule, *before: str) -> None:
    """Prints sentences that come before, and the files of an exercise."""
    for sentence in filter(None, before):
        screen.line(sentence)
    module, started, missing = begun.module, begun.started, begun.missing
    screen.line((module.id, "strong"), f"  {module.title}, about {hours(module.minutes)}")
    if module.summary:
        screen.line((module.summary, "dim"))
    screen.blank()
    where = shown(started.kernel.parent)
    if started.kernel.name in started.kept:
        screen.line(f"Your exercise is already there, and it was not changed: {where}")
    else:
        screen.line(f"The exercise is in {where}")
    if started.copied and started.kept:
        screen.line(f"Copied beside your work: {', '.join(started.copied)}.")
    folders = [f"{name}/" for name in module.packages]
    tops = {name.partition("/")[0] + "/" * ("/" in name) for name in module.files}
    given = sorted(tops - set(folders))
    files = {"README.md": "the lesson", "lesson.py": "a worked example to run",
             "kernel.py": "what is graded; it imports the rest" if folders
             else "the exercise to edit"} | dict.fromkeys(given, "given with it") | \
        dict.fromkeys(folders, "the exercise to edit")
    for name, why in files.items():
        if name in (*started.copied, *started.kept, *folders, *given):
            screen.line((why, "dim"), lead=(f"{name}: " if screen.plain else f"  {name:<10} ",))
    if missing:
        screen.blank()
        are = "is" if len(missing) == 1 else "are"
        screen.line(f"It builds on {', '.join(missing)}, which {are} not passed yet. "
                    "You can go on all the same.")
    if warm_ups := begun.warm_ups:
        screen.blank()
        minutes = sum(one.minutes for one in warm_ups)
        screen.line(f"To meet its ideas one at a time, start with "
                    f"{' and '.join(one.id for one in warm_ups)} ({hours(minutes)}).")
    screen.blank()


def show_hint(screen: Screen, given: Hint, *after: str) -> None:
    """Prints one hint, and sentences that come after it."""
    module, group = given.module, given.group
    todos = ranges(group.todos)
    screen.line((module.id, "strong"), f"  {group.title}",
                (f" ({module.marker} {todos}{', which share their hints' * (len(group.todos) > 1)})"
                 if todos else "", "dim"))
    lead = f"Hint {given.rung} of {len(group.rungs)}: "
    for number, passage in enumerate(_FENCED.split(given.text)):
        if number % 2:
            _code(screen, passage)
        elif passage.strip():
            screen.line(passage.strip(), lead=(lead,))
            lead = "" if screen.plain else " " * len(lead)
    if given.repeated:
        screen.line(("This was the last hint; it is shown again.", "dim"))
    for sentence in after:
        screen.line(sentence)


def _code(screen: Screen, code: str) -> None:
    """Prints code as it is, between empty lines; a line that is too long is not cut."""
    screen.blank()
    for line in code.splitlines():
        screen.row(" " * (0 if screen.plain else _CODE_INDENT) + line)
    screen.blank()


def show_reset(screen: Screen, backup: Backup, place: Path) -> None:
    """Prints the backup's folder, the new state of ``place`` and the command to undo."""
    module = backup.module
    screen.line((module.id, "strong"), f"  {module.title}")
    if not backup.changed:
        screen.line("This exercise is unmodified, so nothing was changed.")
        return
    if backup.restored:
        screen.line(f"Your work is back in {shown(place)}; it stays in its backup too.")
        screen.command(shown(backup.restored), lead=screen.label("Backup"))
    if backup.folder:
        moved = "What was there was moved to another" if backup.restored else \
            "Your work was moved to a"
        screen.line(f"{moved} backup: {', '.join(backup.names)}.")
        screen.command(shown(backup.folder), lead=screen.label("Backup"))
    if not backup.restored:
        screen.line("A fresh exercise is in its place.")
    if backup.folder:
        screen.command(f"tritonlab reset {module.id} --undo", "To go back, type: ")


def show_solution(screen: Screen, module: Module, files: Sequence[FileComparison]) -> None:
    """Prints all files that differ: kernels first, then other code, then docstrings."""
    screen.line((module.id, "strong"), "  ", (module.title, "dim"))
    screen.blank()
    same = all(file.same for file in files)
    if same:
        screen.line("Your exercise is the solution, line by line.")
    for file in files:
        if file.same:
            if not same:
                screen.line(f"{file.name}: the same in both.")
        elif screen.plain or screen.full_width < _SIDE_BY_SIDE:
            if not screen.plain:
                screen.line(("- yours   + the solution", "dim"))
            for line in _unified(file):
                screen.row((line.expandtabs(4), _SIGNS.get(line[:1], "")))
        else:
            _beside(screen, file)
        screen.blank()


def _unified(file: FileComparison) -> Iterator[str]:
    yield f"--- yours/{file.name}"
    yield f"+++ solution/{file.name}"
    for hunk in file.hunks:
        (_, a1, _, b1, _), (_, _, a2, _, b2) = hunk[0], hunk[-1]
        yield f"@@ -{a1 + (a2 > a1)},{a2 - a1} +{b1 + (b2 > b1)},{b2 - b1} @@"
        for tag, a1, a2, b1, b2 in hunk:
            if tag == "equal":
                yield from (f" {line}" for line in file.yours[a1:a2])
            else:
                yield from (f"-{line}" for line in file.yours[a1:a2])
                yield from (f"+{line}" for line in file.solution[b1:b2])


def _beside(screen: Screen, file: FileComparison) -> None:
    width = (screen.full_width - 5) // 2
    screen.row((f"{'yours/' + file.name:<{width}}     {'solution/' + file.name}", "strong"))
    for left, right, sign in _rows(file):
        left, right = left.expandtabs(4), right.expandtabs(4)
        for start in range(0, max(len(left), len(right), 1), width):  # long lines are folded
            one, other = (line[start:start + width] for line in (left, right))
            yours: Part = (f"{one:<{width}}", "fail" if sign in "<|" else "")
            screen.row(yours, f"  {sign}  ", (other, "pass" if sign in ">|" else ""))
            sign = " " if sign in "<>|" else sign


def _rows(file: FileComparison) -> Iterator[tuple[str, str, str]]:
    """The learner's line, the solution's, and the sign between them."""
    for number, group in enumerate(file.hunks):
        if number:
            yield "⋮", "⋮", " "
        for tag, a1, a2, b1, b2 in group:
            for left, right in zip_longest(file.yours[a1:a2], file.solution[b1:b2]):
                sign = " " if tag == "equal" else ">" if left is None else \
                    "<" if right is None else "|"
                yield left or "", right or "", sign
