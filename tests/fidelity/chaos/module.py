"""A module to torment: a course of one small exercise, its right kernel, and places to spoil it."""

from __future__ import annotations

from pathlib import Path

from tests.support import toy

NAME = "softmax"  # its place in the toy course; what it asks for is simpler
PLACE = Path("track1") / NAME / "kernel.py"

SUITE = '''
from grader.suite import EXACT, Cost, Suite, correctness, edge, rand, refuses

suite = Suite(
    entry="doubled",
    parameters=("x",),
    reference=lambda x: 2 * x.double(),
    tolerance=EXACT,
    cost=lambda x: Cost(bytes=2 * x.nbytes),
    cases=[
        correctness("1 000 floats", rand(1_000), public=True),
        correctness("1 024 floats", rand(1_024)),
        correctness("2 000 values of float16", rand(2_000, dtype="float16")),
        edge("127 floats", rand(127)),
        edge("no element", rand(0), launches=0),
        edge("every other one of 600", rand(600)[::2]),
        refuses("x is a list", [1.0], raises=TypeError, mentions=("x",)),
    ],
)


def test_doubling_twice_is_four_times(submission):
    (x,) = submission.draw(rand(300))

    assert (submission(submission(x)) == 4 * x).all(), "twice the double is not four times"
'''

HEALTHY = '''
import torch
import triton
import triton.language as tl


@triton.jit
def doubled_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(axis=0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    # in the kernel
    tl.store(out_ptr + offs, x + x, mask=mask)


def doubled(x):
    if not isinstance(x, torch.Tensor):
        raise TypeError("x: expected a torch.Tensor")
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    if n:
        # in the call
        doubled_kernel[(triton.cdiv(n, 1024),)](x, out, n, BLOCK_SIZE=1024)
    return out


# at import
'''
WRONG = HEALTHY.replace("x + x", "x + x + x")


def spoiled(place: str, code: str) -> str:
    """The right kernel with ``code`` put "at import", "in the call" or "in the kernel"."""
    marker = f"# {place}"
    indent = next(line for line in HEALTHY.splitlines() if line.strip() == marker)
    indent = indent[: len(indent) - len(indent.lstrip())]
    return HEALTHY.replace(marker, code.strip().replace("\n", "\n" + indent))


def write(root: Path) -> None:
    """Write the course that holds the module below ``root``."""
    toy.write_course(root)
    folder = Path("missing-elements") / "03-softmax"
    (root / "suites" / folder / "suite.py").write_text(SUITE)
    (root / "suites" / folder / "mutants.toml").write_text("mutant = []\n")
    (root / "tracks" / folder / "kernel.py").write_text(HEALTHY)
