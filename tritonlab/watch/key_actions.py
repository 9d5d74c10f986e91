"""The actions of the keys of `watch`."""

import os
import shlex
import sys

from tritonlab.course.course import Module
from tritonlab.errors import NoWorkspace, shown
from tritonlab.grading import hints, solution_diff
from tritonlab.interrupts import EXIT_STOPPED
from tritonlab.progress import certificate
from tritonlab.render.exercise import show_hint, show_start
from tritonlab.render.watch import Action
from tritonlab.watch.watcher import Watch
from tritonlab.workspace import editor, watch_lock, workspace
from tritonlab.workspace import reset as the_reset
from tritonlab.workspace import start as the_begin
from tritonlab.workspace.reset import Backup
from tritonlab.workspace.submission import Submission, exercise
from tritonlab.workspace.workspace import Workspace


def hint(watch: Watch) -> None:
    """Shows and records the next hint for the shown failure."""
    failure = watch.failure
    if failure is None and watch.report and watch.report.exit_code == 0:
        watch.tell("Nothing has failed, so no hint would help. s compares your work with the "
                   "solution.")
        return
    todo, function = hints.place_of(watch.module, failure.findings[0]) \
        if failure and failure.findings else (None, None)
    next_hint = hints.give(watch.course, _place(watch), watch.module, todo, function)
    onward = "h shows the next one." if next_hint.rung < len(next_hint.group.rungs) else \
        f"Edit {watch.submission.to_edit} and save: it is graded again."
    watch.view.show(lambda screen: show_hint(screen, next_hint, onward))
    watch.tell(hints.record(watch.course, _place(watch), next_hint))


def solution(watch: Watch) -> None:
    """Shows the diff to the solution, before a pass only after a question."""
    module = watch.module
    command = f"tritonlab solution {module.id}"
    if solution_diff.earned(watch.course, _place(watch).journal(watch.course).read(), module):
        _run(watch, command)
    else:
        watch.ask(f"{module.id} is not passed yet. Give up, on record, and see its solution?",
                  lambda watch: _run(watch, f"{command} --give-up"))


def reset(watch: Watch) -> None:
    """Writes a fresh exercise; the learner's work becomes a backup."""
    if watch.submission.in_place and not os.path.lexists(watch.submission.kernel):
        workspace.start(watch.module, _place(watch).root, watch.course.version)
        watch.tell("A fresh exercise is in its place.")
        return
    watch.ask(f"Replace your work on {watch.module.id} with a fresh exercise? Your work is kept.",
              lambda watch: _tell(watch, the_reset.reset(watch.course, _place(watch),
                                                         watch.module)))


def undo(watch: Watch) -> None:
    """Restores the newest backup; the present work becomes a backup too."""
    if not the_reset.backups(_place(watch), watch.module):
        watch.tell(f"There is no backup of {watch.module.id} to bring back; x makes one when it "
                   "puts a fresh exercise in the place of your work.")
        return
    _tell(watch, the_reset.undo(watch.course, _place(watch), watch.module))


def next_(watch: Watch) -> None:
    """Starts and watches the next module, after a pass or a yes."""
    reading = _place(watch).journal(watch.course).read()
    following = the_begin.after(watch.course, reading, watch.module)
    if following is None:
        watch.tell("No other module is left to do. `tritonlab certificate` shows what you hold.")
    elif certificate.build(watch.course, reading).entry(watch.module).done:
        _go_to(watch, *following)
    else:
        watch.ask(f"{watch.module.id} is not passed yet. Go on to {following[0].id} anyway?",
                  lambda watch: _go_to(watch, *following))


def bench(watch: Watch) -> None:
    watch.tell("q or Ctrl-C ends the benchmark; other keys are answered after it.")
    _run(watch, watch.submission.typed("bench"))


def edit(watch: Watch) -> None:
    """Opens the exercise in an editor with a window, or in this terminal until it ends."""
    path, chosen = watch.submission.kernel, editor.find()
    if chosen is None or chosen.has_window:
        watch.tell(editor.open_in_editor(path))
        return
    watch.tell(chosen.why)
    if watch.run_aside(chosen.opening(path), reads=True) != 0:
        watch.tell(f"{chosen.name} failed. Open {shown(path)} in another terminal.")


def _go_to(watch: Watch, module: Module, why: str) -> None:
    place = _place(watch)
    with watch_lock.hold(Submission(module, place.kernel(module), place)) as held:
        watch.tell(why)
        begun = the_begin.begin(watch.course, module, place.root)
        watch.view.show(lambda screen: show_start(screen, begun))
        watch.turn_to(exercise(module, place, watch.course), held.pop_all())
    watch.tell(begun.warning)


def _tell(watch: Watch, backup: Backup) -> None:
    """Prints the result of a reset or its undo."""
    sentence = f" What was there is kept in {shown(backup.folder)}." if backup.folder else ""
    if not backup.changed:
        watch.tell("This is the fresh exercise already; nothing was changed.")
    elif backup.restored:
        watch.tell(f"Your work is back in {shown(watch.submission.kernel.parent)}.{sentence}")
    else:
        watch.tell(f"The exercise is fresh again.{sentence} Press u to bring your work back.")
    watch.tell(str(backup.error or backup.warning))


def _run(watch: Watch, typed: str, *, reads: bool = False) -> None:
    """Runs another verb as if typed; it ``reads`` keys itself or not."""
    code = watch.run_aside([sys.executable, "-m", *shlex.split(typed)], reads=reads)
    if code is None or code < 0 or (code > 3 and code != EXIT_STOPPED):
        watch.tell(f"It failed. Repeat it in another terminal: {typed}")


def _place(watch: Watch) -> Workspace:
    """Returns the workspace of the exercise, which may lie outside of any (NoWorkspace)."""
    place = watch.submission.workspace
    if place is None:
        raise NoWorkspace("This file is not in a workspace, so there is no record of it.",
                          f"`tritonlab start {watch.module.id}` creates one.")
    return place


# A narrow terminal omits the last ones but `q` and `?`.
ACTIONS = (
    Action("h", "hint", "shows the next hint for what failed last.", hint),
    Action("r", "read", "shows the lesson.",
           lambda watch: _run(watch, f"tritonlab read {watch.module.id}", reads=True)),
    Action("s", "solution", "compares with the solution, after a pass or when you give up.",
           solution),
    Action("t", "trace", "draws what each program of your kernels did, as a page.", Watch.draw),
    Action("x", "reset", "replaces your work with a fresh exercise, after asking.", reset),
    Action("n", "next", "begins the next module and watches it.", next_),
    Action("b", "bench", "compares the speed of your kernels with PyTorch.", bench),
    Action("u", "undo", "restores the work that a reset replaced.", undo),
    Action("e", "edit", "opens the exercise in your editor.", edit),
    Action("q", "quit", "ends; so do Ctrl-C and Ctrl-D.", Watch.quit),
    Action("?", "keys", "lists the keys.", lambda watch: watch.view.keys(watch.actions)),
)
