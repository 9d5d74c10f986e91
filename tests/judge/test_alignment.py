"""The arguments that make accesses narrow, as `tritonlab inspect` names them."""

from __future__ import annotations

import pytest

from grader.diagnosis.perf_lints import Defect
from grader.engine.compiler.targets import find
from grader.inspect.inspection import inspect
from grader.suite import EXACT, Cost, Input, Suite, performance, rand
from tests.support.tiers import by_default

HEAD = "import math\n\nimport torch\nimport triton\nimport triton.language as tl\n\n\n"
ROWS = HEAD + '''\
@triton.jit
def double_kernel(x_ptr, out_ptr, n_cols, stride_x, ALIGN: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x_start, out_start = row * stride_x, row * n_cols
    x = tl.load(x_ptr + x_start + cols, mask=mask)
    tl.store(out_ptr + out_start + cols, x * 2, mask=mask)


def double(x):
    out = torch.empty_like(x)
    n_cols = x.shape[1]
    double_kernel[(x.shape[0],)](x, out, n_cols, x.stride(0), math.gcd(16, n_cols, x.stride(0)),
                                 BLOCK=triton.next_power_of_2(n_cols))
    return out
'''
HINTS = (
    ("cols < n_cols", "tl.max_constancy(cols < n_cols, ALIGN)"),
    ("= row * stride_x, row * n_cols",
     "= tl.multiple_of(row * stride_x, ALIGN), tl.multiple_of(row * n_cols, ALIGN)"))
VECTOR = HEAD + '''\
@triton.jit
def double_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    start = tl.program_id(0) * BLOCK
    offs = start + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    tl.store(out_ptr + offs, x * 2, mask=mask)


def double(x):
    out = torch.empty_like(x)
    double_kernel[(triton.cdiv(x.numel(), 2048),)](x, out, x.numel(), BLOCK=2048)
    return out
'''
ACCESSES = """\
    x = tl.load(x_ptr + offs, mask=mask)
    tl.store(out_ptr + offs, x * 2, mask=mask)
"""
WHOLE = """\
    if start + BLOCK <= n:
        tl.store(out_ptr + offs, tl.load(x_ptr + offs) * 2)
    else:
        tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=mask) * 2, mask=mask)
"""
PRODUCT = HEAD + '''\
@triton.jit
def product_kernel(a_ptr, out_ptr, N, BLOCK: tl.constexpr, BLOCK_K: tl.constexpr):
    m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    k = tl.arange(0, BLOCK_K)
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, N, BLOCK_K):
        in_m, in_n, in_k = m < N, n < N, start + k < N
        a = tl.load(a_ptr + m[:, None] * N + (start + k)[None, :],
                    mask=in_m[:, None] & in_k[None, :], other=0.0)
        b = tl.load(a_ptr + (start + k)[:, None] * N + n[None, :],
                    mask=in_k[:, None] & in_n[None, :], other=0.0)
        acc = tl.dot(a, b, acc)
    tl.store(out_ptr + m[:, None] * N + n[None, :], acc.to(out_ptr.dtype.element_ty),
             mask=(m < N)[:, None] & (n < N)[None, :])


def double(x):
    out = torch.empty_like(x)
    tiles = triton.cdiv(x.shape[0], 128)
    product_kernel[(tiles, tiles)](x, out, x.shape[0], BLOCK=128, BLOCK_K=64, num_warps=8)
    return out
'''
LONG = (1 << 27) + 13


@pytest.fixture
def defects(tmp_path, sandbox):
    """The defects of a kernel on one input, for an H200."""
    def defects(text: str, x: Input, *changes: tuple[str, str]) -> list[Defect]:
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        path = tmp_path / "kernel.py"
        path.write_text(text)
        suite = Suite(entry="double", parameters=("x",), reference=lambda x: 2 * x,
                      tolerance=EXACT, cost=lambda x: Cost(bytes=2 * x.nbytes),
                      cases=[performance("a large input", x)])
        return list(inspect(path, suite, find("h200"), sandbox=sandbox).defects)

    return defects


def rows(n_cols: int, dtype: str = "bfloat16") -> Input:
    return rand(12345, n_cols, dtype=dtype)


@pytest.mark.parametrize(("text", "x", "seen", "advice", "weight"), by_default(2, [
    (ROWS, rows(5000), "`n_cols` = 5,000 is not a multiple of 16 (it is one of 8, but Triton "
     "detects only 16) and `stride_x` = 5,000 is", "tl.multiple_of(offset, 8)", "defect"),
    (ROWS, rows(5000, "float32"), "read 4 bytes at a time by each thread, where 16 bytes",
     "tl.max_constancy(mask, 4)", "hint"),
    (ROWS, rows(5001), "`stride_x` = 5,001 is not a multiple of 8",
     "Rows start at different alignments", "hint"),
    (VECTOR, rand(LONG, dtype="bfloat16"), "possible: `n` = 134,217,741 is not a multiple of 8",
     "Only the last tile needs the mask", "defect"),
    (VECTOR, rand(1 + (1 << 27), dtype="bfloat16")[1:],
     "possible: `x_ptr` starts 2 bytes after a multiple of 16", "tensors that start at", "hint"),
]), ids=["a multiple of 8", "a multiple of 8 in float32", "an odd stride", "an odd length",
        "an odd start"])
def test_a_scalar_access_names_its_argument_and_the_remedy(defects, text, x, seen, advice, weight):
    defect, *_ = [one for one in defects(text, x) if "is read" in one.seen]

    assert defect.name == "scalar access"
    assert seen in defect.seen
    assert advice in defect.advice
    assert defect.weight == weight


@pytest.mark.parametrize(("text", "x", "changes"), [
    (ROWS, rows(5008), ()), (ROWS, rows(5000), HINTS),
    (VECTOR, rand(LONG, dtype="bfloat16"), ((ACCESSES, WHOLE),)),
], ids=["a multiple of 16", "hints", "whole tiles without a mask"])
def test_the_remedy_of_a_scalar_access_ends_it(defects, text, x, changes):
    assert defects(text, x, *changes) == []


def test_a_scalar_operand_of_a_product_is_not_called_unpipelined(defects):
    names = {one.name for one in defects(PRODUCT, rand(5000, 5000, dtype="float16"))}

    assert "scalar access" in names
    assert "no pipelining" not in names
