"""What the compiler made of a kernel is read rightly: each fact of a kernel that has it and of one
that has not.

No register count or the like is expected: those are facts of one Triton and one assembler.
"""

from __future__ import annotations

import importlib.util
import inspect
import json
import re
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from grader.engine.compiler import ptx
from grader.engine.compiler.compile import address, build
from grader.engine.compiler.kernel_reader import Unreadable, binary_of
from grader.engine.compiler.ptx import repaired
from grader.engine.compiler.targets import find
from grader.recording.compiled_kernel import ALL_SUMS, MOST_ENTRIES, Access, Binary


@triton.jit
def copy_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    tl.store(y_ptr + offs, x, mask=mask)


@triton.jit
def doubled(x_ptr, offs, mask):
    """A helper in the file of the kernel."""
    x = tl.load(x_ptr + offs, mask=mask, other=1.0)
    return 2 * x


@triton.jit
def helped_kernel(x_ptr, total_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = doubled(x_ptr, offs, offs < n)
    total = tl.sum(x)
    tl.atomic_add(total_ptr, total)


@triton.jit
def row_kernel(x_ptr, y_ptr, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs)
    x = tl.exp(x - tl.max(x))
    tl.store(y_ptr + offs, x / tl.sum(x))


@triton.jit
def sine_kernel(x_ptr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(x_ptr + offs, tl.sin(tl.load(x_ptr + offs)))


@triton.jit
def printing_kernel(x_ptr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    tl.device_print("x", x)


@triton.jit
def sum_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    acc = tl.zeros((BLOCK,), tl.float32)
    for start in tl.range(0, n, BLOCK, num_stages=STAGES):
        acc += tl.load(x_ptr + start + tl.arange(0, BLOCK))
    tl.store(y_ptr + tl.program_id(0), tl.sum(acc))


@triton.jit
def unrolled_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    acc = tl.zeros([BLOCK], tl.float32)
    for number in tl.static_range(4):
        acc += tl.load(x_ptr + number * n + tl.arange(0, BLOCK))
    tl.store(y_ptr + tl.arange(0, BLOCK), acc)


@triton.jit
def meeting_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    total = 0.0
    for start in tl.range(0, n, BLOCK, num_stages=STAGES):
        total += tl.sum(tl.load(x_ptr + start + tl.arange(0, BLOCK)))
    tl.store(y_ptr + tl.program_id(0), total)


@triton.jit
def tile_kernel(x_desc, y_desc, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK
    x = x_desc.load([row, 0])
    y_desc.store([row, 0], x)


@triton.jit
def product_kernel(a_ptr, b_ptr, c_ptr, K, BLOCK: tl.constexpr, PRECISION: tl.constexpr):
    rows = tl.arange(0, BLOCK)[:, None]
    cols = tl.arange(0, BLOCK)[None, :]
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in range(0, K, BLOCK):
        a = tl.load(a_ptr + rows * K + k + cols)
        b = tl.load(b_ptr + (k + rows) * BLOCK + cols)
        acc = tl.dot(a, b, acc, input_precision=PRECISION)
    acc = acc * acc + 1.0  # a multiply-add that is no part of the product
    tl.store(c_ptr + rows * BLOCK + cols, acc)


@triton.jit
def narrow_kernel(a_ptr, b_ptr, c_ptr, K, MOST: tl.constexpr, WIDE: tl.constexpr,
                  ADDED: tl.constexpr):
    """a (64, K) times b (64, K) transposed: K runs through memory in both, as Hopper needs it."""
    rows = tl.arange(0, 64)
    depth = tl.arange(0, 128)
    acc = tl.zeros((64, 64), tl.float32)
    for k in range(0, K, 128):
        a = tl.load(a_ptr + rows[:, None] * K + k + depth[None, :])
        b = tl.load(b_ptr + rows[None, :] * K + k + depth[:, None])
        if WIDE:
            acc = tl.dot(a.to(tl.float16), b.to(tl.float16), acc)
        elif ADDED:
            acc += tl.dot(a, b)
        else:
            acc = tl.dot(a, b, acc, max_num_imprecise_acc=MOST)
    tl.store(c_ptr + rows[:, None] * 64 + rows[None, :], acc)


@triton.jit
def square_kernel(x_ptr, y_ptr):
    """x (64, 64) times itself, transposed."""
    at = tl.arange(0, 64)[:, None] * 64 + tl.arange(0, 64)[None, :]
    x = tl.load(x_ptr + at)
    tl.store(y_ptr + at, tl.dot(x, x.T))


@triton.jit
def power_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    x = tl.load(x_ptr + offs)
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for _ in tl.range(0, n, num_stages=3):
        acc = tl.dot(x, x, acc)
    tl.store(y_ptr + offs, acc)


@triton.jit
def specialized_kernel(a_desc, b_desc, c_desc, K, BLOCK: tl.constexpr):
    acc = tl.zeros((128, BLOCK), tl.float32)
    for k in tl.range(0, K, BLOCK, warp_specialize=True):
        acc = tl.dot(a_desc.load([0, k]), b_desc.load([k, 0]), acc)
    c_desc.store([0, 0], acc.to(tl.float16))


@triton.jit
def transpose_kernel(x_ptr, y_ptr, BLOCK: tl.constexpr):
    rows = tl.arange(0, BLOCK)[:, None]
    cols = tl.arange(0, BLOCK)[None, :]
    x = tl.load(x_ptr + rows * BLOCK + cols)
    tl.store(y_ptr + rows * BLOCK + cols, tl.trans(x))


def compiled(kernel: Any, target: str = "h100", options: dict[str, Any] | None = None,
             **arguments: Any) -> Any:
    return build(kernel, arguments, options or {}, find(target))


def read(kernel: Any, target: str = "h100", options: dict[str, Any] | None = None,
         **arguments: Any) -> Binary:
    made = compiled(kernel, target, options, **arguments)
    return binary_of(made, find(target), kernel.fn.__name__, options or {})


def copy(x: torch.Tensor, n: int = 1024, **more: Any) -> Binary:
    return read(copy_kernel, x_ptr=x, y_ptr=address("float32", 0), n=n, BLOCK=1024, **more)


def product(target: str = "h100", dtype: str = "float16", precision: str = "tf32",
            **options: Any) -> Binary:
    return read(product_kernel, target, options, a_ptr=address(dtype, 0), b_ptr=address(dtype, 0),
                c_ptr=address("float32", 0), K=1024, BLOCK=64, PRECISION=precision)


def loop(stages: int, target: str = "h100", kernel: Any = sum_kernel) -> Binary:
    return read(kernel, target, x_ptr=address("float32", 0), y_ptr=address("float32", 0),
                n=65536, BLOCK=1024, STAGES=stages)


def descriptor(rows: int, cols: int, block: list[int], dtype: str = "float16") -> TensorDescriptor:
    tensor = torch.empty(rows, cols, dtype=getattr(torch, dtype), device="meta")
    return TensorDescriptor(tensor, [rows, cols], [cols, 1], block)


def line(kernel: Any, text: str) -> int:
    """The one line of the kernel that has this text."""
    source, first = inspect.getsourcelines(kernel.fn)
    (found,) = [first + at for at, words in enumerate(source) if text in words]
    return found


LOAD, STORE = line(copy_kernel, "tl.load"), line(copy_kernel, "tl.store")


# 1024 elements by 128 threads are 8 each.
def test_aligned_accesses_are_wide_and_masked_ones_keep_their_line():
    assert copy(address("float32", 0)).accesses == (
        Access(LOAD, "load", 128, 2), Access(STORE, "store", 128, 2))


def test_an_access_off_by_one_element_is_scalar():
    assert copy(address("float32", 1)).accesses == (
        Access(LOAD, "load", 32, 8), Access(STORE, "store", 128, 2))


def test_a_mask_that_ends_anywhere_makes_accesses_scalar():
    assert copy(address("float32", 0), n=1001).accesses == (
        Access(LOAD, "load", 32, 8), Access(STORE, "store", 32, 8))


def test_narrow_elements_are_counted_in_bits():
    loads = [one for one in copy(address("int8", 1)).accesses if one.kind == "load"]

    assert loads == [Access(LOAD, "load", 8, 8)]


def test_a_copy_has_nothing_but_its_accesses():
    binary = copy(address("float32", 0), options={"num_warps": 4})

    assert (binary.kernel, binary.target, binary.capability) == ("copy_kernel", "h100", 90)
    assert (binary.warps, binary.shared, binary.spill_bytes) == (4, 0, 0)
    assert (binary.dot, binary.tensor_cores, binary.tf32, binary.products) == (False, "", False, ())
    assert (binary.stages, binary.barriers, binary.conversions) == (0, 0, 0)
    assert binary.options == {"num_warps": 4}
    assert binary.occupancy.programs > 8


def test_a_helper_has_lines_of_its_own_and_library_code_that_of_the_call():
    made = compiled(helped_kernel, x_ptr=address("float32", 0), total_ptr=address("float32", 0),
                    n=1024, BLOCK=1024)

    binary = binary_of(made, find("h100"), "helped_kernel", {})

    assert binary.accesses == (
        Access(line(doubled, "tl.load"), "load", 128, 2),
        Access(line(helped_kernel, "tl.atomic_add"), "atomic", 32, 1))
    exchanged = {one.line for one in ptx.instructions(made.asm["ptx"])
                 if one.opcode.startswith("st.shared")}
    assert line(helped_kernel, "tl.sum") in exchanged


def test_warps_that_share_a_sum_wait_and_one_alone_does_not():
    arguments = {"x_ptr": address("float32", 0), "total_ptr": address("float32", 0), "n": 1024,
                 "BLOCK": 1024}

    shared = read(helped_kernel, options={"num_warps": 4}, **arguments)
    alone = read(helped_kernel, options={"num_warps": 1}, **arguments)

    assert shared.barriers > alone.barriers
    assert (shared.warps, alone.warps) == (4, 1)
    assert shared.shared > 0


def test_a_row_in_too_few_warps_spills():
    row = {"x_ptr": address("float32", 0), "y_ptr": address("float32", 0), "BLOCK": 32768}

    narrow = read(row_kernel, options={"num_warps": 4}, **row)
    wide = read(row_kernel, options={"num_warps": 32}, **row)

    assert narrow.spill_bytes > 0
    assert wide.spill_bytes == 0
    assert narrow.registers > wide.registers


def test_what_is_printed_is_no_spill():
    made = compiled(printing_kernel, x_ptr=address("float32", 0), BLOCK=1024)

    assert ptx.declared_stack(made.asm["ptx"]) > 0
    assert binary_of(made, find("h100"), "printing_kernel", {}).spill_bytes == 0


def test_the_table_of_a_sine_is_no_spill():
    made = compiled(sine_kernel, x_ptr=address("float32", 0), BLOCK=512)

    assert "__local_depot0[28]" in made.asm["ptx"]  # the assembler makes a stack of 32 bytes
    assert binary_of(made, find("h100"), "sine_kernel", {}).spill_bytes == 0


def test_a_loop_is_pipelined_where_it_asks_for_it():
    piped, plain = loop(stages=3), loop(stages=1)

    load = line(sum_kernel, "tl.load")
    assert {one.kind for one in piped.accesses if one.line == load} == {"async copy"}
    assert {one.bits for one in piped.accesses if one.line == load} == {128}
    assert {one.kind for one in plain.accesses if one.line == load} == {"load"}
    assert piped.stages >= 2 and plain.stages == 0
    assert piped.shared >= piped.stages * 4096


def test_loads_of_an_unrolled_loop_are_not_in_a_loop():
    assert loop(stages=1).loop_loads > 0
    assert loop(stages=1, kernel=unrolled_kernel).loop_loads == 0


@pytest.mark.parametrize("stages", [1, 3])
def test_a_reduction_in_a_loop_shows_as_shuffles_and_one_after_it_does_not(stages):
    after, inside = loop(stages), loop(stages, kernel=meeting_kernel)

    assert after.loop_shuffles == ()
    assert [at for at, _ in inside.loop_shuffles] == [line(meeting_kernel, "tl.sum")]
    assert sum(count for _, count in inside.loop_shuffles) >= 5  # 32 lanes of a warp


def test_turing_copies_nothing_asynchronously():
    turing = loop(stages=3, target="t4")

    assert {one.kind for one in turing.accesses} == {"load", "store"}
    assert turing.stages == 0


def test_descriptors_copy_tiles_in_bulk_where_the_gpu_can():
    tiles = {"x_desc": descriptor(1024, 64, [64, 64]), "y_desc": descriptor(1024, 64, [64, 64]),
             "BLOCK": 64}
    load, store = line(tile_kernel, "x_desc.load"), line(tile_kernel, "y_desc.store")

    hopper, ampere = read(tile_kernel, **tiles), read(tile_kernel, "a100", **tiles)

    assert [(one.line, one.kind, one.bits) for one in hopper.accesses] == [
        (load, "bulk copy", 0), (store, "bulk copy", 0)]
    assert {(one.line, one.kind) for one in ampere.accesses} == {(load, "load"), (store, "store")}
    assert hopper.stages == ampere.stages == 0  # one tile in shared memory is no pipeline


@pytest.mark.parametrize(("target", "cores"), [
    ("t4", ""), ("a100", "mma"), ("rtx5090", "mma"), ("h100", "wgmma"), ("b200", "tcgen05")])
def test_each_gpu_multiplies_on_its_own_tensor_cores(target, cores):
    binary = product(target)

    assert binary.dot and not binary.tf32
    assert binary.tensor_cores == cores
    ((at, instruction, count),) = binary.products
    assert (at, instruction) == (line(product_kernel, "tl.dot"), cores or "fma")
    assert count > 0


def test_exact_float32_is_multiplied_without_tensor_cores():
    exact, fast, thrice = (product("a100", "float32", kind) for kind in ("ieee", "tf32", "tf32x3"))

    at = line(product_kernel, "tl.dot")
    assert (exact.tensor_cores, exact.tf32) == ("", False)
    assert [found[:2] for found in exact.products] == [(at, "fma")]
    assert (fast.tensor_cores, fast.tf32) == ("mma", True)
    assert [found[:2] for found in fast.products] == [(at, "mma")]
    assert (thrice.tensor_cores, thrice.tf32) == ("mma", False)


def narrow(target: str, most: int | None = None, dtype: str = "float8_e4m3fn", *,
           wide: bool = False, added: bool = False) -> Binary:
    return read(narrow_kernel, target, a_ptr=address(dtype, 0), b_ptr=address(dtype, 0),
                c_ptr=address("float32", 0), K=1024, MOST=most, WIDE=wide, ADDED=added)


@pytest.mark.parametrize(("target", "dtype", "factors"), [
    ("rtx4090", "float8_e4m3fn", ("fp8",)), ("h100", "float8_e4m3fn", ("fp8",)),
    ("h100", "float8_e5m2", ("fp8",)), ("b200", "float8_e4m3fn", ("fp8",)),
    ("rtx5090", "float8_e4m3fn", ("fp8",)), ("h100", "int8", ("int8",)),
    ("a100", "bfloat16", ("fp16",)), ("h100", "float16", ("fp16",)),
    ("h100", "float32", ("tf32",)), ("b200", "float32", ("tf32",)), ("t4", "float16", ())])
def test_what_tensor_cores_multiply_is_told_by_its_format(target, dtype, factors):
    if dtype == "int8":
        made = read(square_kernel, target, x_ptr=address(dtype, 0), y_ptr=address("int32", 0))
    else:
        made = narrow(target, dtype=dtype)

    assert made.factors == factors


def test_float8_that_is_multiplied_as_float16_is_told_as_float16():
    converted, in_full = narrow("h100", wide=True), narrow("h100", most=0)

    assert converted.factors == in_full.factors == ("fp16",)  # Triton widens it for full sums
    assert converted.imprecise_sums == in_full.imprecise_sums == 0


@pytest.mark.parametrize(("target", "how", "most"), [
    ("h100", {}, ALL_SUMS), ("h100", {"most": 128}, 128), ("h100", {"most": 64}, 64),
    ("h100", {"added": True}, 128), ("h100", {"dtype": "float16"}, 0),
    ("rtx4090", {}, 0), ("b200", {}, 0)])
def test_imprecise_sums_of_hopper_end_where_the_kernel_ends_them(target, how, most):
    assert narrow(target, **how).imprecise_sums == most


@pytest.mark.parametrize(("target", "stages", "depth"), [
    ("h100", 1, 0), ("h100", 3, 3),
    ("a100", 1, 0), ("a100", 3, 2)])  # mma.sync reads a buffer before the next copy needs it
def test_the_depth_of_a_pipeline_is_that_of_its_buffers(target, stages, depth):
    assert product(target, num_stages=stages).stages == depth


def test_a_ring_of_barriers_alone_is_no_pipeline():
    made = compiled(power_kernel, "b200", x_ptr=address("float16", 0), y_ptr=address("float32", 0),
                    n=1000, BLOCK=64)

    assert "memdesc<2x1xi64" in made.asm["ttgir"]
    assert binary_of(made, find("b200"), "power_kernel", {}).stages == 0


def test_specialized_warps_are_counted():
    options = {"num_warps": 4, "num_stages": 3}
    made = compiled(specialized_kernel, "b200", options,
                    a_desc=descriptor(128, 1024, [128, 64]), b_desc=descriptor(1024, 64, [64, 64]),
                    c_desc=descriptor(128, 64, [128, 64]), K=1024, BLOCK=64)

    binary = binary_of(made, find("b200"), "specialized_kernel", options)

    threads = int(re.search(r"\.reqntid\s+(\d+)", made.asm["ptx"])[1])
    assert binary.warps == threads // 32 > 4
    assert binary.tensor_cores == "tcgen05"
    assert binary.stages >= 2


def test_a_transposed_tile_changes_its_layout_in_shared_memory():
    binary = read(transpose_kernel, x_ptr=address("float32", 0), y_ptr=address("float32", 0),
                  BLOCK=64)

    assert binary.conversions >= 1 and binary.barriers >= 1
    assert {one.bits for one in binary.accesses} == {128}


def module(path: Path) -> ModuleType:
    path.parent.mkdir()
    head = "import triton\nimport triton.language as tl\n"
    path.write_text(head + "\n" * len(path.parent.name) + inspect.getsource(copy_kernel.fn))
    spec = importlib.util.spec_from_file_location("kernels_of_a_test", path)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def test_the_hash_is_of_the_code_and_not_of_its_place(tmp_path):
    here, there = (module(tmp_path / folder / "kernel.py").copy_kernel
                   for folder in ("a", "elsewhere"))
    arguments = {"x_ptr": address("float32", 0), "y_ptr": address("float32", 0), "n": 1024,
                 "BLOCK": 1024}

    one, other = compiled(here, **arguments), compiled(there, **arguments)

    assert one.asm["ptx"] != other.asm["ptx"]
    assert ptx.sha256(one.asm["ptx"]) == ptx.sha256(other.asm["ptx"])
    assert ptx.sha256(one.asm["ptx"]) == copy(address("float32", 0)).ptx_sha256
    assert ptx.sha256(one.asm["ptx"]) != copy(address("float32", 1)).ptx_sha256


MASKED = """
.visible .entry kernel(
.reqntid 128
	.loc	1 10 9
	// begin inline asm
	.loc	1 10 9
	mov.u32 %r1, 0x0;
	.loc	1 11 9
	mov.u32 %r2, 0x0;
	.loc	1 12 9
	@%p1 ld.global.v2.b32 { %r1, %r2 }, [ %rd1 + 0 ]; // not; ld.global.b8 { %r1 }, [ %rd1 ];
	// end inline asm
	@!%p1 bra 	$L1;
	{ .reg .b32 %t; @%p2 ld.global.L1::evict_last.b16 { %rs1 }, [ %rd2 ]; red.global.add.f32 %a; }
	.loc	1 0 0
	st.global.v4.b64 [%rd4], {%rd0, %rd1, %rd2, %rd3};
	.loc	2 5 9
	ld.volatile.global.b64 	%rd5, [%rd6];
	ld.param.b64 	%rd3, [kernel_param_0];
	ld.shared.b32 	%r5, [%r4];
	.file	1 "/a/kernel.py"
	.file	2 "/b" "library.py"
"""


def test_a_masked_load_is_at_the_line_where_its_assembly_begins():
    assert [text for text in repaired(MASKED).splitlines() if ".loc" in text] == [
        "\t.loc\t1 10 9"] * 4 + ["\t.loc\t1 0 0", "\t.loc\t2 5 9"]
    assert repaired(repaired(MASKED)) == repaired(MASKED)


def test_instructions_are_found_behind_predicates_and_within_braces():
    found = [(one.opcode, one.line) for one in ptx.instructions(MASKED) if "global" in one.opcode]

    assert found == [
        ("ld.global.v2.b32", 10), ("ld.global.L1::evict_last.b16", 10), ("red.global.add.f32", 10),
        ("st.global.v4.b64", None), ("ld.volatile.global.b64", None)]


def test_a_tool_that_says_nothing_is_no_fact():
    made = SimpleNamespace(asm={"ptx": "", "ttgir": "", "ttir": "", "cubin": b"no cubin"},
                           metadata=SimpleNamespace(name="kernel", shared=0, num_warps=4))

    with pytest.raises(Unreadable, match="cuobjdump"):
        binary_of(made, find("h100"), "kernel", {})


def test_a_binary_survives_its_way_through_json():
    for binary in (copy(address("float32", 0), options={"num_warps": 4}), product("t4"),
                   narrow("h100", 128),
                   loop(1, kernel=meeting_kernel)):
        assert Binary.from_dict(json.loads(json.dumps(binary.to_dict()))) == binary


@pytest.mark.parametrize(("name", "value"), [
    ("kernel", ""), ("kernel", "a\nb"), ("kernel", 5), ("target", "x" * 2000),
    ("registers", -1), ("registers", True), ("registers", 1.5), ("registers", 100_000),
    ("warps", 0), ("shared", 10**9), ("spill_bytes", None), ("stages", "3"), ("dot", 1),
    ("factors", "fp8"), ("factors", ["fp9"]), ("imprecise_sums", -1), ("imprecise_sums", 2**31),
    ("tensor_cores", "hmma"), ("ptx_sha256", "0" * 63), ("ptx_sha256", "g" * 64),
    ("occupancy", [2, 8, 64]), ("occupancy", [2, 128, 64, "warps"]),
    ("occupancy", [2, 8, 64, "luck"]), ("occupancy", {"programs": 2}),
    ("accesses", {}), ("accesses", [[0, "load", 32, 1]]), ("accesses", [[1, "peek", 32, 1]]),
    ("accesses", [[1, "load", 512, 1]]), ("accesses", [[1, "load", 32]]),
    ("accesses", [[1, ["load"], 32, 1]]), ("accesses", [[1, "load", 32, 1]] * (MOST_ENTRIES + 1)),
    ("loop_shuffles", [[1, -1]]), ("loop_shuffles", [[1, 2, 3]]),
    ("products", [[1, "fma", -1]]), ("products", [[1, "magic", 1]]), ("products", 3),
    ("options", []), ("options", {"num_warps": 1.5}), ("options", {"": 1}),
    ("options", {"a": [1]}), ("options", {"a": 2**70}),
    ("options", {f"o{at}": at for at in range(1000)}),
])
def test_what_no_binary_can_be_is_refused(name, value):
    data = copy(address("float32", 0)).to_dict()

    with pytest.raises(ValueError):
        Binary.from_dict(data | {name: value})


def test_a_binary_with_other_names_is_refused():
    data = copy(address("float32", 0)).to_dict()

    for wrong in (None, [], {}, data | {"more": 1}, {k: v for k, v in data.items() if k != "dot"}):
        with pytest.raises(ValueError, match="certain names"):
            Binary.from_dict(wrong)


def test_options_that_are_no_plain_values_are_left_out():
    made = compiled(copy_kernel, x_ptr=address("float32", 0), y_ptr=address("float32", 0), n=1024,
                    BLOCK=1024)

    binary = binary_of(made, find("h100"), "copy_kernel",
                       {"num_warps": 4, "extern_libs": {"a": "b"}, "maxnreg": None})

    assert binary.options == {"num_warps": 4, "maxnreg": None}
    assert replace(binary, options={}) == replace(copy(address("float32", 0)), options={})
