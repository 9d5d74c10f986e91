"""The pictures of the lessons: what the kernels of each lesson.py touch, from traces.

    python -m tests.evidence.lesson_pictures [MODULE...]    writes picture.svg into their folders

The launch is the one of the smallest tensors among those of most axes and several programs, or what
the ``picture`` of its module.toml calls. The program in the middle of the grid is colored.
"""

import contextlib
import io
import os
import runpy
import sys
import tomllib
from pathlib import Path
from unittest import mock

import torch
from triton import knobs

from grader.engine.interpreter import tracer
from grader.engine.interpreter.eager import TracedCall, interpreted
from grader.engine.interpreter.tracer import Tracer
from grader.recording.trace import Trace
from tritonlab.course import course
from tritonlab.course.course import Module
from tritonlab.trace import still

MOST_ELEMENTS = 1 << 18  # of all tensors of a launch that is drawn by itself


def picture(module: Module) -> str:
    """Draws the picture of a lesson.

    Raises:
        ValueError: no launch of the lesson fits.
    """
    recorder = Tracer()
    with (mock.patch.multiple(tracer, MAX_BYTES=1 << 40, MAX_STEPS=1 << 40),
          mock.patch.dict(os.environ), contextlib.redirect_stdout(io.StringIO()),
          knobs.runtime.scope(), interpreted(tracer=recorder) as launches):
        knobs.runtime.interpret = False  # a lesson asks for Triton's own interpreter
        path = str(module.folder / "lesson.py")
        if call := tomllib.loads((module.folder / "module.toml").read_text()).get("picture"):
            eval(call, {"torch": torch, **runpy.run_path(path, run_name="lesson")})
        else:
            with contextlib.suppress(Exception):  # the lesson shows kernels that fail, too
                runpy.run_path(path, run_name="__main__")
    call = _chosen(launches.traced)
    trace = Trace([], [], recorder.arrays, bytes(recorder.data))
    tensors = [still.StillTensor(name.removesuffix("_ptr"), tuple(x.shape), tuple(x.stride()))
               for name, x in call.tensors.items()]
    count = call.grid[0] * call.grid[1] * call.grid[2]
    words = still.described(tensors, call.groups, trace.numbers, count // 2, count)
    return still.svg(tensors, call.groups, trace.numbers, count // 2, f"{call.kernel}. {words}")


def _chosen(calls: list[TracedCall]) -> TracedCall:
    """The launch that shows most: several programs, tensors of several axes, few elements."""
    fitting = [call for call in calls if call.tensors and call.groups
               and sum(x.numel() for x in call.tensors.values()) <= MOST_ELEMENTS]
    if not fitting:
        raise ValueError("no launch of the lesson can be drawn")
    return min(fitting, key=lambda call: (
        call.grid == (1, 1, 1), -max(x.dim() for x in call.tensors.values()),
        sum(x.numel() for x in call.tensors.values())))


def main(wanted: list[str]) -> None:
    torch.set_num_threads(1)
    for module in course.load().modules:
        if not wanted or module.id in wanted or module.slug in wanted:
            Path(module.folder / "picture.svg").write_text(picture(module))
            print(module.id)


if __name__ == "__main__":
    main(sys.argv[1:])
