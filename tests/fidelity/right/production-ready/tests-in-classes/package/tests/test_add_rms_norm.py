"""The contract, class by class; every class is one kind of test."""

from __future__ import annotations

import math
import os

import numpy as np
import pytest
import torch

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"

import addrmsnorm as package

U = {torch.float32: 2.0**-23, torch.float16: 2.0**-10, torch.bfloat16: 2.0**-7}


@pytest.fixture
def device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


@pytest.fixture
def make(device):
    def make(rows: int, columns: int, dtype: torch.dtype = torch.float32, scale: float = 1.0):
        random = np.random.default_rng(rows * 10_007 + columns)
        x, r = (torch.tensor(random.normal(size=(rows, columns)) * scale).to(dtype).to(device)
                for _ in range(2))
        return x, r, torch.tensor(random.uniform(0.5, 2, columns)).to(dtype).to(device)
    return make


def agree(x, r, w, eps=1e-6, **options):
    y, s = package.add_rms_norm(x, r, w, eps, **options)
    assert (y.dtype, s.dtype, y.shape, s.shape) == (x.dtype, x.dtype, x.shape, x.shape)
    a = s.double().cpu().numpy()
    exact = (x.double() + r.double()).cpu().numpy()
    np.testing.assert_allclose(a, exact, rtol=U[x.dtype], atol=1e-40)
    with np.errstate(invalid="ignore"):
        want = a / np.sqrt(np.mean(a * a, axis=-1, keepdims=True) + eps) * w.double().cpu().numpy()
    np.testing.assert_allclose(y.double().cpu().numpy(), want, rtol=U[x.dtype] + 1e-6, atol=1e-7)


@pytest.mark.unit
class TestValues:
    @pytest.mark.parametrize("dtype", list(U))
    def test_dtypes(self, make, dtype):
        agree(*make(3, 40, dtype))

    def test_arguments_are_left_alone(self, make):
        given = make(2, 9)
        kept = [t.clone() for t in given]
        package.add_rms_norm(*given)
        assert all(torch.equal(a, b) for a, b in zip(given, kept, strict=True))

    def test_warps_change_no_value(self, make):
        agree(*make(2, 60), config=package.Config(num_warps=1))


@pytest.mark.unit
class TestRefusals:
    def test_shapes_and_devices(self, make):
        x, r, w = make(4, 6)
        for bad in ((x, r[:, :5], w), (x, r[:3], w), (x, r, w[:5]), (x, r.to("meta"), w)):
            with pytest.raises(package.InputValidationError):
                package.add_rms_norm(*bad)

    def test_types(self, make):
        x, r, w = make(4, 6)
        for bad in ((x, r, w.half()), (x, r, 1.0), (x.int(), r.int(), w.int())):
            with pytest.raises(TypeError):
                package.add_rms_norm(*bad)

    def test_no_columns(self, device):
        nothing = torch.zeros(2, 0, device=device)
        with pytest.raises(ValueError, match="x"):
            package.add_rms_norm(nothing, nothing, nothing[0])


@pytest.mark.edge
class TestEdges:
    @pytest.mark.parametrize("columns", [1, 3, 17, 100, 513])
    def test_widths(self, make, columns):
        agree(*make(2, columns))

    def test_slices(self, make):
        x, r, w = make(6, 30)
        agree(x[::2, 4:20], r[::2, 4:20], w[4:20])
        agree(x[:, 4:20], r[:, 4:20].clone(), w[4:20])
        agree(x[:, 4:20].clone(), r[:, 4:20], w[4:20])

    def test_an_empty_batch(self, make):
        y, s = package.add_rms_norm(*make(0, 5))
        assert y.shape == s.shape == (0, 5)

    def test_nan(self, make):
        x, r, w = make(3, 10)
        x[1, 2] = math.nan
        y, _ = package.add_rms_norm(x, r, w)
        assert y.isnan().any(1).tolist() == [False, True, False]
        assert y[1].isnan().all()


class TestLaws:
    pytestmark = pytest.mark.property

    def test_doubling_a_weight(self, make):
        x, r, w = make(3, 33)
        assert torch.equal(package.add_rms_norm(x, r, 2 * w)[0],
                           2 * package.add_rms_norm(x, r, w)[0])


@pytest.mark.regression
def test_small_rows_need_eps(make):
    for eps in (1e-6, 0.3):
        agree(*make(2, 12, scale=1e-4), eps)


@pytest.mark.regression
def test_squares_of_float16(make):
    agree(*make(2, 64, torch.float16, 400.0))


@pytest.mark.gpu
def test_on_a_gpu(make, device):
    if device == "cpu":
        pytest.skip("there is no GPU")
    agree(*make(1_000, 4_096))
