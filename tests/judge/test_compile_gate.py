"""The compile gate: what no GPU could run fails, whatever the interpreter makes of it."""

from __future__ import annotations

import itertools
import textwrap
import threading
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from triton._C.libtriton import ir
from triton.backends.nvidia import compiler

import grader
from grader import Verdict
from grader.engine.compiler import targets
from grader.executor import compile_service
from grader.judge.compile_gate import Gate
from grader.processes import session
from grader.processes.pool import Processes
from grader.processes.replies import Stopped, compiled_of, crashed
from grader.recording.model import Argument, Launch, Recording, View, from_json, to_json
from grader.report import Finding
from grader.sandbox import Sandbox
from grader.suite import EXACT, Cost, Suite, correctness, performance, rand
from tests.judge.test_grade import KERNEL, SUITE

SMALL = replace(SUITE, cases=SUITE.cases[:2])
BODY = "    x = tl.load(x_ptr + offs, mask=mask)\n    tl.store(out_ptr + offs, x * 2, mask=mask)\n"
LAUNCH = ("        double_kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)\n")


@pytest.fixture
def graded(tmp_path, sandbox):
    def grade(text: str, suite: Suite = SMALL, **options) -> grader.Report:
        path = tmp_path / "kernel.py"
        path.write_text(text)
        return grader.grade(path, suite, sandbox=sandbox, **options)

    return grade


def with_body(body: str) -> str:
    assert BODY in KERNEL
    return KERNEL.replace(BODY, textwrap.indent(textwrap.dedent(body).lstrip("\n"), "    "))


def with_launch(head: str, launch: str) -> str:
    assert LAUNCH in KERNEL
    text = KERNEL.replace(LAUNCH, textwrap.indent(textwrap.dedent(launch), " " * 8))
    jit = "@triton.jit\ndef double"
    return text.replace(jit, textwrap.dedent(head) + jit)


def gate(report: grader.Report) -> grader.CaseResult:
    return next(r for r in report.results if r.name.startswith("every launch compiles"))


INTERPRETS_ONLY = {
    "a value that changes its type in a loop that runs no turn": ("""
        x = tl.load(x_ptr + offs, mask=mask)
        total = 0
        for _ in range(0, n - n):
            total = total + x
        tl.store(out_ptr + offs, x * 2 + total, mask=mask)
        """, "for _ in range(0, n - n):", "total"),
    "host code of Triton": ("""
        x = tl.load(x_ptr + offs, mask=mask)
        few = triton.cdiv(n, 64)
        tl.store(out_ptr + offs, x * 2 + 0 * few, mask=mask)
        """, "few = triton.cdiv(n, 64)", "`triton.cdiv` is for host code; use `tl.cdiv` in "
                                         "a kernel"),
    "a condition that is a block, which only MLIR refuses": ("""
        x = tl.load(x_ptr + offs, mask=mask)
        left = tl.full((1,), 2, tl.int32)
        while left > 0:
            left -= 1
        tl.store(out_ptr + offs, x * 2, mask=mask)
        """, "while left > 0:", "'scf.condition'"),
}


@pytest.mark.parametrize("name", INTERPRETS_ONLY)
def test_a_kernel_that_only_interprets_fails_in_the_compilers_words(graded, name):
    body, quoted, says = INTERPRETS_ONLY[name]
    text = with_body(body)

    report = graded(text)

    assert [r.verdict for r in report.results[:2]] == [Verdict.PASSED] * 2
    result = gate(report)
    (finding,) = result.findings
    assert (report.verdict, result.verdict, finding.code) == (
        Verdict.FAILED, Verdict.FAILED, "L05")
    said, code, caret = finding.seen.split("\n")
    assert "for the NVIDIA H100 SXM" in said and says in said
    assert "'a thousand' and 1 other" in said
    assert (code, caret.strip()) == (quoted, "^")
    assert text.splitlines()[finding.line - 1].strip() == quoted


def test_a_helper_at_fault_is_named_by_its_own_line(graded):
    text = with_body("""
        x = tl.load(x_ptr + offs, mask=mask)
        tl.store(out_ptr + offs, twice(x, n), mask=mask)
    """).replace("@triton.jit\ndef double", '''@triton.jit
def twice(x, n):
    """x + x."""
    y = 0
    for _ in range(n // n):
        y = y + x
    return y * 2


@triton.jit
def double''')

    (finding,) = gate(graded(text)).findings

    assert text.splitlines()[finding.line - 1] == "    for _ in range(n // n):"


def test_an_assertion_without_words_is_quoted(graded):
    text = with_body("""
        x = tl.load(x_ptr + offs, mask=mask)
        y = (x, x)
        tl.store(out_ptr + offs, y[n] * 2, mask=mask)
        """)

    said, code, _ = graded(text).results[0].findings[0].seen.split("\n")

    assert "assert" in said and code.startswith("tl.store(out_ptr + offs, y[n]")


LIBRARY = {
    "a shape": ("tl.zeros((100,), tl.float32)", "power of 2"),
    "an axis": ("tl.sum(x, axis=1)", "axis"),
    "the type of an operand": ("tl.cdiv(x, 2)", "fp32"),
    "a dimension, far inside": ("tl.sum(tl.sort(x, dim=1))", "minor dimension"),
    "an axis that is no constant": ("tl.program_id(n)", "_semantic"),
    "a block for a function that is not inlined": ("apart(x, n)", "noinline"),
}


@pytest.mark.parametrize("name", LIBRARY)
def test_what_goes_wrong_in_called_code_is_told_at_the_line_that_calls_it(graded, name):
    call, says = LIBRARY[name]
    text = with_body(f"""
        # Größe: the caret counts characters
        x = tl.load(x_ptr + offs, mask=mask)
        tl.static_assert("äöü" == "äöü"); y = {call}
        tl.store(out_ptr + offs, x * 2 + y * 0, mask=mask)
    """).replace("@triton.jit\ndef double", """@triton.jit(noinline=True)
def apart(x, n):
    return x * n


@triton.jit
def double""")

    report = graded(text)

    assert (report.verdict, gate(report).verdict) == (Verdict.FAILED, Verdict.FAILED)
    assert Verdict.ERROR not in [r.verdict for r in report.results]
    (finding,) = gate(report).findings
    said, code, caret = finding.seen.split("\n")
    assert says in said and "/" not in said
    assert text.splitlines()[finding.line - 1].strip() == code
    assert code.endswith(f"y = {call}")
    assert code[len(caret) - 1:].startswith(call if "(tl" not in call else "tl.s")


