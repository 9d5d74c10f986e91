"""The digest of a kernel's code changes with the code, and with nothing else."""

from __future__ import annotations

import pytest

from grader.submission.kernel_digest import kernel_code

FILE = '''"""A file."""
import torch
import triton
import triton.language as tl

SCALE: tl.constexpr = 2.0


@triton.jit
def scaled(x):
    """A helper."""
    return x * SCALE


@triton.autotune(configs=[triton.Config({"BLOCK": 64})], key=["n"])
@triton.jit
def double_kernel(
    x_ptr, out_ptr, n,
    BLOCK: tl.constexpr,
):
    """Doubles."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    tl.store(out_ptr + offs, scaled(tl.load(x_ptr + offs, mask=mask)), mask=mask)


@triton.jit
def other_kernel(x_ptr):
    tl.store(x_ptr, 1.0)


def double(x):
    out = torch.empty_like(x)
    double_kernel[(1,)](x, out, x.numel())
    return out
'''


def digest(old: str = "", new: str = "", key: str = "double_kernel") -> str:
    assert old in FILE
    code = kernel_code(FILE.replace(old, new, 1) if old else FILE, key)
    assert code is not None
    return code.sha256


@pytest.mark.parametrize(("old", "new"), [
    ('"""A file."""', '# A comment\n\n'),
    ('    """Doubles."""\n', ""),
    ('    """A helper."""\n', '    """Scales,\n    and more."""\n'),
    ("    mask = offs < n\n", "    # inside?\n\n    mask = offs < n  # yes\n"),
    ("torch.empty_like(x)", "torch.zeros_like(x)"),
    ("def double(x):", "def helper():\n    pass\n\n\ndef double(x):"),
    ('{"BLOCK": 64}', '{"BLOCK": 128}'),
    ("tl.store(x_ptr, 1.0)", "tl.store(x_ptr, 2.0)"),
], ids=["comment at the top", "docstring", "helper's docstring", "comments within", "host code",
        "host function", "configurations of an autotuner", "another kernel"])
def test_what_compiles_to_the_same_code_has_the_same_digest(old, new):
    assert digest(old, new) == digest()


@pytest.mark.parametrize(("old", "new"), [
    ("mask = offs < n", "mask = offs <= n"),
    ("SCALE: tl.constexpr = 2.0", "SCALE: tl.constexpr = 3.0"),
    ("return x * SCALE", "return x + SCALE"),
    ("@triton.jit\ndef double_kernel", "@triton.jit(noinline=True)\ndef double_kernel"),
    ("n,\n    BLOCK: tl.constexpr", "n: tl.constexpr,\n    BLOCK: tl.constexpr"),
    ("import triton.language as tl", "from triton import language as tl"),
    ("    out = torch.empty_like(x)", "    global SCALE\n    out = torch.empty_like(x)"),
    ("def double(x):", "def scaled(x):"),
    ("    mask = offs < n\n", "    mask = (\n        offs < n)\n"),
], ids=["kernel", "constant", "helper", "option of jit", "constexpr", "import",
        "a global set by host code", "a name bound twice", "layout"])
def test_what_may_compile_to_other_code_has_another_digest(old, new):
    assert digest(old, new) != digest()


def test_kernels_of_one_file_have_digests_of_their_own():
    assert digest(key="other_kernel") != digest()


def test_lines_correspond_where_comments_move_them():
    before, after = (kernel_code(text, "double_kernel") for text in (
        FILE, FILE.replace("    mask = offs < n\n", "    # a comment\n    mask = offs < n\n")))
    assert before is not None and after is not None

    line = FILE.split("\n").index("    mask = offs < n") + 1

    assert after.lines[before.lines.index(line)] == line + 1


@pytest.mark.parametrize("text", [
    FILE.replace("def other_kernel", "def double_kernel"), "x = (", "x = " + "(" * 500 + ")" * 500,
    "import triton\n"], ids=["two of one name", "not Python", "nested", "no kernel"])
def test_without_one_kernel_of_the_name_there_is_no_digest(text):
    assert kernel_code(text, "double_kernel") is None
