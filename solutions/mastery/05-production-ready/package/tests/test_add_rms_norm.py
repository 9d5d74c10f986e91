"""Tests of the contract of `add_rms_norm`. `pytest -m "unit or edge"` runs some of them.

Without a GPU they run in Triton's interpreter. Expected values are computed here, in float64 and
with another formula than the kernel's; nothing is compared with the function under test.
"""

from __future__ import annotations

import math
import os
import pickle

import pytest
import torch

HAS_GPU = torch.cuda.is_available()
if not HAS_GPU:
    os.environ.setdefault("TRITON_INTERPRET", "1")  # before Triton is imported

from addrmsnorm import (  # noqa: E402 - after TRITON_INTERPRET is set
    Config,
    InputTypeError,
    InputValidationError,
    KernelExecutionError,
    TritonKernelError,
    add_rms_norm,
)

DEVICE = "cuda" if HAS_GPU else "cpu"
DTYPES = (torch.float32, torch.float16, torch.bfloat16)
UNIT_ROUNDOFF = {torch.float32: 2.0**-24, torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}
EPS = 1e-6


def draw(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0,
         scale: float = 1.0) -> torch.Tensor:
    """Returns normal numbers, the same in every run."""
    generator = torch.Generator().manual_seed(seed)
    return (torch.randn(shape, generator=generator) * scale).to(dtype).to(DEVICE)


