"""What the grader says of a file before it runs anything of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from grader.source import MAX_BYTES, UnreadableSubmission, inspect, read

RIGHT = '''\
from __future__ import annotations
import torch
import triton
import triton.language as tl

@triton.jit
def copy_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(y_ptr + offs, tl.load(x_ptr + offs, mask=offs < n), mask=offs < n)

def copy(x, y):
    out = torch.empty_like(x)
    out[...] = 0
    copy_kernel[(1,)](x, out, x[..., 0].numel(), BLOCK=16)
    return out
'''

BLANKS = '''\
from __future__ import annotations
# TODO 1: which names does the file use that nothing binds?


# TODO 2: what turns this function into a kernel?
def copy_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = ...  # TODO 3: which elements?
    # TODO 4: move them
    ...

def copy(x, y):
    out = ...  # TODO 5: where does the result go?
    copy_kernel[...](  # TODO 6: how many programs?
        x, out, x.numel(), BLOCK=16)
    return out
'''


def findings(tmp_path: Path, text: str | bytes, blanks: int = 0):
    path = tmp_path / "kernel.py"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return inspect(read(path), "copy", ("x", "y"), blanks)


def test_a_whole_file_has_no_findings_and_indexing_with_dots_is_no_blank(tmp_path):
    assert findings(tmp_path, RIGHT) == []


def test_every_blank_is_named_by_its_number(tmp_path):
    (finding,) = findings(tmp_path, BLANKS, blanks=6)

    assert finding.code == "P01"
    assert finding.todos == (1, 2, 3, 4, 5, 6)
    assert finding.seen == "6 of 6 blanks are left: TODO 1 to 6."


def test_filled_blanks_are_no_longer_counted_although_their_comments_stay(tmp_path):
    imports = "import torch, triton\nimport triton.language as tl  # TODO 1:"
    text = BLANKS.replace("# TODO 1: which", imports)
    text = text.replace("def copy_kernel", "@triton.jit\ndef copy_kernel")
    text = text.replace("offs = ...", "offs = tl.arange(0, BLOCK)").replace("out = ...", "out = x")

    (finding,) = findings(tmp_path, text, blanks=6)

    assert finding.todos == (4, 6)
    assert finding.seen == "2 of 6 blanks are left: TODO 4, 6."


def test_a_blank_without_its_comment_is_named_by_its_line(tmp_path):
    (finding,) = findings(tmp_path, RIGHT.replace("tl.arange(0, BLOCK)", "..."))

    assert (finding.code, finding.line) == ("P01", 8)
    assert "`...` in line 8" in finding.seen


@pytest.mark.parametrize(("change", "code", "says"), [
    (("@triton.jit\n", ""), "P03", "`copy_kernel` is launched"),
    (("def copy(x, y)", "def copy(x)"), "P04", "takes (x)"),
    (("def copy(x, y)", "def copy(y, x)"), "P04", "`copy(x, y)`"),
    (("def copy(x, y)", "def copied(x, y)"), "P04", "defines no function"),
    (("def copy(x, y)", "def copy(x, y, z)"), "P04", "takes (x, y, z)"),
    (("out = torch.empty_like(x)", "out = = 1"), "P02", "line 12"),
    (("def copy(x, y):", "def copy(x, y)"), "P02", "^"),
    (("from __future__", "import os\nfrom __future__"), "P02", "line 2"),
    (("@triton.jit", "return 1\n@triton.jit"), "P02", "'return' outside function"),
])
def test_a_file_that_cannot_be_run_is_refused_with_its_code(tmp_path, change, code, says):
    (finding,) = findings(tmp_path, RIGHT.replace(*change))

    assert finding.code == code
    assert says in finding.seen


@pytest.mark.parametrize("change", [
    ("def copy(x, y)", "def copy(x, y, *, block=1024)"),
    ("def copy(x, y)", "def copy(x, y, block=1024)"),
    ("@triton.jit", "@triton.heuristics({})\n@triton.jit"),
    ("@triton.jit", "@triton.jit()"),
], ids=["keyword option", "option", "heuristics", "called jit"])
def test_harmless_differences_are_accepted(tmp_path, change):
    assert findings(tmp_path, RIGHT.replace(*change)) == []


@pytest.mark.parametrize("data", [
    b"\xef\xbb\xbf" + RIGHT.encode(), RIGHT.replace("\n", "\r\n").encode(),
], ids=["byte order mark", "CRLF"])
def test_other_encodings_of_the_same_text_are_accepted(tmp_path, data):
    assert findings(tmp_path, data) == []


def test_bytes_that_are_no_text_are_refused(tmp_path):
    (finding,) = findings(tmp_path, b"x = '\xff\xfe'\n")

    assert finding.code == "P02"


@pytest.mark.parametrize("make", [
    lambda path: None,
    lambda path: path.mkdir(),
    lambda path: os.mkfifo(path),
    lambda path: path.write_bytes(b"#" * (2 << 20)),
    lambda path: path.symlink_to(path),
], ids=["missing", "folder", "fifo", "too large", "loop"])
def test_what_is_no_file_cannot_be_read(tmp_path, make):
    path = tmp_path / "kernel.py"
    make(path)

    with pytest.raises(UnreadableSubmission, match=r"kernel\.py"):
        read(path)


def test_a_file_that_grows_while_it_is_looked_at_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "kernel.py"
    path.write_text("x = 1\n")

    def and_then_grow(look):
        def looked(*args, **options):
            found = look(*args, **options)
            path.write_bytes(b"#" * (MAX_BYTES + 1))
            return found

        return looked

    monkeypatch.setattr(os, "fstat", and_then_grow(os.fstat))
    monkeypatch.setattr(Path, "stat", and_then_grow(Path.stat))

    with pytest.raises(UnreadableSubmission, match=r"1\.0 MB; a kernel file may have 1 MiB"):
        read(path)
