"""Right solutions pass in whatever style they are written; what cannot be taken is explained."""

from __future__ import annotations

from dataclasses import replace

import pytest

import grader
from grader import Verdict
from grader.suite import EXACT, Cost, Suite, correctness, rand

pytestmark = pytest.mark.course

RIGHT = """\
import math
from typing import overload

import torch
import triton
import triton.language as tl

SCALE = tl.constexpr(2.0)


@triton.jit
def double_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n, other=0.0)
    tl.store(out_ptr + offs, x * SCALE, mask=offs < n)


def double(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    double_kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
    return out
"""
SUITE = Suite(
    entry="double", parameters=("x",), reference=lambda x: x.double() * 2, tolerance=EXACT,
    cost=lambda x: Cost(bytes=2 * x.nbytes),
    cases=[correctness("a thousand", rand(1000)), correctness("a view", rand(300)[::2])],
    name="toy/double",
)


@pytest.fixture
def graded(tmp_path, sandbox):
    def grade(*changes: tuple[str, str], suite: Suite = SUITE) -> grader.Report:
        text = RIGHT
        for find, put in changes:
            assert find in text
            text = text.replace(find, put)
        path = tmp_path / "kernel.py"
        path.write_text(text)
        return grader.grade(path, suite, sandbox=sandbox)

    return grade