def test_what_a_late_pass_refuses_is_told_in_its_words_and_at_its_line(graded):
    text = with_body("""
        x = tl.load(x_ptr + offs, mask=mask)
        a = tl.zeros((32, 32), tl.float16)
        acc = tl.zeros((32, 32), tl.int32)
        c = tl.sum(tl.dot(a, a, acc))
        tl.store(out_ptr + offs, x * 2 + c, mask=mask)
        """)

    (finding,) = gate(graded(text)).findings

    assert text.splitlines()[finding.line - 1].strip() == "c = tl.sum(tl.dot(a, a, acc))"
    assert "PassManager" not in finding.seen and "Failures" not in finding.seen


def test_the_assemblers_words_are_told_without_the_names_of_its_files(graded):
    text = KERNEL.replace("BLOCK=64)", "BLOCK=64, maxnreg=0)")

    one, other = (gate(graded(text)).findings[0] for _ in range(2))

    assert one == other
    assert one.code == "L05" and "non-zero value expected for maxnreg" in one.seen
    assert not {"/", ".ptx"} & set(one.seen) and "tmp" not in one.seen
    assert text.splitlines()[one.line - 1].startswith("def double_kernel")


def test_code_that_the_assembler_refuses_is_told_at_the_line_it_comes_from(graded):
    text = with_body("""
        x = tl.load(x_ptr + offs, mask=mask)
        y = x.to(tl.bfloat16)
        tl.store(out_ptr + offs, x * 2 + y * 0, mask=mask)
        """)
    again = text.replace("x.to(tl.bfloat16)", "tl.load(x_ptr + offs, mask=mask, "
                         "cache_modifier='.ca', eviction_policy='evict_first')")

    (finding,) = gate(graded(again)).findings

    said, code, caret = finding.seen.split("\n")
    assert "the assembler rejects" in said and said.count("evict_first") == 1
    assert (code[:12], caret) == ("y = tl.load(", "^")
    assert again.splitlines()[finding.line - 1].strip() == code
    assert gate(graded(text)).verdict is Verdict.PASSED


def test_what_the_interpreter_refuses_is_told_in_the_compilers_words_with_its_caret(graded):
    text = KERNEL.replace("BLOCK=64)", "BLOCK=63)")

    finding = graded(text).results[0].findings[0]

    said, code, caret = finding.seen.split("\n")
    assert said.startswith("Triton does not compile `double_kernel`") and "power of 2" in said
    assert code == "offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)"
    assert code[len(caret) - 1:].startswith("tl.arange")


@pytest.mark.parametrize(("annotation", "value", "says"), [
    ("tl.int64", "1.5", "'float' object cannot be interpreted as an integer"),
    ("'i32'", "x", "'Tensor' object cannot be interpreted as an integer"),
    ("tl.float32", "x", "must be real number"),
    ("tl.int64", "True", ""), ("tl.float32", "2", ""), ("'u8'", "3", ""), ("'i31'", "1.5", "")])
def test_an_argument_has_to_be_what_its_annotation_says(graded, annotation, value, says):
    text = KERNEL.replace("out_ptr, n, BLOCK", f"out_ptr, n, extra: {annotation}, BLOCK").replace(
        "x.numel(), BLOCK=64", f"x.numel(), {value}, BLOCK=64")

    report = graded(text)

    found = [finding.seen for result in report.results for finding in result.findings]
    assert report.verdict is (Verdict.FAILED if says else Verdict.PASSED)
    assert says in "".join(found)


COMPILES = {
    "launch options": with_launch("", """
        grid = (triton.cdiv(x.numel(), 64),)
        double_kernel[grid](x, out, x.numel(), BLOCK=64, num_warps=2, num_stages=1, maxnreg=64)
        """),
    "heuristics": with_launch("@triton.heuristics({'BLOCK': lambda a: 128})\n", """
        grid = lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)
        double_kernel[grid](x, out, x.numel())
        """),
    "a descriptor": KERNEL.replace(
        "def double_kernel(x_ptr,", "def double_kernel(x_desc,").replace(
        "tl.load(x_ptr + offs, mask=mask)", "x_desc.load([tl.program_id(0) * BLOCK])").replace(
        LAUNCH, textwrap.indent(textwrap.dedent("""
        from triton.tools.tensor_descriptor import TensorDescriptor
        desc = TensorDescriptor(x, [x.numel()], [1], [64])
        double_kernel[(triton.cdiv(x.numel(), 64),)](desc, out, x.numel(), BLOCK=64)
        """), " " * 8)),
}


@pytest.mark.parametrize("name", COMPILES)
def test_what_the_jit_takes_passes(graded, name):
    report = graded(COMPILES[name])

    assert (report.verdict, gate(report).verdict) == (Verdict.PASSED, Verdict.PASSED)


TILES = '''\
import torch
import triton
import triton.language as tl
CONFIGS


@triton.jit
def product_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    """out = x @ x for a matrix of n x n, in tiles of BLOCK x BLOCK."""
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inner = tl.arange(0, 64)
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in tl.range(0, n, 64, num_stages=STAGES):
        a_mask = (rows[:, None] < n) & (k + inner[None, :] < n)
        b_mask = (k + inner[:, None] < n) & (columns[None, :] < n)
        a = tl.load(x_ptr + rows[:, None] * n + k + inner[None, :], mask=a_mask, other=0.0)
        b = tl.load(x_ptr + (k + inner[:, None]) * n + columns[None, :], mask=b_mask, other=0.0)
        acc = tl.dot(a, b, acc)
    mask = (rows[:, None] < n) & (columns[None, :] < n)
    tl.store(out_ptr + rows[:, None] * n + columns[None, :], acc.to(tl.float16), mask=mask)


def product(x):
    out = torch.empty_like(x)
    n = x.shape[0]
    grid = lambda meta: (triton.cdiv(n, meta["BLOCK"]), triton.cdiv(n, meta["BLOCK"]))
    product_kernel[grid](x, out, n, ARGUMENTS)
    return out
'''
PRODUCT = Suite(
    entry="product", parameters=("x",), reference=lambda x: (x.double() @ x.double()).round(),
    tolerance=EXACT, cost=lambda x: Cost(2 * x.nbytes), name="toy/product",
    cases=[correctness("a tile", rand(64, 64, dtype="float16").then(lambda t: t.sign()))])


