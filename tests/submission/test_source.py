"""What the grader says of a file before it runs anything of it."""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
import warnings
from pathlib import Path

import pytest

from grader.processes.replies import Stopped
from grader.processes.session import Session
from grader.submission.placeholders import MAX_SHOWN
from grader.submission.source import MAX_BYTES, UnreadableSubmission, inspect, read
from tests.support.tiers import by_default

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
    return inspect(read(path), {"copy": (("x", "y"), ())}, blanks)


def test_a_whole_file_has_no_findings_and_indexing_with_dots_is_no_blank(tmp_path):
    assert findings(tmp_path, RIGHT) == []


def test_every_blank_is_named_by_its_number(tmp_path):
    (finding,) = findings(tmp_path, BLANKS, blanks=6)

    assert finding.code == "P01"
    assert finding.todos == (1, 2, 3, 4, 5, 6)
    assert finding.seen == "6 of 6 blanks are left: TODO 1 to 6."


def test_an_import_from_the_extras_can_be_a_blank_as_well(tmp_path):
    text = RIGHT.replace("@triton.jit", "# TODO 1: what makes libdevice known?\n\n@triton.jit", 1)
    text = text.replace("BLOCK=16)", "BLOCK=libdevice.NONE)", 1)
    known = text.replace("# TODO 1:", "from triton.language.extra import libdevice  # TODO 1:")

    (finding,) = findings(tmp_path, text, blanks=1)

    assert (finding.code, finding.todos) == ("P01", (1,))
    assert findings(tmp_path, known, blanks=1) == []


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
    assert "`...` on line 8" in finding.seen


def test_a_blank_in_a_method_counts_and_what_a_protocol_declares_does_not(tmp_path):
    methods = "\n\nclass Layer(Module):\n    def forward(self, x):\n        ...\n"
    declared = methods.replace("Module", "Protocol")
    line = RIGHT.count("\n") + 5

    (finding,) = findings(tmp_path, RIGHT + methods, blanks=1)

    assert (finding.code, finding.line) == ("P01", line)
    assert finding.seen == f"1 of 1 blank is left: `...` on line {line}."
    assert findings(tmp_path, RIGHT + declared, blanks=1) == []


@pytest.mark.parametrize(("change", "code", "says"), [
    (("@triton.jit\n", ""), "P03", "`copy_kernel` is launched"),
    (("def copy(x, y)", "def copy(x)"), "P04", "is `copy(x)`"),
    (("def copy(x, y)", "def copy(y, x)"), "P04", "`copy(x, y)`"),
    (("def copy(x, y)", "def copied(x, y)"), "P04", "does not define a function"),
    (("def copy(x, y)", "def copy(x, y, z)"), "P04", "is `copy(x, y, z)`"),
    (("out = torch.empty_like(x)", "out = = 1"), "P02", "line 12"),
    (("def copy(x, y):", "def copy(x, y)"), "P02", "^"),
])
def test_a_file_that_cannot_be_run_is_refused_with_its_code(tmp_path, change, code, says):
    (finding,) = findings(tmp_path, RIGHT.replace(*change))

    assert finding.code == code
    assert says in finding.seen


@pytest.mark.parametrize(("change", "line", "says"), [
    (("from __future__", "import os\nfrom __future__"), 2, "at the beginning of the file."),
    (("@triton.jit", "return 1\n@triton.jit"), 6, "'return' outside function."),
    (("out[...] = 0", "break"), 13, "'break' outside loop."),
])
def test_what_only_a_compiler_finds_is_told_by_the_worker(
        tmp_path, sandbox, change, line, says):
    path = tmp_path / "kernel.py"
    path.write_text(RIGHT.replace(*change))
    submitted = read(path)
    assert inspect(submitted, {"copy": (("x", "y"), ())}, 0) == []

    with Session(submitted, "copy", sandbox) as session, pytest.raises(Stopped) as stopped:
        session.ready()

    finding = stopped.value.finding
    assert (finding.code, finding.line) == ("P02", line)
    assert finding.seen.startswith(f"Python cannot compile line {line}: ")
    assert finding.seen.endswith(says)
    assert stopped.value.final


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


def test_a_nul_byte_is_told_with_its_line(tmp_path):
    (finding,) = findings(tmp_path, RIGHT + 'TITLE = "a\0b"\n')

    assert (finding.code, finding.line) == ("P02", RIGHT.count("\n") + 1)
    assert finding.seen == f"Line {finding.line} contains a NUL byte, which is not valid in a " \
                           "Python file."


@pytest.mark.parametrize("encoding", ["latin-1", "utf-8", "ascii", "cp1252", "iso-8859-15"])
def test_a_plain_encoding_may_be_declared(tmp_path, encoding):
    said = "# plain" if encoding == "ascii" else "# \N{LATIN SMALL LETTER E WITH ACUTE}"
    text = f"# -*- coding: {encoding} -*-\n{said}\n{RIGHT}"

    assert findings(tmp_path, text.encode(encoding)) == []


@pytest.mark.parametrize("encoding", [
    "undefined", "punycode", "idna", "utf-7", "unicode_escape", "raw_unicode_escape", "rot13",
    "hex", "zlib", "utf-16", "no-such-thing", "x" * 5000])
def test_any_other_encoding_is_refused_by_name(tmp_path, encoding):
    (finding,) = findings(tmp_path, f"# -*- coding: {encoding} -*-\n{RIGHT}")

    assert finding.code == "P02"
    assert encoding[:5] in finding.seen
    assert len(finding.seen) < 150


