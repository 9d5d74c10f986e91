"""Actions: what each key makes `watch` do."""

from __future__ import annotations

import shlex
import sys
from functools import partial

from tritonlab import answers, certificate, editor, grading, hints
from tritonlab import begin as the_begin
from tritonlab import reset as the_reset
from tritonlab.course import Module
from tritonlab.errors import NoWorkspace, shown
from tritonlab.reset import Backup
from tritonlab.watch import Action, Watch
from tritonlab.workspace import Workspace


def hint(watch: Watch) -> None:
    """The next rung for what failed last, on record."""
    from tritonlab.render import steps

    given = hints.give(watch.course, _place(watch), watch.module)
    watch.view.show(partial(steps.show_hint, given=given))
    watch.tell(hints.record(watch.course, _place(watch), given))


def read(watch: Watch) -> None:
    _run(watch, f"tritonlab read {watch.module.id}")


def solution(watch: Watch) -> None:
    """The diff to the solution, by the verb that shows it; before a pass it has to be asked for."""
    module = watch.module
    command = f"tritonlab solution {module.id}"
    if answers.earned(watch.course, _place(watch).journal(watch.course).read(), module):
        _run(watch, command)
    else:
        watch.ask(f"{module.id} is not passed yet. Give up, on record, and see its solution?",
                  lambda watch: _run(watch, f"{command} --give-up"))


def reset(watch: Watch) -> None:
    """A fresh exercise; the learner's work is kept."""
    watch.ask(f"Put a fresh exercise of {watch.module.id} in the place of your work? It is kept.",
              lambda watch: _tell(watch, the_reset.reset(watch.course, _place(watch),
                                                         watch.module)))


def undo(watch: Watch) -> None:
    """The newest backup, in the place of what is there now, which is kept too."""
    _tell(watch, the_reset.undo(watch.course, _place(watch), watch.module))


def next_(watch: Watch) -> None:
    """The next module: begun and watched, after a pass or a yes."""
    reading = _place(watch).journal(watch.course).read()
    following = certificate.next_module(watch.course, reading, watch.module)
    if following is None:
        watch.tell("No other module is left to do. `tritonlab certificate` shows what you hold.")
    elif certificate.build(watch.course, reading).entry(watch.module).done:
        _go_to(watch, following)
    else:
        watch.ask(f"{watch.module.id} is not passed yet. Go on to {following.id} all the same?",
                  lambda watch: _go_to(watch, following))


def bench(watch: Watch) -> None:
    _run(watch, watch.submission.typed("bench"))


def edit(watch: Watch) -> None:
    """The exercise in an editor: in a window of its own, or in this terminal until it ends."""
    path, found = watch.submission.kernel, editor.find()
    if found is None or found.has_window:
        watch.tell(editor.open_in_editor(path))
    elif watch.run_aside(found.opening(path)) != 0:
        watch.tell(f"{found.name} did not end well. Open {shown(path)} in another terminal.")


def _go_to(watch: Watch, module: Module) -> None:
    from tritonlab.render import steps

    begun = the_begin.begin(watch.course, module)
    watch.view.show(partial(steps.show_start, begun=begun))
    watch.turn_to(grading.exercise(module, begun.place, watch.course))
    watch.tell(begun.warning)


def _tell(watch: Watch, backup: Backup) -> None:
    """What a reset or its undo did."""
    kept = f" What was there is kept in {shown(backup.folder)}." if backup.folder else ""
    if not backup.changed:
        watch.tell("This is the fresh exercise already; nothing was changed.")
    elif backup.restored:
        watch.tell(f"Your work is back as it was.{kept}")
    else:
        watch.tell(f"The exercise is fresh again.{kept} Press u to bring your work back.")
    watch.tell(str(backup.error or backup.warning))


def _run(watch: Watch, typed: str) -> None:
    """Run another verb as it would be typed: it looks the same, and what it needs goes with it."""
    code = watch.run_aside([sys.executable, "-m", *shlex.split(typed)])
    if code is None or code < 0 or code > 3:
        watch.tell(f"It did not end well. Repeat it in another terminal: {typed}")


def _place(watch: Watch) -> Workspace:
    """The workspace of the exercise.

    Raises:
        NoWorkspace: it lies in none.
    """
    place = watch.submission.workspace
    if place is None:
        raise NoWorkspace("This file lies in no workspace, so there is no record to go by.",
                          f"`tritonlab start {watch.module.id}` makes one.")
    return place


ACTIONS = (
    Action("h", "hint", "shows the next hint for what failed last.", hint),
    Action("r", "read", "shows the lesson.", read),
    Action("s", "solution", "compares with the solution, after a pass or when you give up.",
           solution),
    Action("x", "reset", "puts a fresh exercise in the place of your work, after asking.", reset),
    Action("u", "undo", "brings back what a reset has replaced.", undo),
    Action("n", "next", "begins the next module and watches it.", next_),
    Action("b", "bench", "shows how fast your kernels are beside PyTorch and the solution.", bench),
    Action("e", "edit", "opens the exercise in your editor.", edit),
    Action("q", "quit", "ends; so do Ctrl-C and Ctrl-D.", Watch.quit),
    Action("?", "keys", "lists the keys.", lambda watch: watch.view.keys(watch.actions)),
)
