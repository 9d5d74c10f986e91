"""Inspects an exercise as compiled for a GPU."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING

import grader
from grader.engine.compiler import targets
from grader.engine.compiler.targets import Target
from grader.inspect import inspection
from grader.inspect.inspection import Inspection
from tritonlab.grading.grade import grader_for
from tritonlab.workspace.submission import Submission

if TYPE_CHECKING:
    from grader.sandbox import Sandbox

OnEvent = Callable[[str], None]


def inspect(submission: Submission, target: Target, *, case: str | None = None,
            listings: bool = False, on_event: OnEvent | None = None,
            sandbox: Sandbox | None = None) -> Inspection:
    """Compiles a submission for a GPU and inspects it; records nothing.

    Raises:
        BadCourse: the module has no hidden tests.
        CannotGrade: the grader does not start, or does not go on.
        UnusableFile: the file disappeared or is not a file.
        TritonlabError: ``case`` does not name one case.
    """
    with grader_for(submission.module, sandbox) as box:
        suite = grader.load_suite(submission.module.suite)
        return inspection.inspect(submission.kernel, suite, target, case=case, listings=listings,
                                  on_event=on_event, sandbox=box)


def command(submission: Submission, target: Target, case: str | None) -> str:
    """Returns the command that repeats the inspection."""
    words = [submission.typed("inspect")]
    if target.name != targets.DEFAULT:
        words.append(f"--target {target.name}")
    if case is not None:
        words.append(f"--case {shlex.quote(case)}")
    return " ".join(words)
