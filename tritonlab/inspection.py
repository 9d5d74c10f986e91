"""Inspecting an exercise: which file, which GPU, and what goes wrong in words."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING

import grader
from grader import inspection
from grader.engine.compiler import targets
from grader.engine.compiler.targets import Target
from grader.inspection import Inspection
from tritonlab.errors import (
    BadCourse,
    CannotGrade,
    UnusableFile,
    brief,
)
from tritonlab.grading import Submission, started, unknown_case

if TYPE_CHECKING:
    from grader.sandbox import Sandbox

OnEvent = Callable[[str], None]


def inspect(submission: Submission, target: Target, *, case: str | None = None,
            listings: bool = False, on_event: OnEvent | None = None,
            sandbox: Sandbox | None = None) -> Inspection:
    """Have a submission compiled for a GPU and looked at; nothing is recorded.

    Raises:
        BadCourse: the module has no hidden tests.
        CannotGrade: the grader does not start, or does not go on.
        UnusableFile: the file is gone or no file any more.
        TritonlabError: ``case`` does not mean one case.
    """
    from grader.sandbox import SandboxBroken

    module = submission.module
    with contextlib.nullcontext(sandbox) if sandbox else started() as box:
        try:
            suite = grader.load_suite(module.suite)
            return inspection.inspect(submission.kernel, suite, target, case=case,
                                      listings=listings, on_event=on_event, sandbox=box)
        except grader.UnknownCase as error:
            raise unknown_case(module, error) from error
        except FileNotFoundError as error:
            raise BadCourse(f"{module.id} has no hidden tests at {module.suite}.",
                            "Install tritonlab again.") from error
        except grader.UnreadableSubmission as error:  # it changed since it was found
            raise UnusableFile(str(error), "Check the file, then repeat the command.") from error
        except SandboxBroken as error:
            raise CannotGrade(f"A process of the grader ended unexpectedly: {brief(str(error))}",
                              "`tritonlab doctor` looks for the cause.") from error


def command(submission: Submission, target: Target, case: str | None) -> str:
    """What to type to inspect it again."""
    words = [submission.typed("inspect")]
    if target.name != targets.DEFAULT:
        words.append(f"--target {target.name}")
    if case is not None:
        words.append(f"--case {shlex.quote(case)}")
    return " ".join(words)