def tiles(block: int, stages: int) -> str:
    return TILES.replace("CONFIGS\n", "").replace("ARGUMENTS", f"BLOCK={block}, STAGES={stages}")


def tuned(*sizes: tuple[int, int]) -> str:
    configs = ", ".join(f"triton.Config({{'BLOCK': {b}, 'STAGES': {s}}}, num_warps=8)"
                        for b, s in sizes)
    text = TILES.replace("CONFIGS\n", "").replace(", ARGUMENTS", "")
    return text.replace("@triton.jit\n", f"@triton.autotune([{configs}], key=['n'])\n@triton.jit\n")


def test_what_does_not_fit_the_shared_memory_fails_with_its_numbers(graded):
    fits, too_large = graded(tiles(128, 3), PRODUCT), graded(tiles(128, 8), PRODUCT)

    assert gate(fits).verdict is Verdict.PASSED
    (finding,) = gate(too_large).findings
    assert finding.code == "T05"
    assert "shared memory" in finding.seen and "232448" in finding.seen


@pytest.mark.parametrize(("option", "says"), [
    ("num_warps=64", "`num_warps` requests 2,048 threads per program, and CUDA allows"),
    ("num_ctas=32", "`num_ctas` requests clusters of 32 thread blocks, and CUDA allows at most 16"),
    ("num_warps=32", ""), ("num_ctas=16", "")])
def test_more_threads_or_blocks_than_cuda_launches_together_fail_by_their_option(
        graded, option, says):
    found = gate(graded(KERNEL.replace("BLOCK=64)", f"BLOCK=64, {option})"))).findings

    assert [finding.code for finding in found] == ["T05"] * bool(says)
    assert all(says in one.seen and "shared memory" not in one.seen + one.means for one in found)


def test_a_pipeline_that_only_aligned_rows_get_has_to_fit_too(graded):
    """Rows of 65 elements are copied one by one, which nothing can do ahead."""
    odd, even = (correctness(f"{n} rows", rand(n, n, dtype="float16").then(lambda t: t.sign()))
                 for n in (65, 64))

    one, both = (graded(tiles(128, 8), replace(PRODUCT, cases=cases))
                 for cases in ([odd], [odd, even]))

    assert gate(one).verdict is Verdict.PASSED
    (finding,) = gate(both).findings
    assert (finding.code, "'64 rows'" in finding.seen) == ("T05", True)


WITH_INTEGERS = """
@triton.jit
def sums_kernel(a, b, c, d, out_ptr, WRONG: tl.constexpr):
    total = a + b + c + d
    if WRONG:
        total = total @ total
    tl.store(out_ptr, total)
"""


@pytest.fixture
def steps(tmp_path, monkeypatch):
    """Compiles single launches, and returns by which steps: ``steps(text)(arguments)``."""
    taken: list[str] = []
    for name in ("build", "lower", "parse", "parse_half"):
        step = getattr(compile_service, name)
        monkeypatch.setattr(compile_service, name, lambda *args, step=step, name=name, **more: (
            taken.append(name), step(*args, **more))[1])
    handler = compile_service.CompileHandler()

    def load(text: str):
        path = tmp_path / "kernel.py"
        path.write_text("import triton\nimport triton.language as tl\n" + text)
        handler.handle({"op": "load", "path": str(path)}, [])
        [kernel] = handler.kernels

        def compiled(*, whole: bool = False, warps: int = 4, options: dict[str, int] | None = None,
                     dtype: str = "int32", built: tuple[str, ...] = (),
                     **constants: Any) -> list[str]:
            out = View(0, dtype, (1024,), (1,), 0)
            arguments = {"out_ptr": Argument("tensor", out), **{
                name: Argument(type(value).__name__, value) for name, value in constants.items()}}
            launch = Launch(kernel, (1, 1, 1), arguments, {"num_warps": warps, **(options or {})})
            taken.clear()
            [reply] = handler.handle({
                "op": "compile", "target": "h100", "whole": whole, "built": built,
                "recording": to_json(Recording((out,), (launch,), (out,)))}, [])["launches"]
            return [*taken, *("refused" for _ in reply.keys() & {"finding"})]

        return compiled

    return load


def test_of_many_launches_alike_two_are_lowered_and_each_set_of_ones_is_read(steps):
    compiled = steps(WITH_INTEGERS)

    def integers(place: int, special: int = 16, *, wrong: bool = False) -> dict[str, Any]:
        return {**{name: special if number == place else 3
                   for number, name in enumerate("abcd")}, "WRONG": wrong}

    assert [compiled(**integers(place)) for place in range(4)] == [["build"], ["lower"], [], []]
    assert [compiled(**integers(place, 1)) for place in (2, 3)] == [["parse"], ["parse"]]
    assert compiled(**integers(3), whole=True) == ["build"]
    assert compiled(**integers(2, wrong=True)) == ["build", "refused"]
    assert compiled(**integers(3)) == []  # it is known


def test_an_integer_that_triton_does_not_specialize_on_needs_no_code_of_its_own(steps):
    compiled = steps(WITH_INTEGERS.replace("jit", "jit(do_not_specialize=['a'])", 1))
    others = {"b": 3, "c": 3, "d": 3, "WRONG": False}

    assert compiled(a=3, **others) == ["build"]
    assert [compiled(a=a, **others) for a in (1, 16)] == [[], []]
    assert compiled(a=1 << 40, **others) == ["build"]  # of another type


