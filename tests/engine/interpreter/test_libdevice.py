"""libdevice while kernels are interpreted: the functions by every name, and what is not known."""

from __future__ import annotations

import math

import numpy as np
import pytest
import triton
import triton.language as tl
from triton.language.extra import cuda, libdevice
from triton.language.extra.cuda import gdc_wait
from triton.language.extra.cuda import libdevice as cuda_libdevice
from triton.language.extra.cuda.utils import num_warps
from triton.language.extra.libdevice import tanh as imported_tanh

from grader.engine.interpreter.libdevice import call
from tests.engine.interpreter.test_interpreter import Bench

X = np.linspace(-3, 3, 16, dtype=np.float32)


@triton.jit
def tanh_kernel(x_ptr, out_ptr, HOW: tl.constexpr):
    offs = tl.arange(0, 16)
    x = tl.load(x_ptr + offs)
    if HOW == 0:
        y = libdevice.tanh(x)
    elif HOW == 1:
        y = cuda_libdevice.tanh(x)
    else:
        y = imported_tanh(x)
    tl.store(out_ptr + offs, y)


@triton.jit
def several_kernel(x_ptr, out_ptr):
    offs = tl.arange(0, 16)
    x = tl.load(x_ptr + offs)
    tl.store(out_ptr + offs, libdevice.pow(libdevice.abs(x), 1.5))
    tl.store(out_ptr + 16 + offs, libdevice.erfinv(x / 4))
    tl.store(out_ptr + 32 + offs, libdevice.fma(x, x, x))
    tl.store(out_ptr + 48 + offs, libdevice.rsqrt(x * x + 1))
    tl.store(out_ptr + 64 + offs, libdevice.round(x))
    tl.store(out_ptr + 80 + offs, libdevice.div_rn(x, x * x + 1))


@triton.jit
def unknown_kernel(x_ptr, out_ptr):
    offs = tl.arange(0, 16)
    tl.store(out_ptr + offs, libdevice.rcp64h(tl.load(x_ptr + offs).to(tl.float64)))


@triton.jit
def overlapping_kernel(x_ptr, out_ptr, HOW: tl.constexpr):
    if HOW == 0:
        tl.extra.cuda.gdc_wait()
    else:
        gdc_wait()
    tl.store(out_ptr + tl.arange(0, 16), tl.load(x_ptr + tl.arange(0, 16)) * num_warps())
    cuda.gdc_launch_dependents()


@pytest.mark.parametrize("how", [0, 1], ids=["by its place", "imported by name"])
def test_launches_that_may_overlap_run_one_after_the_other(how):
    bench, out = Bench(), np.zeros(16, np.float32)

    outcome = bench.launch(overlapping_kernel, (1,), x_ptr=bench.input(X), out_ptr=bench.fresh(out),
                           HOW=how)

    assert outcome.failure is None, outcome.failure
    assert (out == 4 * X).all()


@pytest.mark.parametrize("how", [0, 1, 2], ids=["libdevice", "cuda.libdevice", "imported by name"])
def test_a_function_goes_by_every_name(how):
    bench, out = Bench(), np.zeros(16, np.float32)

    outcome = bench.launch(tanh_kernel, (1,), x_ptr=bench.input(X), out_ptr=bench.fresh(out),
                           HOW=how)

    assert outcome.failure is None
    assert np.abs(out - np.tanh(X.astype(np.float64))).max() < 2**-24


def test_functions_are_as_exact_as_float32_can_be():
    bench, out = Bench(), np.zeros(96, np.float32)
    wide = X.astype(np.float64)

    outcome = bench.launch(several_kernel, (1,), x_ptr=bench.input(X), out_ptr=bench.fresh(out))

    assert outcome.failure is None, outcome.failure
    rows = out.reshape(6, 16).astype(np.float64)
    for got, expected in zip(rows, (
        np.abs(wide) ** 1.5,
        [_erfinv(v / 4) for v in wide],
        wide * wide + wide,
        1 / np.sqrt(wide * wide + 1),
        np.trunc(wide + np.copysign(0.5, wide)),
        wide / (wide * wide + 1),
    ), strict=True):
        assert np.abs(got - expected).max() < 2e-6


def test_bessel_functions_have_values_at_the_ends_of_their_range():
    order, ends = np.full(2, 3, np.int32), np.array([0.0, math.inf], np.float32)

    with np.errstate(all="ignore"):  # as the engine calls them
        first, second, negative = (
            call(name, [orders, ends], np.dtype(np.float32)) for name, orders in (
                ("__nv_jnf", order), ("__nv_ynf", order), ("__nv_ynf", -order)))

    assert first.tolist() == [0.0, 0.0]
    assert second.tolist() == [-math.inf, 0.0]
    assert np.isnan(negative).all()


def test_an_unknown_function_is_the_graders_lack_and_not_the_kernels():
    bench, out = Bench(), np.zeros(16, np.int32)
    x = np.arange(16, dtype=np.int32)

    with pytest.raises(RuntimeError, match="__nv_rcp64h"):
        bench.launch(unknown_kernel, (1,), x_ptr=bench.input(x), out_ptr=bench.fresh(out))


def test_afterwards_the_library_is_what_it_was():
    before = dict(vars(libdevice))

    test_a_function_goes_by_every_name(0)

    assert dict(vars(libdevice)) == before


def _erfinv(y: float) -> float:
    low, high = -6.0, 6.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if math.erf(middle) < y else (low, middle)
    return (low + high) / 2
