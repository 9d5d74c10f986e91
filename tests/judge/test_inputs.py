"""Inputs that lie far apart in memory: they take none between them, and 32 bits do not reach them.
"""

from __future__ import annotations

import resource
from pathlib import Path

import pytest
import torch

import grader
from grader import Verdict
from grader.processes.decoy_inputs import decoys
from grader.recording.arena import as_tensor, pack, unpack, view_of
from grader.sandbox import Sandbox
from grader.suite import EXACT, Cost, Input, Suite, edge, rand

FAR = 1 << 30  # elements; twice as many are beyond 31 bits

KERNEL = '''\
import torch
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, out_ptr, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0){widened}
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + offs, mask=offs < n)
    tl.store(out_ptr + row * n + offs, x, mask=offs < n)


def copied(x):
    out = x.new_empty(x.shape)
    copy_kernel[(x.shape[0],)](x, out, x.stride(0), x.shape[1], BLOCK=128)
    return out
'''


def suite(*inputs: Input) -> Suite:
    return Suite("copied", ("x",), lambda x: x, EXACT, lambda x: Cost(bytes=2 * x.numel()),
                 [edge(f"rows far apart, {number}", one) for number, one in enumerate(inputs)])


def test_tensors_far_apart_have_their_strides_and_take_no_memory():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    generator = torch.Generator().manual_seed(1)

    tensor = rand(3, 100, dtype="int8").apart(FAR, 1).draw(generator, 1024)

    assert tensor.stride() == (FAR, 1)
    assert len(tensor.unique()) > 10
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10  # KiB


def test_their_decoys_lie_as_far_apart_and_hold_other_values():
    tensor = rand(3, 100).apart(FAR, 1).draw(torch.Generator().manual_seed(1), 1024)

    (decoy,) = decoys([tensor])

    assert (decoy.shape, decoy.stride()) == (tensor.shape, tensor.stride())
    assert not torch.equal(decoy, tensor)


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32"])
def test_single_elements_far_apart_are_handed_over(dtype: str):
    """Each is a tensor of one element, whose stride may be any."""
    tensor = rand(2, 5, dtype=dtype).apart(1, FAR >> 4).draw(torch.Generator().manual_seed(1), 1024)

    with pack([tensor]) as arena:
        [got] = unpack(arena.fd, arena.layout())

    assert torch.equal(as_tensor(got, view_of(tensor, 0)), tensor)


@pytest.mark.parametrize(("widened", "verdict"), [
    (".to(tl.int64)", Verdict.PASSED), ("", Verdict.FAILED)], ids=["64 bits", "32 bits"])
def test_offsets_of_32_bits_do_not_reach_rows_far_apart(widened: str, verdict: Verdict,
                                                         sandbox: Sandbox, tmp_path: Path):
    path = tmp_path / "kernel.py"
    path.write_text(KERNEL.replace("{widened}", widened))
    cases = suite(rand(3, 100, dtype="int8").apart(FAR, 1), rand(3, 100).apart(FAR, 1))

    report = grader.grade(path, cases, sandbox=sandbox)

    assert report.verdict is verdict, report.reason
    codes = {finding.code for finding in report.findings()}
    assert codes == (set() if verdict is Verdict.PASSED else {"M05"})
