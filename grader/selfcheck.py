"""Self-check of this machine: small kernels are graded, and run on its GPU."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from grader.engine.gpu.measurement import Ceilings, Gpu
from grader.gpu.client import NoGpu
from grader.judge.grade import grade
from grader.processes.replies import Stopped
from grader.processes.session import Session
from grader.report import Report, Verdict
from grader.sandbox import Sandbox
from grader.submission import source
from grader.submission.source import KERNEL
from grader.suite import EXACT, Cost, Suite, correctness, edge, rand

RIGHT = """\
import torch
import triton
import triton.language as tl


@triton.jit
def double_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    tl.store(out_ptr + offs, 2 * tl.load(x_ptr + offs, mask=mask), mask=mask)


def double(x):
    out = torch.empty_like(x)
    double_kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK_SIZE=64)
    return out
"""
WRONG = RIGHT.replace("offs < n", "offs <= n")  # the last program touches what is not its own
MISTAKE = "M01"  # the code for an access outside a tensor
SUITE = Suite(
    entry="double", parameters=("x",), reference=lambda x: 2 * x.double(), tolerance=EXACT,
    cost=lambda x: Cost(bytes=2 * x.nbytes), name="trial",
    cases=[correctness("two blocks", rand(128)), edge("part of a block", rand(100))])


@dataclass(frozen=True)
class Trial:
    """The reports of the right kernel and of the wrong one."""

    right: Report
    wrong: Report

    @property
    def interpreter(self) -> str:
        """The reason why the interpreter cannot be trusted here; empty where it can."""
        for result in self.right.results[:len(SUITE.cases)]:
            if result.verdict is not Verdict.PASSED:
                cause = result.findings[0].seen if result.findings else result.reason
                return f"a right kernel did not pass ({cause or self.right.reason})"
        if len(self.right.results) < len(SUITE.cases):
            return f"a right kernel was not graded ({self.right.reason})"
        failure = self.wrong.first_failure
        codes = {finding.code for finding in failure.findings} if failure else set()
        return "" if MISTAKE in codes else "an out-of-bounds read was not detected"

    @property
    def compiler(self) -> str:
        """The reason why kernels cannot be compiled here; empty where they can."""
        for result in self.right.results[len(SUITE.cases):]:
            if result.verdict is Verdict.PASSED:
                return ""
            return result.findings[0].seen if result.findings else result.reason
        return self.right.reason or "it did not reply"


def run(box: Sandbox, tell: Callable[[str], None] = lambda event: None) -> Trial:
    """Grades both kernels for the default target, without a GPU."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / KERNEL

        def graded(text: str) -> Report:
            path.write_text(text)
            return grade(path, SUITE, sandbox=box)

        tell("grading a right kernel and compiling it")
        right = graded(RIGHT)
        tell("grading a wrong kernel")
        return Trial(right, graded(WRONG))


@dataclass(frozen=True)
class Probe:
    """The GPU, its ceilings, and why no kernel runs on it; as far as each is known."""

    gpu: Gpu | None = None
    ceilings: Ceilings | None = None
    unusable: str = ""


def probe(box: Sandbox, tell: Callable[[str], None] = lambda event: None) -> Probe:
    """Runs the right kernel on the GPU, and measures its ceilings, which are kept."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / KERNEL
        path.write_text(RIGHT)
        submitted = source.read(path)
    gpu: Gpu | None = None
    x = torch.arange(128.0)
    with Session(submitted, SUITE.entry, box) as session:
        try:
            tell("asking the GPU")
            gpu = session.look()
            recording = session.record([x]).recording
            if recording is None:
                return Probe(gpu, unusable="no launch could be recorded")
            run = session.run_on_gpu(recording, [x])
            if run.findings:
                return Probe(gpu, unusable=run.findings[0].seen)
            if not torch.equal(run.results[0], 2 * x):
                return Probe(gpu, unusable="a kernel that doubles numbers returned wrong values")
            tell("measuring the speed of the GPU")
            return Probe(gpu, session.ceilings())
        except NoGpu as error:
            return Probe(gpu, unusable=str(error))
        except Stopped as stop:
            return Probe(gpu, unusable=stop.finding.seen)
