"""Machine code by line: lines are right, repair changes nothing else, loops are known."""

# A jit function has no Python types: its parameters are pointers and blocks.
from __future__ import annotations

import dataclasses
import re
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest
import triton
import triton.language as tl
from triton.backends.compiler import Language
from triton.compiler.compiler import make_backend

from grader.engine.compiler import ptx as reader
from grader.engine.compiler import sass
from grader.engine.compiler.compile import address, build
from grader.engine.compiler.cubin import Cubin
from grader.engine.compiler.kernel_reader import binary_of
from grader.engine.compiler.sass import CannotDisassemble, Code, code_of, live_registers
from grader.engine.compiler.timing_model.control_flow import (
    Flow,
    Loop,
    Work,
    flow_of,
    with_calls,
)
from grader.engine.compiler.timing_model.instruction_costs import cost, multiplied
from tests.support import timed
from tests.support.tiers import by_default

CAPABILITIES = (75, 80, 90, 100, 120)


def compiled(capability: int = 90):
    arguments = {"x_ptr": address("float32", 0), "y_ptr": address("float32", 0),
                 "z_ptr": address("float32", 0), "n": 1024, "STRIDE": 1, "BLOCK": 1024}
    return build(timed.add_kernel, arguments, {}, timed.target(capability))


def machine_code(kernel: Any) -> bytes:
    return Cubin(kernel.asm["cubin"], kernel.metadata.name).code


def assembled(ptx: str, kernel: Any) -> Any:
    """Another text in the place of a kernel's, assembled by the last stage of Triton's compiler."""
    backend = make_backend(kernel.metadata.target)
    settings = dict(kernel.metadata._asdict())
    stages: dict[str, Any] = {}
    backend.add_stages(stages, backend.parse_options(settings), Language.TRITON)
    return SimpleNamespace(metadata=kernel.metadata,
                           asm={"ptx": ptx, "cubin": stages["cubin"](ptx, settings)})


def lines_of(code: Code, name: str) -> set[int | None]:
    return {step.line for step in code.instructions if step.name == name}


def issued(code: Code, flow: Flow) -> Counter[str]:
    """How often a warp runs each instruction, by name."""
    found: Counter[str] = Counter()
    for step, runs in zip(code.instructions, flow.runs, strict=True):
        found[step.name] += runs
    return found


@pytest.mark.parametrize("capability", CAPABILITIES)
def test_masked_loads_and_stores_stand_on_their_lines(capability):
    code = code_of(compiled(capability))

    assert lines_of(code, "LDG") == {timed.line(timed.add_kernel, "x = tl.load"),
                                     timed.line(timed.add_kernel, "y = tl.load")}
    assert lines_of(code, "STG") == {timed.line(timed.add_kernel, "tl.store")}


def test_a_helper_of_the_same_file_counts_for_its_own_line():
    code = code_of(compiled())

    assert lines_of(code, "MUFU") == {timed.line(timed.exponential, "return")}


def test_a_helper_of_the_library_counts_for_the_line_that_calls_it():
    _, code = timed.made("sum")

    assert lines_of(code, "SHFL") == {timed.line(timed.sum_kernel, "tl.sum")}


def test_repaired_lines_leave_the_machine_code_as_it_was():
    made = compiled()
    load = timed.line(timed.add_kernel, "x = tl.load")
    numbered = made.asm["ptx"].replace(
        "// begin inline asm\n", f"// begin inline asm\n\t.loc\t1 {load} 9\n")
    wrong = re.sub(r"\n\s*(@%p\d+ [ls][dt]\.)", r"\n\t.loc\t1 999 9\n\1", numbered)

    right = reader.repaired(wrong)

    assert wrong != right
    again = assembled(right, made)
    assert machine_code(again) == machine_code(made)
    assert 999 not in {step.line for step in code_of(again).instructions}
    assert 999 in {step.line for step in code_of(assembled(wrong, made)).instructions}