HOST = RIGHT[RIGHT.index("def double(x)"):]
BY_OCCUPANCY = """\
def double(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    driver = triton.runtime.driver.active
    properties = driver.utils.get_device_properties(driver.get_active_torch_device().index)
    kernel = double_kernel.warmup(x, out, x.numel(), BLOCK=64, num_warps=2, grid=(1,))
    kernel._init_handles()
    programs = properties["max_num_regs"] // (kernel.n_regs * properties["warpSize"] * 2)
    if kernel.metadata.shared:
        programs = min(programs, properties["max_shared_mem"] // kernel.metadata.shared)
    assert 16 <= programs <= 128 and kernel.n_spills == 0
    assert (kernel.metadata.num_warps, kernel.metadata.num_stages) == (2, 3)
    kernel[(min(triton.cdiv(x.numel(), 64), 2**16), 1, 1)](x, out, x.numel(), 64)
    return out
"""
AT_IMPORT = """

x = torch.rand(98432)
assert torch.equal(double(x), 2 * x)


@triton.testing.perf_report(triton.testing.Benchmark(
    x_names=["n"], x_vals=[2**i for i in range(12, 28)], line_arg="provider", line_vals=["triton"],
    line_names=["Triton"], plot_name="double", args={}))
def benchmark(n, provider):
    return triton.testing.do_bench(lambda: double(torch.rand(n)))


benchmark.run(print_data=True, show_plots=True)
"""
KERNEL = RIGHT[RIGHT.index("@triton.jit"):RIGHT.index("def double(x)")]
INDENTED = "".join(f"    {line}\n" if line else "\n" for line in KERNEL.splitlines())
THREEFOLD = INDENTED.replace("x * SCALE", "x * 3.0")
SHOWN = KERNEL.replace("x * SCALE", "x * 3.0")
SHOWN_AS = SHOWN.replace("double_kernel", "shown")
STYLES = {
    "inference mode": ("def double(x)", "@torch.inference_mode()\ndef double(x)"),
    "a profiler": ("    out = torch", "    with torch.profiler.record_function('double'):\n"
                   "        pass\n    out = torch"),
    "Triton's interpreter asked for": ("import math\n", "import math, os\n"
                                       "os.environ['TRITON_INTERPRET'] = '1'\n"),
    "a constant by math": ("(2.0)", "(math.log2(4))"),
    "a constant by arithmetic of constants": (
        "SCALE = tl.constexpr(2.0)", "HALF = 4\nSCALE = tl.constexpr(HALF / 2)"),
    "a constant by a name of math": ("SCALE = tl.constexpr(2.0)", "from math import e, log as ln\n"
                                     "SCALE = tl.constexpr(2 * ln(e))"),
    "another name for a function": ("tl.load", "fetch", "@triton", "fetch = tl.load\n\n@triton"),
    "another name for the language": ("import triton.language as tl", "tl = triton.language"),
    "an integer of 16,385 bits": ("SCALE = tl", "BIG = (1 << 1024) ** 16\nSCALE = tl"),
    "integers that double their bits": ("SCALE = tl", "".join([
        "A0 = 3\n", *(f"A{n + 1} = A{n} * A{n}\n" for n in range(16)), "SCALE = tl"])),
    "a literal of 20,000 bits": ("SCALE = tl", f"BIG = (0x{'f' * 5000}, 2)\n"
                                 f"WORDS = (0x{'f' * 5000}).bit_length()\nSCALE = tl"),
    "a text of a gigabyte": ("SCALE = tl", "TEXT = 'a' * 10**9\nSCALE = tl"),
    "a sum of many names": ("SCALE = tl", f"ONE = 1\nSUM = {'+'.join(['ONE'] * 900)}\nSCALE = tl"),
    "a long chain of calls": ("SCALE = tl", f"ALL = set(){'.copy()' * 900}\nSCALE = tl"),
    "arithmetic that is expected to fail": (
        "SCALE = tl", "try:\n    SAFE = 1 / 0\nexcept ArithmeticError:\n    SAFE = 0\nSCALE = tl"),
    "an import that this Triton may lack": (
        "SCALE = tl", "try:\n    from triton.language import tomorrow\n"
        "except ImportError:\n    tomorrow = None\nSCALE = tl"),
    "a kernel in a class": (
        (KERNEL, f"class Ops:\n{INDENTED}\n"), ("    double_kernel[", "    Ops.double_kernel[")),
    "a static method": (
        (KERNEL, f"class Ops:\n    @staticmethod\n{INDENTED}\n"),
        ("    double_kernel[", "    Ops().double_kernel[")),
    "a factory": ((KERNEL, f"def make():\n{INDENTED}    return double_kernel\n\n\n"),
                  ("    double_kernel[", "    make()[")),
    "a factory with an import and a constant": (
        ("import triton.language as tl\n\nSCALE = tl.constexpr(2.0)\n", ""),
        (KERNEL, "def make():\n    import triton.language as tl\n    SCALE = tl.constexpr(2.0)\n"
                 f"{INDENTED}    return double_kernel\n\n\n"),
        ("    double_kernel[", "    make()[")),
    "a condition": ((KERNEL, f"if torch is not None:\n{INDENTED}\n"),),
    "two branches": (
        (KERNEL, f"if torch is not None:\n{INDENTED}else:\n{THREEFOLD}\n"),),
    "the other of two branches": (
        (KERNEL, f"try:\n    import nowhere\n{THREEFOLD}except ImportError:\n{INDENTED}\n"),),
    "a context": (("import math\n", "import contextlib\nimport math\n"),
                  (KERNEL, f"with contextlib.suppress(ImportError):\n{INDENTED}\n")),
    "two classes": ((KERNEL, f"class Ops:\n{INDENTED}\n\nclass Others:\n{THREEFOLD}\n"),
                    ("    double_kernel[", "    Ops.double_kernel[")),
    "the first of two kernels with one name": (
        (KERNEL, f"{KERNEL}first = double_kernel\n\n\n{SHOWN}"),
        ("    double_kernel[", "    first[")),
    "a kernel with the name of another": (
        (KERNEL, f"{KERNEL}double_kernel.__name__ = 'shown'\n\n\n{SHOWN_AS}"),),
    "jit as a call": (("@triton.jit\n", ""), ("def double(x)", "double_kernel = triton.jit("
                                              "double_kernel)\n\n\ndef double(x)")),
    "jit as a call with options": (
        ("@triton.jit\n", ""), ("    double_kernel[", "    kernel["),
        ("def double(x)", "kernel = triton.jit(do_not_specialize=['n'])(double_kernel)\n\n\n"
                          "def double(x)")),
    "jit as a call for a helper": (
        ("x * SCALE", "doubled(x)"), ("@triton.jit\n", "def twice(x):\n    return x * SCALE\n\n\n"
                                      "doubled = triton.jit(twice)\n\n\n@triton.jit\n")),
    "another name for jit": (
        ("@triton.jit", "@jit"), ("SCALE = tl", "jit = triton.jit\nSCALE = tl")),
    "a tutorial with its benchmark": ("    return out\n", f"    return out\n{AT_IMPORT}"),
    "programs by occupancy": (HOST, BY_OCCUPANCY),
    "programs by occupancy, at import too": (HOST, BY_OCCUPANCY + AT_IMPORT),
    "a warmup of types": (HOST, BY_OCCUPANCY.replace("warmup(x, out", "warmup(x.dtype, out.dtype")),
    "figures of a launch": (
        "    double_kernel[", "    kernel = double_kernel[",
        "    return out", "    assert kernel.n_regs > 0 and kernel.metadata.num_warps == 4\n"
        "    return out"),
    "a failure to read a figure that is caught": (HOST, BY_OCCUPANCY.replace(
        "    programs = properties", "    try:\n        kernel.n_regs\n    except BaseException:\n"
        "        return x\n    programs = properties")),
    "overloads": ("def double(x)", "@overload\ndef double(x: int) -> None: ...\n\n\n"
                  "def double(x)"),
}


@pytest.mark.parametrize("changes", STYLES.values(), ids=STYLES)
def test_a_right_solution_passes_in_this_style(graded, changes):
    if isinstance(changes[0], str):
        changes = tuple(zip(changes[::2], changes[1::2], strict=True))
    report = graded(*changes)

    assert report.verdict is Verdict.PASSED, [
        (f.code, f.seen) for f in report.findings()] or report.reason


