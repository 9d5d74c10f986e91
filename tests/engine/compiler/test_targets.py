"""Targets are plausible, Triton compiles for each, and occupancy is what CUDA's rules give."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import triton
import triton.language as tl

from grader.engine.compiler import compile, targets
from grader.engine.compiler.compile import address, build
from grader.engine.compiler.kernel_reader import binary_of
from grader.engine.compiler.targets import occupancy
from tests.support.tiers import by_default

TARGETS = targets.all_targets()
ORIGINS = {"datasheet", "architecture", "measured", "estimated"}


@triton.jit
def copy_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    tl.store(y_ptr + offs, tl.load(x_ptr + offs, mask=mask), mask=mask)


@triton.jit
def sum_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr, ADDS: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    if ADDS:
        x += tl.load(y_ptr + offs, mask=mask)
    tl.store(out_ptr + offs, x, mask=mask)


@pytest.fixture
def uncached(monkeypatch, tmp_path):
    """Has Triton compile what it compiled before, too."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    sum_kernel.device_caches.clear()
    usual_kernel.device_caches.clear()


@pytest.fixture
def is_built(uncached):
    """Whether a variant of a kernel was compiled to the end, not only lowered."""

    def is_built(operations: set[str], dtype: str, *, target: str = "h100", adds: bool) -> bool:
        pointers = dict.fromkeys(("x_ptr", "y_ptr", "out_ptr"), address(dtype, 0))
        return build(sum_kernel, {**pointers, "n": 3, "BLOCK": 256, "ADDS": adds}, {},
                     targets.find(target), operations, only_new=True) is not None

    return is_built


def test_a_variant_without_new_operations_is_only_lowered(is_built):
    operations: set[str] = set()

    assert is_built(operations, "float32", adds=True)
    assert not is_built(operations, "float32", adds=False)
    assert is_built(operations, "float64", adds=False)
    assert is_built(operations, "float64", adds=True)  # adds doubles


def test_a_variant_of_operations_that_every_gpu_has_is_only_lowered(is_built):
    operations: set[str] = set()

    assert is_built(operations, "float16", adds=True)  # one variant of each kernel is built
    assert not is_built(operations, "bfloat16", adds=True)
    assert not is_built(operations, "float32", adds=True)

    before_ampere: set[str] = set()
    assert is_built(before_ampere, "float16", adds=True, target="t4")
    assert is_built(before_ampere, "bfloat16", adds=True, target="t4")