ONE_BLOCK = """
@triton.jit
def block_kernel(out_ptr, BLOCK: tl.constexpr, MODE: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, offs + MODE)
"""


def test_what_is_no_larger_than_what_was_lowered_is_only_read(steps, monkeypatch):
    compiled = steps(ONE_BLOCK)
    build = compile_service.build

    def fits(kernel, bound, options, target, **more):
        if bound["BLOCK"] > 512:
            raise compile_service.DoesNotCompile(Finding("T05", "It does not fit."))
        return build(kernel, bound, options, target, **more)

    monkeypatch.setattr(compile_service, "build", fits)

    assert compiled(BLOCK=1024, MODE=0) == ["refused"]  # says nothing of smaller ones
    assert [compiled(BLOCK=block, MODE=0) for block in (128, 64, 256, 128)] == [
        ["build"], ["parse"], ["lower"], []]
    assert compiled(BLOCK=4, MODE=0) == ["parse"]  # a size, as the others of its name
    assert compiled(BLOCK=128, MODE=0, warps=8) == ["lower"]  # more warps need more
    assert compiled(BLOCK=64, MODE=1) == ["build"]  # a choice is not a size
    assert compiled(BLOCK=48, MODE=0) == ["parse", "refused"]  # not a power of two


def test_a_block_that_does_not_fit_is_refused_without_its_code(steps):
    compiled = steps("""
@triton.jit
def product_kernel(out_ptr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(out_ptr + offs[:, None] * BLOCK + offs[None, :]).to(tl.float32)
    tl.store(out_ptr + offs[:, None] * BLOCK + offs[None, :], tl.dot(x, x).to(tl.int32))
""")

    assert compiled(BLOCK=16) == ["build"]
    assert compiled(BLOCK=64) == ["lower"]
    assert compiled(BLOCK=512, warps=8) == ["lower", "refused"]  # 1 MiB for an operand
    assert compiled(BLOCK=64, warps=64) == ["lower", "refused"]  # 2,048 threads


def test_variants_that_are_parsed_share_a_context_and_a_refused_one_leaves_it_usable(
        steps, monkeypatch):
    created: list[object] = []
    context = ir.context
    monkeypatch.setattr(ir, "context", lambda: created.append(context()) or created[-1])
    compiled = steps(ONE_BLOCK)

    assert compiled(BLOCK=128, MODE=0) == ["build"]
    assert compiled(BLOCK=64, MODE=0) == ["parse"]
    before = len(created)
    assert [compiled(BLOCK=block, MODE=0) for block in (32, 48, 16)] == [
        ["parse"], ["parse", "refused"], ["parse"]]
    assert len(created) == before


@pytest.fixture
def into_llvm(monkeypatch, tmp_path):
    """Gets an item for each variant of which LLVM makes code."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    codes: list[str] = []
    to_module = compiler.llvm.to_module
    monkeypatch.setattr(compiler.llvm, "to_module", lambda *args: (
        codes.append("code"), to_module(*args))[1])
    return codes


def test_an_operation_becomes_code_once_whatever_its_shapes(steps, into_llvm):
    compiled = steps("""
