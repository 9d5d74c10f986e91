"""What is said of machines and modules: tour, doctor, check, new."""

from __future__ import annotations

import shutil

from grader.sandbox import SandboxBroken
from tests.messages.stage import Situation
from tests.messages.steps import (
    _Bare,
    alone,
    course_without,
    damaged,
    did,
    machine,
    no_grader,
    own_cache,
    proved,
    started,
)

S = Situation

SITUATIONS: dict[str, list[Situation]] = {
    "tour": [
        S("the whole", "tritonlab tour"),
        S("the grader does not start", "tritonlab tour", (),
          (no_grader(SandboxBroken("The grader's helper process ended with status 1.")),)),
    ],
    "doctor": [
        S("all is well", "tritonlab doctor", (), (machine,)),
        S("the sandbox is weak", "tritonlab doctor", (started, damaged), (lambda: machine(_Bare),)),
        S("the grader does not start", "tritonlab doctor", (),
          (machine, no_grader(SandboxBroken("The grader's helper process ended with status 1.")))),
    ],
    "check": [
        S("an unknown id", "tritonlab check dubling"),
        S("no course there", "tritonlab check --course nowhere"),
        S("all is proved", "tritonlab check doubling --runs 1", (own_cache,), (alone,)),
        S("it was proved before", "tritonlab check doubling --runs 1", (own_cache, proved),
          (alone,)),
        S("a module without its exercise", "tritonlab check doubling --runs 1",
          (own_cache, course_without("tracks/*/01-doubling/kernel.py")), (alone,)),
    ],
    "new": [
        S("a module", "tritonlab new track2/my-idea --course course",
          (did(lambda s: shutil.copytree(s.root, s.home / "course")),)),
        S("it is there already", "tritonlab new track1/doubling"),
        S("no such track", "tritonlab new track9/my-idea"),
        S("no name for a module", "tritonlab new track1/My_Idea"),
        S("no name for a function", "tritonlab new track1/my-idea --entry 9"),
        S("no course there", "tritonlab new track1/my-idea --course nowhere"),
    ],
}
