"""A trial: one small kernel, graded right and wrong, to see that this machine tells them apart."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from grader.report import Report, Verdict
from grader.source import KERNEL
from grader.suite import EXACT, Cost, Suite, correctness, edge, rand

if TYPE_CHECKING:
    from grader.sandbox import Sandbox

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
    """What a grade says of the right kernel and of the wrong one."""

    right: Report
    wrong: Report

    @property
    def interpreter(self) -> str:
        """Why the interpreter's verdicts cannot be trusted here; empty where they can."""
        for result in self.right.results[:len(SUITE.cases)]:
            if result.verdict is not Verdict.PASSED:
                said = result.findings[0].seen if result.findings else result.reason
                return f"a right kernel did not pass ({said or self.right.reason})"
        if len(self.right.results) < len(SUITE.cases):
            return f"a right kernel was not graded ({self.right.reason})"
        failure = self.wrong.first_failure
        codes = {finding.code for finding in failure.findings} if failure else set()
        return "" if MISTAKE in codes else "a kernel that reads past its tensor was not caught"

    @property
    def compiler(self) -> str:
        """Why kernels cannot be compiled here; empty where they can."""
        for result in self.right.results[len(SUITE.cases):]:
            if result.verdict is Verdict.PASSED:
                return ""
            return result.findings[0].seen if result.findings else result.reason
        return self.right.reason or "it gave no answer"


def run(box: Sandbox, tell: Callable[[str], None] = lambda event: None) -> Trial:
    """Grade both kernels for the default target, without a GPU."""
    from grader.judge import grade

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / KERNEL

        def graded(text: str) -> Report:
            path.write_text(text)
            return grade(path, SUITE, sandbox=box)

        tell("grading a right kernel and compiling it")
        right = graded(RIGHT)
        tell("grading a wrong kernel")
        return Trial(right, graded(WRONG))