@pytest.mark.parametrize("changes", [
    ((KERNEL, f"if torch is None:\n{INDENTED}else:\n{THREEFOLD}\n"),),
    ((KERNEL, f"class Ops:\n{INDENTED}\n\nclass Others:\n{THREEFOLD}\n"),
     ("    double_kernel[", "    Others.double_kernel[")),
    ((KERNEL, f"if torch:\n{THREEFOLD}\n"),),
    (("@triton.jit\n", ""), ("x * SCALE", "x * 3.0"),
     ("def double(x)", "double_kernel = triton.jit(double_kernel)\n\n\ndef double(x)")),
    ((KERNEL, f"{SHOWN}first = double_kernel\n\n\n{KERNEL}"), ("    double_kernel[", "    first[")),
    ((KERNEL, f"{SHOWN}double_kernel.__name__ = 'shown'\n\n\n"
              f"{KERNEL.replace('double_kernel', 'shown')}"),),
], ids=["two branches", "two classes", "a condition", "jit as a call", "the first of two",
        "the name of another"])
def test_of_kernels_with_one_name_the_launched_one_is_judged(graded, changes):
    report = graded(*changes)

    assert {f.code for f in report.findings()} == {"N01"}


@pytest.mark.parametrize("constant", ["math.log2(2)", "math.e", "math.factorial(3)", "2 ** 9999",
                                      "math.log2(0)", "eval('2')"])
def test_other_constants_are_no_two(graded, constant):
    report = graded(("(2.0)", f"({constant})"))

    assert report.verdict is Verdict.FAILED
    assert {f.code for f in report.findings()} <= {"N01", "L05", "P02"}


EXPLAINED = {
    "a buffer of an earlier call": (
        ("def double(x)", "KEPT = {}\n\n\ndef double(x)"),
        ("torch.empty_like(x)", "KEPT.setdefault(x.shape, torch.empty_like(x))"),
        "X01", "cached"),
    "a result that is looked at": (
        ("    return out", "    assert not out.isnan().any()\n    return out"),
        "X01", "not written yet"),
    "a launch for a result": (
        ("    double_kernel[", "    return double_kernel["),
        "S01", "A launch returns the compiled kernel"),
    "a figure before the code is loaded": (
        (HOST, BY_OCCUPANCY.replace("    kernel._init_handles()\n", "")), "R01", "_init_handles"),
    "what else a compiled kernel has": (
        (HOST, BY_OCCUPANCY.replace("kernel._init_handles()", "print(kernel.asm['ptx'])")),
        "R01", "no `asm`"),
    "a launch by a compiled kernel without its constexprs": (
        (HOST, BY_OCCUPANCY.replace("x.numel(), 64)\n    return", "x.numel())\n    return")),
        "R01", "constexprs too; it got 3"),
    "figures of code that does not compile": (
        (HOST, BY_OCCUPANCY.replace("BLOCK=64, num", "BLOCK=63, num")), "L05", "power of 2"),
    "a launch at import that goes wrong": (
        ("    return out\n", f"    return out\n{AT_IMPORT}"), ("x * SCALE", "x * 3.0"),
        "P02", "AssertionError"),
    "a launch without a grid": (
        ("[(triton.cdiv(x.numel(), 64),)](", "("), "R01", "kernel[grid]"),
    "a device that is asked for": (
        ("import math\n", "import math, torch\nDEVICE = torch.cuda.current_stream()\n"),
        "P02", "torch.cuda.is_available()"),
    "a variable of a factory": (
        (KERNEL, "def make(FACTOR):\n" + INDENTED.replace("SCALE", "FACTOR")
         + "    return double_kernel\n\n\n"), ("    double_kernel[", "    make(SCALE)["),
        "L05", "variable of the enclosing function `make`"),
    "an attribute of a class": (
        (KERNEL, "class Ops:\n    FACTOR = SCALE\n" + INDENTED.replace("SCALE", "FACTOR")),
        ("    double_kernel[", "    Ops.double_kernel["), "L05", "attribute of the class `Ops`"),
    "a helper in a class": (
        ("@triton.jit\n", "class Ops:\n    @triton.jit\n    def twice(x):\n        return x * 2\n"
                          "\n\n@triton.jit\n"), ("x * SCALE", "twice(x)"),
        "L05", "not visible here"),
    "a helper in one of two branches": (
        ("@triton.jit\n", "if torch:\n    @triton.jit\n    def twice(x):\n        return x * 2\n"
         "else:\n    twice = None\n\n\n@triton.jit\n"), ("x * SCALE", "twice(x)"),
        "L05", "assigned on lines 13 and 16"),
    "a kernel of no text": ((KERNEL, f"exec({KERNEL!r})\n\n\n"), "P03", "triton.jit"),
    "Python's max of a block": (
        ("x * SCALE", "x * SCALE + max(x) * 0"), "L05", "tl.max(x, axis=0)"),
}


@pytest.mark.parametrize("given", EXPLAINED.values(), ids=EXPLAINED)
def test_what_cannot_be_taken_is_explained(graded, given):
    *changes, code, words = given
    suite = replace(SUITE, cases=[*SUITE.cases, correctness("a thousand again", rand(1000))])

    report = graded(*changes, suite=suite)

    said = [f.seen for f in report.findings() if f.code == code]
    assert said, list(report.findings())
    assert words in said[0]