@triton.jit
def product_kernel(out_ptr, BLOCK: tl.constexpr, MODE: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tile = offs[:, None] * BLOCK + offs[None, :]
    x = tl.load(out_ptr + tile).to(tl.float16)
    acc = tl.dot(x, x)
    if MODE == 1:
        acc = tl.where(offs[:, None] >= offs[None, :], acc, 0.0)
    if MODE == 2:
        acc = tl.cos(acc)
    if MODE == 3:
        acc += tl.load(out_ptr + tile, cache_modifier=".cg")
    if MODE == 4:
        acc += tl.load(out_ptr + tile, cache_modifier=".ca", eviction_policy="evict_first")
    if MODE == 5:
        acc += tl.load(out_ptr + tile, mask=tile < 99)
    if MODE == 6:
        acc = tl.exp2(acc)
    tl.store(out_ptr + tile, acc.to(tl.int32))
""")
    def steps_of(**launch: Any) -> list[str]:
        into_llvm.clear()
        return [*compiled(**launch), *into_llvm]

    assert steps_of(BLOCK=16, MODE=0) == ["build", "code"]
    assert steps_of(BLOCK=32, MODE=0) == ["lower"]
    assert steps_of(BLOCK=32, MODE=1) == ["build"]  # only a choice by integers is new
    assert steps_of(BLOCK=32, MODE=5) == ["build"]  # the same load with a mask
    assert steps_of(BLOCK=32, MODE=6) == ["build"]  # every GPU of today has it
    assert [steps_of(BLOCK=16, MODE=mode) for mode in (2, 3)] == [["build", "code"]] * 2
    assert steps_of(BLOCK=16, MODE=4) == ["build", "refused", "code"]
    assert steps_of(BLOCK=16, MODE=0, options={"num_stages": 1}) == ["build"]
    assert steps_of(BLOCK=16, MODE=0, options={"maxnreg": 64}) == ["build", "code"]
    assert steps_of(BLOCK=16, MODE=0, options={"maxnreg": 0}) == ["build", "refused", "code"]


def test_of_a_kernel_that_another_compiler_builds_only_unusual_operations_become_code(
        steps, into_llvm):
    compiled = steps(ONE_BLOCK + """
    if MODE == 1:
        tl.store(out_ptr + offs, offs, cache_modifier=".wt")
""")

    assert compiled(BLOCK=64, MODE=0, built=("block_kernel",)) == ["build"]
    assert into_llvm == []
    assert compiled(BLOCK=64, MODE=1, built=("block_kernel",)) == ["build"]
    assert into_llvm == ["code"]


def test_bfloat16_is_only_read_where_float16_was_lowered_unless_it_is_an_atomic(
        steps, into_llvm):
    compiled = steps("""
@triton.jit
def half_kernel(out_ptr, BLOCK: tl.constexpr, MODE: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(out_ptr + offs)
    if MODE == 1:
        tl.atomic_add(out_ptr + offs, x)
    if MODE == 2 and x.dtype == tl.bfloat16:
        x = x @ x
    tl.store(out_ptr + offs, x)
""")

    def both(**launch: Any) -> list[str]:
        return [*compiled(dtype="float16", **launch), *compiled(dtype="bfloat16", **launch)]

    assert both(BLOCK=64, MODE=0) == ["build", "parse_half"]
    assert both(BLOCK=128, MODE=0) == ["lower", "parse"]
    assert compiled(BLOCK=256, MODE=0, dtype="bfloat16") == ["lower"]
    assert compiled(BLOCK=256, MODE=0, dtype="float16") == ["parse"]
    assert both(BLOCK=64, MODE=2) == ["build", "parse_half", "refused"]
    assert len(into_llvm) == 1
    assert both(BLOCK=64, MODE=1) == ["build", "parse_half"]
    assert len(into_llvm) == 3


@pytest.mark.parametrize(("effort", "forks"), [
    ("whole", ["worker", "executor", "compiler", "compiler"]),  # one beside the cases, one asked
    ("uncompiled", ["worker", "executor"]),
])
def test_two_compilers_share_what_is_not_alike_and_none_starts_in_vain(
        graded, uncached, monkeypatch, effort, forks):
    forked, asked = [], []
    fork, ask = Sandbox.fork, Processes.ask
    monkeypatch.setattr(Sandbox, "fork", lambda box, role, *limits: (
        forked.append(role), fork(box, role, *limits))[1])

    def asks(self: Processes, role: str, *args: Any, **more: Any) -> Any:
        later = ask(self, role, *args, **more)
        if role == "compiler":
            asked.append((id(self._compiled_by[more["alike"]]), more["alike"]))
        return later

    monkeypatch.setattr(Processes, "ask", asks)
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 1})
    suite = replace(SMALL, cases=[correctness(f"{n} of {dtype}", rand(n, dtype=dtype))
                                  for dtype in ("float32", "float16") for n in (3, 4)])

    report = graded(KERNEL, suite, effort=effort)

    assert (report.verdict, sorted(forked)) == (Verdict.PASSED, sorted(forks))
    assert len({compiler for compiler, _ in asked}) == forks.count("compiler")
    assert len(set(asked)) == forks.count("compiler")  # what is alike has one and the same


def test_configurations_of_a_measured_case_are_compiled_by_both_and_listed_together(
        graded, uncached, monkeypatch):
    asked: list[tuple[str, int | None]] = []
    ask = Processes.ask

    def asks(self: Processes, role: str, request: dict[str, Any], *args: Any, **more: Any) -> Any:
        later = ask(self, role, request, *args, **more)
        if request["op"] in ("compile", "disassemble", "survey", "time"):
            asked.append((request["op"], self._compiled_by.get(more.get("alike"))))
        return later

    monkeypatch.setattr(Processes, "ask", asks)
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 1})
    suite = replace(SMALL, cases=[performance("fast", rand(1 << 20), pass_at=0.01)])

    configs = ", ".join(f"triton.Config({{'BLOCK': {size}}})" for size in (64, 128, 256, 512))
    report = graded(KERNEL.replace(
        "@triton.jit\n", f"@triton.autotune([{configs}], key=['n'])\n@triton.jit\n", 1).replace(
        "(triton.cdiv(x.numel(), 64),)", "lambda meta: (triton.cdiv(x.numel(), meta['BLOCK']),)",
        1).replace(", BLOCK=64)", ")", 1), suite)

    assert "GPU; predicted for the NVIDIA H100 SXM" in report.results[0].reason
    assert {compiler for op, compiler in asked if op == "compile"} == {0, 1}
    assert 1 <= [op for op, _ in asked].count("disassemble") <= 3
    assert [op for op, _ in asked].count("survey") == [op for op, _ in asked].count("time") == 4
    assert [op for op, _ in asked if op in ("survey", "time")][:4] == ["survey"] * 4


def test_code_whose_time_is_predicted_is_compiled_listed_and_surveyed_before_other_code(
        graded, uncached, requests):
    suite = replace(SMALL, cases=[
        SMALL.cases[0], performance("no spills", rand(1 << 12), spills=0),
        performance("fast", rand(1 << 20), pass_at=0.01)])

    report = graded(KERNEL, suite)

    asked = [(request["op"], from_json(request["recording"]).launches[0].grid[0] * 64)
             for request in requests
             if request.get("whole") or request["op"] in ("disassemble", "survey")]
    assert report.verdict is Verdict.PASSED
    assert asked[:4] == [("compile", 1 << 20), ("disassemble", 1 << 20), ("compile", 1 << 12),
                         ("survey", 1 << 20)]


def test_where_values_go_first_one_case_is_compiled_beside_them_unless_the_first_fails(
        graded, uncached, requests):
    suite = replace(SMALL, cases=[
        *(correctness(f"{n} floats", rand(n)) for n in range(3, 13)),
        *(performance(f"fast {n}", rand(n), pass_at=0.01) for n in (1 << 20, 3 << 20))])

    def before_the_last_run(text: str) -> tuple[Verdict, int]:
        requests.clear()
        report = graded(text, suite, effort="early", cancelled=threading.Event())
        asked = [request["op"] for request in requests]
        last = len(asked) - 1 - asked[::-1].index("run")
        return report.verdict, asked[:last].count("compile")

    assert before_the_last_run(KERNEL) == (Verdict.PASSED, 1)
    assert before_the_last_run(KERNEL.replace("x * 2", "x * 3")) == (Verdict.FAILED, 0)


TWO_KERNELS = with_launch("""
@triton.jit
def same_kernel(x_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + offs, tl.load(x_ptr + offs, mask=offs < n), mask=offs < n)


""", """
double_kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
if x.numel() != 3:
    same_kernel[(triton.cdiv(x.numel(), 64),)](out, x.numel(), BLOCK=64)
""")


def test_launches_of_a_call_go_to_the_compiler_of_their_kernel(graded, uncached, monkeypatch):
    asked = []
    ask = Processes.ask

    def asks(self: Processes, role: str, request: dict[str, Any], *args: Any, **more: Any) -> Any:
        later = ask(self, role, request, *args, **more)
        if request["op"] == "compile":
            asked.append((id(self._compiled_by[more["alike"]]), [
                launch.kernel for launch in from_json(request["recording"]).launches]))
        return later

    monkeypatch.setattr(Processes, "ask", asks)
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 1})
    suite = replace(SMALL, cases=[correctness(f"{n}", rand(n)) for n in (3, 4)])

    report = graded(TWO_KERNELS, suite)

    assert report.verdict is Verdict.PASSED
    assert sorted(kernels for _, kernels in asked) == [
        ["double_kernel"], ["double_kernel"], ["same_kernel"]]
    assert len({(compiler, *kernels) for compiler, kernels in asked}) == 2
    assert len({compiler for compiler, _ in asked}) == 2


def test_a_compiler_gets_kernels_while_the_other_one_has_more_requests(
        graded, uncached, monkeypatch):
    asked: dict[str, set[int]] = {}
    built: dict[str, list[str]] = {}
    ask = Processes.ask

    def asks(self: Processes, role: str, request: dict[str, Any], *args: Any, **more: Any) -> Any:
        later = ask(self, role, request, *args, **more)
        if request["op"] == "compile":
            [dtype] = more["alike"][1]
            asked.setdefault(dtype, set()).add(self._compiled_by[more["alike"]])
            built[dtype] = request["built"]
        return later

    monkeypatch.setattr(Processes, "ask", asks)
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 1})
    suite = replace(SMALL, cases=[correctness(f"{n} of {dtype}", rand(n, dtype=dtype))
                                  for dtype, n in (("float32", 4), ("float16", 5),
                                                   ("bfloat16", 6), ("float64", 7))] + [
        performance(f"{n} counted", rand(n), spills=0) for n in (64, 128)])

    report = graded(KERNEL, suite)

    assert report.verdict is Verdict.PASSED
    assert asked == {"float32": {0}, "float16": {1}, "float64": {1}}
    assert built == {"float32": [], "float16": ["double_kernel"], "float64": ["double_kernel"]}


LONG_AND_SHORT = with_launch("""
@triton.jit
def long_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    x = x * 2
    x = x * 2
    x = x * 0.5
    tl.store(out_ptr + offs, x, mask=offs < n)


@triton.jit
def short_kernel(x_ptr, BLOCK: tl.constexpr):
    tl.store(x_ptr, 0.0)


@triton.jit
def other_kernel(x_ptr, n, BLOCK: tl.constexpr):
    tl.store(x_ptr, 0.0)


""", """
short_kernel[(1,)](out, BLOCK=64)
other_kernel[(1,)](out, x.numel(), BLOCK=64)
long_kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
""")


def test_long_kernels_are_divided_among_the_compilers_before_short_ones(
        graded, uncached, monkeypatch):
    compilers: dict[str, int] = {}
    ask = Processes.ask

    def asks(self: Processes, role: str, request: dict[str, Any], *args: Any, **more: Any) -> Any:
        later = ask(self, role, request, *args, **more)
        if request["op"] == "compile":
            compilers[more["alike"][0]] = self._compiled_by[more["alike"]]
        return later

    monkeypatch.setattr(Processes, "ask", asks)
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 1})

    report = graded(LONG_AND_SHORT, replace(SMALL, cases=[correctness("four", rand(4))]))

    assert report.verdict is Verdict.PASSED
    assert compilers["short_kernel"] == compilers["other_kernel"] != compilers["long_kernel"]


@pytest.mark.parametrize("cache", ["cache", "off"])
def test_code_that_was_begun_ahead_is_asked_for_once(
        graded, requests, monkeypatch, tmp_path, cache):
    monkeypatch.setenv("TRITONLAB_CACHE", "off" if cache == "off" else str(tmp_path / cache))
    suite = replace(SMALL, cases=[correctness("four", rand(4)), *(performance(
        f"{n} counted", rand(n), spills=0) for n in (64, 128, 192))])

    report = graded(KERNEL, suite)

    assert report.verdict is Verdict.PASSED
    assert [request.get("whole") for request in requests].count(True) == 3


def test_two_compilers_predict_for_a_call_what_one_does(graded, uncached, monkeypatch):
    suite = replace(SMALL, cases=[correctness("four", rand(4)), performance(
        "a million", rand(1 << 20), pass_at=0.5, stretch=0.9)])

    apart = graded(TWO_KERNELS, suite)
    monkeypatch.setattr(session, "form", lambda launch: "alike")
    together = graded(TWO_KERNELS, suite)

    assert apart.results[1].predicted == together.results[1].predicted is not None


def test_measured_cases_are_surveyed_once_and_before_the_first_is_timed(
        graded, uncached, monkeypatch):
    asked = []
    ask = Processes.ask
    monkeypatch.setattr(Processes, "ask", lambda self, role, request, *args, **more: (
        asked.append(request["op"]), ask(self, role, request, *args, **more))[1])
    suite = replace(SMALL, cases=[correctness("four", rand(4)), *(performance(
        f"{n} measured", rand(n), pass_at=0.5) for n in (1 << 20, 1 << 21))])

    report = graded(KERNEL, suite)

    assert all(one.predicted for one in report.results[1:3])
    assert [op for op in asked if op in ("survey", "time")] == ["survey"] * 2 + ["time"] * 2


def launch(*arguments: Argument, kernel: str = "f", **options: int) -> Recording:
    named = {f"a{n}": argument for n, argument in enumerate(arguments)}
    return Recording((), (Launch(kernel, (1, 1, 1), named, options),), ())


def test_forms_differ_where_few_operations_are_the_same():
    def tensor(dtype: str) -> Argument:
        return Argument("tensor", View(0, dtype, (4,), (1,), 0))

    same = [launch(tensor("float32"), argument, num_warps=warps) for argument, warps in (
        (Argument("int", 1), 4), (Argument("int", 64), 4), (Argument("int", 1), 8),
        (Argument("bool", True), 4), (Argument("none", None), 4))]
    others = [launch(tensor("float16"), Argument("int", 1), num_warps=4),
              launch(tensor("float32"), Argument("int", 1), kernel="g", num_warps=4)]

    assert len({session.form(*one.launches) for one in same}) == 1
    assert len({session.form(*one.launches) for one in (same[0], *others)}) == 3


def test_an_autotuner_passes_over_what_does_not_fit_as_long_as_one_does(graded):
    assert gate(graded(tuned((128, 8), (64, 2)), PRODUCT)).verdict is Verdict.PASSED

    (finding,) = gate(graded(tuned((128, 8), (128, 9)), PRODUCT)).findings
    assert finding.code == "T05"


def test_it_depends_on_the_gpu_that_is_named(graded):
    text = tiles(128, 5)

    large = graded(text, PRODUCT, target=targets.find("h200"))
    small = graded(text, PRODUCT, target=targets.find("rtx4090"))

    assert (large.target, gate(large).verdict) == ("NVIDIA H200 SXM", Verdict.PASSED)
    (finding,) = gate(small).findings
    assert (finding.code, "RTX 4090" in finding.seen) == ("T05", True)


def test_a_number_that_python_does_not_write_down_is_refused_in_words(graded):
    text = with_body(f"tl.store(out_ptr + offs, 2 * 0x{'f' * 5000}, mask=mask)")

    (finding, *_) = gate(graded(text)).findings

    assert (finding.code, "4300 digits" in finding.seen) == ("L05", True)


ON_HOPPER = """
    x = tl.load(x_ptr + offs, mask=mask)
    if tl.target_info.cuda_capability_geq(9, 0):
        y = x * 2
    else:
        y = x + {}
    tl.store(out_ptr + offs, y, mask=mask)
    """


@pytest.mark.parametrize(("other", "target", "verdict"), [
    ("x", "h100", Verdict.PASSED), ("x", "a100", Verdict.PASSED),
    ("1", "h100", Verdict.PASSED), ("1", "a100", Verdict.FAILED),
])
def test_a_kernel_that_chooses_by_the_gpu_runs_as_on_the_one_that_is_named(
        graded, other, target, verdict):
    report = graded(with_body(ON_HOPPER.format(other)), target=targets.find(target))

    assert report.verdict is verdict
    assert {finding.code for result in report.results for finding in result.findings} <= {"N01"}


@pytest.mark.parametrize(("target", "code"), [("h100", "R01"), ("rtx4090", None)])
def test_host_code_that_chooses_by_the_gpu_finds_the_one_that_is_named(graded, target, code):
    text = with_launch("", """
        block = {80: 32, 89: 64}[triton.runtime.driver.active.get_current_target().arch]
        double_kernel[(triton.cdiv(x.numel(), block),)](x, out, x.numel(), BLOCK=block)
        """)

    report = graded(text, target=targets.find(target))

    assert {f.code for r in report.results for f in r.findings} == ({code} if code else set())


def test_a_kernel_that_takes_too_long_to_compile_fails_and_the_next_grade_is_as_good(
        graded, monkeypatch):
    forked = []
    fork = Sandbox.fork
    monkeypatch.setattr(Sandbox, "fork", lambda box, role, *limits: (
        forked.append(role), fork(box, role, *limits))[1])
    monkeypatch.setattr(session, "COMPILE_S", 2.0)
    text = with_body("""
        x = tl.load(x_ptr + offs, mask=mask)
        for i in tl.static_range(1000):
            x = tl.where(x > i, x + 1, x - 1)
            x = tl.where(x > i, x - 1, x + 1)
        tl.store(out_ptr + offs, x * 2, mask=mask)
        """)

    report = graded(text, replace(SMALL, cases=[
        replace(SMALL.cases[0], name=f"a thousand {tag}") for tag in "abcd"]))

    (finding,) = gate(report).findings
    assert finding.code == "R02"
    assert "did not finish within 2 s, the limit for the launches of one call." in finding.seen
    assert "unrolled" in finding.means
    assert forked.count("compiler") == 1  # the other three are not tried
    monkeypatch.undo()
    assert gate(graded(KERNEL)).verdict is Verdict.PASSED


def test_a_crash_of_the_compiler_is_the_kernels_failure():
    stop = Stopped(Finding("R03", "The process ended while compiling a kernel ran."))

    (finding,) = crashed(stop, Recording((), (Launch("sum_kernel", (1, 1, 1), {}, line=7),), ()),
                         "NVIDIA H100 SXM").findings

    assert (finding.code, finding.line) == ("L05", 7)
    assert "crashed on `sum_kernel`" in finding.seen


def test_a_call_that_launches_nothing_has_nothing_to_compile(graded):
    nothing = replace(SUITE, cases=[SUITE.cases[3]])

    report = graded(KERNEL, nothing)

    assert [r.name for r in report.results] == ["nothing"]
    assert report.target == ""


def _compiling(begin_compile) -> SimpleNamespace:
    """A session that compiles so."""
    return SimpleNamespace(begin_compile=begin_compile, divide=lambda recordings: None)


def test_a_fault_of_the_graders_own_is_an_error_and_never_the_learners(monkeypatch):
    def broken():
        raise RuntimeError("the grader's own code failed")

    made = Gate(_compiling(lambda *_, **__: broken), targets.find())
    made.add("a case", SimpleNamespace(launches=[Launch("f", (1, 1, 1), {})]))

    result = made.result()

    assert (result.verdict, "own code failed" in result.reason) == (Verdict.ERROR, True)


def test_a_case_alone_tells_of_the_compiler_only_what_it_refuses(graded):
    body, *_ = INTERPRETS_ONLY["host code of Triton"]

    fine, refused = (graded(text, only="a thousand in") for text in (KERNEL, with_body(body)))

    assert [r.name for r in fine.results] == ["a thousand in float16"]
    assert [r.verdict for r in refused.results] == [Verdict.PASSED, Verdict.FAILED]


def test_a_library_function_that_a_type_does_not_have_is_told_as_such(graded):
    text = with_body("""
        x = tl.load(x_ptr + offs, mask=mask)
        y = libdevice.tanh(x.to(tl.float16))
        tl.store(out_ptr + offs, y, mask=mask)
        """)
    known = "import triton.language as tl\nfrom triton.language.extra import libdevice"

    report = graded(text.replace("import triton.language as tl", known, 1))

    finding = report.first_failure.findings[0]
    assert finding.code == "L05"
    assert finding.seen.startswith("Triton does not compile `double_kernel` for the")
    assert "the function called here is not implemented for float16" in finding.seen
    assert "libdevice.tanh" in finding.seen


@pytest.mark.parametrize(("imports", "works"), [
    ("import torch", False), ("import triton.language.extra.libdevice", True),
    ("from triton.language.extra import libdevice", True),
], ids=["nothing", "the module", "a name of the package"])
def test_a_module_that_the_file_does_not_import_is_not_there(graded, imports, works):
    text = with_body("""
        x = tl.load(x_ptr + offs, mask=mask)
        y = tl.extra.libdevice.floor(2 * x.to(tl.float32)) * 0
        tl.store(out_ptr + offs, 2 * x + y.to(x.dtype), mask=mask)
    """).replace("import torch", f"import torch\n{imports}", 1)

    found = list(graded(text, effort="first").findings())

    assert (found == []) is works
    if not works:
        assert found[0].code == "L05" and found[0].line == 12
        assert "the module `triton.language.extra.libdevice` is never imported" in found[0].seen


@pytest.mark.parametrize(("whole", "awaited", "says"), [
    (True, 3, "No. Observed in the case 'one' and 1 other."),
    (False, 1, "No. Observed in the case 'one'.")])
def test_what_does_not_compile_is_told_of_all_cases_or_of_the_first_alone(whole, awaited, says):
    waited = []

    def begin_compile(recording, target):
        refused = [Finding("L05", "No.")] if recording.refused else []
        return lambda: (waited.append(recording), SimpleNamespace(findings=refused))[1]

    made = Gate(_compiling(begin_compile), targets.find())
    for name, refused in (("one", True), ("two", False), ("three", True)):
        made.add(name, SimpleNamespace(
            launches=[Launch("f", (1, 1, 1), {})], refused=refused))

    (finding,) = made.result(whole=whole).findings

    assert (len(waited), finding.seen) == (awaited, says)


@pytest.mark.parametrize(("slow_s", "all_s", "given_up"), [
    (0.0, 1e9, True), (1e9, 0.0, True), (60.0, 240.0, False)],
    ids=["slow variants", "all variants", "neither"])
def test_a_kernel_whose_variants_take_too_much_cpu_time_together_is_given_up(
        tmp_path, monkeypatch, slow_s, all_s, given_up):
    clock = itertools.count()
    monkeypatch.setattr(compile_service, "_cpu_s", lambda: float(next(clock)))
    monkeypatch.setattr(compile_service, "SLOW_S", 0.0)
    monkeypatch.setattr(compile_service, "SLOW_VARIANTS_S", slow_s)
    monkeypatch.setattr(compile_service, "ALL_VARIANTS_S", all_s)
    path = tmp_path / "kernel.py"
    path.write_text("import triton\nimport triton.language as tl\n" + ONE_BLOCK + ONE_BLOCK.replace(
        "block_kernel", "other_kernel"))
    handler = compile_service.CompileHandler()
    handler.handle({"op": "load", "path": str(path)}, [])
    out = View(0, "int32", (1024,), (1,), 0)

    def compiled(kernel: str, block: int):
        arguments = {"out_ptr": Argument("tensor", out), "BLOCK": Argument("int", block),
                     "MODE": Argument("int", 0)}
        recorded = Recording((out,), (Launch(kernel, (1, 1, 1), arguments, line=7),), (out,))
        reply = handler.handle({"op": "compile", "target": "h100", "whole": True,
                                "recording": to_json(recorded)}, [])
        return compiled_of(reply["launches"], recorded)

    first, second, same, other = (compiled(*launch) for launch in (
        ("block_kernel", 64), ("block_kernel", 128), ("block_kernel", 64), ("other_kernel", 64)))

    assert not first.findings + same.findings + other.findings  # what is compiled stays so
    assert [finding.code for finding in second.findings] == ["R02"] * given_up
    if given_up:
        assert "Compiling `block_kernel` was stopped after " in second.findings[0].seen
        assert "s of CPU time: one variant (with BLOCK=64, MODE=0) took" in second.findings[0].seen
        assert (second.findings[0].line, "num_warps" in second.findings[0].means) == (7, True)


def test_the_smallest_block_is_compiled_first_then_the_largest_and_refused_in_the_order_of_cases():
    begun = []

    def begin_compile(recording, target):
        begun.append(recording.name)
        return lambda: SimpleNamespace(findings=[Finding("L05", recording.name)])

    gate = Gate(_compiling(begin_compile), targets.find())
    for name, block in (("middle", 256), ("large", 1024), ("tiny", 4), ("small", 64),
                        ("small with a bias", 64), ("wide", 64)):
        bias = {"bias_ptr": Argument("tensor", View(0, "float32", (4,), (1,), 0))}
        launch = Launch("f", (1, 1, 1), {
            "x_ptr": bias["bias_ptr"], **(bias if "bias" in name else {}),
            "BLOCK": Argument("int", block),
            **({"BLOCK_N": Argument("int", 32)} if name == "wide" else {})})
        gate.add(name, SimpleNamespace(launches=[launch], name=name))
    (finding,) = gate.result().findings

    assert begun == ["small with a bias", "wide", "large", "middle", "small", "tiny"]
    assert finding.seen.startswith("middle")


def test_what_is_waited_for_is_told_before_each_call():
    made = Gate(_compiling(lambda *_, **__: lambda: SimpleNamespace(findings=[])),
                targets.find())
    for name in ("one", "two"):
        made.add(name, SimpleNamespace(launches=[Launch("sum_kernel", (1, 1, 1), {})]))
    told = []

    made.result(tell=told.append)

    assert [line.partition(": ")[2] for line in told] == [
        "0 of 2 calls, `sum_kernel` next", "1 of 2 calls, `sum_kernel` next"]