def inputs(*shape: int, dtype: torch.dtype = torch.float32,
           seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Returns x, residual and weight; the weights are distinct and not near 1."""
    x, residual = draw(*shape, dtype=dtype, seed=seed), draw(*shape, dtype=dtype, seed=seed + 1)
    weight = torch.linspace(0.5, 3.0, shape[-1]).to(dtype).to(DEVICE)
    return x, residual, weight


def expected(x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor,
             eps: float = EPS) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns y in float64 and s in the dtype, from the definition."""
    s = (x.double() + residual.double()).to(x.dtype)
    exact = s.double()
    rms = torch.sqrt((exact**2).sum(-1, keepdim=True) / exact.shape[-1] + eps)
    return exact / rms * weight.double(), s


def check(x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor,
          eps: float = EPS) -> None:
    """Asserts that s is exact, and y within the rounding of its dtype and of float32."""
    y, s = add_rms_norm(x, residual, weight, eps)
    right_y, right_s = expected(x, residual, weight, eps)

    one_unit = 2 * UNIT_ROUNDOFF[x.dtype] if HAS_GPU or x.dtype is not torch.bfloat16 else 2.0**-7
    s_within = 0.0 if x.dtype is not torch.bfloat16 else one_unit  # interpreters may cut digits
    torch.testing.assert_close(s, right_s, rtol=s_within, atol=0.0, equal_nan=True)
    assert y.dtype == s.dtype == x.dtype
    assert y.shape == s.shape == x.shape
    largest = float(weight.double().abs().max())
    torch.testing.assert_close(
        y.double(), right_y, rtol=one_unit + s_within + 8 * 2.0**-24,
        atol=16 * 2.0**-24 * largest, equal_nan=True)


# ---------------------------------------------------------------------------------------------
# Unit: the contract for ordinary inputs


@pytest.mark.unit
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_both_results_are_right(dtype):
    check(*inputs(4, 128, dtype=dtype))


@pytest.mark.unit
def test_a_row_that_can_be_computed_by_hand():
    x, residual = torch.tensor([[3.0, 0.0]]), torch.tensor([[0.0, 4.0]])
    weight = torch.tensor([1.0, 10.0])

    y, s = add_rms_norm(x.to(DEVICE), residual.to(DEVICE), weight.to(DEVICE), eps=0.5)

    assert s.tolist() == [[3.0, 4.0]]
    root = math.sqrt((9.0 + 16.0) / 2 + 0.5)
    assert y[0].tolist() == pytest.approx([3 / root, 40 / root], rel=1e-6)


@pytest.mark.unit
@pytest.mark.parametrize("shape", [(7,), (2, 3, 33), (2, 1, 3, 16)], ids=str)
def test_any_number_of_dimensions_before_the_last(shape):
    check(*inputs(*shape))


@pytest.mark.unit
def test_results_are_contiguous_and_inputs_stay_as_they_are():
    x, residual, weight = inputs(4, 33)
    before = [tensor.clone() for tensor in (x, residual, weight)]

    y, s = add_rms_norm(x, residual, weight)

    assert y.is_contiguous() and s.is_contiguous()
    for tensor, kept in zip((x, residual, weight), before, strict=True):
        assert torch.equal(tensor, kept)


@pytest.mark.unit
@pytest.mark.parametrize(("name", "change", "error"), [
    ("x", lambda x, r, w: ([1.0], r, w), InputTypeError),
    ("residual", lambda x, r, w: (x, None, w), InputTypeError),
    ("x", lambda x, r, w: (x.double(), r.double(), w.double()), InputTypeError),
    ("residual", lambda x, r, w: (x, r.half(), w), InputTypeError),
    ("weight", lambda x, r, w: (x, r, w.bfloat16()), InputTypeError),
    ("residual", lambda x, r, w: (x, r[:, :-1], w), InputValidationError),
    ("residual", lambda x, r, w: (x, r[:1], w), InputValidationError),
    ("weight", lambda x, r, w: (x, r, w[:-1]), InputValidationError),
    ("weight", lambda x, r, w: (x, r, w[None]), InputValidationError),
    ("residual", lambda x, r, w: (x, r.to("meta"), w), InputValidationError),
    ("weight", lambda x, r, w: (x, r, w.to("meta")), InputValidationError),
    ("x", lambda x, r, w: (x.sum(), r.sum(), w), InputValidationError),
])
def test_bad_arguments_are_refused_by_name(name, change, error):
    with pytest.raises(error, match=name) as caught:
        add_rms_norm(*change(*inputs(4, 8)))

    assert isinstance(caught.value, TritonKernelError)
    assert isinstance(caught.value, TypeError if error is InputTypeError else ValueError)
    assert any(problem.startswith(name) for problem in caught.value.problems)


@pytest.mark.unit
def test_all_problems_are_told_at_once():
    x, residual, _ = inputs(4, 8)

    with pytest.raises(InputValidationError) as caught:
        add_rms_norm(x, residual[:2], None, eps=-1.0)

    assert [problem.split(":")[0] for problem in caught.value.problems] == [
        "residual", "weight", "eps"]
    assert not isinstance(caught.value, InputTypeError)


@pytest.mark.unit
def test_a_wrong_config_is_told_beside_other_problems():
    x, residual, _ = inputs(4, 8)

    with pytest.raises(InputTypeError) as caught:
        add_rms_norm(x, residual.half(), None, "1", config=8)

    assert [problem.split(":")[0] for problem in caught.value.problems] == [
        "residual", "weight", "eps", "config"]


@pytest.mark.unit
@pytest.mark.parametrize(("fields", "error"), [
    ({"num_warps": 3, "max_columns": 0}, InputValidationError),
    ({"num_warps": "4", "max_columns": 0, "check_outputs": 1}, InputValidationError),
    ({"num_warps": True, "max_columns": 1.5, "check_outputs": None}, InputTypeError),
], ids=["values", "types and a value", "types"])
def test_all_problems_of_a_config_are_told_at_once(fields, error):
    with pytest.raises(InputValidationError) as caught:
        Config(**fields)

    assert type(caught.value) is error
    problems = caught.value.problems
    assert len(problems) == len(fields)
    assert all(map(str.startswith, problems, fields))


@pytest.mark.unit
def test_errors_survive_pickling():
    with pytest.raises(InputValidationError) as caught:
        add_rms_norm(*inputs(4, 8), eps=0.0)

    copy = pickle.loads(pickle.dumps(caught.value))

    assert type(copy) is type(caught.value)
    assert copy.problems == caught.value.problems


# ---------------------------------------------------------------------------------------------
# Edge: boundary cases


@pytest.mark.edge
@pytest.mark.parametrize("columns", [1, 2, 63, 64, 65, 127, 129, 1_000, 4_097])
def test_widths_at_and_beside_powers_of_two(columns):
    check(*inputs(3, columns))


@pytest.mark.edge
@pytest.mark.parametrize("shape", [(0, 8), (2, 0, 8)], ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_no_rows_give_empty_results(shape, dtype):
    y, s = add_rms_norm(*inputs(*shape, dtype=dtype))

    assert y.shape == s.shape == shape
    assert y.dtype == s.dtype == dtype


@pytest.mark.edge
@pytest.mark.parametrize("view", [
    lambda t: t[::2], lambda t: t[:, 3:20], lambda t: t[:, ::2], lambda t: t.T,
    lambda t: t[1:2].expand(5, -1), lambda t: t[:, :1].expand(-1, 6),
    lambda t: t.reshape(2, 4, 32).transpose(0, 1),
], ids=["every other row", "some columns", "every other column", "transposed", "one row, repeated",
        "one column, repeated", "a batch of other order"])
def test_views_are_read_where_they_are(view):
    x, residual, _ = inputs(8, 32)
    x, residual = view(x), view(residual)
    weight = torch.linspace(0.5, 3.0, x.shape[-1], device=DEVICE)

    check(x, residual, weight)
    check(x, residual.contiguous(), weight)
    check(x.contiguous(), residual, weight)


@pytest.mark.edge
@pytest.mark.parametrize("step", [2, 3])
def test_a_weight_with_gaps(step):
    x, residual, _ = inputs(2, 9)
    check(x, residual, draw(9 * step)[::step])


@pytest.mark.edge
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_special_value_changes_its_own_row_only(value, dtype):
    x, residual, weight = inputs(3, 20, dtype=dtype)
    x[1, 7] = value

    check(x, residual, weight)
    y, s = add_rms_norm(x, residual, weight)

    assert torch.isfinite(y[[0, 2]]).all() and torch.isfinite(s[[0, 2]]).all()
    if math.isnan(value):
        assert y[1].isnan().all()


@pytest.mark.edge
def test_a_row_of_zeros_stays_zero():
    zeros = torch.zeros(2, 30, device=DEVICE)

    y, s = add_rms_norm(zeros, zeros, torch.ones(30, device=DEVICE))

    assert y.eq(0).all() and s.eq(0).all()


@pytest.mark.edge
@pytest.mark.parametrize("eps", [0.0, -1e-6, math.nan, math.inf, "1e-6", None, True])
def test_eps_has_to_be_a_positive_number(eps):
    error = InputValidationError if isinstance(eps, float) else InputTypeError

    with pytest.raises(error, match="eps"):
        add_rms_norm(*inputs(4, 8), eps)


@pytest.mark.edge
def test_rows_without_columns_and_rows_too_wide_are_refused():
    empty = torch.empty(3, 0, device=DEVICE)
    with pytest.raises(InputValidationError, match="x"):
        add_rms_norm(empty, empty, torch.empty(0, device=DEVICE))

    with pytest.raises(InputValidationError, match="x"):
        add_rms_norm(*inputs(1, 33), config=Config(max_columns=32))

    check(*inputs(1, 32))


@pytest.mark.edge
def test_check_outputs_tells_of_results_that_are_not_finite():
    x, residual, weight = inputs(3, 8)
    config = Config(check_outputs=True)
    add_rms_norm(x, residual, weight, config=config)
    x[2, 3] = math.inf

    with pytest.raises(KernelExecutionError):
        add_rms_norm(x, residual, weight, config=config)


# ---------------------------------------------------------------------------------------------
# Property: statements for any input. Each is exact, so no tolerance hides a bug. Associativity
# is not among them, since floating-point addition is not associative.


@pytest.mark.property
@pytest.mark.parametrize("seed", range(3))
def test_x_and_residual_can_change_places(seed):
    x, residual, weight = inputs(4, 100, seed=seed)

    first, second = add_rms_norm(x, residual, weight), add_rms_norm(residual, x, weight)

    assert torch.equal(first[0], second[0]) and torch.equal(first[1], second[1])


@pytest.mark.property
@pytest.mark.parametrize("seed", range(3))
def test_doubling_the_weight_doubles_y_and_leaves_s(seed):
    x, residual, weight = inputs(4, 100, seed=seed)

    (y, s), (double, same) = (add_rms_norm(x, residual, w) for w in (weight, 2 * weight))

    assert torch.equal(double, 2 * y) and torch.equal(same, s)


@pytest.mark.property
def test_permuting_the_rows_permutes_the_results():
    x, residual, weight = inputs(6, 50)
    order = torch.tensor([3, 0, 5, 1, 4, 2], device=DEVICE)

    y, s = add_rms_norm(x, residual, weight)
    moved_y, moved_s = add_rms_norm(x[order], residual[order], weight)

    assert torch.equal(moved_y, y[order]) and torch.equal(moved_s, s[order])


@pytest.mark.property
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_the_mean_square_of_y_is_one_where_eps_is_small(scale):
    x = draw(5, 77, scale=scale)
    y, _ = add_rms_norm(x, torch.zeros_like(x), torch.ones(77, device=DEVICE), 1e-12)

    size = y.double().pow(2).mean(-1)
    torch.testing.assert_close(size, torch.ones_like(size), rtol=1e-5, atol=0.0)


# ---------------------------------------------------------------------------------------------
# Regression: bugs that this kernel, or a similar one, had before. The names describe them.


@pytest.mark.regression
@pytest.mark.parametrize("eps", [1e-6, 1e-2, 10.0])
def test_eps_stands_under_the_root(eps):
    tiny = draw(3, 40, scale=1e-3)
    check(tiny, torch.zeros_like(tiny), torch.ones(40, device=DEVICE), eps)


@pytest.mark.regression
def test_float16_rows_whose_squares_do_not_fit_float16():
    x = draw(2, 500, dtype=torch.float16, scale=300.0)
    check(x, torch.ones_like(x), torch.full((500,), 0.5, dtype=torch.float16, device=DEVICE))


@pytest.mark.regression
def test_statistics_are_those_of_the_rounded_sum():
    x = torch.full((1, 64), 2048.0, dtype=torch.float16, device=DEVICE)
    residual = torch.full_like(x, 0.75)  # and no float16 is 2048.75
    check(x, residual, torch.ones(64, dtype=torch.float16, device=DEVICE), eps=1.0)


# ---------------------------------------------------------------------------------------------
# GPU: behavior that the interpreter cannot show


@pytest.mark.gpu
@pytest.mark.skipif(not HAS_GPU, reason="needs a GPU")
def test_rows_beyond_two_to_the_31_elements():
    stride = 2**30
    memory = torch.zeros(3 * stride + 128, dtype=torch.float16, device=DEVICE)
    x = memory.as_strided((4, 128), (stride, 1))
    x.copy_(draw(4, 128, dtype=torch.float16))
    check(x, torch.zeros(4, 128, dtype=torch.float16, device=DEVICE),
          torch.ones(128, dtype=torch.float16, device=DEVICE))
