"""Layouts of threads: the same elements as Triton's own linear layouts."""

from __future__ import annotations

import random
import re
import subprocess
import sys

import pytest

from grader.engine.compiler import ttgir
from grader.engine.compiler.layouts import UnknownLayout, aliases_of, bases, positions

WIDE = ("#ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], "
        "order = [1, 0]}>")

ORACLE = """
import sys
from triton._C.libtriton import gluon_ir, ir
from triton.experimental.gluon.language import _layouts as layouts

context = ir.context()
ir.load_dialects(context)
builder = gluon_ir.GluonOpBuilder(context)
for row in sys.stdin:
    kind, arguments, shape = eval(row)
    layout = getattr(layouts, kind)(*arguments) if kind != "SliceLayout" else layouts.SliceLayout(
        arguments[0], layouts.BlockedLayout(*arguments[1]))
    linear = builder.to_linear_layout(layout._to_ir(builder), list(shape))
    flat = []
    for basis in (linear.reg_bases, linear.lane_bases, linear.warp_bases):
        numbers = []
        for vector in basis:
            number = 0
            for place, size in zip(vector, shape):
                number = number * size + place
            numbers.append(number)
        flat.append(numbers)
    print(flat)
"""


def blocked(arguments) -> str:
    names = ("sizePerThread", "threadsPerWarp", "warpsPerCTA", "order")
    return "#ttg.blocked<{" + ", ".join(
        f"{name} = {numbers}" for name, numbers in zip(names, arguments, strict=True)) + "}>"


def product(arguments) -> str:
    (major, minor), warps, shape = arguments
    return (f"#ttg.nvidia_mma<{{versionMajor = {major}, versionMinor = {minor}, "
            f"warpsPerCTA = {warps}, instrShape = {shape}}}>")


def some_layouts():
    """Triples of Triton's class with its arguments, our text, and a shape."""
    draw = random.Random(1)

    def split(bits: int, rank: int) -> list[int]:
        sizes = [1] * rank
        for _ in range(bits):
            sizes[draw.randrange(rank)] *= 2
        return sizes

    for _ in range(80):
        rank = draw.choice((1, 2, 2, 3))
        order = draw.sample(range(rank), rank)
        arguments = (split(draw.randrange(4), rank), split(5, rank), split(2, rank), order)
        shape = [1 << draw.randrange(9) for _ in range(rank)]
        yield ("BlockedLayout", arguments), blocked(arguments), shape
        if rank > 1:
            axis = draw.randrange(rank)
            yield (("SliceLayout", (axis, arguments)),
                   f"#ttg.slice<{{dim = {axis}, parent = {blocked(arguments)}}}>",
                   shape[:axis] + shape[axis + 1:])
    for arguments in (([2, 0], [4, 1], [16, 8]), ([2, 0], [2, 2], [16, 8]),
                      ([3, 0], [4, 1], [16, 128, 16]), ([3, 0], [8, 1], [16, 64, 16])):
        for shape in ([128, 128], [16, 16], [128, 256]):
            yield ("NVMMADistributedLayout", arguments), product(arguments), shape


def test_elements_are_those_of_tritons_linear_layouts():
    cases = list(some_layouts())
    asked = "\n".join(repr((*layout, shape)) for layout, _, shape in cases)
    told = subprocess.run([sys.executable, "-c", ORACLE], input=asked, text=True,
                          capture_output=True, timeout=120, check=False)
    if told.returncode:
        pytest.skip(f"this version of Triton does not tell its layouts: {told.stderr[-200:]}")

    for (_, text, shape), row in zip(cases, told.stdout.splitlines(), strict=True):
        registers, lanes, warps = eval(row)
        ours = bases(text, shape, {})
        assert (set(ours.registers), list(ours.lanes), list(ours.warps)) == (
            set(registers) - {0}, lanes, warps), (text, shape)


def test_a_thread_holds_its_consecutive_elements_first():
    spread = bases(WIDE, (64, 64), {})

    assert positions(spread.registers[:2]) == [0, 1, 2, 3]
    assert positions(spread.lanes)[:3] == [0, 4, 8]
    assert sorted(a ^ b ^ c for a in positions(spread.registers) for b in positions(spread.lanes)
                  for c in positions(spread.warps)) == list(range(64 * 64))


def test_linear_layouts_are_read_as_they_are():
    text = ("#ttg.linear<{register = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], "
            "[4, 0]], warp = [[16, 0], [0, 0]], block = []}>")

    spread = bases("#linear", (32, 8), aliases_of(f"#linear = {text}\n"))

    assert spread == ((1, 64), (2, 4, 8, 16, 32), (128, 0))


@pytest.mark.parametrize("text", [
    "#ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>", "#nothing",
    "#ttg.nvidia_mma<{versionMajor = 1, versionMinor = 0, warpsPerCTA = [4, 1], "
    "instrShape = [16, 8]}>"])
def test_other_layouts_are_not_guessed(text):
    with pytest.raises(UnknownLayout, match=re.escape(text[:20])):
        bases(text, (16, 16), {})


def test_accesses_have_the_line_that_stands_in_the_kernels_file():
    text = '''#blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32]}>
#loc1 = loc("/lib/helpers.py":7:3)
#loc2 = loc("/home/kernel.py":12:9)
#loc3 = loc(callsite(#loc1 at #loc2))
#loc4 = loc("x"(#loc3))
    %x = tt.load %p : tensor<1024x!tt.ptr<f32>, #blocked> loc(#loc4)
    %y = tt.load %q : !tt.ptr<i64> loc(#loc2)
    tt.store %p, %x : tensor<16x!tt.ptr<f16>, #ttg.slice<{dim = 1, parent = #blocked}>> loc(#loc2)
'''

    accesses = list(ttgir.pointer_accesses(text, "kernel.py"))

    assert accesses == [
        ("load", False, 12, (1024,), "f32", "#blocked"), ("load", False, 12, (), "i64", ""),
        ("store", False, 12, (16,), "f16", "#ttg.slice<{dim = 1, parent = #blocked}>")]