def test_a_long_sum_is_no_reason_to_refuse_a_file(tmp_path):
    text = RIGHT + "total = " + " + ".join(["1"] * 500) + "\ndef more(x):\n    return " + \
        " + ".join(["x"] * 500) + "\n"

    assert findings(tmp_path, text) == []
    (finding,) = findings(tmp_path, text.replace("return x +", "return ... +"))
    assert (finding.code, finding.line) == ("P01", 18)


@pytest.mark.parametrize("text", ["x = " + "-" * 90_000 + "1", "x = " + "(" * 900 + ")" * 900])
def test_what_is_nested_too_deeply_does_not_parse(tmp_path, text):
    (finding,) = findings(tmp_path, text + "\n")

    assert finding.code == "P02"
    assert "nested" in finding.seen


@pytest.mark.parametrize(("text", "code"), by_default(2, [
    ("".join(f"# TODO {n % 9999}: what?\ndef f{n}(): pass\n\n" for n in range(20_000)), "P01"),
    ("def f(x):\n" + "    y = ...\n" * 60_000, "P01"),
    ("def f(x):\n    return (\n" + "        ...,\n" * 60_000 + ")\n", "P01"),
    (RIGHT + "def f(x):\n    try:\n        pass\n" + "".join(
        f"{'    ' * d}finally:\n{'    ' * d}    try:\n{'    ' * d}        pass\n"
        for d in range(1, 20)) + "    " * 20 + "finally:\n" + "    " * 21 + "pass\n", None),
    (RIGHT + "".join(
        f"def g{n}(x, y):  # TODO {n % 14} of them\n    z = (x[..., 0] + y) * {n}\n"
        f"    return helper(z, scale=1.5, name='# TODO 3')  # a comment\n\n"
        for n in range(6_500)), None),
]), ids=["comments", "dots", "dots in one statement", "finally", "an honest file"])
def test_a_long_file_is_inspected_in_the_time_that_its_length_needs(tmp_path, text, code):
    started = time.process_time()
    found = findings(tmp_path, text, blanks=14)
    seconds = time.process_time() - started

    assert [finding.code for finding in found] == ([code] if code else [])
    assert all(len(finding.seen) < 300 and len(finding.todos) <= MAX_SHOWN for finding in found)
    assert seconds < 20  # a fortieth of that on an idle machine; what was quadratic took a minute


def test_nothing_of_a_file_is_printed_while_it_is_inspected(tmp_path, capfd):
    text = RIGHT + 'odd = copy is "\x1b[2J"\npattern = "\\d\x1b[2J"\n'

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert findings(tmp_path, text) == []

    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(("dots", "total", "says"), [
    (1, 14, "1 of 14 blanks is left:"), (2, 14, "2 of 14 blanks are left:"),
    (1, 0, "1 blank is left:"), (1, 1, "1 of 1 blank is left:"),
    (15, 14, "15 blanks are left:"), (3, 0, "3 blanks are left:"),
])
def test_blanks_are_counted_in_words_that_can_be_true(tmp_path, dots, total, says):
    (finding,) = findings(tmp_path, RIGHT + "def more(x):\n" + "    ...\n" * dots, total)

    assert finding.seen.startswith(says)


def test_a_number_that_no_exercise_has_is_no_number_of_a_blank(tmp_path):
    (finding,) = findings(tmp_path, RIGHT + f"def more(x):\n    ...  # TODO {'9' * 5000}\n")

    assert (finding.code, finding.todos) == ("P01", ())


def test_only_comments_count_as_todos(tmp_path):
    path = tmp_path / "kernel.py"
    path.write_text(
        "x = '# TODO 1'  # TODO 2: \"a\"\n"
        "y = '''\n# TODO 3\n\\''' # TODO 4\n'''  # TODO 5\n"
        "z = (r'\\'  # TODO 6\n     f\"{x} # TODO 7\")  # and # TODO 8\n")

    assert read(path).todos == {1: 2, 5: 5, 7: 8}


def test_a_further_file_is_read_within_the_folder_only(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "kernel.py").write_text(RIGHT)
    (tmp_path / "secret.txt").write_text("secret")
    (folder / "notes.txt").symlink_to(tmp_path / "secret.txt")

    submitted = read(folder / "kernel.py", ("notes.txt",))

    assert submitted.problem is not None
    assert "points outside" in submitted.problem.seen
    assert b"secret" not in submitted.files["notes.txt"]


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

    with pytest.raises(UnreadableSubmission, match="a kernel file may have 1,000,000"):
        read(path)


def test_files_are_read_by_several_threads_at_the_same_time(tmp_path):
    """CPython 3.11's parser counts the calls of all threads in one place."""
    path = tmp_path / "kernel.py"
    path.write_text("\n".join(f"def f{n}(x):\n    return [x, (x + {n}) * 2]" for n in range(400)))
    raised: list[BaseException] = []

    def reads(depth: int) -> None:
        if depth:
            return reads(depth - 1)
        try:
            for _ in range(10):
                read(path)
        except SystemError as error:
            raised.append(error)
        return None

    def switches(phase: str, info: dict[str, int]) -> None:
        sum(range(50))  # Python code in a collection, where another thread may take over

    interval, threshold = sys.getswitchinterval(), gc.get_threshold()
    gc.callbacks.append(switches)
    try:
        sys.setswitchinterval(1e-6)
        gc.set_threshold(50)
        threads = [threading.Thread(target=reads, args=(depth,)) for depth in (0, 9)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        gc.set_threshold(*threshold)
        sys.setswitchinterval(interval)
        gc.callbacks.remove(switches)

    assert not raised
