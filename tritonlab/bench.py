"""Benchmarking an exercise: which file, by which clock, into which pictures."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import grader
from grader import hardware
from grader.bench import Benchmark, benched
from grader.engine.compiler.targets import Target
from tritonlab.course import Module
from tritonlab.errors import (
    BadCourse,
    CannotGrade,
    TritonlabError,
    UnusableFile,
    brief,
)
from tritonlab.grading import Submission, started

if TYPE_CHECKING:
    from grader.bench import Clock
    from grader.sandbox import Sandbox

OnEvent = Callable[[str], None]


def bench(submission: Submission, *, function: str = "", target: Target | None = None,
          on_event: OnEvent | None = None, sandbox: Sandbox | None = None) -> Benchmark:
    """Time a submission beside the reference solution and torch; nothing is recorded.

    Args:
        function: the only one to be timed.
        target: predict for this GPU, even if there is one to measure on.

    Raises:
        BadCourse: the module has no hidden tests, or no solution.
        CannotGrade: the grader does not start, or does not go on.
        UnusableFile: the file is gone or no file any more.
        TritonlabError: the module, or ``function``, has no benchmark.
    """
    from grader.bench import bench as timed
    from grader.sandbox import SandboxBroken

    module = submission.module
    with contextlib.nullcontext(sandbox) if sandbox else started() as box:
        try:
            suite = grader.load_suite(module.suite)
            check(module, [part.entry for part in benched(suite)], function)
            with _clock(module, box, target, on_event) as (clock, why):
                found = timed(submission.kernel, suite, clock, solution=module.solution,
                              function=function, on_event=on_event, sandbox=box)
            return replace(found, why=why)
        except FileNotFoundError as error:
            raise BadCourse(f"{module.id} is not complete: {brief(str(error))}",
                            "Install tritonlab again.") from error
        except grader.UnreadableSubmission as error:  # it changed since it was found
            raise UnusableFile(str(error), "Check the file, then repeat the command.") from error
        except SandboxBroken as error:
            raise CannotGrade(f"A process of the grader ended unexpectedly: {brief(str(error))}",
                              "`tritonlab doctor` looks for the cause.") from error


@contextmanager
def _clock(module: Module, box: Any, target: Target | None,
           on_event: OnEvent | None) -> Iterator[tuple[Clock, str]]:
    """The clock, and why it is no GPU where one was wanted."""
    from grader import clocks
    from grader.gpus import NoGpu

    if target is not None:
        yield clocks.Predicted(target), ""
        return
    with contextlib.ExitStack() as resources:
        try:
            if on_event:
                on_event("what the GPU reaches")
            clock = resources.enter_context(clocks.measuring(box, module.suite))
        except NoGpu as error:
            yield clocks.Predicted(hardware.default_target()), str(error)
        else:
            yield clock, ""


def check(module: Module, names: list[str], function: str) -> None:
    """See that there is something to be timed.

    Raises:
        TritonlabError: there is not.
    """
    if not names:
        raise TritonlabError(f"{module.id} has no benchmark: what it asks for is not a matter of "
                             "speed.", f"`tritonlab grade {module.id}` grades it.")
    if function and function not in names:
        raise TritonlabError(f"{module.id} has no benchmark of a function '{function}'. It has "
                             f"{', '.join(names)}.", "Name one of these with --function.")


def command(submission: Submission, function: str, target: Target | None) -> str:
    """What to type to time it again."""
    words = [submission.typed("bench")]
    if function:
        words.append(f"--function {shlex.quote(function)}")
    if target is not None:
        words.append(f"--target {target.name}")
    return " ".join(words)
