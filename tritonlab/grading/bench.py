"""Benchmarks an exercise beside the solution and torch."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import grader
from grader.bench.bench import Benchmark, benched
from grader.engine.compiler.targets import Target
from grader.gpu import detect
from tritonlab.course.course import Module
from tritonlab.errors import BadCourse, TritonlabError, brief
from tritonlab.grading.grade import grader_for
from tritonlab.workspace.submission import Submission

if TYPE_CHECKING:
    from grader.bench.bench import Clock
    from grader.sandbox import Sandbox

OnEvent = Callable[[str], None]


def bench(submission: Submission, *, function: str = "", target: Target | None = None,
          on_event: OnEvent | None = None, sandbox: Sandbox | None = None) -> Benchmark:
    """Times a submission beside the reference solution and torch; records nothing.

    Args:
        function: the only one to be timed.
        target: predict for this GPU, even if there is one to measure on.

    Raises:
        BadCourse: the module has no hidden tests, or no solution.
        CannotGrade: the grader does not start, or does not go on.
        UnusableFile: the file disappeared or is not a file.
        TritonlabError: the module, or ``function``, has no benchmark.
    """
    from grader.bench.bench import bench as timed
    module = submission.module
    with grader_for(module, sandbox) as box:
        try:
            suite = grader.load_suite(module.suite)
            check(module, [part.entry for part in benched(suite)], function)
            with _clock(module, box, target, on_event) as (clock, why):
                benchmark = timed(submission.kernel, suite, clock, solution=module.solution,
                                  function=function, on_event=on_event, sandbox=box)
        except FileNotFoundError as error:
            raise BadCourse(f"{module.id} is not complete: {brief(str(error))}",
                            "Install tritonlab again.") from error
    return replace(benchmark, why=why)


@contextmanager
def _clock(module: Module, box: Any, target: Target | None,
           on_event: OnEvent | None) -> Iterator[tuple[Clock, str]]:
    """Yields the clock, and why it is not the GPU."""
    from grader.bench import timers
    from grader.gpu.client import NoGpu

    if target is not None:
        yield timers.Predicted(target), ""
        return
    with contextlib.ExitStack() as resources:
        try:
            if on_event:
                on_event("what the GPU reaches")
            clock = resources.enter_context(timers.measuring(box, module.suite))
        except NoGpu as error:
            yield timers.Predicted(detect.default_target()), str(error)
        else:
            yield clock, ""


def check(module: Module, names: list[str], function: str) -> None:
    """Checks that the module, or its function, has a benchmark.

    Raises:
        TritonlabError: it has none.
    """
    if not names:
        raise TritonlabError(f"{module.id} has no benchmark: what it asks for is not a matter of "
                             "speed.", f"`tritonlab grade {module.id}` grades it.")
    if function and function not in names:
        raise TritonlabError(f"{module.id} has no benchmark of a function '{function}'. It has "
                             f"{', '.join(names)}.", "Name one of these with --function.")


def command(submission: Submission, function: str, target: Target | None) -> str:
    """Returns the command that repeats the benchmark."""
    words = [submission.typed("bench")]
    if function:
        words.append(f"--function {shlex.quote(function)}")
    if target is not None:
        words.append(f"--target {target.name}")
    return " ".join(words)
