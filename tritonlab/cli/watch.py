"""The verb `watch`."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from tritonlab.cli import boundary, completion
from tritonlab.cli.options import CurrentOr, Json, OfModule, Plain, screen_on
from tritonlab.course import course
from tritonlab.errors import TritonlabError
from tritonlab.grading import grade
from tritonlab.workspace import editor
from tritonlab.workspace.submission import resolve


@boundary.verb
def watch(
    what: CurrentOr = None,
    module_id: OfModule = None,
    edit: Annotated[bool, typer.Option(
        "--edit", help="Open the exercise in your editor first.")] = False,
    target: Annotated[str | None, typer.Option(
        "--target", metavar="GPU", autocompletion=completion.gpus,
        help="Compile for this GPU, such as a100.")] = None,
    gpu: Annotated[bool, typer.Option(
        "--gpu/--no-gpu", help="Run and time the kernels on this machine's GPU too, if it has one.",
    )] = True,
    poll: Annotated[bool, typer.Option(
        "--poll", help="Look at the files five times a second, where saves are noticed late.",
    )] = False,
    as_json: Json = False, plain: Plain = False,
) -> int:
    """Grade at every save, and answer keys: h hint, s solution, x reset, n next, q quit.

    Ends with the exit code of the last verdict, also after Ctrl-C; with 0 where there was none.
    """
    from tritonlab.render import screen
    from tritonlab.render.watch import Lines, Watched, WatchView
    from tritonlab.watch.key_actions import ACTIONS
    from tritonlab.watch.terminal import Keyboard
    from tritonlab.watch.watcher import Watch

    if screen.in_notebook() and not as_json:
        raise TritonlabError("`tritonlab watch` needs a terminal: in a cell of a notebook no key "
                             "can be typed, and the cell would never end.",
                             "Open a terminal, or run `tritonlab grade` in a cell.")
    if not (as_json or screen_on(plain).plain) and not any(map(os.isatty, (0, 1, 2))):
        raise TritonlabError("`tritonlab watch` needs a terminal, and there is none here.",
                             "Open a terminal; or add --plain, to have every save graded and "
                             "printed until Ctrl-C.")
    if target is not None:
        grade.find_target(target)
    the_course = course.load()
    submission = resolve(the_course, what, module_id)
    if edit:  # one that needs the terminal is opened by a key
        boundary.warn(editor.open_in_editor(submission.kernel))
    view: WatchView = Lines(_write) if as_json else Watched(lambda: screen_on(plain))
    session = Watch(the_course, submission, view, actions=ACTIONS,
                    keyboard=Keyboard(wanted=not as_json), target=target, gpu=gpu, poll=poll)
    return session.run()


def _write(line: str) -> None:
    sys.stdout.write(line)
    sys.stdout.flush()
