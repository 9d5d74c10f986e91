"""What a proof of a memory check consists of, and how it is run."""

from __future__ import annotations

import inspect
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from grader.engine.interpreter.eager import KernelFailed, interpreted
from grader.report import Finding


@dataclass(frozen=True)
class Wrong:
    """Host code whose launch has to be found fault with.

    The line is the one of ``kernel`` that bears the comment ``# <- code``. ``program``: as the
    sentence names it ("program 3", "programs 0 and 1"); ``index``: in elements of ``tensor``.
    """

    kernel: Any
    run: Callable[[], object]
    code: str
    program: str
    tensor: str = ""
    index: int | None = None
    order: Any = "forward"


@dataclass(frozen=True)
class Right:
    """Host code that must give no finding; it returns what came out and what should have."""

    run: Callable[[], tuple[torch.Tensor, torch.Tensor]]
    order: Any = "forward"
    duplicate_writes: bool = False


@dataclass(frozen=True)
class Kind:
    """One kind of mistake: kernels that make it, and kernels that come close and do not."""

    wrong: dict[str, Wrong]
    right: dict[str, Right]


def found(case: Wrong, chunk: int | None) -> list[Finding]:
    """Everything that the engine has to say about a launch."""
    stopped = []
    with interpreted(order=case.order, chunk=chunk) as trace:
        try:
            case.run()
        except KernelFailed as failure:
            stopped = [failure.finding]
    return [*trace.findings, *stopped]


def marked(kernel: Any, code: str) -> list[int]:
    """The lines of the kernel's file that bear the comment ``# <- code``."""
    lines, first = inspect.getsourcelines(kernel.fn)
    return [first + i for i, line in enumerate(lines) if re.search(rf"# <- {code}\b", line)]


def speaks_of(finding: Finding, case: Wrong) -> list[str]:
    """What of the case the finding does not tell, or tells wrongly."""
    missing = []
    lines = marked(case.kernel, case.code)
    if finding.code != case.code:
        missing.append(f"the code {case.code}")
    if finding.line not in lines:
        missing.append(f"line {lines}")
    if not re.search(rf"\b{re.escape(case.program)}(?![\d,])", finding.seen):
        missing.append(case.program)
    if case.tensor and f"`{case.tensor}`" not in finding.seen:
        missing.append(f"`{case.tensor}`")
    if case.index is not None and not re.search(rf"(index|element) {case.index}\b", finding.seen):
        missing.append(f"index {case.index}")
    return missing


def gist(findings: list[Finding]) -> set[tuple[str, int | None, str]]:
    """Code, line and what the first program did; how many others did so too is left out: of two
    programs that meet, only the later one is at fault, and together neither may be the later."""
    return {(f.code, f.line, f.seen.partition(";")[0]) for f in findings}


def numbers(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """0, 1, 2 … : every element tells where it came from."""
    return torch.arange(torch.Size(shape).numel()).reshape(shape).to(dtype)


class OutOfTime(BaseException):
    """No ``Exception``: the engine would take that for the kernel's own."""


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Break off what takes longer: a check for endless waiting must not wait without end."""

    def ring(number: int, frame: object) -> None:
        raise OutOfTime(f"not done after {seconds} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
