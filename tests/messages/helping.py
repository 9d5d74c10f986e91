"""What helps with an exercise: explain, hint, reset, solution."""

from __future__ import annotations

import errno

from tests.messages.stage import Situation
from tests.messages.steps import (
    HOST,
    changed,
    course_without,
    did,
    failing,
    impatient,
    passed,
    right,
    started,
    typed,
    wrote,
)

S = Situation

SITUATIONS: dict[str, list[Situation]] = {
    "explain": [
        S("a code", "tritonlab explain M02"),
        S("all of them", "tritonlab explain"),
        S("an unknown code", "tritonlab explain M99"),
    ],
    "codes": [
        S("all of them", "tritonlab codes"),
        S("one by its name", "tritonlab codes store-out-of-bounds"),
        S("an unknown code", "tritonlab codes M99"),
    ],
    "trace": [
        S("a right kernel", "tritonlab trace", (started, right)),
        S("what failed last", "tritonlab trace", (started, changed("2 * x, mask", "3 * x, mask"),
                                                  typed("tritonlab grade"))),
        S("one program", "tritonlab trace --program 1", (started, right)),
        S("a program outside the grid", "tritonlab trace --program 999", (started, right)),
        S("no place in a grid", "tritonlab trace --program first", (started, right)),
        S("no such launch", "tritonlab trace --program 0 --launch 7", (started, right)),
        S("an unknown case", "tritonlab trace --case colour", (started, right)),
        S("no seed", "tritonlab trace --seed xyz", (started, right)),
        S("blanks left", "tritonlab trace", (started,)),
        S("a syntax error", "tritonlab trace", (started, wrote("def doubling(x:\n"))),
        S("it hangs", "tritonlab trace", (started, changed(HOST, f"    while True:\n        pass\n"
                                                           f"{HOST}")), (impatient,)),
        S("it does not compile", "tritonlab trace", (started, changed(
            "2 * x, mask", "x + tl.arange(0, 2), mask"))),
        S("a page in no folder", "tritonlab trace --html nowhere/page.html", (started, right)),
        S("no browser", "tritonlab trace --open", (started, right)),
        S("no workspace", "tritonlab trace"),
        S("an unknown id", "tritonlab trace dubling", (started,)),
    ],
    "hint": [
        S("before a grade", "tritonlab hint", (started,)),
        S("the second", "tritonlab hint", (started, typed("tritonlab hint"))),
        S("the last", "tritonlab hint --todo 4",
          (started, *[typed("tritonlab hint --todo 4")] * 2)),
        S("all were shown", "tritonlab hint --todo 4",
          (started, *[typed("tritonlab hint --todo 4")] * 3)),
        S("after a failure", "tritonlab hint", (started, changed("2 * x, mask", "3 * x, mask"),
                                                typed("tritonlab grade"))),
        S("no such TODO", "tritonlab hint --todo 9", (started,)),
        S("no such function", "tritonlab hint --function relu", (started,)),
        S("no workspace", "tritonlab hint"),
        S("an unknown id", "tritonlab hint dubling", (started,)),
        S("a full disk", "tritonlab hint", (started,), (failing(errno.ENOSPC),)),
    ],
    "reset": [
        S("nobody can be asked", "tritonlab reset", (started,)),
        S("your work, kept in a backup", "tritonlab reset --yes", (started, right)),
        S("nothing was changed", "tritonlab reset --yes", (started,)),
        S("undone", "tritonlab reset --undo", (started, right, typed("tritonlab reset --yes"))),
        S("nothing to undo", "tritonlab reset --undo", (started,)),
        S("no workspace", "tritonlab reset --yes"),
        S("an unknown id", "tritonlab reset dubling --yes", (started,)),
    ],
    "solution": [
        S("before a pass", "tritonlab solution", (started,)),
        S("given up", "tritonlab solution --give-up", (started,)),
        S("after a pass", "tritonlab solution", (passed,)),
        S("no workspace", "tritonlab solution"),
        S("an unknown id", "tritonlab solution dubling", (started,)),
        S("the exercise is gone", "tritonlab solution --give-up",
          (started, did(lambda s: s.kernel.unlink()))),
        S("a course without it", "tritonlab solution --give-up",
          (started, course_without("solutions/*/01-doubling/kernel.py"))),
    ],
}
