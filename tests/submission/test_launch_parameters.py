"""Other values for constants and meta-parameters, put into the text of a file."""

from __future__ import annotations

import ast

import pytest

from grader.submission import source
from grader.submission.launch_parameters import (
    UnknownParameter,
    parameters,
    rewritten,
    with_values,
)

HEAD = '''import triton
import triton.language as tl

BLOCK_K = 32
WIDE: tl.constexpr = 4
SHARE = tl.constexpr(0.5)


@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK_N: tl.constexpr, EVEN: tl.constexpr = False):
    tl.store(out_ptr, tl.load(x_ptr))


'''
LAUNCH = '''def copy(x, out):
    block = min(
        1024,  # at most
        triton.next_power_of_2(x.numel()))
    copy_kernel[(triton.cdiv(x.numel(), block),)](x, out, x.numel(), BLOCK_N=block)
'''


def set_in(text: str, values) -> str:
    (new,) = rewritten([text], values)
    return new


def test_names_are_constants_of_the_module_then_parameters_of_launches_then_options():
    assert parameters(HEAD + LAUNCH) == (
        "BLOCK_K", "WIDE", "SHARE", "BLOCK_N", "EVEN", "num_warps", "num_stages")
    assert parameters("x = [1]\nexp = tl.exp\ny = -1\n") == ("y",)
    assert parameters("x = (\n") == ()


@pytest.mark.parametrize(("name", "value", "line"), [
    ("BLOCK_K", 64, "BLOCK_K = 64"),
    ("WIDE", 8, "WIDE: tl.constexpr = 8"),
    ("SHARE", 0.25, "SHARE = tl.constexpr(0.25)"),
])
def test_a_constant_of_the_module_gets_the_value(name, value, line):
    assert line in set_in(HEAD + LAUNCH, {name: value}).split("\n")


def test_a_variable_that_a_launch_passes_gets_the_value_and_lines_keep_their_numbers():
    text = set_in(HEAD + LAUNCH, {"BLOCK_N": 128})

    assert "block = (128\n\n)\n" in text
    assert "BLOCK_N=block" in text
    assert text.count("\n") == (HEAD + LAUNCH).count("\n")


@pytest.mark.parametrize(("launch", "changed"), [
    ("copy_kernel[(1,)](x, out, n, BLOCK_N=64)", "copy_kernel[(1,)](x, out, n, BLOCK_N=128)"),
    ("copy_kernel[(1,)](x, out, n, 64)", "copy_kernel[(1,)](x, out, n, 128)"),
    ("run[(1,)](x, out, n, BLOCK_N=64)", "run[(1,)](x, out, n, BLOCK_N=128)"),
    ("copy_kernel[(1,)](x, out, n, BLOCK_N=size)", "copy_kernel[(1,)](x, out, n, BLOCK_N=128)"),
    ("é = 'é'; copy_kernel[(1,)](x, out, n, BLOCK_N=2 * n)",
     "é = 'é'; copy_kernel[(1,)](x, out, n, BLOCK_N=128)"),
])
def test_a_launch_passes_the_value_by_name_or_by_position(launch, changed):
    text = f"{HEAD}def copy(x, out, n, size):\n    {launch}\n"

    assert f"    {changed}\n" in set_in(text, {"BLOCK_N": 128})


@pytest.mark.parametrize(("launch", "changed"), [
    ("copy_kernel[(1,)](x, out, n, BLOCK_N=64)",
     "copy_kernel[(1,)](x, out, n, BLOCK_N=64, num_warps=8)"),
    ("copy_kernel[(1,)](x, out, n, BLOCK_N=64,)",
     "copy_kernel[(1,)](x, out, n, BLOCK_N=64,num_warps=8)"),
    ("copy_kernel[(1,)](\n        x, out, n, (64)  # more, (\n    )",
     "copy_kernel[(1,)](\n        x, out, n, (64)  # more, (\n    , num_warps=8)"),
    ("copy_kernel[(1,)](\n        x, out, n, 64,  # so\n    )",
     "copy_kernel[(1,)](\n        x, out, n, 64,  # so\n    num_warps=8)"),
    ("copy_kernel[(1,)](x, out, n, 64, num_warps=4 if n else 2)",
     "copy_kernel[(1,)](x, out, n, 64, num_warps=8)"),
])
def test_options_are_passed_to_every_launch(launch, changed):
    text = set_in(f"{HEAD}def copy(x, out, n):\n    {launch}\n", {"num_warps": 8})

    assert f"    {changed}\n" in text
    ast.parse(text)


def test_a_default_of_a_kernel_is_passed_by_the_launch():
    text = set_in(HEAD + LAUNCH, {"EVEN": True, "num_stages": 2})

    assert "BLOCK_N=block, EVEN=True, num_stages=2)" in text


def test_of_values_that_are_unpacked_the_others_stay():
    text = HEAD + ("def copy(x, out, n):\n    one, two = sizes(n)\n    rows, cols = 8, 16\n"
                   "    copy_kernel[(1,)](x, out, rows, BLOCK_N=two, EVEN=cols)\n")

    changed = set_in(text, {"BLOCK_N": 128, "EVEN": 4})

    assert "one, two = (lambda v: (v[0], 128,))(sizes(n))" in changed
    assert "rows, cols = 8, 4" in changed


def test_configurations_of_an_autotuner_get_the_value():
    tuned = HEAD.replace("@triton.jit", '@triton.autotune(configs=[\n    triton.Config({"BLOCK_N": '
                         '64}, num_warps=4), triton.Config({"BLOCK_N": 128})], key=[])\n'
                         "@triton.jit")
    text = tuned + "def copy(x, out, n):\n    copy_kernel[(1,)](x, out, n)\n"

    changed = set_in(text, {"BLOCK_N": 256, "num_warps": 8})

    assert ('triton.Config({"BLOCK_N": 256}, num_warps=8), '
            'triton.Config({"BLOCK_N": 256}, num_warps=8)') in changed
    assert "copy_kernel[(1,)](x, out, n)\n" in changed


@pytest.mark.parametrize(("name", "nearest"), [
    ("block_n", "BLOCK_N"), ("BLOK_N", "BLOCK_N"), ("warps", "num_warps"), ("q", "")])
def test_an_unknown_name_has_the_nearest(tmp_path, name, nearest):
    file = tmp_path / "kernel.py"
    file.write_text(HEAD + LAUNCH)

    with pytest.raises(UnknownParameter) as raised:
        with_values(source.read(file), {name: 1})

    assert raised.value.nearest == nearest
    assert "BLOCK_N" in raised.value.names


def test_kernels_and_their_launches_may_lie_in_several_files(tmp_path):
    launch = "from package.own import copy_kernel\n\n\ndef copy(x, out):\n" \
             "    copy_kernel[(1,)](x, out, 8, 64)\n"
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "own.py").write_text(HEAD)
    (tmp_path / "package" / "notes.md").write_text("BLOCK_K = 1")
    (tmp_path / "kernel.py").write_text(launch)
    submitted = source.read(tmp_path / "kernel.py", ("package/own.py", "package/notes.md"),
                            "package/own.py")

    changed = with_values(submitted, {"BLOCK_N": 128, "BLOCK_K": 16, "num_warps": 8})

    assert changed.data.decode().endswith("copy_kernel[(1,)](x, out, 8, 128, num_warps=8)\n")
    assert "BLOCK_K = 16" in changed.text
    assert changed.files["package/own.py"].decode() == changed.text
    assert changed.files["package/notes.md"] == b"BLOCK_K = 1"
    assert changed.sha256 == submitted.sha256
