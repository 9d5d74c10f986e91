"""What Triton's IR shows before layouts are chosen: a bound of shared memory."""

from __future__ import annotations

import pytest
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from grader.engine.compiler import compile, targets
from grader.engine.compiler.compile import DoesNotCompile, address, build, lower


@triton.jit
def product_kernel(x_ptr, y_ptr, out_ptr, steps, SIDE: tl.constexpr, DEPTH: tl.constexpr,
                   PRECISION: tl.constexpr, PLAIN: tl.constexpr, SPECIAL: tl.constexpr,
                   CALLS: tl.constexpr):
    offs, inner = tl.arange(0, SIDE), tl.arange(0, DEPTH)
    acc = tl.zeros((SIDE, SIDE), tl.float32)
    for step in tl.range(0, steps, warp_specialize=SPECIAL):
        x = tl.load(x_ptr + offs[:, None] * steps + step * DEPTH + inner[None, :])
        y = tl.load(y_ptr + (step * DEPTH + inner)[:, None] * SIDE + offs[None, :])
        acc = tl.dot(x, y, acc, input_precision=PRECISION)
    if PLAIN:
        acc *= 2
    if CALLS:
        acc *= largest(x_ptr, SIDE)
    tl.store(out_ptr + offs[None, :] * SIDE + offs[:, None], acc)


@triton.jit
def two_products_kernel(x_ptr, out_ptr, n, SIDE: tl.constexpr, STAGES: tl.constexpr):
    offs = tl.arange(0, SIDE)
    tile = offs[:, None] * SIDE + offs[None, :]
    q = tl.load(x_ptr + tile)
    acc = tl.zeros((SIDE, SIDE), tl.float32)
    for start in tl.range(0, n, SIDE, num_stages=STAGES):
        k = tl.load(x_ptr + start * SIDE + tile)
        scores = tl.dot(q, tl.trans(k))
        weights = tl.exp(scores - tl.max(scores, 1)[:, None])
        acc += tl.dot(weights.to(k.dtype), k) + tl.sum(weights, 1)[:, None]
    tl.store(out_ptr + tile, acc.to(q.dtype))


@triton.jit
def two_loops_kernel(x_ptr, out_ptr, n, SIDE: tl.constexpr, STAGES: tl.constexpr):
    """The second loop has operands that are there before the first one, and one of a round ago."""
    offs = tl.arange(0, SIDE)
    tile = offs[:, None] * SIDE + offs[None, :]
    q, w = tl.load(x_ptr + tile), tl.load(out_ptr + tile)
    acc = tl.zeros((SIDE, SIDE), tl.float32)
    for start in tl.range(0, n, SIDE, num_stages=STAGES):
        k = tl.load(x_ptr + start * SIDE + tile)
        acc = tl.dot(q, tl.trans(k), acc)
        acc = tl.dot(k, q, acc)
    before = tl.load(x_ptr + n * SIDE + tile)
    for start in tl.range(n, 2 * n, SIDE, num_stages=STAGES):
        k = tl.load(x_ptr + start * SIDE + tile)
        acc = tl.dot(tl.trans(w), before, acc)
        for _ in range(3):
            acc = tl.dot(tl.trans(q), (tl.load(out_ptr + tile) + acc).to(q.dtype), acc)
        before = k
    tl.store(out_ptr + tile, acc.to(q.dtype))


@triton.jit(noinline=True)
def largest(x_ptr, SIDE: tl.constexpr):
    return tl.max(tl.load(x_ptr + tl.arange(0, SIDE)))


@triton.jit
def moved_kernel(x_ptr, out_ptr, n, SIDE: tl.constexpr, STAGES: tl.constexpr):
    offs = tl.arange(0, SIDE)
    for start in tl.range(0, n, num_stages=STAGES):
        x = tl.load(x_ptr + start + offs[:, None] * n + offs[None, :])
        tl.store(out_ptr + start + offs[None, :] * n + offs[:, None], tl.trans(x))
        tl.store(out_ptr + start + offs, tl.sort(tl.cumsum(tl.sum(x, 0))))


@triton.jit
def tiles_kernel(x_desc, y_desc, out_desc, steps, DEPTH: tl.constexpr, SIDE: tl.constexpr):
    acc = tl.zeros((SIDE, SIDE), tl.float32)
    for step in range(steps):
        acc = tl.dot(x_desc.load([0, step * DEPTH]), y_desc.load([step * DEPTH, 0]), acc)
    out_desc.store([0, 0], acc.to(tl.float16))


def _product(dtype: str, side: int, depth: int, precision: str = "tf32", special: bool = False,
             plain: bool = False, calls: bool = False) -> tuple[object, dict[str, object]]:
    pointers = dict.fromkeys(("x_ptr", "y_ptr"), address(dtype, 0))
    return product_kernel, {**pointers, "out_ptr": address("float32", 0), "steps": 64,
                            "SIDE": side, "DEPTH": depth, "PRECISION": precision, "PLAIN": plain,
                            "SPECIAL": special, "CALLS": calls}


