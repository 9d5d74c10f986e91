"""What is said while one finds one's way: the command itself, list, start, next, read."""

from __future__ import annotations

import errno
import os

from tests.messages.stage import Situation
from tests.messages.steps import (
    START,
    course_without,
    damaged,
    did,
    failing,
    folder_as_journal,
    passed,
    softmax_is_right,
    started,
    typed,
)

S = Situation

SITUATIONS: dict[str, list[Situation]] = {
    "tritonlab": [
        S("no verb", "tritonlab", ends=False),
        S("an unknown verb", "tritonlab grad"),
        S("an unknown option", "tritonlab list --colour"),
        S("an option without its value", "tritonlab grade --case"),
        S("a number that is none", "tritonlab hint --todo three"),
        S("a missing argument", "tritonlab start"),
        S("the version", "tritonlab --version", ends=False),
    ],
    "list": [
        S("a first look", "tritonlab list"),
        S("one module passed", "tritonlab list", (passed,)),
        S("a damaged journal", "tritonlab list", (started, damaged)),
        S("a journal that cannot be read", "tritonlab list", (started, folder_as_journal)),
        S("a course with a broken file", "tritonlab list",
          (did(lambda s: os.environ.update(TRITONLAB_COURSE="/nowhere")),)),
        S("the current folder is gone", "tritonlab list", (did(lambda s: s.home.rmdir()),)),
    ],
    "start": [
        S("the first module", START),
        S("again", START, (started,)),
        S("prerequisites are missing", "tritonlab start track1/softmax"),
        S("an unknown id", "tritonlab start dubling"),
        S("a full disk", START, (), (failing(errno.ENOSPC),)),
        S("a read-only disk", START, (), (failing(errno.EROFS),)),
        S("a folder that may not be written", START, (), (failing(errno.EACCES),)),
        S("a file lies where the workspace would be", START,
          (did(lambda s: (s.home / "tritonlab-workspace").write_text("")),)),
        S("a course without the exercise", START,
          (course_without("tracks/*/01-doubling/kernel.py"),)),
        S("no editor", f"{START} --edit"),
    ],
    "next": [
        S("nothing is begun", "tritonlab next"),
        S("one is passed", "tritonlab next", (passed,)),
        S("an earlier one was left open", "tritonlab next",
          (typed("tritonlab start softmax"), softmax_is_right, typed("tritonlab grade"))),
        S("only the current one is left", "tritonlab next", (passed, typed("tritonlab next"))),
    ],
    "read": [
        S("a lesson", "tritonlab read track1/doubling"),
        S("the current lesson as a page", "tritonlab read --html lesson.html", (started,)),
        S("no workspace", "tritonlab read"),
        S("an unknown id", "tritonlab read dubling"),
        S("a page in no folder", "tritonlab read doubling --html nowhere/lesson.html"),
        S("a course without the lesson", "tritonlab read doubling",
          (course_without("tracks/*/01-doubling/README.md"),)),
    ],
}