def test_a_caller_that_stands_in_a_comment_alone_is_told_to_the_assembler():
    frames = "lib.py:263:15 @[ lib.py:293:36 @[ kernel.py:26:35 ] ]"
    ptx = ('\t.loc\t1 20 9\t// kernel.py:20:9\n\t.loc\t2 263 15\t// ' + frames
           + '\n\t.file\t1 "/home/kernel.py"\n\t.file\t2 "/lib/lib.py"\n')

    told = reader.attributed_to_callers(ptx)

    assert "\t.loc\t1 26 35\n" in told
    assert "\t.loc\t1 20 9\t// kernel.py:20:9\n" in told
    assert reader.own_file(ptx) == "kernel.py"


def test_other_machine_code_is_not_taken_for_the_same():
    made, other = compiled(), build(
        timed.count_kernel, {"x_ptr": address("int32", 0), "y_ptr": address("int32", 0)}, {},
        timed.H200)

    assert machine_code(made) != machine_code(other)


def test_assembling_with_lines_leaves_the_machine_code_as_it_was():
    kernel = compiled()

    plain = assembled(kernel.asm["ptx"], kernel)

    assert reader.located(kernel.asm["ptx"])[0] != kernel.asm["ptx"]
    assert plain.asm["cubin"] != kernel.asm["cubin"]
    assert machine_code(plain) == machine_code(kernel)


@pytest.mark.parametrize("capability", [90, 100, 120])  # nvdisasm refuses older ones
def test_live_registers_are_counted_at_every_instruction_and_never_exceed_those_of_a_thread(
        capability):
    made = compiled(capability)
    addresses = {step.address for step in code_of(made).instructions
                 if not step.never}

    try:
        live = live_registers(made.asm["cubin"], made.metadata.name)
    except CannotDisassemble as error:  # Triton 3.7 and 3.8 assemble for sm_90 with CUDA 12
        assert "flow analysis is disabled" in str(error)
        pytest.skip("this nvdisasm does not analyse code of an older assembler")

    assert live.keys() >= addresses
    assert 8 < max(live.values()) <= binary_of(
        made, timed.target(capability), "add_kernel", {}).registers


def test_listings_are_made_beside_each_other_a_few_at_a_time():
    sass._listing.cache_clear()

    begun = [sass.begin_codes([compiled(capability)])[0] for capability in (80, 90, 120)]

    assert len(sass._Listing._running) == sass._AT_ONCE
    assert all(code().instructions for code in begun)
    assert sass._Listing._running == []


def test_kernels_that_are_listed_together_have_the_code_and_the_lines_of_each_alone():
    names = ["add", "sum", "sine", "count", "matmul", "add"]
    kernels = [timed.compiled_call(name, **choice)[0] for name, choice in zip(
        names, [{}, {}, {}, {}, {}, {"n": 1023}], strict=True)]
    alone = [code_of(kernel) for kernel in kernels]
    sass._listing.cache_clear()

    together = [code() for code in sass.begin_codes(kernels)]

    assert sass._listing.cache_info().currsize == 1
    assert together == alone