def _with_stages(kernel: object, dtype: str, side: int,
                 stages: int) -> tuple[object, dict[str, object]]:
    return kernel, {"x_ptr": address(dtype, 0), "out_ptr": address(dtype, 0), "n": 4096,
                    "SIDE": side, "STAGES": stages}


def _tiles(side: int, depth: int) -> tuple[object, dict[str, object]]:
    def tiles(*block: int) -> TensorDescriptor:
        return TensorDescriptor(address("float16", 0), [4096, 4096], [4096, 1], list(block))

    return tiles_kernel, {"x_desc": tiles(side, depth), "y_desc": tiles(depth, side),
                          "out_desc": tiles(side, side), "steps": 64, "DEPTH": depth, "SIDE": side}


@pytest.mark.parametrize("stages", [1, 2, 4])
@pytest.mark.parametrize("target", ["a100", "h100", "b200", "rtx5090"])
@pytest.mark.parametrize("kernel, arguments", [
    _product("float16", 64, 32), _product("float16", 16, 16), _product("float16", 128, 16),
    _product("float32", 32, 32), _product("float32", 32, 32, "tf32x3"),
    _product("float32", 64, 16, "ieee"), _product("float8_e5m2", 64, 64),
    _with_stages(two_products_kernel, "float16", 64, 3),
    _with_stages(two_products_kernel, "bfloat16", 32, 5),
    _with_stages(two_products_kernel, "float32", 32, 2),
    _with_stages(two_loops_kernel, "float16", 64, 3),
    _with_stages(two_loops_kernel, "bfloat16", 32, 1),
    _with_stages(two_loops_kernel, "float32", 32, 2),
    _with_stages(moved_kernel, "float32", 64, 3), _with_stages(moved_kernel, "int8", 64, 4),
    _with_stages(moved_kernel, "float64", 32, 2), _with_stages(moved_kernel, "float16", 128, 1),
    _tiles(64, 32), _tiles(128, 64)])
def test_no_kernel_needs_more_shared_memory_than_its_bound(kernel, arguments, target, stages,
                                                           monkeypatch):
    bounds = []

    def noted(ttir: str, num_stages: int) -> int:
        bounds.append(most_shared(ttir, num_stages))
        return 1 << 40

    most_shared = compile.most_shared
    monkeypatch.setattr(compile, "most_shared", noted)
    monkeypatch.setattr(compile, "_has", lambda *_: True)
    needed = []
    monkeypatch.setattr(compile, "_fits", lambda shared, *_: needed.append(shared))

    lower(kernel, arguments, {"num_stages": stages}, targets.find(target))

    assert len(bounds) == len(needed) == 1
    assert needed[0] <= bounds[0]


@pytest.fixture
def lowered(monkeypatch, tmp_path):
    """Whether layouts of a product were chosen, after another one was compiled to the end."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    product_kernel.device_caches.clear()
    operations: set[str] = set()
    kernel, arguments = _product("float16", 16, 16, calls=True)
    build(kernel, arguments, {}, targets.find("h100"), operations)

    def lowered(*product: object, plain: bool = False, special: bool = False,
                calls: bool = False, **options: int) -> bool:
        checked = []
        check = compile._check_lowered
        with monkeypatch.context() as patch:
            patch.setattr(compile, "_check_lowered", lambda lowered, target: (
                checked.append(bool(lowered.args)), check(lowered, target)))
            kernel, arguments = _product(*product, plain=plain, special=special, calls=calls)
            lower(kernel, arguments, options, targets.find("h100"), operations)
        return checked == [True]

    return lowered


def test_no_layouts_are_chosen_for_usual_operations_in_little_memory(lowered):
    assert not lowered("float16", 32, 32)
    assert not lowered("float16", 32, 32, plain=True)  # multiplies too, as every GPU does
    assert lowered("float8_e4m3fn", 32, 32)  # not every GPU has it
    assert lowered("float16", 128, 64)
    assert lowered("float16", 32, 32, num_stages=56)
    assert lowered("float16", 32, 32, num_ctas=2)
    assert lowered("float16", 32, 32, maxnreg=128)
    assert lowered("float16", 64, 32, special=True, num_warps=8, num_stages=1)
    assert lowered("float16", 16, 32, calls=True)


@pytest.mark.parametrize("product, options", [
    (("float16", 256, 128), {"num_stages": 4}), (("float32", 128, 64), {"num_stages": 6}),
    (("float16", 32, 32), {"num_warps": 64})], ids=["blocks", "stages", "threads"])
def test_what_needs_too_much_is_refused_all_the_same(lowered, product, options):
    with pytest.raises(DoesNotCompile):
        lowered(*product, **options)
