"""What watch says, and what somebody does at it."""

from __future__ import annotations

import contextlib
import errno
from pathlib import Path
from typing import Any

from tests.messages.hands import CTRL_C, Deed
from tests.messages.stage import Situation, Step
from tests.messages.steps import (
    HOST,
    changed,
    failing,
    fifo,
    impatient,
    right,
    softmax_is_right,
    started,
    typed,
    unreadable,
    wrote,
)
from tritonlab.course.course import load
from tritonlab.workspace import watch_lock
from tritonlab.workspace.submission import Submission
from tritonlab.workspace.workspace import Workspace

S = Situation
WATCH = "tritonlab watch"
wrong = changed("2 * x, mask", "3 * x, mask")
endless = changed(HOST, f"    while True:\n        pass\n{HOST}")
ASKED = "`tritonlab hint track1/doubling` helps."
FAILED, PASSED = "h shows a hint.", "Press n for the next module"


def watched_elsewhere() -> contextlib.ExitStack:
    """Another watch is at the exercise."""
    place, module = Workspace(Path("tritonlab-workspace").absolute()), load().find("doubling")
    return watch_lock.hold(Submission(module, place.kernel(module), place))


def at_work(title: str, *script: Deed, before: tuple[Step, ...] = (), **more: Any) -> Situation:
    """It runs, and is ended in the end."""
    return S(title, WATCH, (started, *before), script=script, ends=False, **more)


SITUATIONS: dict[str, list[Situation]] = {
    "watch": [
        S("no workspace", WATCH),
        S("an unknown id", f"{WATCH} dubling"),
        S("an unknown target", f"{WATCH} --target a1000", (started,)),
        S("a file that may not be read", WATCH, (started,), (unreadable,)),
        S("another watch is at it", WATCH, (started,), (watched_elsewhere,)),
        at_work("a first look, and the end", (FAILED, "q")),
        at_work("a save that fails", (FAILED, wrong), (FAILED, "q")),
        at_work("a save that passes", (FAILED, right), (PASSED, "q")),
        at_work("a syntax error", (FAILED, wrote("def doubling(x:\n    return x\n")),
                (FAILED, "q")),
        at_work("hints", (FAILED, "h"), ("h shows the next one.", "h"),
                ("h shows the next one.", "h"), ("is graded again.", "h"),
                ("it is shown again.", "q"), before=(wrong,)),
        at_work("a trace", (FAILED, "t"), ("No browser was found", "q"), before=(wrong,)),
        at_work("all keys, and one that is none", (FAILED, "?"), ("lists the keys.", "w"),
                ("? to see the keys.", "q")),
        at_work("a reset, wanted and brought back", (FAILED, "x"), ("y or n", "n"),
                ("Nothing was done.", "x"), ("y or n", "y"), (FAILED, "u"), (FAILED, "q"),
                before=(wrong,)),
        at_work("nothing to reset or to bring back", (FAILED, "xy"), ("nothing was changed.", "u"),
                ("in the place of your work.", "q")),
        at_work("on to the next after a pass", (PASSED, "n"), (FAILED, "q"), before=(right,)),
        at_work("on to the next before a pass", (FAILED, "n"), ("y or n", "n"),
                ("Nothing was done.", "n"), ("y or n", "y"), (FAILED, "q")),
        at_work("back to what was left behind", (PASSED, "n"), (FAILED, "q"),
                before=(typed("tritonlab start softmax"), softmax_is_right)),
        at_work("no other module is left", (PASSED, "n"), (FAILED, softmax_is_right),
                ("All modules are passed", "n"), ("shows what you hold.", "q"), before=(right,)),
        at_work("the solution, refused and shown", (FAILED, "s"), ("y or n", "n"),
                ("Nothing was done.", "s"), ("y or n", "y"), ("tritonlab grade", "q")),
        at_work("a bench of what is not right", (FAILED, "b"), ("tritonlab grade", "q"),
                figures=False),
        at_work("the exercise is gone, and a fresh one put there",
                (FAILED, lambda stage: stage.kernel.unlink()), ("puts a fresh one there.", "x"),
                (FAILED, "q")),
        at_work("the exercise becomes a pipe", (FAILED, fifo), ("puts a fresh one there.", "q")),
        at_work("the exercise becomes too large", (FAILED, wrote("#" * 1_000_001)),
                ("puts a fresh one there.", right), (PASSED, "q")),
        at_work("nothing can be recorded", ("h shows a hint.", "q"),
                during=(failing(errno.ENOSPC),)),
        at_work("Ctrl-C at rest", (FAILED, CTRL_C)),
        at_work("Ctrl-C in mid-grade", ("As it is now", CTRL_C), before=(endless,),
                during=(impatient,)),
        at_work("without a terminal", (ASKED, wrong), (ASKED, right),
                ("Next: tritonlab start", CTRL_C), keys=False),
    ],
}