@triton.jit
def add(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    """Has the name of an opcode."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + offs, tl.load(x_ptr + offs, mask=offs < n) + 1.0, mask=offs < n)


@triton.jit
def printing_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.device_print("x is", x)
    tl.device_assert(n > 0, "no elements")
    tl.store(y_ptr + offs, x, mask=offs < n)


@triton.jit(noinline=True)
def shifted(x, y):
    return x * y + 1.0


@triton.jit
def calling_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    for i in range(n):
        x = tl.sin(x) * shifted(n * 1.0, i * 2.0)
    tl.store(y_ptr + offs, x, mask=offs < n)


def test_functions_of_kernels_that_are_listed_together_stay_apart():
    kernels = [build(kernel, {"x_ptr": address("float32", 0), "y_ptr": address("float32", 0),
                              "n": n, "BLOCK": 256}, {"debug": True}, timed.H200)
               for kernel in (add, printing_kernel, calling_kernel) for n in (1023, 1024)]
    alone = [code_of(kernel) for kernel in kernels]

    together = [code() for code in sass.begin_codes(kernels)]

    assert together == alone
    called = [step for step in together[-1].instructions if "shifted" in str(step)]
    assert {step.name for step in called} >= {"CALL"}
    assert {step.target for step in called} == {None}


@pytest.mark.parametrize("capability", by_default(2, CAPABILITIES))
def test_branches_lead_to_instructions_of_the_same_kernel(capability):
    kernels = [timed.compiled_call(name, capability)[0] for name in ("sum", "chain", "matmul")]

    for code in [code() for code in sass.begin_codes(kernels)]:
        branches = [step for step in code.instructions if step.name == "BRA"]

        assert branches
        assert {step.target for step in branches} <= {step.address for step in code.instructions}
        assert all(step.operands[-1] == hex(step.target) for step in branches if step.target)


def test_a_mask_of_lanes_is_no_place_in_the_code():
    for text in ("WARPSYNC 0xffffffff", "IADD3 R1, R2, 0x10, RZ", "RET.REL.NODEC R4 0x100"):
        assert sass._instruction(0x120, text, 0x100, (3,), {}).target is None
    for text in ("BRA 0x180", "@P0 CALL.REL.NOINC 0x180", "BSSY B0, 0x180", "BRA.U !UP2, 0x180"):
        assert sass._instruction(0x120, text, 0x100, (3,), {}).target == 0x80

    assert str(sass._instruction(0x120, "CALL.REL.NOINC 0x180", 0x100, (), {0x80: "$div"})) == \
        "CALL.REL.NOINC $div"


def test_what_is_no_machine_code_is_refused():
    kernel = compiled()

    for cubin in (b"nothing", kernel.asm["cubin"][:5000]):
        with pytest.raises(CannotDisassemble, match="the code of `add_kernel` cannot be read"):
            code_of(SimpleNamespace(asm=kernel.asm | {"cubin": cubin}, metadata=kernel.metadata))
    with pytest.raises(CannotDisassemble, match="SM12"):
        code_of(SimpleNamespace(
            asm=kernel.asm | {"ptx": ".target sm_12\n"}, metadata=kernel.metadata))


def test_instructions_have_their_parts():
    code = code_of(compiled())

    load = next(step for step in code.instructions if step.name == "LDG")

    assert load.opcode.startswith("LDG.E.128")
    assert load.predicate.startswith("!P")
    assert str(load).startswith(f"@{load.predicate} LDG.E.128 R")
    assert load.line is not None


def test_code_without_a_branch_has_one_pass_and_no_loop():
    code = code_of(compiled())

    flow = flow_of(code)

    assert flow.loops == ()
    assert issued(code, flow)["LDG"] == 4  # 2 lines, 1024 elements by 128 threads of 4
    assert issued(code, flow)["STG"] == 2


@pytest.mark.parametrize("capability", CAPABILITIES)
@pytest.mark.parametrize("times", by_default(1, [256, 1000]))
def test_a_counter_in_the_code_tells_the_rounds_of_a_loop_without_accesses(capability, times):
    _, code = timed.made("chain", capability, TIMES=times)

    flow = flow_of(code)

    done = issued(code, flow)
    assert done["FFMA"] + 2 * done["FFMA2"] == pytest.approx(8 * times, rel=0.02)


def test_a_loop_without_a_known_end_counts_as_one_iteration():
    _, code = timed.made("sum")

    flow = flow_of(code)

    assert [loop.times for loop in flow.loops] == [1]


@pytest.mark.parametrize("capability", CAPABILITIES)
@pytest.mark.parametrize("rounds", [1, 2, 3, 8, 9, 11, 100])
def test_executions_of_a_line_tell_the_rounds_of_an_unrolled_loop(capability, rounds):
    _, code = timed.made("sum", capability)
    load = timed.line(timed.sum_kernel, "x = tl.load")

    flow = flow_of(code, Work({load: rounds}, {load: 4096.0}))

    # 1024 elements by 128 threads of 4 make two loads a round
    assert issued(code, flow)["LDG"] == pytest.approx(2 * rounds, abs=1)


def test_requests_of_a_warp_tell_the_loads_of_an_iteration():
    _, code = timed.made("hashes")
    load = timed.line(timed.hashes_kernel, "x = tl.load")

    def loads(work: Work) -> float:
        return issued(code, flow_of(code, work))["LDG"]

    # Every lane loads the 16 elements of a block: few bytes, and four instructions.
    assert loads(Work({load: 256.0}, {load: 64.0}, {load: 4.0})) == 4 * 256
    assert loads(Work({load: 256.0}, {load: 64.0})) < 4 * 256


@pytest.mark.parametrize(("around", "runs"), [((), 20.0), (("BSSY", "BSYNC"), 0.0)])
def test_a_subroutine_runs_as_often_as_it_is_called_without_a_branch(around, runs):
    call = ("CALL.REL.NOINC",)
    names = ("MOV", *around[:1], *call, *around[1:], "BRA", "EXIT", "IMAD", "RET.REL.NODEC", "NOP")
    code = Code(tuple(sass.SassInstruction(16 * at, name, (
        ("`($__internal_0_$__cuda_sm20_rem_s64)",) if name in call else ()), "", 1)
        for at, name in enumerate(names)))
    last = names.index("BRA")
    flow = Flow((Loop(0, last, 20.0),), (20.0,) * (last + 1) + (1.0,) + (0.0,) * 3)

    assert with_calls(flow, code).runs == (*flow.runs[:last + 2], runs, runs, 0.0)


@pytest.mark.parametrize("capability", [80, 90])
def test_a_pipelined_product_runs_its_loop_once_for_each_tile(capability):
    binary, code = timed.made("matmul", capability)
    a, b = (timed.line(timed.matmul_kernel, f"{name} = tl.load") for name in "ab")

    flow = flow_of(code, Work({a: 128, b: 128}))

    computed = sum(runs * multiplied(step) * binary.warps
                   for step, runs in zip(code.instructions, flow.runs, strict=True))
    assert computed == pytest.approx(2 * 128 * 128 * 8192)


@pytest.mark.parametrize("capability", [80, 90, 100])
def test_loops_within_loops_are_counted_apart(capability):
    _, code = timed.made("persistent", capability)
    load, store = (timed.line(timed.persistent_kernel, text) for text in ("tl.load", "tl.store"))

    flow = flow_of(code, Work({load: 8 * 500.0, store: 500.0}, {load: 4096.0, store: 4.0}))

    assert [loop.times for loop in flow.loops] == [500, 4000]


def test_products_alone_tell_the_rounds_of_their_loop():
    binary, code = timed.made("matmul")
    flops = {index: multiplied(step) * binary.warps for index, step in
             enumerate(code.instructions) if multiplied(step)}

    flow = flow_of(code, Work(flops=2 * 128 * 128 * 8192), 256, flops)

    assert [loop.times for loop in flow.loops] == [128]


def test_waiting_for_memory_of_the_tensor_cores_is_no_loop():
    _, code = timed.made("matmul", 100)
    a, b = (timed.line(timed.matmul_kernel, f"{name} = tl.load") for name in "ab")

    flow = flow_of(code, Work({a: 128, b: 128}))

    assert [loop.times for loop in flow.loops if loop.times > 1] == [128]


def test_each_pipe_gets_its_instructions():
    _, code = timed.made("softmax")

    pipes = {step.name: cost(step, timed.H200).pipe for step in code.instructions}

    assert pipes["MUFU"] == "xu"
    assert {pipes["LDG"], pipes["STG"], pipes["SHFL"], pipes["LDS"]} == {"lsu"}
    assert pipes["FADD"] == "fma"
    assert pipes["BAR"] == "issue"


def test_older_gpus_have_half_the_lanes():
    _, code = timed.made("chain")
    fma = next(step for step in code.instructions if step.name == "FFMA")

    old = cost(fma, dataclasses.replace(timed.H200, capability=80))

    assert old.busy == 2 * cost(fma, timed.H200).busy
