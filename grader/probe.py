"""Whether this machine's GPU can be used, tried with one small kernel, and how fast it is."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from grader import source
from grader.gpus import NoGpu
from grader.measurement import Ceilings, Gpu
from grader.outcome import Stopped
from grader.session import Session
from grader.source import KERNEL

if TYPE_CHECKING:
    from grader.sandbox import Sandbox

_TEXT = """\
import torch
import triton
import triton.language as tl


@triton.jit
def double_kernel(x_ptr, out_ptr, BLOCK_SIZE: tl.constexpr):
    offs = tl.arange(0, BLOCK_SIZE)
    tl.store(out_ptr + offs, 2 * tl.load(x_ptr + offs))


def double(x):
    out = torch.empty_like(x)
    double_kernel[(1,)](x, out, BLOCK_SIZE=128)
    return out
"""


@dataclass(frozen=True)
class Probe:
    """What the GPU answered. ``unusable`` says why no kernel runs on it, as far as that is known.
    """

    gpu: Gpu | None = None
    ceilings: Ceilings | None = None
    unusable: str = ""


def probe(box: Sandbox, tell: Callable[[str], None] = lambda event: None) -> Probe:
    """Ask the GPU for its name, run a kernel on it, and find out its ceilings, which are kept."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / KERNEL
        path.write_text(_TEXT)
        submitted = source.read(path)
    gpu: Gpu | None = None
    x = torch.arange(128.0)
    with Session(submitted, "double", box) as session:
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
                return Probe(gpu, unusable="it doubled numbers, and they came out wrong")
            tell("measuring how fast the GPU is")
            return Probe(gpu, session.ceilings())
        except NoGpu as error:
            return Probe(gpu, unusable=str(error))
        except Stopped as stop:
            return Probe(gpu, unusable=stop.finding.seen)