@triton.jit
def usual_kernel(x_ptr, out_ptr, i_ptr, other_ptr, BLOCK: tl.constexpr, OTHER: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tile = offs[:, None] * BLOCK + offs[None, :]
    if OTHER:
        tl.store(i_ptr + offs, tl.load(other_ptr + offs))
    else:
        x = tl.load(x_ptr + tile)
        y = x * x
        y = tl.where(x > y, x - y, -x) + tl.maximum(x, y)
        acc = tl.dot(x, x) + x.to(tl.float32)
        acc += tl.dot(tl.maximum(acc, 1.0).to(x.dtype), tl.minimum(x, y).to(x.dtype),
                      input_precision="tf32x3")
        acc = tl.exp(acc) + tl.exp2(acc) + tl.log(acc) + tl.log2(acc) + tl.sqrt(acc) / acc
        acc = tl.rsqrt(acc) + tl.erf(acc) + tl.floor(acc) + tl.ceil(acc) - tl.abs(acc)
        tl.store(out_ptr + tile, acc.to(x.dtype))
        sums = tl.sum(acc, 1).to(tl.int32) + tl.max(acc, 1).to(tl.int32)
        sums += tl.sum(x, 1).to(tl.int32) + tl.sum(tile, 1) + tl.max(tile, 1)
        tl.store(i_ptr + offs, tl.load(i_ptr + offs) + sums)


@pytest.mark.parametrize("capability", by_default(1, [90, 80, 86, 89, 100, 120]))
def test_every_gpu_since_ampere_has_the_usual_operations(capability, uncached):
    target = next(one for one in TARGETS.values() if one.capability == capability)
    operations: set[str] = set()

    def builds(dtype: str, integer: str, *, other: bool) -> None:
        tensors = dict.fromkeys(("x_ptr", "out_ptr"), address(dtype, 0))
        integers = dict.fromkeys(("i_ptr", "other_ptr"), address(integer, 0))
        build(usual_kernel, {**tensors, **integers, "BLOCK": 64, "OTHER": other}, {}, target,
              operations)

    for dtype in ("float16", "bfloat16", "float32"):
        builds(dtype, "int32", other=False)
    for dtype in ("int8", "int16", "int32", "int64"):
        builds(dtype, dtype, other=True)

    usual = {one for one in operations if compile._OF_AMPERE.fullmatch(one)}
    assert {re.split(r'[. "]', one.lstrip('"'))[1] for one in usual} - {
        "dot", "warp_group_dot", "negf"} == {  # before Triton 3.8, -x is 0 - x
        "load", "store", "extf", "truncf", "addf", "subf", "mulf", "maxnumf", "minnumf", "cmpf",
        "select", "absf", "exp", "exp2", "log", "log2", "sqrt", "rsqrt", "erf", "floor", "ceil",
        "reduce", "elementwise_inline_asm"}
    assert {f"tt.reduce.return : {dtype}" for dtype in ("f16", "f32", "i32")} <= usual
    assert all(one.startswith("ttng.t") for one in operations - usual), operations - usual


def test_the_named_gpus_are_there():
    assert {"h100", "h200", "a100", "rtx3090", "rtx4090", "l4", "t4", "b200", "rtx5090"} <= set(
        TARGETS)


def test_every_parameter_says_where_it_comes_from():
    data = tomllib.loads(Path(targets.__file__).with_name("targets.toml").read_text())

    for name, entry in data.items():
        for parameter, value in entry.items():
            if parameter != "title":
                assert value.keys() == {"value", "origin"}, (name, parameter)
                assert value["origin"] in ORIGINS, (name, parameter)


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_a_target_is_plausible(target):
    assert re.fullmatch(r"[a-z0-9]+", target.name)
    assert target.capability in (75, 80, 86, 89, 90, 100, 120)
    assert 20 <= target.multiprocessors <= 200
    assert 1e9 < target.clock < 3e9
    assert target.registers == 65536
    # From Ampere on, the system keeps 1 KB for each program.
    reserved = 1024 if target.capability >= 80 else 0
    assert target.shared_per_program + reserved == target.shared
    assert target.warps in (32, 48, 64) and target.programs in (16, 24, 32)
    assert 1e11 < target.dram < target.l2_rate < 2e13
    assert 4 * 2**20 <= target.l2 <= 128 * 2**20
    # Two operations for each of 64 or 128 lanes of a multiprocessor and cycle; the clock of a
    # datasheet's peak is not that of its table of clocks.
    lanes = target.fp32 / (2 * target.clock * target.multiprocessors)
    assert 60 < lanes < 150
    assert target.fp32 <= target.tf32_tensor <= target.fp16_tensor <= target.fp8_tensor
    assert 20 < target.latency_l1 < target.latency_l2 < target.latency_dram < 1500
    assert 1e-6 < target.launch_seconds < 1e-5
    assert target.atomics_per_second < target.programs_per_second < target.clock


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_triton_compiles_for_a_target(target):
    arguments = {"x_ptr": address("float32", 0), "y_ptr": address("float32", 0), "n": 1000,
                 "BLOCK": 1024}

    compiled = build(copy_kernel, arguments, {}, target)

    assert f"sm_{target.capability}" in compiled.asm["ptx"]
    binary = binary_of(compiled, target, "copy_kernel", {})
    assert binary.target == target.name and 8 <= binary.registers <= 64
    assert binary.occupancy.most_warps == target.warps
    assert binary.occupancy.share > 0.5


def test_a_target_is_found_whatever_its_case():
    assert targets.find("RTX4090") == TARGETS["rtx4090"]


def test_an_unknown_target_is_answered_with_those_there_are():
    with pytest.raises(targets.UnknownTarget, match=r"No target is called 'h300'.*a100"):
        targets.find("h300")


# Each line was computed by hand. A warp's registers are rounded up to 256, and each of the four
# quarters of a multiprocessor has 16384 of them.
@pytest.mark.parametrize(("registers", "shared", "warps", "target", "programs", "limited_by"), [
    # 32 x 32 = 1024, 16 warps a quarter, 64 warps: as many as there may be
    (32, 0, 4, "h100", 16, "warps"),
    # 33 x 32 = 1056 is 1280: 12 warps a quarter, 48 warps
    (33, 0, 4, "h100", 12, "registers"),
    # 255 x 32 = 8160 is 8192: 2 warps a quarter, 8 warps
    (255, 0, 4, "h100", 2, "registers"),
    # 168 x 32 = 5376: 3 warps a quarter, 12 warps, one program of 12
    (168, 0, 12, "h100", 1, "registers"),
    # 32 warps: 128 x 32 = 4096, 4 warps a quarter, 16 warps: none fits
    (128, 0, 32, "h100", 0, "registers"),
    # 49152 + 1024 = 50176 of 233472
    (64, 49152, 4, "h100", 4, "shared memory"),
    # 1000 + 1024 is rounded up to 2048: 114, but there are 32 places
    (16, 1000, 1, "h100", 32, "programs"),
    # 33792 of 167936 is four times; without what is reserved, five would fit
    (64, 32768, 4, "a100", 4, "shared memory"),
    # nothing is reserved on Turing
    (64, 32768, 4, "t4", 2, "shared memory"),
    (32, 0, 4, "t4", 8, "warps"),
    (16, 0, 1, "rtx4090", 24, "programs"),
    (32, 0, 4, "rtx3090", 12, "warps"),
    (255, 101376, 4, "rtx5090", 1, "shared memory"),
])
def test_occupancy_is_what_cuda_gives(registers, shared, warps, target, programs, limited_by):
    held = occupancy(registers, shared, warps, TARGETS[target])

    assert (held.programs, held.limited_by) == (programs, limited_by)
    assert held.warps == programs * warps
    assert held.share == held.warps / TARGETS[target].warps


def test_tensor_memory_limits_a_multiprocessor_too():
    held = occupancy(32, 0, 4, TARGETS["b200"], tensor_memory=256)

    assert (held.programs, held.limited_by) == (2, "tensor memory")
